/* test_collectives.c - the prover: follows the blocks of every algorithm through every step, and rejects an
 * algorithm with any one damaged message. */
#include "plan/collectives/collective.h"
#include "tests/support/plan/law_cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 64, FIRST = HP_ALGORITHM_LIBRARY + 1, LANES = 3 };

/* --- what is proved: an algorithm, maybe with one message damaged --- */

typedef enum damage {
    SOUND,
    LOST,      /* the message is neither sent nor expected */
    UNHEARD,   /* the message is sent, but not expected */
    DISPLACED, /* it carries the blocks after the right ones */
    MISTAKEN,  /* arriving data replaces what it should be added to, or the other way round */
    REPEATED,  /* all messages of its step are sent twice */
    DAMAGES
} damage;

typedef struct subject {
    const hp_algorithm_ops *ops;
    hp_collective_case c;
    int32_t blocks, lane;
    damage how;
    int32_t from, step; /* sender and step of the damaged message */
} subject;

static int32_t steps_of(const subject *s) {
    return s->ops->steps(&s->c) + (s->how == REPEATED);
}

static hp_block_step step_of(const subject *s, int32_t member, int32_t step) {
    if (s->how == REPEATED && step > s->step) step--;
    hp_block_step at = s->ops->step(&s->c, member, s->lane, step);
    if (step != s->step) return at;
    const bool sender = member == s->from, receiver = at.recv_from == s->from;
    const int32_t half = s->c.what == HP_COLLECTIVE_ALL_TO_ALL ? s->c.size : s->blocks;
    if (sender && s->how == LOST) at.send_to = -1;
    if (receiver && (s->how == LOST || s->how == UNHEARD)) at.recv_from = -1;
    if (sender && s->how == DISPLACED)
        at.send.first = at.send.first / half * half + (at.send.first + 1) % half;
    if (receiver && s->how == MISTAKEN) at.add = !at.add;
    return at;
}

/* --- what a member's blocks hold --- */

typedef struct held {
    int16_t of;          /* the block that it belongs to; in an all-to-all, the receiving member; -1: none */
    uint8_t times[MOST]; /* count of each member's contribution */
} held;

typedef struct state {
    held at[MOST][2 * MOST];      /* member, block */
    held message[MOST][2 * MOST]; /* blocks in the order of the sender */
    int32_t n_message[MOST];
    char why[160];
} state;

#define REFUSE(...)                                                                                          \
    do {                                                                                                     \
        snprintf(now->why, sizeof now->why, __VA_ARGS__);                                                    \
        return false;                                                                                        \
    } while (0)

static bool contributes(const hp_collective_case *c, int32_t member, int32_t block) {
    switch (hp_collective_infos[c->what].begins) {
    case HP_BLOCKS_ALL:
        return true;
    case HP_BLOCKS_OWN:
        return block == member;
    case HP_BLOCKS_ROOT:
        return member == c->root;
    default:
        return block < c->size;
    }
}

static bool must_have(const hp_collective_case *c, int32_t member, int32_t block) {
    switch (hp_collective_infos[c->what].ends) {
    case HP_BLOCKS_ALL:
        return true;
    case HP_BLOCKS_OWN:
        return block == member;
    case HP_BLOCKS_ROOT:
        return member == c->root;
    default:
        return block >= c->size;
    }
}

static void begin(const subject *s, state *now) {
    memset(now, 0, sizeof *now);
    for (int32_t m = 0; m < s->c.size; m++)
        for (int32_t b = 0; b < s->blocks; b++) {
            const bool has = contributes(&s->c, m, b);
            now->at[m][b].of = (int16_t)(has ? b : -1);
            now->at[m][b].times[m] = has;
        }
}

/* Lists the blocks of a range, in order, as collective.h defines; -1: the range is invalid. */
static int32_t list_blocks(const subject *s, const hp_block_range *r, int32_t block[2 * MOST]) {
    const bool exchange = s->c.what == HP_COLLECTIVE_ALL_TO_ALL;
    const int32_t around = exchange ? s->c.size : s->blocks,
                  base = exchange && r->first >= around ? around : 0;
    int32_t n = 0;
    if (r->first < 0 || r->first >= s->blocks || r->span < 0 || r->span > around || r->stride < 1) return -1;
    for (int32_t x = 0; x < r->span; x++) {
        if (x % r->stride >= r->width) continue;
        const int32_t i = (r->first - base + (r->down ? -x : x)) % around;
        block[n++] = base + (i < 0 ? i + around : i);
    }
    return n;
}

static bool send(const subject *s, int32_t step, int32_t m, state *now) {
    const hp_block_step at = step_of(s, m, step);
    int32_t block[2 * MOST];
    if (at.send_to < 0) return true;
    if (at.send_to >= s->c.size || step_of(s, at.send_to, step).recv_from != m)
        REFUSE("step %d: %d does not wait for %d", step, at.send_to, m);
    if ((at.send_to == m) != (at.recv_from == m)) REFUSE("step %d: %d sends to itself and others", step, m);
    const int32_t n = now->n_message[m] = list_blocks(s, &at.send, block);
    if (n <= 0) REFUSE("step %d: %d sends blocks that do not exist", step, m);
    for (int32_t i = 0; i < n; i++) {
        now->message[m][i] = now->at[m][block[i]];
        if (now->message[m][i].of < 0) REFUSE("step %d: %d does not have block %d", step, m, block[i]);
    }
    return true;
}

static bool add(held *to, const held *from) {
    for (int k = 0; k < MOST; k++) {
        const int sum = to->times[k] + from->times[k];
        to->times[k] = (uint8_t)(sum < UINT8_MAX ? sum : UINT8_MAX);
    }
    return to->of == from->of;
}

static bool receive(const subject *s, int32_t step, int32_t m, state *now) {
    const hp_block_step at = step_of(s, m, step);
    const int32_t from = at.recv_from;
    int32_t block[2 * MOST];
    if (from < 0) return true;
    if (from >= s->c.size || step_of(s, from, step).send_to != m)
        REFUSE("step %d: %d waits for %d", step, m, from);
    const int32_t n = list_blocks(s, &at.recv, block);
    if (n != now->n_message[from]) REFUSE("step %d: %d waits for %d blocks", step, m, n);
    for (int32_t i = 0; i < n; i++) {
        held *to = &now->at[m][block[i]];
        const held *came = &now->message[from][i];
        if (s->c.what != HP_COLLECTIVE_ALL_TO_ALL && came->of != block[i])
            REFUSE("step %d: %d takes block %d for %d", step, m, came->of, block[i]);
        if (!at.add)
            *to = *came;
        else if (!add(to, came))
            REFUSE("step %d: %d adds to block %d what is none of it", step, m, block[i]);
    }
    return true;
}

/* Each contribution must occur once; in a barrier, at least once. */
static bool check_end(const subject *s, int32_t m, int32_t b, state *now) {
    const bool exchange = s->c.what == HP_COLLECTIVE_ALL_TO_ALL;
    const held *h = &now->at[m][b];
    if (h->of != (exchange ? m : b)) REFUSE("member %d ends with %d in block %d", m, h->of, b);
    for (int32_t k = 0; k < s->c.size; k++) {
        const int wanted = exchange ? b == s->c.size + k : contributes(&s->c, k, b);
        const bool enough = s->c.what == HP_COLLECTIVE_BARRIER && h->times[k] > 1;
        if (h->times[k] != wanted && !enough)
            REFUSE("member %d ends with contribution %d of block %d %d times", m, k, b, h->times[k]);
    }
    return true;
}

static bool prove(const subject *s, state *now) {
    begin(s, now);
    for (int32_t step = 0; step < steps_of(s); step++) {
        for (int32_t m = 0; m < s->c.size; m++)
            if (!send(s, step, m, now)) return false;
        for (int32_t m = 0; m < s->c.size; m++)
            if (!receive(s, step, m, now)) return false;
    }
    for (int32_t m = 0; m < s->c.size; m++)
        for (int32_t b = 0; b < s->blocks; b++)
            if (must_have(&s->c, m, b) && !check_end(s, m, b, now)) return false;
    return true;
}

/* --- every algorithm, every collective, every number of members, nodes and roots --- */

typedef void judge(const subject *s, state *now);

static void judge_lanes(hp_algorithm a, const hp_collective_case *c, judge *j, state *now) {
    if (!hp_algorithm_does(a, c, true)) return;
    subject s = {.ops = hp_algorithms[a], .c = *c, .blocks = hp_algorithm_blocks(a, c)};
    for (s.lane = 0; s.lane < LANES; s.lane++) j(&s, now);
}

static void judge_roots(hp_algorithm a, hp_collective_case c, judge *j, state *now) {
    const int32_t roots[] = {0, 1, c.size - 1, c.size / 2};
    const int n = hp_collective_rooted(c.what) ? 4 : 1;
    for (int i = 0; i < n; i++) {
        c.root = roots[i];
        if (c.root < c.size) judge_lanes(a, &c, j, now);
    }
}

/* Nodes matter to some algorithms, which do not accept all members on one node. */
static void judge_all(int32_t size, judge *j, state *now) {
    for (int a = FIRST; a < HP_ALGORITHMS; a++)
        for (int what = 0; what < HP_COLLECTIVES; what++) {
            hp_collective_case c = {.what = (hp_collective)what, .size = size, .per_node = size};
            const bool flat = hp_algorithm_does((hp_algorithm)a, &c, true);
            for (int32_t g = flat ? size : 1; g <= size; g++) {
                c.per_node = g;
                judge_roots((hp_algorithm)a, c, j, now);
            }
        }
}

static void describe(const subject *s, char *out, size_t n) {
    snprintf(out, n, "%s by %s of %d, %d a node, root %d, lane %d", hp_collective_infos[s->c.what].name,
             s->ops->name, s->c.size, s->c.per_node, s->c.root, s->lane);
}

static void expect_proof(const subject *s, state *now) {
    char what[160];
    describe(s, what, sizeof what);
    if (!prove(s, now)) fail_msg("%s: %s", what, now->why);
}

static void every_member_ends_with_each_contribution_once(void **unused) {
    (void)unused;
    state *now = test_malloc(sizeof *now);
    const bool all = law_all("every number of members to 64");
    for (int32_t size = 1; size <= MOST; size++)
        if (all || size <= 12 || size == 32) judge_all(size, expect_proof, now);
    test_free(now);
}

/* --- the prover fails what is wrong --- */

/* Skips harmless damage: shifting a range of a single block, receiving something again in its own place, and
 * in barriers, whose contributions may arrive on several routes. */
static bool harmless(const subject *s, const hp_block_step *to) {
    if (s->c.what == HP_COLLECTIVE_BARRIER) return s->how != UNHEARD;
    if (s->how == DISPLACED) return s->blocks == 1;
    return s->how == REPEATED && !to->add;
}

static void expect_refusals(const subject *sound, state *now) {
    char what[160];
    subject s = *sound;
    for (s.step = 0; s.step < s.ops->steps(&s.c); s.step++)
        for (s.from = 0; s.from < s.c.size; s.from++) {
            const hp_block_step at = s.ops->step(&s.c, s.from, s.lane, s.step);
            if (at.send_to < 0) continue;
            const hp_block_step to = s.ops->step(&s.c, at.send_to, s.lane, s.step);
            for (int how = SOUND + 1; how < DAMAGES; how++) {
                s.how = (damage)how;
                describe(&s, what, sizeof what);
                if (!harmless(&s, &to) && prove(&s, now))
                    fail_msg("%s: damage %d to %d's message of step %d is not seen", what, how, s.from,
                             s.step);
            }
        }
}

static void no_single_damaged_message_goes_unseen(void **unused) {
    (void)unused;
    static const int32_t SIZES[] = {2, 3, 6, 8};
    state *now = test_malloc(sizeof *now);
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) judge_all(SIZES[i], expect_refusals, now);
    test_free(now);
}

/* A barrier that ends before every member has heard of all others. */
static int32_t one_step_less(const hp_collective_case *c) {
    return hp_algorithms[HP_ALGORITHM_BRUCK]->steps(c) - 1;
}

static void a_barrier_that_ends_early_is_refused(void **unused) {
    (void)unused;
    state *now = test_malloc(sizeof *now);
    hp_algorithm_ops early = *hp_algorithms[HP_ALGORITHM_BRUCK];
    early.steps = one_step_less;
    for (int32_t size = 2; size <= MOST; size++) {
        const subject s = {
            .ops = &early, .c = {.what = HP_COLLECTIVE_BARRIER, .size = size, .per_node = size}, .blocks = 1};
        assert_false(prove(&s, now));
    }
    test_free(now);
}

/* --- tables --- */

static void names_find_what_they_name(void **unused) {
    (void)unused;
    for (int c = 0; c < HP_COLLECTIVES; c++)
        assert_int_equal(hp_collective_find(hp_collective_infos[c].name), c);
    for (int a = 0; a < HP_ALGORITHMS; a++) assert_int_equal(hp_algorithm_find(hp_algorithms[a]->name), a);
    assert_int_equal(hp_collective_find("no such"), -1);
    assert_int_equal(hp_algorithm_find("no such"), -1);
}

/* Follows nccl-tests' definition of bus bandwidth. */
static void bus_factors_are_those_of_nccl_tests(void **unused) {
    (void)unused;
    static const double times[HP_COLLECTIVES] = {
        [HP_COLLECTIVE_ALLREDUCE] = 2,  [HP_COLLECTIVE_REDUCE_SCATTER] = 1, [HP_COLLECTIVE_ALL_GATHER] = 1,
        [HP_COLLECTIVE_ALL_TO_ALL] = 1, [HP_COLLECTIVE_GATHER] = 1,         [HP_COLLECTIVE_SCATTER] = 1};
    for (int c = 0; c < HP_COLLECTIVES; c++)
        for (int n = 1; n <= MOST; n++) {
            const double wanted = times[c] > 0 ? times[c] * (n - 1) / n : 1;
            assert_true(fabs(hp_collective_bus_factor((hp_collective)c, n) - wanted) < 1e-12);
        }
}

static void what_is_chosen_does_it(void **unused) {
    (void)unused;
    for (int what = 0; what < HP_COLLECTIVES; what++)
        for (int32_t size = 1; size <= MOST; size++)
            for (int32_t g = 1; g <= size; g++)
                for (int64_t bytes = 1; bytes < INT64_C(1) << 40; bytes *= 8)
                    for (int even = 0; even < 2; even++) {
                        const hp_collective_case c = {
                            .what = (hp_collective)what, .size = size, .root = size - 1, .per_node = g};
                        assert_true(hp_algorithm_does(hp_algorithm_choose(&c, bytes, even), &c, even));
                    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_ends_with_each_contribution_once),
        cmocka_unit_test(no_single_damaged_message_goes_unseen),
        cmocka_unit_test(a_barrier_that_ends_early_is_refused),
        cmocka_unit_test(names_find_what_they_name),
        cmocka_unit_test(bus_factors_are_those_of_nccl_tests),
        cmocka_unit_test(what_is_chosen_does_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
