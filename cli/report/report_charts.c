/* report_charts.c - the figures behind the report's charts: images/s by devices, images/s against memory,
 * predicted against measured tasks. */
#include "cli/report/report_data.h"

#include "base/text.h"
#include "machines/shipped.h"
#include "traces/check/compare.h"

#include <math.h>

/* --- scaling --- */

static json_t *point_json(const report *r, const hp_plot_candidate *c) {
    const double steps = c->images_per_s * c->step_s; /* images of a step */
    return json_pack("{s:s, s:i, s:f, s:o, s:o, s:o, s:o}", "strategy", c->strategy, "devices", (int)c->gpus,
                     "images_per_s", c->images_per_s, "low",
                     report_known(c->step_high_s > 0 ? steps / c->step_high_s : 0), "high",
                     report_known(c->step_low_s > 0 ? steps / c->step_low_s : 0), "memory_bytes",
                     report_known(c->memory_bytes), "measured",
                     cli_json_number(hp_plot_measured_rate(r->arena, r->exec, c)));
}

/* *n: its number of points. */
static json_t *curve_json(const report *r, const hp_plot_source *s, const hp_plot_curve *curve, int *n) {
    json_t *points = json_array();
    hp_plot_best *best = HP_NEW(r->arena, hp_plot_best, s->n_candidate + 1);
    *n = hp_plot_best_by_gpus(r->arena, s, curve, best);
    for (int i = 0; i < *n; i++) json_array_append_new(points, point_json(r, best[i].c));
    return json_pack("{s:s, s:o}", "name",
                     curve      ? hp_arena_printf(r->arena, "%s", curve->name)
                     : r->n > 1 ? s->path
                                : "the fastest strategy",
                     "points", points);
}

static void add_curve(const report *r, const hp_plot_source *s, const hp_plot_curve *curve, json_t *curves) {
    int n;
    json_t *c = curve_json(r, s, curve, &n);
    if (n > 1)
        json_array_append_new(curves, c);
    else
        json_decref(c);
}

/* `hplan plot scaling` of all files. */
static const char *plot_all(const report *r) {
    const char *line = "hplan plot scaling";
    for (int i = 0; i < r->n; i++)
        line = hp_arena_printf(r->arena, "%s %s", line, hp_shell_word(r->arena, r->source[i].path));
    return line;
}

/* A machine that was described on the command line or in a file has no name that --machine knows. */
static const char *machine_word(const report *r) {
    const char *name = r->plan.machine.name;
    const bool known = hp_machine_shipped(name) || hp_device_of_machine(name);
    return known ? hp_shell_word(r->arena, name) : "MACHINE";
}

/* A search on the same machine. */
static const char *search_command(const report *r, const char *gpus, const char *out) {
    return report_on_subject(
        r, "simulate",
        hp_arena_printf(r->arena, "--machine %s --gpus %s --out %s", machine_word(r), gpus, out));
}

/* Powers of two up to the plan's devices, at least to 2 where the machine has as many; images of a device as
 * the plan's, where they are whole. */
static const char *sweep_command(const report *r) {
    static const char *const few[] = {"1", "1,2", "1,2,4"};
    const int devices = r->figures.figures.gpus, all = hp_machine_devices(&r->plan.machine);
    const int most = devices > 1 ? devices : all < 2 ? all : 2;
    int end = 1, n = 0;
    for (; 2 * end <= most; n++) end *= 2;
    const char *gpus = n < 3 ? few[n] : hp_arena_printf(r->arena, "1,2,4,...,%d", end);
    if (r->plan.batch % devices == 0)
        gpus =
            hp_arena_printf(r->arena, "%s --batch-per-gpu %lld", gpus, (long long)(r->plan.batch / devices));
    return search_command(r, gpus, "sweep.db");
}

json_t *report_scaling(const report *r) {
    json_t *curves = json_array();
    for (int i = 0; i < r->n; i++) {
        const hp_plot_source *s = &r->source[i];
        if (!s->n_curve) add_curve(r, s, NULL, curves);
        for (int k = 0; k < s->n_curve; k++) add_curve(r, s, &s->curve[k], curves);
    }
    if (json_array_size(curves)) return json_pack("{s:o, s:s}", "curves", curves, "command", plot_all(r));
    json_decref(curves);
    return report_absent("The files hold one number of devices; a sweep makes this chart.", sweep_command(r));
}

/* --- pareto --- */

static bool is_possible(const hp_plot_candidate *c) {
    return c->gpus > 0 && c->step_s > 0 && isfinite(c->images_per_s) && c->images_per_s > 0 &&
           isfinite(c->memory_bytes) && c->memory_bytes > 0;
}

/* Of a sweep, those on the plan's number of devices. */
static bool is_beside_plan(const report *r, const hp_plot_candidate *c) {
    return is_possible(c) && c->gpus == r->figures.figures.gpus;
}

json_t *report_pareto(const report *r) {
    const hp_plot_source *s = &r->source[0];
    const int devices = r->figures.figures.gpus;
    json_t *points = json_array(), *front = json_array();
    const hp_plot_candidate **best = HP_NEW(r->arena, const hp_plot_candidate *, s->n_candidate + 1);
    const int n = hp_plot_front(r->arena, s, best);
    for (int i = 0; i < s->n_candidate; i++)
        if (is_beside_plan(r, &s->candidate[i]))
            json_array_append_new(points, point_json(r, &s->candidate[i]));
    for (int i = 0; i < n; i++)
        if (is_beside_plan(r, best[i])) json_array_append_new(front, point_json(r, best[i]));
    if (json_array_size(points) > 1)
        return json_pack("{s:i, s:o, s:o, s:s}", "devices", devices, "points", points, "front", front,
                         "command", report_command(r, "plot pareto", r->path));
    json_decref(points);
    json_decref(front);
    return report_absent(
        "The file holds one strategy on so many devices; a search without --strategy compares several.",
        search_command(r, hp_arena_printf(r->arena, "%d --batch %lld", devices, (long long)r->plan.batch),
                       "plan.db"));
}

/* --- errors --- */

enum { MOST_TASKS = 1500 };

static json_t *error_row_json(const hp_compare_row *row) {
    return json_pack("{s:s, s:o, s:o, s:o, s:i}", "name", row->name, "predicted_s",
                     cli_json_number(row->predicted_s), "measured_s", cli_json_number(row->measured_s),
                     "error", cli_json_number(row->error), "phase", (int)row->phase);
}

static json_t *error_rows_json(const hp_compare_row *row, int n, int most) {
    json_t *list = json_array();
    for (int i = 0; i < n && i < most; i++)
        json_array_append_new(list, error_row_json(&row[(int64_t)i * n / (n < most ? n : most)]));
    return list;
}

json_t *report_errors(const report *r) {
    hp_error ignored;
    hp_comparison c;
    if (!r->sim || !r->exec)
        return report_absent("Nothing is measured yet.", report_command(r, "run", r->path));
    hp_trace sim = *r->sim, exec = *r->exec;
    if (hp_compare(r->arena, &sim, &exec, &c, &ignored) != HP_OK)
        return report_absent("The run has no complete step.", report_command(r, "run", r->path));
    return json_pack("{s:o, s:o, s:o, s:i, s:s}", "step", error_row_json(&c.step), "rows",
                     error_rows_json(c.phase, c.n_phase, c.n_phase), "tasks",
                     error_rows_json(c.task, c.n_task, MOST_TASKS), "all_tasks", c.n_task, "command",
                     report_command(r, "plot error", r->exec_path));
}
