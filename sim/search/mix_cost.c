/* mix_cost.c - evaluates the same strategy on other devices, and another cut on the same ones. */
#include "sim/search/mix_cost.h"
#include "sim/search/search.h"

#include "base/text.h"
#include "base/units.h"
#include "plan/lower/lower.h"

#include <string.h>

/* 0: it does not fit. */
static hp_status seconds_of(hp_arena *arena, const hp_eval_setup *setup, const hp_strategy *s,
                            double *seconds, hp_error *err) {
    hp_evaluation v;
    HP_TRY(hp_evaluate(hp_eval_new(arena, setup), arena, s, HP_EVAL_PLACED, &v, err));
    *seconds = v.reject.code ? 0 : v.figures.step_s;
    return HP_OK;
}

/* An open cut is chosen for the machine. */
static void open_cut(hp_strategy *s) {
    s->cut.n = 0;
    memset(s->cut.units, 0, sizeof s->cut.units);
}

static hp_status on_each_class(hp_arena *arena, const hp_eval_setup *setup, const hp_strategy *s,
                               hp_mix_cost *out, hp_error *err) {
    hp_strategy open = *s;
    open_cut(&open);
    for (int k = 0; k < hp_machine_classes(setup->machine); k++) {
        const hp_machine alike = hp_machine_of_class(setup->machine, k);
        hp_eval_setup on = *setup;
        double seconds;
        on.machine = &alike;
        HP_TRY(seconds_of(arena, &on, &open, &seconds, err));
        if (seconds <= 0 || (out->alike_s > 0 && seconds >= out->alike_s)) continue;
        out->class = k;
        out->alike_s = seconds;
    }
    return HP_OK;
}

/* Uses the cut for devices that are all like the first. */
static hp_status with_even_cut(hp_arena *arena, const hp_eval_setup *setup, const hp_strategy *s,
                               hp_mix_cost *out, hp_error *err) {
    const hp_machine alike = hp_machine_of_class(setup->machine, 0);
    hp_eval_setup on = *setup;
    hp_strategy even = *s;
    const double *unit_cost;
    on.machine = &alike;
    open_cut(&even);
    hp_eval *e = hp_eval_new(arena, &on);
    hp_eval_complete(e, &even, HP_CUT_TIME);
    HP_TRY(hp_eval_unit_cost(e, &even, &unit_cost, err));
    hp_strategy_fill_cut(setup->graph, unit_cost, &even);
    hp_strategy_text(&even, out->even_cut);
    return seconds_of(arena, setup, &even, &out->even_s, err);
}

static hp_status with_equal_parts(hp_arena *arena, const hp_eval_setup *setup, const hp_strategy *s,
                                  hp_mix_cost *out, hp_error *err) {
    hp_strategy equal = *s;
    bool has = false;
    for (int axis = 0; axis < HP_AXIS_C; axis++) {
        has |= s->by[axis].n > 0;
        equal.by[axis].n = 0;
    }
    return has ? seconds_of(arena, setup, &equal, &out->equal_s, err) : HP_OK;
}

static hp_status with_better_parts(hp_arena *arena, const hp_eval_setup *setup, const hp_strategy *s,
                                   hp_mix_cost *out, hp_error *err) {
    hp_evaluation v;
    hp_eval *e = hp_eval_new(arena, setup);
    HP_TRY(hp_evaluate(e, arena, s, HP_EVAL_RANK, &v, err));
    HP_TRY(hp_search_uneven(e, arena, &v, err));
    if (v.reject.code || hp_strategy_change(s, &v.strategy, out->uneven) == 0) return HP_OK;
    return seconds_of(arena, setup, &v.strategy, &out->uneven_s, err);
}

hp_status hp_mix_cost_of(hp_arena *arena, const hp_eval_setup *setup, const hp_strategy *s, hp_mix_cost *out,
                         hp_error *err) {
    *out = (hp_mix_cost){0};
    HP_TRY(on_each_class(arena, setup, s, out, err));
    HP_TRY(with_equal_parts(arena, setup, s, out, err));
    HP_TRY(with_better_parts(arena, setup, s, out, err));
    return s->stages > 1 ? with_even_cut(arena, setup, s, out, err) : HP_OK;
}

/* Copies only the cut from a strategy's text. */
static void add_cut(hp_text to, const char *strategy) {
    const char *cut = strstr(strategy, "cut=");
    if (cut) hp_text_add(to, " (%.*s)", (int)strcspn(cut, ","), cut);
}

void hp_mix_cost_text(const hp_mix_cost *c, const hp_machine *m, double step_s, char *out, size_t n) {
    const hp_text to = {out, n};
    char time[32];
    *out = '\0';
    if (c->alike_s > 0)
        hp_text_add(to, "all devices %s at full speed: %s, %.2fx as fast",
                    hp_machine_class(m, c->class)->name, hp_format_seconds(c->alike_s, time),
                    step_s / c->alike_s);
    else
        hp_text_add(to, "on no class of its devices alone would it fit");
    if (c->equal_s > 0)
        hp_text_add(to, "; with equal shares and tiles: %s, %.2fx as long",
                    hp_format_seconds(c->equal_s, time), c->equal_s / step_s);
    if (c->uneven_s > 0)
        hp_text_add(to, "; with %.200s: %s, %.2fx as fast", c->uneven, hp_format_seconds(c->uneven_s, time),
                    step_s / c->uneven_s);
    if (c->even_s <= 0) return;
    hp_text_add(to, "; with stages as for equal devices");
    add_cut(to, c->even_cut);
    hp_text_add(to, ": %s, %.2fx as long", hp_format_seconds(c->even_s, time), c->even_s / step_s);
}
