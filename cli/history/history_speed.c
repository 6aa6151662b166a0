/* history_speed.c - compares the yardsticks of a run with those of the cost table. */
#include "cli/history/history_speed.h"

#include "costmodels/cost_speed.h"
#include "costmodels/cost_stored.h"
#include "plan/program/work.h"

#include <math.h>
#include <string.h>

/* --- what the table says --- */

static int cores_of(const hp_machine *m) {
    return m->cores_per_node > 0 ? m->cores_per_node : m->devices_per_node;
}

/* Number of ranks on the fullest node: ranks fill one node after another, and share them evenly if there are
 * more. */
static int ranks_of_node(const hp_plan *plan) {
    const hp_machine *m = &plan->machine;
    const int ranks = hp_program_ranks(plan->program);
    if (ranks > hp_machine_devices(m)) return (ranks + m->nodes - 1) / m->nodes;
    return ranks < m->devices_per_node ? ranks : m->devices_per_node;
}

/* Number of ranks that compute at a time on a node, at most its number of cores. */
static int computing_ranks(const hp_plan *plan) {
    const int ranks = ranks_of_node(plan), cores = cores_of(&plan->machine);
    return ranks < cores ? ranks : cores;
}

static void set_classes(const hp_plan *plan, const hp_cost_table *table, const hp_run_speed *seen,
                        run_speed *out) {
    const int ranks = computing_ranks(plan);
    for (int y = 0; y < HP_SPEED_CLASSES; y++) {
        const hp_row *row = hp_yardstick_row(table, plan->machine.device.name, (hp_yardstick)y, ranks);
        if (!row || !seen->n[y]) continue;
        const double quiet_s = row->y[HP_YARDSTICK_QUIET], usual = row->y[HP_YARDSTICK_MEAN] / quiet_s;
        out->predicted_for[y] = hp_cost_speed(table)->slowdown[y];
        out->slowdown[y] =
            hp_speed_shrink(seen->seconds[y] / quiet_s, seen->error[y], usual, row->y[HP_YARDSTICK_SPREAD]);
    }
}

/* --- tasks --- */

/* How long Linux lets a process run while others wait: 0.7 ms x (1 + log2 of the cores, at most 8), the base
 * slice of its fair scheduler (since Linux 6.6). */
static const double SLICE_S = 2.8e-3;

/* With more ranks than cores, ranks take turns; the plan accounts for that much absence. */
static double expected_availability(const hp_plan *plan) {
    const int ranks = ranks_of_node(plan), cores = cores_of(&plan->machine);
    return ranks > cores ? (double)cores / ranks : 1;
}

/* Messages and collectives are copies between ranks. */
static hp_work work_of(const hp_plan *plan, const hp_trace_task *t) {
    if (t->queue != HP_QUEUE_COMPUTE) return (hp_work){.bytes = (double)t->bytes};
    return hp_task_work(plan->program, plan->graph, &plan->program->role[t->role], t->task);
}

static hp_task_speed speed_of_tasks(hp_arena *arena, const hp_plan *plan, const hp_trace *a,
                                    const run_speed *s) {
    double *run = HP_NEW(arena, double, a->n_task), *predicted = HP_NEW(arena, double, a->n_task);
    const double present =
        isnan(s->availability) ? 1 : fmin(1, s->availability / expected_availability(plan));
    for (int i = 0; i < a->n_task; i++) {
        double mix[HP_SPEED_CLASSES];
        const hp_work w = work_of(plan, &a->task[i]);
        hp_work_mix(&plan->machine, &w, mix);
        run[i] = hp_mix_slowdown(mix, s->slowdown);
        predicted[i] = hp_mix_slowdown(mix, s->predicted_for);
    }
    return (hp_task_speed){run, predicted, present, SLICE_S};
}

/* Does the trace belong to this plan's program? Tasks of another program have no sizes here. */
static bool is_of_plan(const hp_plan *plan, const hp_trace *a) {
    if (strcmp(a->plan_hash, plan->hash.hex) != 0) return false;
    for (int i = 0; i < a->n_task; i++)
        if (a->task[i].role >= plan->program->n_role ||
            a->task[i].task >= plan->program->role[a->task[i].role].n_task)
            return false;
    return true;
}

run_speed run_speed_unknown(void) {
    run_speed s = {.availability = NAN, .split = hp_speed_unknown()};
    for (int y = 0; y < HP_SPEED_CLASSES; y++) s.slowdown[y] = s.predicted_for[y] = NAN;
    return s;
}

hp_status run_speed_read(hp_arena *arena, const hp_plan *plan, const hp_cost_table *table, const hp_trace *a,
                         hp_db *db, const hp_trace *b, hp_comparison *c, run_speed *out, hp_error *err) {
    hp_run_speed seen;
    *out = run_speed_unknown();
    if (hp_device_on_gpu(plan->device) || !c->of_prediction || !is_of_plan(plan, a)) return HP_OK;
    HP_TRY(hp_run_speed_read(arena, db, b, &seen, err));
    out->availability = seen.availability;
    set_classes(plan, table, &seen, out);
    bool known = false;
    for (int y = 0; y < HP_SPEED_CLASSES; y++) known |= !isnan(out->slowdown[y]);
    if (!known) return HP_OK;
    const hp_task_speed speed = speed_of_tasks(arena, plan, a, out);
    out->split = hp_compare_split(arena, a, &speed, c);
    return HP_OK;
}

/* --- files --- */

static hp_status read_basis(hp_arena *arena, const char *path, hp_plan *plan, hp_cost_table **table,
                            hp_error *err) {
    hp_db db;
    HP_TRY(hp_db_open(path, &db, err));
    hp_status s = hp_plan_read(arena, &db, plan, err);
    if (s == HP_OK) s = hp_cost_restore(arena, &db, table, err);
    hp_db_close(&db);
    return s;
}

/* Does the file contain an executed run? */
static bool is_run(const char *path) {
    hp_db db;
    int64_t exec = -1;
    if (hp_db_open(path, &db, NULL) != HP_OK) return false;
    if (hp_trace_find(&db, "exec", &exec, NULL) != HP_OK) exec = -1;
    hp_db_close(&db);
    return exec >= 0;
}

void run_speed_of_files(hp_arena *arena, const char *path_a, const char *path_b, const hp_trace *a,
                        const hp_trace *b, hp_comparison *c, run_speed *out) {
    const bool swapped =
        path_b && is_run(path_a); /* a prediction comes first, whatever the order of the files */
    const char *run = path_b && !swapped ? path_b : path_a, *basis = swapped ? path_b : path_a;
    hp_plan plan;
    hp_cost_table *table = NULL;
    hp_db db;
    *out = run_speed_unknown();
    if (!c->of_prediction || read_basis(arena, basis, &plan, &table, NULL) != HP_OK) return;
    if (hp_db_open(run, &db, NULL) != HP_OK) return;
    if (run_speed_read(arena, &plan, table, a, &db, b, c, out, NULL) != HP_OK) *out = run_speed_unknown();
    hp_db_close(&db);
}

/* --- words --- */

const char *run_speed_ratio(double ratio, char out[32]) {
    const double percent = 100 * fabs(ratio - 1);
    if (percent < 0.5)
        snprintf(out, 32, "as fast");
    else
        snprintf(out, 32, "%.0f%% %s", percent, ratio > 1 ? "slower" : "faster");
    return out;
}

const char *run_speed_than(double ratio) {
    return fabs(ratio - 1) < 0.005 ? "as" : "than";
}

/* "arith 25%, l2 30%, dram 31%, availability 97%" */
static void print_classes(FILE *f, const run_speed *s) {
    const char *before = "";
    for (int y = 0; y < HP_SPEED_CLASSES; y++) {
        if (isnan(s->slowdown[y])) continue;
        fprintf(f, "%s%s %+.0f%%", before, hp_yardstick_names[y], 100 * (s->slowdown[y] - 1));
        before = ", ";
    }
    if (!isnan(s->availability)) fprintf(f, "%savailability %.0f%%", before, 100 * s->availability);
}

const char *run_speed_text(const run_speed *s, char out[RUN_SPEED_TEXT]) {
    const hp_speed_split *p = &s->split;
    char quiet[32], usual[32];
    out[0] = '\0';
    FILE *f = p->known ? fmemopen(out, RUN_SPEED_TEXT, "w") : NULL;
    if (!f) return out;
    fprintf(f, "the machine was %s %s when quiet (", run_speed_ratio(p->quiet, quiet),
            run_speed_than(p->quiet));
    print_classes(f, s);
    fprintf(f, "), %s %s predicted for; at equal speed the model is off by %.1f%%",
            run_speed_ratio(p->usual, usual), run_speed_than(p->usual), 100 * fabs(p->model_error));
    fclose(f);
    return out;
}

json_t *run_speed_json(const run_speed *s) {
    const hp_speed_split *p = &s->split;
    if (!p->known) return json_null();
    json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "quiet", cli_json_number(p->quiet),
                          "predicted_for", cli_json_number(p->predicted_for), "usual",
                          cli_json_number(p->usual), "expected_s", cli_json_number(p->expected_s),
                          "equal_speed_s", cli_json_number(p->equal_speed_s), "model_error",
                          cli_json_number(p->model_error), "availability", cli_json_number(s->availability));
    json_t *classes = json_object();
    for (int y = 0; y < HP_SPEED_CLASSES; y++)
        json_object_set_new(classes, hp_yardstick_names[y], cli_json_number(s->slowdown[y]));
    json_object_set_new(o, "classes", classes);
    return o;
}
