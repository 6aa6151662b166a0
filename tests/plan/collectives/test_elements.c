/* test_elements.c - plays plans with numbers: members end with the result of direct sums and copies. */
#include "plan/collectives/collective.h"
#include "tests/support/plan/law_cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 12, FIRST = HP_ALGORITHM_LIBRARY + 1 };

typedef struct member {
    hp_collective_plan plan;
    float *data, *outgoing, *message;
    int64_t n_message;
} member;

typedef struct game {
    hp_algorithm algorithm;
    hp_collective_case c;
    hp_collective_data data;
    int64_t elems; /* most elements of any member's data */
    member m[MOST];
} game;

/* Member m's contribution: thirds, whose sums round differently in different orders. */
static float value(int32_t m, int64_t i) {
    return (float)((m * 131 + i * 17) % 1000) / 3.0f;
}

/* --- where parts lie, counted here --- */

static int64_t part(const game *g, int32_t from, int32_t to) {
    const int64_t count = g->data.count, each = (count + g->c.size - 1) / g->c.size, left = count - to * each;
    if (g->c.what == HP_COLLECTIVE_ALL_TO_ALL)
        return g->data.part ? g->data.part[from * g->c.size + to] : count / g->c.size;
    return g->data.part ? g->data.part[to] : left < 0 ? 0 : left < each ? left : each;
}

static int64_t sum_to(const game *g, int32_t from, int32_t n) { /* to members before n */
    int64_t sum = 0;
    for (int32_t to = 0; to < n; to++) sum += part(g, from, to);
    return sum;
}

static int64_t sum_from(const game *g, int32_t n, int32_t to) { /* from members before n */
    int64_t sum = 0;
    for (int32_t from = 0; from < n; from++) sum += part(g, from, to);
    return sum;
}

static bool exchange(const game *g) {
    return g->c.what == HP_COLLECTIVE_ALL_TO_ALL;
}

/* --- steps --- */

static float *address(const member *m, const hp_piece *p) {
    return (p->outgoing ? m->outgoing : m->data) + p->offset;
}

static void check_piece(const game *g, const hp_piece *p) {
    assert_true(p->count > 0 && p->offset >= 0 && p->offset + p->count <= g->elems);
    assert_true(!p->outgoing || exchange(g));
}

static void send(const game *g, member *m, int32_t lane, const hp_block_range *r) {
    hp_piece p, last = {.offset = -1};
    m->n_message = 0;
    for (int32_t x = 0; hp_collective_next(&m->plan, lane, r, &x, &p); last = p) {
        check_piece(g, &p);
        assert_false(last.offset + last.count == p.offset && last.offset >= 0);
        memcpy(m->message + m->n_message, address(m, &p), sizeof(float) * (size_t)p.count);
        m->n_message += p.count;
    }
    assert_int_equal(m->n_message, hp_collective_elems(&m->plan, lane, r));
}

static void receive(const game *g, member *m, int32_t lane, const hp_block_step *s) {
    const member *from = &g->m[s->recv_from];
    int64_t n = 0;
    hp_piece p;
    for (int32_t x = 0; hp_collective_next(&m->plan, lane, &s->recv, &x, &p);) {
        check_piece(g, &p);
        float *to = address(m, &p);
        for (int64_t i = 0; i < p.count; i++, n++)
            to[i] = s->add ? to[i] + from->message[n] : from->message[n];
    }
    assert_int_equal(n, from->n_message);
    assert_int_equal(n, hp_collective_elems(&m->plan, lane, &s->recv));
}

/* Plays the plan; returns the number of elements sent to other members. */
static int64_t play(game *g) {
    int64_t sent = 0;
    for (int32_t lane = 0; lane < g->m[0].plan.lanes; lane++)
        for (int32_t step = 0; step < g->m[0].plan.steps; step++) {
            for (int32_t m = 0; m < g->c.size; m++) {
                const hp_block_step s = hp_collective_at(&g->m[m].plan, lane, step);
                if (s.send_to >= 0) send(g, &g->m[m], lane, &s.send);
                if (s.send_to >= 0 && s.send_to != m) sent += g->m[m].n_message;
            }
            for (int32_t m = 0; m < g->c.size; m++) {
                const hp_block_step s = hp_collective_at(&g->m[m].plan, lane, step);
                if (s.recv_from >= 0) receive(g, &g->m[m], lane, &s);
            }
        }
    return sent;
}

/* --- the beginning: what is not a member's is no number --- */

static void set(float *to, int64_t n, int32_t m, int64_t first) {
    for (int64_t i = 0; i < n; i++) to[i] = value(m, first + i);
}

static void deal(game *g, int32_t i) {
    member *m = &g->m[i];
    const size_t room = sizeof(float) * (size_t)g->elems + 4;
    float **const all[] = {&m->data, &m->outgoing, &m->message};
    m->plan = hp_collective_plan_of(g->algorithm, &g->c, i, &g->data);
    for (int k = 0; k < 3; k++) {
        *all[k] = test_malloc(room);
        for (int64_t e = 0; e < g->elems; e++) (*all[k])[e] = NAN;
    }
    const hp_blocks_of begins = hp_collective_infos[g->c.what].begins;
    if (begins == HP_BLOCKS_OWN)
        set(m->data + sum_to(g, 0, i), part(g, 0, i), i, sum_to(g, 0, i));
    else if (begins == HP_BLOCKS_EACH)
        set(m->outgoing, sum_to(g, i, g->c.size), i, 0);
    else if (begins == HP_BLOCKS_ALL || i == g->c.root)
        set(m->data, g->elems, i, 0);
}

/* --- the end --- */

static void check_values(const game *g, int32_t m, int64_t begin, int64_t n) {
    const hp_collective_info *info = &hp_collective_infos[g->c.what];
    int32_t owner = info->begins == HP_BLOCKS_ROOT ? g->c.root : 0;
    int64_t end = info->begins == HP_BLOCKS_OWN ? part(g, 0, 0) : INT64_MAX;
    for (int64_t i = begin; i < begin + n; i++) {
        double wanted = 0;
        while (i >= end) end += part(g, 0, ++owner);
        for (int32_t k = 0; k < g->c.size; k++)
            if (info->adds || k == owner) wanted += (double)value(k, i);
        const double error = fabs((double)g->m[m].data[i] - wanted);
        assert_true(error <= (info->adds ? 1e-3 : 0));
    }
}

static void check_exchange(const game *g, int32_t m) {
    for (int32_t from = 0; from < g->c.size; from++) {
        const int64_t at = sum_from(g, from, m), first = sum_to(g, from, m);
        const hp_piece block = hp_collective_block(&g->m[m].plan, from);
        assert_false(block.outgoing);
        assert_int_equal(block.count, part(g, from, m));
        assert_int_equal(block.offset, at);
        for (int64_t i = 0; i < part(g, from, m); i++)
            assert_true(g->m[m].data[at + i] == value(from, first + i));
    }
}

static void check_member(const game *g, int32_t m) {
    const hp_blocks_of ends = hp_collective_infos[g->c.what].ends;
    if (exchange(g)) {
        check_exchange(g, m);
    } else if (ends == HP_BLOCKS_OWN) {
        const hp_piece block = hp_collective_block(&g->m[m].plan, m);
        assert_int_equal(block.count, part(g, 0, m));
        if (block.count) assert_int_equal(block.offset, sum_to(g, 0, m));
        check_values(g, m, sum_to(g, 0, m), part(g, 0, m));
    } else if (ends == HP_BLOCKS_ALL || m == g->c.root) {
        check_values(g, m, 0, g->elems);
    }
}

/* --- whole games --- */

static void set_up(game *g) {
    g->elems = g->data.count;
    if (exchange(g))
        for (int32_t m = 0; m < g->c.size; m++) {
            const int64_t out = sum_to(g, m, g->c.size), in = sum_from(g, g->c.size, m);
            g->elems = out > g->elems ? out : g->elems;
            g->elems = in > g->elems ? in : g->elems;
        }
    for (int32_t m = 0; m < g->c.size; m++) deal(g, m);
    for (int32_t m = 1; m < g->c.size; m++) assert_int_equal(g->m[m].plan.lanes, g->m[0].plan.lanes);
}

/* Is each byte sent once, as in algorithms with minimal traffic? */
static bool sparing(const game *g) {
    switch (g->algorithm) {
    case HP_ALGORITHM_RING:
    case HP_ALGORITHM_PAIRWISE:
    case HP_ALGORITHM_TWO_TREES:
        return true;
    case HP_ALGORITHM_BINOMIAL:
        return !hp_collective_parts(g->c.what);
    case HP_ALGORITHM_BRUCK:
        return g->c.what == HP_COLLECTIVE_ALL_GATHER;
    case HP_ALGORITHM_RABENSEIFNER:
        return (g->c.size & (g->c.size - 1)) == 0;
    default:
        return false;
    }
}

static void play_and_check(game *g) {
    if (!hp_algorithm_does(g->algorithm, &g->c, g->data.part == NULL)) return;
    set_up(g);
    const int64_t sent = play(g);
    for (int32_t m = 0; m < g->c.size; m++) check_member(g, m);
    if (g->c.what == HP_COLLECTIVE_ALLREDUCE)
        for (int32_t m = 1; m < g->c.size; m++)
            assert_memory_equal(g->m[0].data, g->m[m].data, sizeof(float) * (size_t)g->elems);
    if (sparing(g) && !g->data.part && g->data.count % g->c.size == 0) {
        const double all = hp_collective_volume(g->c.what, g->c.size) * g->c.size * (double)g->data.count;
        assert_true(fabs((double)sent - all) < 0.5);
    }
    for (int32_t m = 0; m < g->c.size; m++)
        test_free(g->m[m].data), test_free(g->m[m].outgoing), test_free(g->m[m].message);
}

/* Plays all algorithms, and those that depend on nodes with all numbers of nodes. */
static void play_all(hp_collective what, int32_t size, int64_t count, const int64_t *parts) {
    for (int a = FIRST; a < HP_ALGORITHMS; a++)
        for (int32_t g = 1; g <= size; g++) {
            game now = {.algorithm = (hp_algorithm)a,
                        .c = {.what = what, .size = size, .root = size / 2, .per_node = g},
                        .data = {.count = count, .part = parts, .elem_bytes = 4}};
            if (!hp_collective_rooted(what)) now.c.root = 0;
            if (a == HP_ALGORITHM_TWO_LEVELS || g == size) play_and_check(&now);
        }
}

static const hp_collective WITH_DATA[] = {
    HP_COLLECTIVE_ALLREDUCE, HP_COLLECTIVE_REDUCE_SCATTER, HP_COLLECTIVE_ALL_GATHER, HP_COLLECTIVE_ALL_TO_ALL,
    HP_COLLECTIVE_BROADCAST, HP_COLLECTIVE_REDUCE,         HP_COLLECTIVE_GATHER,     HP_COLLECTIVE_SCATTER};
enum { N_WITH_DATA = sizeof WITH_DATA / sizeof *WITH_DATA };

static void plans_of_equal_parts_do_what_they_say(void **unused) {
    (void)unused;
    static const int64_t COUNTS[] = {0, 1, 2, 5, 12, 997, 27720};
    for (int32_t size = 1; size <= MOST; size++)
        for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++)
            for (int w = 0; w < N_WITH_DATA; w++) play_all(WITH_DATA[w], size, COUNTS[i], NULL);
}

/* More than one slice of 256 KiB in each block, and more than two in total. */
static void long_data_goes_in_lanes(void **unused) {
    (void)unused;
    static const int32_t SIZES[] = {1, 2, 3, 4, 6};
    static const int64_t COUNTS[] = {200000, 65536 * 12, 600001};
    const bool all = law_all("long data of any size for one to six members");
    for (size_t s = 0; s < sizeof SIZES / sizeof *SIZES; s++)
        for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++)
            for (int w = 0; w < N_WITH_DATA; w++)
                if (all || s == i + 1) play_all(WITH_DATA[w], SIZES[s], COUNTS[i], NULL);
}

static int64_t uneven(int32_t i, int64_t most) {
    return i % 3 == 1 ? 0 : 1 + i * INT64_C(7919) % most;
}

static void uneven_parts_keep_their_places(void **unused) {
    (void)unused;
    static const int64_t MOSTS[] = {1, 9, 100, 100000};
    for (int32_t size = 1; size <= MOST; size++)
        for (size_t k = 0; k < sizeof MOSTS / sizeof *MOSTS; k++) {
            int64_t parts[MOST * MOST], count = 0;
            if (MOSTS[k] > 1000 && size > 5) continue;
            for (int32_t i = 0; i < size * size; i++) parts[i] = uneven(i, MOSTS[k]);
            for (int32_t i = 0; i < size; i++) count += parts[i];
            for (int w = 0; w < N_WITH_DATA; w++)
                if (hp_collective_parts(WITH_DATA[w])) play_all(WITH_DATA[w], size, count, parts);
        }
}

/* A member with no data, and a collective in which nobody has data. */
static void parts_may_all_be_empty(void **unused) {
    (void)unused;
    static const int64_t parts[MOST * MOST] = {0};
    for (int32_t size = 1; size <= MOST; size++)
        for (int w = 0; w < N_WITH_DATA; w++)
            if (hp_collective_parts(WITH_DATA[w])) play_all(WITH_DATA[w], size, 0, parts);
}

/* --- lanes --- */

/* A lane is a slice of every block; the lanes together cover all of them; a single lane equals all lanes at
 * once. */
static void lanes_share_out_every_block(void **unused) {
    (void)unused;
    static const int64_t COUNTS[] = {1, 100, 65536, 65537, 1000003, INT64_C(1) << 33};
    for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++)
        for (int w = 0; w < N_WITH_DATA; w++) {
            const hp_collective_case c = {.what = WITH_DATA[w], .size = 4, .per_node = 4};
            const hp_collective_data data = {.count = COUNTS[i], .elem_bytes = 2};
            const hp_algorithm a = hp_algorithm_choose(&c, 2 * COUNTS[i], true);
            const hp_collective_plan p = hp_collective_plan_of(a, &c, 1, &data),
                                     whole = hp_collective_whole(a, &c, 1, &data);
            const hp_block_range all = {
                .span = exchange(&(game){.c = c}) ? 4 : p.blocks, .width = 1, .stride = 1};
            int64_t elems = 0;
            assert_in_range(p.lanes, data.count >= 4, 1 << 14);
            for (int32_t lane = 0; lane < p.lanes; lane++) {
                const int64_t n = hp_collective_elems(&p, lane, &all);
                assert_true(n > 0 && n <= p.slice * p.blocks);
                elems += n;
            }
            assert_int_equal(elems, exchange(&(game){.c = c}) ? data.count / 4 * 4 : data.count);
            if (whole.lanes) assert_int_equal(hp_collective_elems(&whole, 0, &all), elems);
        }
}

static void a_barrier_has_one_element(void **unused) {
    (void)unused;
    const hp_collective_case c = {.what = HP_COLLECTIVE_BARRIER, .size = 5, .per_node = 5};
    const hp_collective_data none = {.count = 0, .elem_bytes = 1};
    const hp_collective_plan p = hp_collective_plan_of(HP_ALGORITHM_BRUCK, &c, 2, &none);
    const hp_block_step s = hp_collective_at(&p, 0, 0);
    assert_int_equal(p.lanes, 1);
    assert_int_equal(hp_collective_elems(&p, 0, &s.send), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_of_equal_parts_do_what_they_say), cmocka_unit_test(long_data_goes_in_lanes),
        cmocka_unit_test(uneven_parts_keep_their_places),        cmocka_unit_test(parts_may_all_be_empty),
        cmocka_unit_test(lanes_share_out_every_block),           cmocka_unit_test(a_barrier_has_one_element),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
