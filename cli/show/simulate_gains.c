/* simulate_gains.c - how much faster the selected plan would be with changes to its numbers, which are never
 * chosen unasked: a lower precision that its devices have; gradients compressed, or averaged now and then. */
#include "cli/show/simulate_show.h"

/* Precisions that a user of float32 may not have thought of: of those with 16 bits the first one there is. */
static const hp_prec sixteen_bits[] = {HP_PREC_BF16, HP_PREC_FP16, HP_PREC_TF32},
                     eight_bits[] = {HP_PREC_INT8};
/* Changes for plans whose ranks wait for gradients. */
static const char *const looser[] = {"compress=allreduce:bf16", "compress=allreduce:int8",
                                     "compress=allreduce:powersgd:4", "sync=local:8"};
static const double WORTH_TRYING = 0.05; /* part of the step that ranks wait for gradients */

static bool available(const simulate_setup *s, hp_prec prec) {
    return hp_prec_allowed((int32_t)prec, s->step.mode == HP_MODE_INFER, s->device, NULL) &&
           hp_device_class_has(&s->machine.device, prec);
}

/* The selected plan with another strategy, under its own set-up. What follows from it is 0 where it is
 * impossible. */
typedef struct change {
    const simulate_setup *from, *to;
    const hp_strategy *strategy;
} change;

static double simulated_ratio(hp_arena *arena, const simulate_found *f, const change *c) {
    hp_evaluation v;
    hp_error ignored;
    hp_eval *e = simulate_eval(arena, c->to, f->batch);
    if (hp_evaluate(e, arena, c->strategy, HP_EVAL_PLACED, &v, &ignored) != HP_OK || v.reject.code) return 0;
    return v.figures.step_s > 0 ? f->list[f->chosen].figures.step_s / v.figures.step_s : 0;
}

static double estimated_ratio(hp_arena *arena, const simulate_found *f, const change *c) {
    hp_estimate now, then;
    hp_reject why;
    hp_error ignored;
    hp_eval *from = simulate_eval(arena, c->from, f->batch), *to = simulate_eval(arena, c->to, f->batch);
    if (!hp_eval_allows(hp_eval_get(to), c->strategy, 0, &why) ||
        hp_eval_estimate(from, &f->list[f->chosen].strategy, &now, &ignored) != HP_OK ||
        hp_eval_estimate(to, c->strategy, &then, &ignored) != HP_OK)
        return 0;
    const bool fits = then.likely_bytes <= (double)hp_eval_limit(to, c->strategy).rank_bytes;
    return fits && then.estimate_s > 0 ? now.estimate_s / then.estimate_s : 0;
}

/* A hint is not worth the seconds that a large program takes. */
static double ratio_of(hp_arena *arena, const simulate_found *f, const change *c) {
    return f->list[f->chosen].tasks > HP_TRIAL_TASKS ? estimated_ratio(arena, f, c)
                                                     : simulated_ratio(arena, f, c);
}

static const char as_precision[] = "--prec ", as_strategy[] = "";

static void add_ratio(simulate_found *f, const char *option, const char *what, double ratio) {
    if (ratio > 0) f->facts.gain[f->facts.n_gain++] = (simulate_gain){option, what, ratio};
}

static void add_precision(hp_arena *arena, const simulate_setup *s, simulate_found *f, const hp_prec *prec,
                          int n) {
    for (int i = 0; i < n; i++) {
        if (!available(s, prec[i])) continue;
        simulate_setup other = *s;
        hp_strategy strategy = f->list[f->chosen].strategy;
        hp_error ignored;
        strategy.prec = (int32_t)prec[i];
        if (simulate_precision(arena, &other, (int)prec[i], &ignored) == HP_OK)
            add_ratio(f, as_precision, hp_prec_names[prec[i]],
                      ratio_of(arena, f, &(change){s, &other, &strategy}));
        return;
    }
}

static void add_looser(hp_arena *arena, const simulate_setup *s, simulate_found *f) {
    const hp_evaluation *chosen = &f->list[f->chosen];
    const double waits = (double)chosen->exposure.share[HP_COST_OF_WAITS + HP_SIM_GRADIENT];
    if (s->step.mode != HP_MODE_TRAIN || waits < WORTH_TRYING) return;
    for (size_t i = 0; i < sizeof looser / sizeof *looser; i++) {
        hp_strategy other;
        hp_error ignored; /* it is compressed already, say */
        const char *text = hp_arena_printf(arena, "%s,%s", chosen->figures.strategy, looser[i]);
        if (hp_strategy_parse(text, &other, &ignored) == HP_OK)
            add_ratio(f, as_strategy, looser[i], ratio_of(arena, f, &(change){s, s, &other}));
    }
}

/* Alike devices, even stages; where that cannot be said, nothing is. */
static void add_mix(hp_arena *arena, const simulate_setup *s, simulate_found *f) {
    hp_error ignored;
    const hp_eval_setup *setup = hp_eval_get(simulate_eval(arena, s, f->batch));
    if (hp_mix_cost_of(arena, setup, &f->list[f->chosen].strategy, &f->facts.mix, &ignored) != HP_OK)
        f->facts.mix = (hp_mix_cost){0};
}

void simulate_gains(hp_arena *arena, const simulate_setup *s, simulate_found *f) {
    if (!f->n) return;
    const bool fp32 = s->network.n_prec == 1 && f->list[f->chosen].strategy.prec == HP_PREC_FP32;
    if (fp32) add_precision(arena, s, f, sixteen_bits, (int)(sizeof sixteen_bits / sizeof *sixteen_bits));
    if (fp32 && s->step.mode == HP_MODE_INFER)
        add_precision(arena, s, f, eight_bits, (int)(sizeof eight_bits / sizeof *eight_bits));
    add_looser(arena, s, f);
    if (hp_machine_mixed(&s->machine)) add_mix(arena, s, f);
}

void simulate_print_gains(const simulate_found *f) {
    static const double WORTH_SAYING = 1.1;
    const char *option = NULL; /* the gain printed before */
    for (int i = 0; i < f->facts.n_gain; i++) {
        const simulate_gain *g = &f->facts.gain[i];
        if (g->ratio < WORTH_SAYING) continue;
        const bool other = option != g->option;
        printf("%s%s%s: about %.2gx", other ? "; " : ", ", other ? g->option : "", g->what, g->ratio);
        option = g->option;
    }
}

json_t *simulate_gains_json(const simulate_found *f) {
    json_t *gains = json_object();
    for (int i = 0; i < f->facts.n_gain; i++)
        json_object_set_new(gains, f->facts.gain[i].what, json_real(f->facts.gain[i].ratio));
    return gains;
}
