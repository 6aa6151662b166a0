/* test_choice.c - for any table of collectives, programs pass all checks, each group has one back end, and
 * training computes the same as by the rule, up to rounding; with two ranks, the same bits. */
#include "plan/check/check.h"
#include "plan/lower/lower.h"
#include "tests/support/exec/run_ranks.h"
#include "tests/support/plan/law_cases.h"
#include "tests/support/plan/random_net.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { STEPS = 2, MOST = 12, CLASSES = 3 };

static int32_t any_choice(dice *d) {
    static const hp_algorithm algorithms[] = {HP_ALGORITHM_DOUBLING, HP_ALGORITHM_RING,
                                              HP_ALGORITHM_RABENSEIFNER, HP_ALGORITHM_TWO_TREES,
                                              HP_ALGORITHM_TWO_LEVELS};
    static const hp_backend steps[] = {HP_BACKEND_OWN, HP_BACKEND_SHM};
    const int k = roll(d, 0, 4);
    if (k == 0) return HP_COMM_AUTO;
    if (k == 1) return hp_comm_choice(HP_BACKEND_MPI, HP_ALGORITHM_LIBRARY);
    return hp_comm_choice(steps[k % 2], algorithms[roll(d, 0, 4)]);
}

/* Covers all groups on one node; classes end at powers of two. */
static hp_comm_table random_table(hp_arena *arena, dice *d) {
    hp_comm_table t = {0, HP_NEW(arena, hp_comm_class, MOST * CLASSES)};
    for (int ranks = 2; ranks <= MOST; ranks++)
        for (int k = 0, log2 = 4; k < CLASSES; k++) {
            log2 += roll(d, 1, 6);
            const int64_t up_to = k + 1 < CLASSES ? (int64_t)1 << log2 : INT64_MAX;
            t.row[t.n++] = (hp_comm_class){HP_COLLECTIVE_ALLREDUCE, ranks, ranks, up_to, any_choice(d)};
        }
    return t;
}

static const hp_program *lowered(hp_arena *arena, const hp_graph *g, const hp_strategy *s,
                                 const hp_lower_options *o) {
    hp_program *p = NULL;
    hp_error err;
    if (hp_lower(arena, g, s, o, &p, &err) != HP_OK || hp_program_check(p, g, &err) != HP_OK)
        fail_msg("%s", err.text);
    return p;
}

static void train(const hp_graph *g, const hp_program *p, uint64_t seed, double loss[STEPS]) {
    hp_arena *arena = hp_arena_new();
    ranks_job job = {.g = g,
                     .p = p,
                     .ops = &hp_device_ref,
                     .steps = STEPS,
                     .lr = 0.01,
                     .seed = seed,
                     .loss = loss,
                     .weights = HP_NEW(arena, double, ranks_param_elems(g))};
    if (run_ranks(&job) != HP_OK) fail_msg("%s", job.err.text);
    hp_arena_free(arena);
}

static void any_table_trains_alike(void **state) {
    (void)state;
    const uint64_t cases = law_cases(120);
    uint64_t split = 0;
    hp_machine m;
    hp_error err;
    if (hp_machine_load("local", &m, &err) != HP_OK) fail_msg("%s", err.text);
    m.nodes = 1;
    m.devices_per_node = MOST;
    for (uint64_t seed = 1; seed <= cases; seed++) {
        dice d = {seed, 7700};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_net(arena, seed, roll(&d, 3, 7));
        const int groups = roll(&d, 1, 6);
        hp_strategy s = random_strategy_of(&d, g, groups, MOST, DRAW_ALL);
        s.fuse_bytes = roll(&d, 1, 4000);
        for (int i = 0; i < HP_TRAFFICS; i++) s.comm[i] = HP_COMM_AUTO;
        const hp_comm_table t = random_table(arena, &d);
        hp_lower_options o = {.mode = HP_MODE_TRAIN,
                              .dtype = HP_F64,
                              .batch = hp_strategy_batch(&s, groups),
                              .machine = &m,
                              .place = true};
        const hp_program *by_rule = lowered(arena, g, &s, &o);
        o.comm = &t;
        const hp_program *by_size = lowered(arena, g, &s, &o);
        double a[STEPS], b[STEPS];
        train(g, by_rule, seed, a);
        train(g, by_size, seed, b);
        const double most = hp_program_ranks(by_rule) <= 2 ? 0 : 1e-9;
        for (int i = 0; i < STEPS; i++)
            if (fabs(a[i] - b[i]) > most * fabs(a[i]))
                fail_msg("seed %d: %.17g, not %.17g", (int)seed, b[i], a[i]);
        split += by_size->n_group > by_rule->n_group;
        hp_arena_free(arena);
    }
    if (split == 0) fail_msg("none of %d programs has groups of the same members", (int)cases);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_table_trains_alike)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
