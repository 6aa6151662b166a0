/* test_collectives.c - algorithms of collectives: blocks followed symbolically through every step, steps in
 * elements, and the closed forms that the simulator prices. */
#include "plan/collectives/collective.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 64, FIRST = HP_ALGORITHM_LIBRARY + 1 };

/* --- the prover: which contributions a member's block holds, and how often --- */

typedef struct state {
    uint8_t times[MOST][MOST][MOST]; /* member, block, contributor */
} state;

static void take_step(const hp_collective_ops *c, int size, int step, const state *was, state *now) {
    for (int m = 0; m < size; m++) {
        const hp_block_step s = c->step(size, m, step);
        if (s.send_to >= 0) { /* somebody waits for it */
            assert_in_range(s.send_to, 0, size - 1);
            assert_in_range(s.send_block, 0, c->blocks(size) - 1);
            assert_int_not_equal(s.send_to, m);
            assert_int_equal(c->step(size, s.send_to, step).recv_from, m);
        }
        if (s.recv_from < 0) continue;
        const hp_block_step from = c->step(size, s.recv_from, step);
        assert_int_equal(from.send_to, m);
        assert_int_equal(from.send_block, s.recv_block);
        for (int k = 0; k < size; k++)
            now->times[m][s.recv_block][k] = (uint8_t)(was->times[s.recv_from][s.recv_block][k] +
                                                       (s.add ? was->times[m][s.recv_block][k] : 0));
    }
}

static void prove(const hp_collective_ops *c, int size) {
    state *was = calloc(1, sizeof *was), *now = calloc(1, sizeof *now);
    assert_true(was && now && c->blocks(size) <= MOST);
    for (int m = 0; m < size; m++)
        for (int b = 0; b < c->blocks(size); b++) now->times[m][b][m] = 1;
    for (int step = 0; step < c->steps(size); step++) {
        *was = *now;
        take_step(c, size, step, was, now);
    }
    for (int m = 0; m < size; m++)
        for (int b = 0; b < c->blocks(size); b++)
            for (int k = 0; k < size; k++)
                if (now->times[m][b][k] != 1)
                    fail_msg("%s of %d: member %d has contribution %d of block %d %d times", c->name, size, m,
                             k, b, now->times[m][b][k]);
    free(was);
    free(now);
}

static void every_member_ends_with_each_contribution_once(void **unused) {
    (void)unused;
    for (int a = FIRST; a < HP_ALGORITHMS; a++)
        for (int size = 1; size <= MOST; size++) prove(hp_collectives[a], size);
}

/* --- closed forms --- */

/* Messages that leave a node in a step, of the node that most leave; *sent, *added: does anybody? */
static int most_crossing(const hp_collective_ops *c, int size, int per_node, int step, bool *sent,
                         bool *added) {
    int leaves[MOST] = {0}, most = 0;
    *sent = *added = false;
    for (int m = 0; m < size; m++) {
        const hp_block_step s = c->step(size, m, step);
        *sent = *sent || s.send_to >= 0;
        *added = *added || (s.recv_from >= 0 && s.add);
        if (s.send_to >= 0 && s.send_to / per_node != m / per_node) leaves[m / per_node]++;
    }
    for (int n = 0; n < size; n++) most = leaves[n] > most ? leaves[n] : most;
    return most;
}

static void check_load(const hp_collective_ops *c, int size, int per_node) {
    const hp_collective_load load = c->load(size, per_node);
    const double block = 1.0 / c->blocks(size);
    int inside = 0, across = 0, adds = 0, crossing = 0;
    for (int step = 0; step < c->steps(size); step++) {
        bool sent, added;
        const int most = most_crossing(c, size, per_node, step, &sent, &added);
        assert_true(sent);
        *(most ? &across : &inside) += 1;
        adds += added;
        crossing = most > crossing ? most : crossing;
    }
    assert_int_equal(load.inside.rounds, inside);
    assert_int_equal(load.across.rounds, across);
    assert_true(fabs(load.inside.sent - inside * block) < 1e-9);
    assert_true(fabs(load.across.sent - across * block) < 1e-9);
    assert_true(fabs(load.added - adds * block) < 1e-9);
    assert_in_range(crossing, load.crossing ? 1 : 0, load.crossing);
}

static void loads_are_those_of_the_steps(void **unused) {
    (void)unused;
    for (int a = FIRST; a < HP_ALGORITHMS; a++)
        for (int size = 1; size <= MOST; size++)
            for (int per_node = 1; per_node <= size; per_node++)
                check_load(hp_collectives[a], size, per_node);
}

/* --- steps in elements --- */

typedef struct member {
    hp_collective_plan plan;
    float *data, *was;
} member;

/* Synchronous rounds: in each, all members take the same step of every lane. Returns the elements that member
 * 0 sent. */
static int64_t play(member *m, int size) {
    int64_t sent = 0;
    for (int step = 0; step < m[0].plan.steps; step++) {
        for (int r = 0; r < size; r++) memcpy(m[r].was, m[r].data, sizeof(float) * (size_t)m[r].plan.count);
        for (int lane = 0; lane < m[0].plan.lanes; lane++)
            for (int r = 0; r < size; r++) {
                const hp_collective_step s = hp_collective_at(&m[r].plan, lane, step);
                if (r == 0) sent += s.send_count;
                if (s.recv_count == 0) continue;
                const hp_collective_step from = hp_collective_at(&m[s.recv_from].plan, lane, step);
                assert_int_equal(from.send_to, r);
                assert_int_equal(from.send_count, s.recv_count);
                assert_int_equal(from.send_offset, s.recv_offset);
                assert_true(s.recv_count <= m[r].plan.slice);
                for (int64_t i = 0; i < s.recv_count; i++) {
                    const float came = m[s.recv_from].was[from.send_offset + i];
                    m[r].data[s.recv_offset + i] = s.add ? m[r].was[s.recv_offset + i] + came : came;
                }
            }
    }
    return sent;
}

static float value(int rank, int64_t i) { /* thirds: their sums round differently in different orders */
    return (float)((rank * 131 + i * 17) % 1000) / 3.0f;
}

static void check_bits(hp_algorithm algorithm, int size, int64_t count) {
    member m[16] = {0};
    for (int r = 0; r < size; r++) {
        m[r] = (member){.plan = hp_collective_plan_of(algorithm, r, size, count, 4),
                        .data = test_malloc(sizeof(float) * (size_t)count + 4),
                        .was = test_malloc(sizeof(float) * (size_t)count + 4)};
        for (int64_t i = 0; i < count; i++) m[r].data[i] = value(r, i);
    }
    const int64_t sent = play(m, size);
    for (int64_t i = 0; i < count; i++) {
        double exact = 0;
        for (int r = 0; r < size; r++) exact += (double)value(r, i);
        assert_true((double)m[0].data[i] - exact < 1e-3 && exact - (double)m[0].data[i] < 1e-3);
    }
    for (int r = 1; r < size; r++) assert_memory_equal(m[0].data, m[r].data, sizeof(float) * (size_t)count);
    if (algorithm == HP_ALGORITHM_RING && count % size == 0)
        assert_int_equal(sent, 2 * (size - 1) * (count / size)); /* no algorithm sends less */
    for (int r = 0; r < size; r++) test_free(m[r].data), test_free(m[r].was);
}

static void an_allreduce_gives_every_member_the_same_bits_of_the_sum(void **unused) {
    (void)unused;
    static const int64_t COUNTS[] = {0, 1, 2, 5, 1000, 8192, 8193, 9999, 65536, 100003, 600000};
    for (int size = 1; size <= 9; size++)
        for (size_t c = 0; c < sizeof COUNTS / sizeof *COUNTS; c++) {
            for (int a = FIRST; a < HP_ALGORITHMS && COUNTS[c] < 10000; a++)
                check_bits((hp_algorithm)a, size, COUNTS[c]);
            check_bits(hp_allreduce_choose(4 * COUNTS[c]), size, COUNTS[c]);
        }
}

/* The ring moves the fewest bytes, doubling takes the fewest steps: long and short messages. */
static void long_messages_go_around_a_ring(void **unused) {
    (void)unused;
    assert_int_equal(hp_allreduce_choose(8), HP_ALGORITHM_DOUBLING);
    assert_int_equal(hp_allreduce_choose(INT64_C(1) << 30), HP_ALGORITHM_RING);
    for (int size = 2; size <= MOST; size++) {
        const hp_collective_ops *ring = hp_collectives[HP_ALGORITHM_RING],
                                *doubling = hp_collectives[HP_ALGORITHM_DOUBLING];
        assert_true(ring->load(size, size).inside.sent <= 2.0 * (size - 1) / size + 1e-12);
        assert_true(doubling->steps(size) <= ring->steps(size));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_ends_with_each_contribution_once),
        cmocka_unit_test(loads_are_those_of_the_steps),
        cmocka_unit_test(an_allreduce_gives_every_member_the_same_bits_of_the_sum),
        cmocka_unit_test(long_messages_go_around_a_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
