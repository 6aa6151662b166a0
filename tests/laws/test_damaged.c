/* test_damaged.c - a damaged program of a deployed network is rejected, or runs on all ranks with exactly the
 * output of the undamaged one. The executor checks nothing again, so damage that the checker accepts must not
 * matter. */
#include "plan/check/check.h"
#include "tests/support/plan/damage.h"
#include "tests/support/plan/random_deployed.h"
#include "tests/support/exec/run_ranks.h"
#include "plan/lower/lower.h"
#include "tests/support/plan/law_cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { MAX_RANKS = 6, DAMAGES = 24 };

static const hp_qparam *draw_qparams(victim *v) {
    hp_qparam *q = HP_NEW(v->arena, hp_qparam, v->g->n_tensor);
    for (int t = 0; t < v->g->n_tensor; t++)
        q[t] = (hp_qparam){(float)roll(&v->d, 30, 90) / 3000.0f, coin(&v->d) ? 0 : roll(&v->d, 0, 255)};
    return q;
}

static hp_program *draw_program(victim *v, uint64_t seed) {
    hp_error err = {HP_OK, ""};
    hp_program *p = NULL;
    int64_t batch = 0;
    const hp_graph *g = random_infer_net(v->arena, seed, roll(&v->d, 1, 4));
    v->g = random_deployed(v->arena, g, coin(&v->d) ? HP_PREC_INT8 : roll(&v->d, 0, HP_PRECS - 1));
    const hp_strategy s = random_infer_strategy(&v->d, v->g, MAX_RANKS, &batch);
    const hp_lower_options o = {.mode = HP_MODE_INFER, .dtype = HP_F64, .batch = batch, .place = true};
    if (hp_lower(v->arena, v->g, &s, &o, &p, &err) != HP_OK || hp_program_check(p, v->g, &err) != HP_OK)
        fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
    return p;
}

/* Another batch or other ranks give another output. */
static bool same_samples(const hp_program *a, const hp_program *b) {
    return a->dp == b->dp && a->micro == b->micro && a->batch == b->batch && a->n_role == b->n_role &&
           a->dtype == b->dtype;
}

/* The ranks' outputs of n elements, NAN where there are none, followed by the loss. */
static const double *outputs(const victim *v, const hp_program *p, const hp_qparam *q, int64_t n,
                             uint64_t seed) {
    ranks_job job = {.g = v->g,
                     .p = p,
                     .ops = &hp_device_ref_infer,
                     .steps = 1,
                     .seed = seed,
                     .qparam = q,
                     .output = HP_NEW(v->arena, double, n + 1)};
    job.loss = &job.output[n];
    for (int64_t i = 0; i <= n; i++) job.output[i] = (double)NAN;
    if (run_ranks(&job) != HP_OK) fail_msg("seed %llu: %s", (unsigned long long)seed, job.err.text);
    return job.output;
}

static void what_passes_computes_the_same(void **state) {
    (void)state;
    int refused = 0, passed = 0;
    for (uint64_t seed = 1; seed <= law_cases(60); seed++) {
        victim v = {.arena = hp_arena_new(), .d = {seed, 9000}};
        const hp_program *whole = draw_program(&v, seed);
        const hp_qparam *q = draw_qparams(&v);
        const int64_t n = whole->batch * hp_tensor_elems(v.g, v.g->layer[v.g->n_layer - 1].out);
        const double *want = outputs(&v, whole, q, n, seed);
        for (int k = 0; k < DAMAGES; k++) {
            hp_error err;
            damage(&v, whole);
            const bool good = hp_program_check(v.p, v.g, &err) == HP_OK;
            refused += !good;
            if (!good || !same_samples(v.p, whole)) continue;
            const double *have = outputs(&v, v.p, q, n, seed);
            if (memcmp(want, have, sizeof *want * (size_t)(n + 1)) != 0)
                fail_msg("seed %llu, damage %d: passes, and puts out something else",
                         (unsigned long long)seed, k);
            passed++;
        }
        hp_arena_free(v.arena);
    }
    assert_true(refused > 0 && passed > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_passes_computes_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
