/* bench_show.c - shows a benchmark by network and scenario, precisions side by side, and how far the run is
 * from MLPerf's requirements. */
#include "cli/show/bench_show.h"

#include "base/text.h"
#include "base/units.h"

#include <math.h>
#include <string.h>

static bool measured(const bench_job *j) {
    return !j->why && j->series.n_query > 0;
}

/* The fp32 series of the same network, images and scenario; NULL: none. */
static const bench_job *baseline_of(const bench_job *jobs, int n, const bench_job *j) {
    const hp_bench_series *s = &j->series;
    for (int i = 0; i < n; i++) {
        const hp_bench_series *b = &jobs[i].series;
        const bool same = !strcmp(b->net, s->net) && b->image_h == s->image_h && b->image_w == s->image_w &&
                          b->scenario == s->scenario;
        if (same && !strcmp(b->prec, "fp32") && measured(&jobs[i])) return &jobs[i];
    }
    return NULL;
}

/* Speed-up over fp32; NaN without an fp32 series. */
static double ratio_of(const bench_job *jobs, int n, const bench_job *j) {
    const bench_job *base = baseline_of(jobs, n, j);
    if (!base) return NAN;
    return hp_bench_median(&j->series).images_per_s / hp_bench_median(&base->series).images_per_s;
}

/* --- text --- */

static void print_series(const bench_job *jobs, int n, const bench_job *j) {
    const hp_bench_series *s = &j->series;
    const hp_serving m = hp_bench_median(s);
    char p50[32], p90[32], p99[32], planned[32], rss[32], ratio[32] = "";
    const double r = ratio_of(jobs, n, j);
    if (!isnan(r)) snprintf(ratio, sizeof ratio, "%.2fx", r);
    printf("  %-14s %-6s %5lld  %9s %9s %9s  %9.4g %7s  %8s %9s\n", hp_scenario_infos[s->scenario].name,
           s->prec, (long long)s->batch, hp_format_seconds(m.p50_s, p50), hp_format_seconds(m.p90_s, p90),
           hp_format_seconds(m.p99_s, p99), m.images_per_s, ratio,
           hp_format_bytes((double)s->planned_bytes, planned), hp_format_bytes((double)s->rss_bytes, rss));
}

static bool same_group(const hp_bench_series *a, const hp_bench_series *b) {
    return !strcmp(a->net, b->net) && a->image_h == b->image_h && a->image_w == b->image_w;
}

static void print_table(const bench_job *jobs, int n) {
    printf("  %-14s %-6s %5s  %9s %9s %9s  %9s %7s  %8s %9s\n", "scenario", "prec", "batch", "p50", "p90",
           "p99", "images/s", "to fp32", "planned", "resident");
    for (int i = 0; i < n; i++) {
        const hp_bench_series *s = &jobs[i].series;
        if (i == 0 || !same_group(&jobs[i - 1].series, s))
            printf("%s %dx%d\n", s->net, s->image_h, s->image_w);
        if (measured(&jobs[i])) print_series(jobs, n, &jobs[i]);
    }
}

static void print_skipped(const bench_job *jobs, int n) {
    for (int i = 0; i < n; i++)
        if (jobs[i].why) printf("not measured: %s: %s\n", jobs[i].text, jobs[i].why);
}

static void keep_least(hp_serving *least, const hp_serving *s) {
    least->busy_s = fmin(least->busy_s, s->busy_s);
    if (s->queries < least->queries) least->queries = s->queries;
    if (s->images < least->images) least->images = s->images;
}

/* Shows the shortest series of each scenario: no other misses more of the requirements. */
static void print_rules(const bench_job *jobs, int n) {
    char all[400] = "", why[128];
    for (int c = 0; c < HP_SCENARIOS; c++) {
        hp_serving least = {.queries = INT64_MAX, .images = INT64_MAX, .busy_s = INFINITY};
        for (int i = 0; i < n; i++) {
            if (!measured(&jobs[i]) || jobs[i].series.scenario != c) continue;
            const hp_serving pooled = hp_bench_pooled(&jobs[i].series);
            keep_least(&least, &pooled);
        }
        if (!hp_serving_complete((hp_scenario)c, &least, why, sizeof why))
            hp_text_add((hp_text){all, sizeof all}, "%s %s: %s", all[0] ? ";" : "", hp_scenario_infos[c].name,
                        why);
    }
    if (all[0]) printf("shorter than MLPerf's rules ask:%s\n", all);
}

void bench_print(const bench_setup *s, const bench_job *jobs, int n) {
    printf("strategy %s, %lld thread%s a rank, %lld round%s in turn; medians over rounds\n", s->strategy,
           (long long)s->threads, s->threads == 1 ? "" : "s", (long long)s->rounds,
           s->rounds == 1 ? "" : "s");
    print_table(jobs, n);
    print_skipped(jobs, n);
    print_rules(jobs, n);
    printf("images are synthetic and made within the query, weights are random\n");
}

/* --- JSON --- */

static json_t *latency_json(const hp_serving *f) {
    return json_pack("{s:f, s:f, s:f, s:f}", "mean", f->mean_s, "p50", f->p50_s, "p90", f->p90_s, "p99",
                     f->p99_s);
}

static json_t *rules_json(const hp_bench_series *s, const hp_serving *pooled) {
    char why[128];
    const bool complete = hp_serving_complete((hp_scenario)s->scenario, pooled, why, sizeof why);
    return json_pack("{s:b, s:s, s:o}", "complete", complete, "missing", why, "tail_s",
                     cli_json_number(hp_bench_tail(s)));
}

static json_t *series_json(const bench_job *jobs, int n, const bench_job *j) {
    const hp_bench_series *s = &j->series;
    const hp_serving m = hp_bench_median(s), pooled = hp_bench_pooled(s);
    return json_pack(
        "{s:s, s:[i,i], s:s, s:s, s:I, s:s, s:i, s:I, s:I, s:f, s:f, s:o, s:o, s:o, s:f, s:I, s:I, s:I, s:o}",
        "net", s->net, "image", s->image_h, s->image_w, "scenario", hp_scenario_infos[s->scenario].name,
        "prec", s->prec, "batch", (json_int_t)s->batch, "strategy", s->strategy, "ranks", s->ranks, "queries",
        (json_int_t)pooled.queries, "images", (json_int_t)pooled.images, "busy_s", pooled.busy_s,
        "images_per_s", m.images_per_s, "to_fp32", cli_json_number(ratio_of(jobs, n, j)), "latency_s",
        latency_json(&m), "pooled_latency_s", latency_json(&pooled), "predicted_s", s->predicted_s,
        "planned_bytes", (json_int_t)s->planned_bytes, "peak_bytes", (json_int_t)s->peak_bytes, "rss_bytes",
        (json_int_t)s->rss_bytes, "mlperf", rules_json(s, &pooled));
}

static json_t *skipped_json(const bench_job *j) {
    const hp_bench_series *s = &j->series;
    return json_pack("{s:s, s:[i,i], s:s, s:s, s:s}", "net", s->net, "image", s->image_h, s->image_w,
                     "scenario", hp_scenario_infos[s->scenario].name, "prec", s->prec, "why", j->why);
}

json_t *bench_json(const bench_setup *s, const bench_job *jobs, int n) {
    json_t *series = json_array(), *skipped = json_array();
    for (int i = 0; i < n; i++) {
        if (measured(&jobs[i]))
            json_array_append_new(series, series_json(jobs, n, &jobs[i]));
        else if (jobs[i].why)
            json_array_append_new(skipped, skipped_json(&jobs[i]));
    }
    return json_pack("{s:i, s:s, s:I, s:I, s:s, s:o, s:o}", "schema", 1, "strategy", s->strategy, "threads",
                     (json_int_t)s->threads, "rounds", (json_int_t)s->rounds, "data", "synthetic", "series",
                     series, "skipped", skipped);
}
