/* replay_show.c - steps compared with the best single back end's; bytes sent compared with the necessary
 * ones. */
#include "cli/replay/cli_replay.h"
#include "base/units.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <string.h>

/* Step of series i relative to the best single one's, with a confidence interval that holds simultaneously
 * for `tests` of them (Bonferroni); false: unknown. */
static bool ratio_of(const replay_result *x, int i, int tests, double ratio[3]) {
    const hp_pairs p = {x->n, x->n_round, x->step_s};
    if (x->single < 0 || x->single == i || x->series[i].entry.out != RACE_IN) return false;
    const hp_pair pair = hp_pairs_of(&p, NULL, x->single, i);
    const double width =
        pair.n > 1 ? gsl_cdf_tdist_Qinv((1 - HP_RACE_LEVEL) / 2 / tests, pair.df) * pair.error : INFINITY;
    ratio[0] = exp(pair.mean);
    ratio[1] = exp(pair.mean - width);
    ratio[2] = exp(pair.mean + width);
    return pair.n > 0;
}

/* Bytes sent per step in a collective by all ranks; NaN: by a library, or none ran. *algorithm: the last
 * call's. */
static double counted(const replay_series *s, hp_collective what, hp_algorithm *algorithm) {
    double sum = 0;
    bool any = false;
    *algorithm = HP_ALGORITHM_LIBRARY;
    for (int i = 0; i < s->n_row; i++) {
        if (s->row[i].op != (int)hp_task_of_collective(what) || s->row[i].bytes <= HP_METRICS * 8) continue;
        if (s->row[i].is_ideal) return NAN;
        sum += s->row[i].sent_bytes;
        *algorithm = (hp_algorithm)s->row[i].algorithm;
        any = true;
    }
    return any ? sum : NAN;
}

/* --- text --- */

static void print_volumes(const replay_request *r, const replay_result *x) {
    hp_replay_volume v[HP_REPLAY_VOLUMES];
    char bytes[32];
    hp_replay_volumes(&r->replay, (int32_t)r->ranks, v);
    printf("\nper step, by the formulas:\n  %-10s %5s %12s %16s  counted by\n", "operation", "calls",
           "of a rank", "sent by all");
    for (int k = 0; k < HP_REPLAY_VOLUMES; k++) {
        printf("  %-10s %5d %12s %16.0f ", hp_collective_infos[v[k].what].name, v[k].calls,
               hp_format_bytes(v[k].bytes, bytes), v[k].sent_bytes);
        for (int i = 0; i < x->n; i++) {
            hp_algorithm a;
            const double c = counted(&x->series[i], v[k].what, &a);
            if (x->series[i].mix || isnan(c)) continue;
            if (c == v[k].sent_bytes)
                printf(" %s: the same", x->series[i].comm);
            else /* blocks may be routed through others */
                printf(" %s.%s: %.0f (%.2fx)", x->series[i].comm, hp_algorithms[a]->name, c,
                       c / v[k].sent_bytes);
        }
        printf("\n");
    }
}

static void print_series(const replay_result *x, int i) {
    const replay_series *s = &x->series[i];
    const hp_measured *m = &s->entry.measured;
    char predicted[32], step[32], low[32], high[32];
    double ratio[3];
    printf("  %-34s %10s", s->comm, hp_format_seconds(s->entry.plan.step_s, predicted));
    if (s->entry.out != RACE_IN) {
        printf("  does not run: %s\n", s->entry.why);
        return;
    }
    printf(" %10s  %9s - %-9s", hp_format_seconds(m->step_s, step), hp_format_seconds(m->low_s, low),
           hp_format_seconds(m->high_s, high));
    if (x->single == i)
        printf("  the best single one\n");
    else if (ratio_of(x, i, 1, ratio))
        printf("  %.3f (%.3f - %.3f)\n", ratio[0], ratio[1], ratio[2]);
    else
        printf("\n");
}

/* Describes the fastest mix. Among many, one is fastest by chance, so its interval accounts for all of
 * them. */
static void print_verdict(const replay_result *x) {
    double best[3] = {INFINITY, 0, 0}, ratio[3];
    int mix = -1, mixes = 0;
    for (int i = 0; i < x->n; i++) mixes += x->series[i].mix;
    for (int i = 0; i < x->n; i++)
        if (x->series[i].mix && ratio_of(x, i, mixes, ratio) && ratio[0] < best[0])
            mix = i, memcpy(best, ratio, sizeof best);
    if (mix < 0 || x->single < 0) return;
    printf("\nthe best mix, %s, takes %.3f of %s's step (%.0f%% interval over %d mixes %.3f - %.3f): %s\n",
           x->series[mix].comm, best[0], x->series[x->single].comm, 100 * HP_RACE_LEVEL, mixes, best[1],
           best[2],
           best[2] < 1   ? "mixing pays"
           : best[1] > 1 ? "mixing costs"
                         : "no difference that these rounds could tell");
}

void replay_print(const replay_request *r, const replay_result *x) {
    char text[HP_REPLAY_TEXT];
    const hp_plan *plan = &x->series[0].entry.plan;
    printf("%s on %lld ranks of %s, compute as long as %s takes at its peak, %d rounds\n\n",
           hp_replay_text(&r->replay, text), (long long)r->ranks, plan->machine.name,
           r->as ? r->as : plan->machine.name, x->n_round);
    printf("  %-34s %10s %10s  %9s   %-9s  %s\n", "comm", "predicted", "step", "from", "to",
           "to the best single");
    for (int i = 0; i < x->n; i++) print_series(x, i);
    print_volumes(r, x);
    print_verdict(x);
}

/* --- JSON --- */

static json_t *series_json(const replay_result *x, int i) {
    const replay_series *s = &x->series[i];
    double ratio[3];
    json_t *o =
        json_pack("{s:s, s:b, s:f}", "comm", s->comm, "mix", s->mix, "predicted_s", s->entry.plan.step_s);
    HP_ASSERT(o);
    if (s->entry.out != RACE_IN) {
        json_object_set_new(o, "failed", json_string(s->entry.why));
        return o;
    }
    json_object_set_new(o, "step_s", json_real(s->entry.measured.step_s));
    json_t *rounds = json_array();
    for (int k = 0; k < x->n_round; k++) {
        const double t = x->step_s[k * x->n + i];
        json_array_append_new(rounds, isnan(t) ? json_null() : json_real(t));
    }
    json_object_set_new(o, "rounds_s", rounds);
    if (ratio_of(x, i, 1, ratio))
        json_object_set_new(o, "to_single",
                            isfinite(ratio[2]) ? json_pack("[f, f, f]", ratio[0], ratio[1], ratio[2])
                                               : json_pack("[f, n, n]", ratio[0]));
    for (int c = 0; c < HP_COLLECTIVES; c++) {
        hp_algorithm a;
        char name[64];
        const double bytes = counted(s, (hp_collective)c, &a);
        if (isnan(bytes)) continue;
        snprintf(name, sizeof name, "sent_%s_bytes", hp_collective_infos[c].name);
        json_object_set_new(o, name, json_real(bytes));
    }
    return o;
}

json_t *replay_json(const replay_request *r, const replay_result *x) {
    char text[HP_REPLAY_TEXT];
    hp_replay_volume v[HP_REPLAY_VOLUMES];
    json_t *series = json_array(), *volumes = json_array();
    hp_replay_volumes(&r->replay, (int32_t)r->ranks, v);
    for (int k = 0; k < HP_REPLAY_VOLUMES; k++)
        json_array_append_new(
            volumes, json_pack("{s:s, s:i, s:f, s:f}", "operation", hp_collective_infos[v[k].what].name,
                               "calls", (int)v[k].calls, "bytes", v[k].bytes, "sent_bytes", v[k].sent_bytes));
    for (int i = 0; i < x->n; i++) json_array_append_new(series, series_json(x, i));
    json_t *o = json_pack("{s:i, s:s, s:I, s:s, s:I, s:o, s:o}", "schema", 1, "replay",
                          hp_replay_text(&r->replay, text), "ranks", (json_int_t)r->ranks, "machine",
                          x->series[0].entry.plan.machine.name, "rounds", (json_int_t)r->rounds, "volumes",
                          volumes, "series", series);
    HP_ASSERT(o);
    if (x->single >= 0) json_object_set_new(o, "best_single", json_string(x->series[x->single].comm));
    return o;
}
