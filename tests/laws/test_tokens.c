/* test_tokens.c - transformers, and layers that gather, reduce and normalise maps: any strategy gives one
 * rank's losses and weights, however tokens are split over tiles, slices and stages. */
#include "tests/support/exec/law_run.h"
#include "tests/support/plan/random_tokens.h"

enum { MAX_RANKS = 16 };

static void any_strategy_reproduces_one_rank_on_ref(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(200); seed++) {
        dice d = {seed, 1000};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_layers(arena, seed, roll(&d, 2, 6));
        assert_non_null(g);
        law_training t = {.g = g, .ops = &hp_device_ref, .steps = LAW_STEPS, .lr = 0.02, .seed = seed};
        t.s = random_strategy_of(&d, g, roll(&d, 1, 4), MAX_RANKS, DRAW_EXACT | DRAW_SHARES);
        t.batch = hp_strategy_batch(&t.s, law_groups(&t.s));
        const outcome have = law_run(arena, &t);
        law_training one = t;
        one.s = law_one_rank(law_groups(&t.s));
        const outcome want = law_run(arena, &one);
        law_close(&t, &want, &have, 1e-9, 1e-9);
        hp_arena_free(arena);
    }
}

/* Gradients are derivatives. A step of lr 1 from w is w - (gradient + decay w); the slope of the loss along a
 * random direction is their product. Central differences have an error of second order in the step, plus the
 * rounding of the loss divided by it. In float64, a step of 1e-7 leaves eight digits, and hardly ever crosses
 * a kink of a ReLU or maximum. */
static void gradients_are_derivatives(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(80); seed++) {
        dice d = {seed, 3000};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_layers(arena, seed, roll(&d, 2, 6));
        law_training t = {.g = g,
                          .ops = &hp_device_ref,
                          .steps = 1,
                          .lr = 1,
                          .seed = seed,
                          .batch = 2,
                          .s = law_one_rank(1)};
        const double *w = law_parameters(arena, g, seed), step = 1e-7, decay = 1e-4;
        const outcome after = law_run(arena, &t);
        double *to[2] = {HP_NEW(arena, double, after.n), HP_NEW(arena, double, after.n)}, slope = 0,
               length = 0, loss[2];
        int64_t i = 0;
        for (int p = 0; p < g->n_param; p++)
            for (int64_t e = 0; e < g->param[p].count; e++, i++) {
                const bool trained = hp_param_trained(&g->param[p]);
                const double along = trained ? hp_rng_uniform(seed, 993, (uint64_t)i) - 0.5 : 0;
                const double g_i = w[i] - after.weights[i] - decay * w[i];
                slope += along * g_i;
                length += fabs(along * g_i);
                to[0][i] = w[i] - step * along;
                to[1][i] = w[i] + step * along;
            }
        for (int k = 0; k < 2; k++) {
            t.start = to[k];
            loss[k] = law_run(arena, &t).loss[0];
        }
        const double measured = (loss[1] - loss[0]) / (2 * step);
        if (!(fabs(measured - slope) <= 1e-5 * (length + 1e-3)))
            fail_msg("seed %llu: the loss rises by %.10g, its gradient says %.10g", (unsigned long long)seed,
                     measured, slope);
        hp_arena_free(arena);
    }
}

/* Like test_train.c, for other layers: one step, sums of at most 16 samples of 13 x 13 pixels. */
static void one_step_in_float32_stays_within_rounding(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(100); seed++) {
        dice d = {seed, 2000};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_layers(arena, seed, roll(&d, 2, 6));
        law_training t = {.g = g, .ops = &hp_device_cpu, .steps = 1, .lr = 0.01, .seed = seed};
        t.s = random_strategy_of(&d, g, roll(&d, 1, 4), 8, DRAW_EXACT | DRAW_SHARES);
        t.batch = hp_strategy_batch(&t.s, law_groups(&t.s));
        law_training one = t;
        one.s = law_one_rank(law_groups(&t.s));
        one.ops = &hp_device_ref;
        const outcome exact = law_run(arena, &one), have = law_run(arena, &t);
        const double eps = 0x1p-24, terms = 4096, depth = g->n_layer;
        law_close(&t, &exact, &have, eps * terms, 0.01 * eps * terms * depth + 4 * eps);
        hp_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_derivatives),
        cmocka_unit_test(one_step_in_float32_stays_within_rounding),
        cmocka_unit_test(any_strategy_reproduces_one_rank_on_ref),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
