/* test_mixed.c - training in tf32, bf16 and fp16 on the reference device, which rounds by definition.
 * Strategies agree with one rank, exactly if they sum nothing in 16 bits. The loss scale changes nothing
 * except underflow. A step that overflows anywhere is skipped everywhere. */
#include "exec/train/loss_scale.h"
#include "networks/graph/precision.h"
#include "tests/support/exec/law_run.h"
#include "plan/lower/lower.h"
#include "plan/check/check.h"

enum {
    STEPS = 2,
    MAX_RANKS = 8,
    DRAW_NO_PARTS = DRAW_EXACT & ~(DRAW_TILES | DRAW_CP | DRAW_BRANCHES | DRAW_LDP)
};

static const int32_t LOW[] = {HP_PREC_TF32, HP_PREC_BF16, HP_PREC_FP16};
static const double EPS[HP_PRECS] = {
    [HP_PREC_TF32] = 0x1p-11, [HP_PREC_BF16] = 0x1p-9, [HP_PREC_FP16] = 0x1p-11}; /* relative error of one
                                                                                   * rounding */

typedef struct pair {
    law_training one, many;
} pair;

/* A random network, a strategy for it and one rank with the same groups. */
static pair draw_pair(hp_arena *arena, uint64_t seed, int axes) {
    dice d = {seed, 4000};
    const int32_t prec = LOW[roll(&d, 0, 2)];
    hp_graph *plain = random_net(arena, seed, roll(&d, 3, 6)), *g = hp_graph_train_in(arena, plain, prec);
    g->clips = seed % 3 == 0;
    const int most = roll(&d, 1, 4);
    pair p = {.many = {.g = g, .ops = &hp_device_ref, .steps = STEPS, .lr = 0.02, .seed = seed}};
    p.many.s = random_strategy_of(&d, plain, most, MAX_RANKS, axes);
    p.many.s.prec = prec;
    const int groups = law_groups(&p.many.s);
    p.many.batch = hp_strategy_batch(&p.many.s, 2 * groups);
    p.many.loss_scale = prec == HP_PREC_FP16 ? 256 : 1;
    p.one = p.many;
    p.one.s = law_one_rank(groups);
    p.one.s.prec = prec;
    return p;
}

static void agrees(const pair *p, hp_arena *arena, double bound) {
    const outcome want = law_run(arena, &p->one), have = law_run(arena, &p->many);
    law_close(&p->many, &want, &have, bound, bound);
}

/* All rounding applies to complete values; float64 sums in any order differ only in their last bit. */
static void strategies_without_parts_give_the_same_numbers(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(60); seed++) {
        hp_arena *arena = hp_arena_new();
        const pair p = draw_pair(arena, seed, DRAW_NO_PARTS);
        agrees(&p, arena, 1e-9);
        hp_arena_free(arena);
    }
}

/* Gradients of tensors read by several parts are added as they are stored: a step's weights change by lr
 * times a gradient with a few more roundings. */
static void strategies_with_parts_stay_within_rounding(void **state) {
    (void)state;
    for (uint64_t seed = 501; seed <= 500 + law_cases(60); seed++) {
        hp_arena *arena = hp_arena_new();
        pair p = draw_pair(arena, seed, DRAW_EXACT);
        p.one.steps = p.many.steps = 1;
        agrees(&p, arena, 4 * EPS[p.one.s.prec] * p.one.lr * p.one.g->n_layer + 1e-9);
        hp_arena_free(arena);
    }
}

/* A power of two changes no digits, so it cancels, except for numbers near fp16's smallest. Only one step is
 * compared: in the next, the least difference may round a weight to its other neighbour. */
static void the_scale_of_the_loss_cancels(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(20); seed++) {
        hp_arena *arena = hp_arena_new();
        pair p = draw_pair(arena, seed, DRAW_NO_PARTS);
        p.one.steps = 1;
        p.many = p.one;
        p.many.loss_scale = 2 * p.one.loss_scale;
        agrees(&p, arena, p.one.s.prec == HP_PREC_FP16 ? 1e-5 : 0);
        hp_arena_free(arena);
    }
}

/* With a scale from harmless to absurd, either every parameter is unchanged, or every one has decayed. */
static void an_overflow_anywhere_skips_the_step_everywhere(void **state) {
    (void)state;
    int skipped = 0, taken = 0;
    for (uint64_t seed = 1; seed <= law_cases(60); seed++) {
        hp_arena *arena = hp_arena_new();
        dice d = {seed, 4500};
        const hp_graph *plain = random_net(arena, seed, roll(&d, 3, 6)),
                       *g = hp_graph_train_in(arena, plain, HP_PREC_FP16);
        law_training t = {.g = g, .ops = &hp_device_ref, .steps = 1, .lr = 0.02, .seed = seed};
        t.s = random_strategy_of(&d, plain, roll(&d, 1, 4), MAX_RANKS, DRAW_EXACT);
        t.s.prec = HP_PREC_FP16;
        t.batch = hp_strategy_batch(&t.s, 2 * law_groups(&t.s));
        t.loss_scale = ldexp(1, roll(&d, 14, 26));
        const outcome have = law_run(arena, &t);
        const double *start = law_parameters(arena, g, seed);
        int64_t same = 0, trained = 0, at = 0;
        for (int i = 0; i < g->n_param; i++)
            for (int64_t e = 0; e < g->param[i].count; e++, at++) {
                trained += hp_param_trained(&g->param[i]);
                same += hp_param_trained(&g->param[i]) && have.weights[at] == start[at];
            }
        char text[HP_STRATEGY_TEXT];
        hp_strategy_text(&t.s, text);
        if (same != 0 && same != trained)
            fail_msg("seed %llu, %s, scale %g: %lld of %lld parameters are as before",
                     (unsigned long long)seed, text, t.loss_scale, (long long)same, (long long)trained);
        skipped += same != 0;
        taken += same == 0;
        hp_arena_free(arena);
    }
    assert_true(skipped > 0 && taken > 0);
}

/* --- how the scale moves --- */

static void the_scale_halves_at_once_and_doubles_in_time(void **state) {
    (void)state;
    hp_loss_scale s = hp_loss_scale_start();
    assert_true(s.value == 65536);
    for (int i = 0; i < 3; i++) s = hp_loss_scale_next(s, true);
    assert_true(s.value == 8192 && s.skipped == 3);
    for (int i = 0; i < 1999; i++) s = hp_loss_scale_next(s, false);
    assert_true(s.value == 8192);
    assert_true(hp_loss_scale_next(s, true).value == 4096);
    s = hp_loss_scale_next(s, false);
    assert_true(s.value == 16384);
    for (int i = 0; i < 1999; i++) s = hp_loss_scale_next(s, false);
    assert_true(s.value == 16384);
    for (int i = 0; i < 100; i++) s = hp_loss_scale_next(s, true);
    assert_true(s.value == 0x1p-14 && hp_loss_scale_is_minimal(s) &&
                !hp_loss_scale_is_minimal(hp_loss_scale_start()));
    for (int64_t i = 0; i < 2000 * 100; i++) s = hp_loss_scale_next(s, false);
    assert_true(s.value == 0x1p24);
}

/* --- tf32 by search: the nearest number with 10 bits after the leading one, halves to even --- */

static void tf32_is_the_nearest(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 200000; i++) {
        const int exponent = (int)hp_rng_below(1, 1, i, 200) - 100;
        const double v = (double)(float)((1 + hp_rng_uniform(1, 2, i)) * ldexp(1, exponent)),
                     unit = ldexp(1, exponent - 10), below = floor(v / unit) * unit, above = below + unit;
        const bool odd = fmod(below / unit, 2) != 0;
        const double want = v - below < above - v || (v - below == above - v && !odd) ? below : above;
        assert_true((double)to_tf32((float)v) == want);
        assert_true((double)to_tf32((float)-v) == -want);
    }
    assert_true(isinf(to_tf32(INFINITY)) && isnan(to_tf32(NAN)) && to_tf32(0) == 0);
}

/* --- a program that would apply unchecked gradients --- */

static void programs_that_skip_the_look_are_refused(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_error err = {HP_OK, ""};
    const hp_graph *g = hp_graph_train_in(arena, random_net(arena, 9, 4), HP_PREC_FP16);
    hp_strategy s;
    assert_int_equal(hp_strategy_parse("dp=2,stages=2,prec=fp16", &s, &err), HP_OK);
    const hp_lower_options o = {.mode = HP_MODE_TRAIN,
                                .dtype = HP_F64,
                                .batch = 4,
                                .device = &hp_devices[HP_DEVICE_REF],
                                .place = true};
    hp_program *p = NULL;
    assert_int_equal(hp_lower(arena, g, &s, &o, &p, &err), HP_OK);
    assert_int_equal(hp_program_check(p, g, &err), HP_OK);
    int looks = 0, waits = 0;
    for (int role = 0; role < p->n_role; role++) {
        hp_role *r = &p->role[role];
        for (int t = 0; t < r->n_task; t++) {
            hp_task *task = &r->task[t];
            if (task->op == HP_TASK_FINITE) {
                const int64_t count = task->update.elems;
                task->update.elems = 0;
                assert_int_not_equal(hp_program_check(p, g, &err), HP_OK);
                task->update.elems = count;
                looks++;
            }
            for (int i = r->dep_first[t]; i < r->dep_first[t + 1] && task->op == HP_TASK_UPDATE; i++) {
                const int32_t wanted = r->dep[i];
                if (!(r->task[wanted].flags & HP_FLAG_METRIC)) continue;
                r->dep[i] = 0; /* does not wait for the others' result */
                assert_int_not_equal(hp_program_check(p, g, &err), HP_OK);
                r->dep[i] = wanted;
                waits++;
            }
        }
    }
    assert_true(looks >= 2 && waits >= 2);
    assert_int_equal(hp_program_check(p, g, &err), HP_OK);
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strategies_without_parts_give_the_same_numbers),
        cmocka_unit_test(strategies_with_parts_stay_within_rounding),
        cmocka_unit_test(the_scale_of_the_loss_cancels),
        cmocka_unit_test(an_overflow_anywhere_skips_the_step_everywhere),
        cmocka_unit_test(the_scale_halves_at_once_and_doubles_in_time),
        cmocka_unit_test(tf32_is_the_nearest),
        cmocka_unit_test(programs_that_skip_the_look_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
