/* report_answer.c - the answer in a sentence: the plan, its step, what it needs and what bounds it; the
 * measurement beside it; and the figures that the sentence is made of. */
#include "cli/report/report_data.h"

#include "cli/show/simulate_show.h"
#include "base/units.h"
#include "traces/check/compare.h"

#include <math.h>
#include <string.h>

/* The figures of the stored candidate, which the search ranked; without one, those of the program. */
static const hp_candidate *figures_of(const report *r) {
    return r->chosen >= 0 ? &r->candidate[r->chosen] : &r->figures.figures;
}

/* A sweep lists strategies for each number of devices, best first. */
static const char *place_in_list(const report *r) {
    int place = 1, all = 0;
    if (r->chosen < 0 || r->n_candidate == 1) return "is the strategy of this plan";
    for (int i = 0; i < r->n_candidate; i++) {
        if (r->candidate[i].gpus != r->candidate[r->chosen].gpus) continue;
        all++;
        place += i < r->chosen;
    }
    const char *sweep =
        all < r->n_candidate ? hp_arena_printf(r->arena, " on %d devices", r->figures.figures.gpus) : "";
    if (place == 1)
        return hp_arena_printf(r->arena, "is the fastest of the %d strategies%s that this plan lists", all,
                               sweep);
    return hp_arena_printf(r->arena, "is number %d of the %d strategies%s that this plan lists", place, all,
                           sweep);
}

static const char *interval(const report *r, const hp_candidate *c) {
    char low[32], high[32];
    if (!(c->step_high_s > 0)) return "its error is not known";
    return hp_arena_printf(r->arena, "90%% of runs between %s and %s", hp_format_seconds(c->step_low_s, low),
                           hp_format_seconds(c->step_high_s, high));
}

/* Drops the plural s of "images" for a batch of one. */
static const char *sentence(const report *r, const hp_candidate *c) {
    char step[32], rate[32], memory[32];
    const long long batch = r->plan.batch;
    const char *samples = report_samples(r);
    const int devices = r->figures.figures.gpus;
    return hp_arena_printf(r->arena,
                           "%s %s: a step of %lld %.*s is predicted to take %s (%s), which is %s %s/s. "
                           "It needs %d device%s "
                           "of %s, and %s of memory on the fullest rank. It is %s.",
                           r->strategy, place_in_list(r), batch, (int)strlen(samples) - (batch == 1), samples,
                           hp_format_seconds(c->step_s, step), interval(r, c),
                           simulate_number(c->images_per_s, rate), samples, devices, devices == 1 ? "" : "s",
                           r->plan.machine.name, hp_format_bytes((double)c->memory_bytes, memory),
                           *c->note ? c->note : "bound by compute");
}

/* "Measured: 8.87 ms, the median of 99 steps; the prediction is 3.8% below." */
static const char *measurement(const report *r) {
    char step[32];
    if (!r->exec) return NULL;
    hp_trace t = *r->exec;
    hp_trace_drop_warmup(&t);
    const double measured = hp_median(hp_trace_steps(r->arena, &t), t.n_iter),
                 off = r->plan.step_s / measured - 1;
    return hp_arena_printf(r->arena, "Measured: %s, the median of %d step%s; the prediction is %.1f%% %s.",
                           hp_format_seconds(measured, step), t.n_iter, t.n_iter == 1 ? "" : "s",
                           100 * fabs(off), off < 0 ? "below" : "above");
}

json_t *report_answer(const report *r) {
    const hp_candidate *c = figures_of(r);
    const char *measured = measurement(r);
    json_t *o = json_pack("{s:o, s:s}", "sentence", report_text(r, sentence(r, c)), "command",
                          report_command(r, "explain", r->path));
    if (measured) json_object_set_new(o, "measured", json_string(measured));
    return o;
}
