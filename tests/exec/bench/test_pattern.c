/* test_pattern.c - bench expects what the collectives are defined to deliver, for every type and reduction.
 * Every changed element is counted, and no other. */
#include "exec/bench/pattern.h"
#include "tests/support/plan/law_cases.h"

#include "exec/comm/comm_reduce.h"
#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_RANKS = 9, COUNT = 9 * 8 * 7 * 5 /* a multiple of every number of ranks used here */ };

static const int RANKS[] = {2, 3, 5, 8, 9};
enum { N_RANKS = sizeof RANKS / sizeof *RANKS };

typedef struct world {
    unsigned char *source[MOST_RANKS], *data[MOST_RANKS]; /* each with room for the whole */
} world;

static world new_world(void) {
    world w;
    for (int r = 0; r < MOST_RANKS; r++) {
        w.source[r] = malloc(COUNT * sizeof(double));
        w.data[r] = malloc(COUNT * sizeof(double));
    }
    return w;
}

static void free_world(world *w) {
    for (int r = 0; r < MOST_RANKS; r++) {
        free(w->source[r]);
        free(w->data[r]);
    }
}

static hp_bench_case of_rank(hp_bench_case c, int rank) {
    c.me = rank;
    return c;
}

/* Sums all contributions into `to`. */
static void reduce_all(const hp_bench_case *c, const world *w, unsigned char *to) {
    const size_t bytes = (size_t)(c->count * hp_dtype_bytes(c->dtype));
    memcpy(to, w->source[0], bytes);
    for (int r = 1; r < c->ranks; r++) hp_reduce(c->reduction, c->dtype, to, w->source[r], c->count);
    if (c->reduction == HP_REDUCE_AVG) hp_reduce_divide(c->dtype, to, c->count, c->ranks);
}

/* Copies block `block` from the source of rank `from`, which starts with block `first`, to block `at` of the
 * data of rank `to`. */
static void move(const hp_bench_case *c, const world *w, int from, int first, int block, int to, int at) {
    const int64_t bytes = c->count / c->ranks * hp_dtype_bytes(c->dtype);
    memcpy(w->data[to] + at * bytes, w->source[from] + (block - first) * bytes, (size_t)bytes);
}

/* The collective by its definition (plan/collectives/collectives.def), block by block. */
static void perform(const hp_bench_case *c, const world *w) {
    for (int me = 0; me < c->ranks; me++)
        for (int b = 0; b < c->ranks; b++) switch (c->what) {
            case HP_COLLECTIVE_ALL_GATHER:
                move(c, w, b, b, b, me, b);
                break;
            case HP_COLLECTIVE_GATHER:
                if (me == c->root) move(c, w, b, b, b, me, b);
                break;
            case HP_COLLECTIVE_ALL_TO_ALL:
                move(c, w, b, 0, me, me, b);
                break;
            case HP_COLLECTIVE_BROADCAST:
                move(c, w, c->root, 0, b, me, b);
                break;
            case HP_COLLECTIVE_SCATTER:
                if (me == b) move(c, w, c->root, 0, b, me, b);
                break;
            case HP_BENCH_SENDRECV:
                move(c, w, (me + c->ranks - 1) % c->ranks, 0, b, me, b);
                break;
            default:
                if (b == 0) reduce_all(c, w, w->data[me]);
            }
}

static int64_t wrong_of_all(const hp_bench_case *c, const world *w) {
    int64_t wrong = 0;
    for (int r = 0; r < c->ranks; r++) {
        const hp_bench_case mine = of_rank(*c, r);
        wrong += hp_bench_wrong(&mine, w->data[r]);
    }
    return wrong;
}

static void fill_and_perform(const hp_bench_case *c, const world *w) {
    for (int r = 0; r < c->ranks; r++) {
        const hp_bench_case mine = of_rank(*c, r);
        hp_bench_fill(&mine, w->data[r], w->source[r]);
    }
    perform(c, w);
}

/* Calls `law` for every operation, type, reduction and several numbers of ranks. */
static void for_all(void (*law)(const hp_bench_case *c, const world *w)) {
    world w = new_world();
    const bool all =
        law_all("every operation, type and reduction with each of five numbers of ranks, not one");
    for (int what = 0; what <= HP_BENCH_SENDRECV; what++)
        for (int t = 0; t < HP_DTYPES; t++)
            for (int r = 0; r < HP_REDUCTIONS; r++)
                for (size_t n = 0; n < N_RANKS; n++) {
                    if (what == HP_COLLECTIVE_BARRIER) continue;
                    if (!all && n != (size_t)(what + t + r) % N_RANKS) continue;
                    const hp_bench_case c = {.what = what,
                                             .ranks = RANKS[n],
                                             .root = (int)n % RANKS[n],
                                             .dtype = (hp_dtype)t,
                                             .reduction = (hp_reduction)r,
                                             .count = COUNT};
                    law(&c, &w);
                }
    free_world(&w);
}

static void is_right(const hp_bench_case *c, const world *w) {
    fill_and_perform(c, w);
    const int64_t wrong = wrong_of_all(c, w);
    if (wrong)
        fail_msg("%s, %d ranks, %s: %lld wrong", hp_bench_name(c->what), c->ranks, hp_dtype_names[c->dtype],
                 (long long)wrong);
}

static void what_a_collective_is_defined_to_deliver_is_right(void **state) {
    (void)state;
    for_all(is_right);
}

/* Changes one bit in each of k different elements that a rank holds at the end. */
static void counts_changes(const hp_bench_case *c, const world *w) {
    const int size = hp_dtype_bytes(c->dtype),
              me =
                  c->what == HP_COLLECTIVE_REDUCE || c->what == HP_COLLECTIVE_GATHER ? c->root : c->ranks - 1;
    const hp_bench_case mine = of_rank(*c, me);
    int64_t first, n;
    hp_bench_ends(&mine, &first, &n);
    fill_and_perform(c, w);
    for (int k = 0; k < 10; k++) {
        const int64_t i = first + k * (n / 10) +
                          (int64_t)hp_rng_below(7, (uint64_t)c->what, (uint64_t)k, (uint64_t)(n / 10));
        w->data[me][i * size + size - 1] ^= 1; /* a high bit of it */
        assert_int_equal(wrong_of_all(c, w), k + 1);
    }
}

static void every_changed_element_is_counted(void **state) {
    (void)state;
    for_all(counts_changes);
}

/* Nothing was sent: whatever a rank did not have before must count as wrong. */
static void misses_what_did_not_come(const hp_bench_case *c, const world *w) {
    for (int r = 0; r < c->ranks; r++) {
        const hp_bench_case mine = of_rank(*c, r);
        hp_bench_fill(&mine, w->data[r], w->source[r]);
        int64_t first, n;
        hp_bench_ends(&mine, &first, &n);
        if (c->what == HP_COLLECTIVE_BROADCAST || c->what == HP_BENCH_SENDRECV ||
            c->what == HP_COLLECTIVE_ALL_GATHER)
            assert_int_equal(hp_bench_wrong(&mine, w->data[r]), n);
        else
            assert_true(n == 0 || hp_bench_wrong(&mine, w->data[r]) > n / 2);
    }
}

static void data_that_never_came_is_wrong(void **state) {
    (void)state;
    for_all(misses_what_did_not_come);
}

/* In place a rank's own contribution is at its place in the data. */
static void in_place_and_out_of_place_contribute_the_same(void **state) {
    (void)state;
    world w = new_world();
    for (int what = 0; what <= HP_BENCH_SENDRECV; what++) {
        if (what == HP_COLLECTIVE_BARRIER) continue;
        const hp_bench_case c = {
            .what = what, .ranks = 3, .me = 1, .root = 1, .dtype = HP_F32, .count = COUNT};
        int64_t first, n;
        hp_bench_begins(&c, &first, &n);
        hp_bench_fill(&c, w.data[0], NULL);
        hp_bench_fill(&c, w.data[1], w.source[1]);
        assert_memory_equal(w.data[0] + first * 4, w.source[1], (size_t)n * 4);
        assert_true(n > 0);
    }
    free_world(&w);
}

static void ranks_contribute_different_values(void **state) {
    (void)state;
    const hp_bench_case c = {.what = HP_COLLECTIVE_ALLREDUCE, .ranks = 64, .dtype = HP_F32, .count = COUNT};
    for (int64_t i = 0; i < 100; i++)
        for (int a = 0; a < 64; a++)
            for (int b = 0; b < a; b++) assert_true(hp_bench_value(&c, a, i) != hp_bench_value(&c, b, i));
}

/* bfloat16 is the tightest: exact up to 2^8. */
static void sums_of_128_ranks_are_exact(void **state) {
    (void)state;
    for (int t = 0; t < HP_DTYPES; t++) {
        static const double EXACT[HP_DTYPES] = {
            [HP_F32] = 0x1p24, [HP_F64] = 0x1p53, [HP_I32] = 0x1p31 - 1, [HP_U8] = 255,
            [HP_BF16] = 256,   [HP_F16] = 2048,   [HP_I8] = 128};
        const hp_bench_case c = {
            .what = HP_COLLECTIVE_REDUCE, .ranks = 128, .dtype = (hp_dtype)t, .count = COUNT};
        for (int64_t i = 0; i < COUNT; i++) {
            double sum = 0;
            for (int r = 0; r < c.ranks; r++) sum += hp_bench_value(&c, r, i);
            assert_true(sum <= EXACT[t]);
        }
    }
}

/* Bytes of the whole: equal blocks of at least one element where members have blocks of their own. */
static void sizes_are_multiples_of_the_parts(void **state) {
    (void)state;
    assert_int_equal(hp_bench_count(HP_COLLECTIVE_ALLREDUCE, 8, 4, 3), 2);
    assert_int_equal(hp_bench_count(HP_COLLECTIVE_ALLREDUCE, 1, 4, 3), 1);
    assert_int_equal(hp_bench_count(HP_COLLECTIVE_ALL_GATHER, 8, 4, 3), 3);
    assert_int_equal(hp_bench_count(HP_COLLECTIVE_ALL_TO_ALL, 1000, 4, 3), 249);
    assert_int_equal(hp_bench_count(HP_COLLECTIVE_SCATTER, 1024, 8, 4), 128);
    assert_int_equal(hp_bench_count(HP_COLLECTIVE_BARRIER, 1024, 8, 4), 0);
    assert_int_equal(hp_bench_count(HP_BENCH_SENDRECV, 1024, 8, 3), 128);
    const hp_bench_request r = {.from_bytes = 1, .to_bytes = 64, .factor = 2};
    const hp_bench_setup s = {.r = &r, .dtype = HP_F32, .ranks = 3};
    int64_t count[HP_BENCH_MOST_SIZES];
    assert_int_equal(hp_bench_counts(&s, HP_COLLECTIVE_GATHER, count),
                     3); /* 3; of 32 bytes 6; of 64 bytes 15 */
    assert_int_equal(count[0], 3);
    assert_int_equal(count[1], 6);
    assert_int_equal(count[2], 15);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_collective_is_defined_to_deliver_is_right),
        cmocka_unit_test(every_changed_element_is_counted),
        cmocka_unit_test(data_that_never_came_is_wrong),
        cmocka_unit_test(in_place_and_out_of_place_contribute_the_same),
        cmocka_unit_test(ranks_contribute_different_values),
        cmocka_unit_test(sums_of_128_ranks_are_exact),
        cmocka_unit_test(sizes_are_multiples_of_the_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
