/* test_bits.c - the first difference between two runs is found where it was made: which step, loss or
 * weights, which part and rank. */
#include "tests/support/traces/trace_fixture.h"
#include "traces/bits.h"

enum { RANKS = 3, STEPS = 5, PARTS = 4 };

static char path_a[256], path_b[256];

typedef struct change { /* a change to the second run; iter -1: none */
    int32_t iter, rank, part;
    bool loss;
} change;

static int64_t plain_duration(const void *self, int rank, int task, int iter) {
    (void)self;
    return 1000 + rank + task + iter;
}

static uint64_t hash_of(int iter, int rank, int part) {
    return UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(1 + part + 10 * rank + 100 * iter);
}

/* Steps first .. STEPS. From the change on everything differs, as in a real run. The
 * loss of step 1 is NaN. */
static void write_run(const char *path, int first, const change *c) {
    hp_error err = {0};
    hp_db db;
    fixture_ok(hp_db_create(path, &db, &err), &err);
    const fixture_run r = {.kind = "exec", .ranks = RANKS, .duration = plain_duration};
    const int64_t run = fixture_add(&db, &r);
    for (int i = first; i < STEPS; i++) {
        const bool later = c && i > c->iter, here = c && i == c->iter;
        fixture_sample(&db, run, 0, i, HP_COUNTER_LOSS, i,
                       i == 1 ? (double)NAN : 2.0 + i + (later || (here && c->loss) ? 0x1p-50 : 0));
        for (int k = 0; k < RANKS * PARTS; k++) {
            const int rank = k / PARTS, part = k % PARTS;
            const bool hit = here && (c->loss || (part >= c->part && rank >= c->rank));
            fixture_sample(&db, run, rank, i, HP_COUNTER_BITS, 100 * i + k,
                           hp_bits_value(part, hash_of(i, rank, part) + (later || hit)));
        }
    }
    fixture_ok(hp_db_commit(&db, &err), &err);
    hp_db_close(&db);
}

static hp_status compare(int first_a, int first_b, const change *c, hp_bits *out) {
    hp_error err = {0};
    hp_arena *arena = hp_arena_new();
    hp_db a, b;
    write_run(path_a, first_a, NULL);
    write_run(path_b, first_b, c);
    fixture_ok(hp_db_open(path_a, &a, &err), &err);
    fixture_ok(hp_db_open(path_b, &b, &err), &err);
    const hp_status s = hp_bits_compare(arena, &a, &b, out, &err);
    hp_db_close(&a);
    hp_db_close(&b);
    hp_arena_free(arena);
    return s;
}

static void a_value_gives_back_its_part(void **state) {
    (void)state;
    for (int64_t part = 0; part < HP_BITS_MOST; part = 3 * part + 1)
        for (uint64_t hash = 0; hash <= UINT32_MAX; hash = 5 * hash + 0x0fffffff) {
            assert_int_equal(hp_bits_what(hp_bits_value(part, hash)), part);
            assert_true(hp_bits_value(part, hash) != hp_bits_value(part, hash ^ 1));
        }
    assert_int_equal(hp_bits_what((double)NAN), -1);
    assert_int_equal(hp_bits_what(-1), -1);
    assert_int_equal(hp_bits_what(0x1p53), -1);
}

static void equal_runs_have_the_same_bits(void **state) {
    (void)state;
    hp_bits out;
    assert_int_equal(compare(0, 0, NULL, &out), HP_OK);
    assert_true(out.same && out.steps == STEPS && out.only[0] == 0 && out.only[1] == 0);
    assert_int_equal(compare(0, 3, NULL, &out), HP_OK);
    assert_true(out.same && out.steps == STEPS - 3 && out.only[0] == 3 && out.only[1] == 0);
}

static void the_first_difference_is_where_it_was_made(void **state) {
    (void)state;
    hp_bits out;
    for (int32_t iter = 0; iter < STEPS; iter++)
        for (int32_t k = 0; k <= RANKS * PARTS; k++) {
            const change c = {.iter = iter, .rank = k / PARTS, .part = k % PARTS, .loss = k == RANKS * PARTS};
            if (c.loss && iter == 1) continue; /* there is no number to change */
            assert_int_equal(compare(0, 0, &c, &out), HP_OK);
            assert_true(!out.same && out.steps == STEPS && out.iter == iter && out.loss == c.loss);
            if (!c.loss) assert_true(out.what == c.part && out.rank == c.rank);
        }
}

static void what_is_not_recorded_is_said(void **state) {
    (void)state;
    hp_bits out;
    assert_int_equal(compare(0, STEPS, NULL, &out), HP_EDATA);
    assert_int_equal(compare(STEPS, 0, NULL, &out), HP_EDATA);
}

static int set_up(void **state) {
    (void)state;
    fixture_path(path_a, sizeof path_a, "bits-a.db");
    fixture_path(path_b, sizeof path_b, "bits-b.db");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    unlink(path_a);
    unlink(path_b);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_gives_back_its_part),
        cmocka_unit_test(equal_runs_have_the_same_bits),
        cmocka_unit_test(the_first_difference_is_where_it_was_made),
        cmocka_unit_test(what_is_not_recorded_is_said),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
