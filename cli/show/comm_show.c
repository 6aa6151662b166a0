/* comm_show.c - compare --comm: one line per operation, size, group, back end and algorithm. */
#include "cli/show/compare_show.h"

#include "cli/show/frame.h"
#include "base/units.h"
#include "plan/store/store.h"
#include "traces/comm_log.h"

#include <math.h>
#include <string.h>

/* One run's rows. */
typedef struct comm_rows {
    hp_trace trace;
    hp_comm_row *row;
    int n;
} comm_rows;

static int32_t count_iters(const hp_trace_value *v, int64_t n) {
    int32_t steps = 0;
    for (int64_t i = 0; i < n; i++) steps += v[i].rank == 0 && v[i].iter >= 0;
    return steps;
}

static hp_status load_rows(hp_arena *arena, hp_db *db, int64_t run, const hp_program *p, comm_rows *r,
                           hp_error *err) {
    hp_trace_value *sent, *step;
    int64_t n_sent, n_step;
    HP_TRY(hp_trace_load(arena, db, run, false, &r->trace, err));
    HP_TRY(hp_trace_counter(arena, db, run, hp_counter_names[HP_COUNTER_SENT], &sent, &n_sent, err));
    HP_TRY(hp_trace_counter(arena, db, run, hp_counter_names[HP_COUNTER_STEP], &step, &n_step, err));
    const double steps = count_iters(step, n_step);
    hp_trace_drop_warmup(&r->trace);
    hp_comm_log(arena, &r->trace, p, sent, n_sent, steps, &r->row, &r->n);
    return HP_OK;
}

static const hp_comm_row *predicted_of(const comm_rows *sim, const hp_comm_row *of) {
    for (int i = 0; i < sim->n; i++)
        if (hp_comm_same_kind(&sim->row[i], of)) return &sim->row[i];
    return NULL;
}

/* --- text --- */

static const char *way_text(const hp_comm_row *r, char out[48]) {
    snprintf(out, 48, "%s%s%s", hp_backend_names[r->backend], r->algorithm ? "." : "",
             r->algorithm ? hp_algorithms[r->algorithm]->name : "");
    return out;
}

static const char *seconds_text(double s, char out[32]) {
    return isnan(s) ? "-" : s <= 0 ? "0" : hp_format_seconds(s, out);
}

static const char *bytes_text(double b, char out[32]) {
    return isnan(b) ? "-" : hp_format_bytes(b, out);
}

static void print_row(const hp_comm_row *r, const hp_comm_row *sim) {
    char way[48], size[32], a[32], b[32], wait[32], sent[32], ideal[32], late[32] = "-";
    if (r->late_rank >= 0) snprintf(late, sizeof late, "%d (%.0f%%)", r->late_rank, 100 * r->late_share);
    printf(" %-13s %10s %3d %-16s %7.4g %10s %10s %10s %9.3g %10s%s %10s %s\n", r->what,
           hp_format_bytes((double)r->bytes, size), r->members, way_text(r, way), r->calls,
           seconds_text(sim ? sim->time_s : NAN, a), seconds_text(r->time_s, b),
           seconds_text(r->wait_s, wait), 1e-9 * r->bus_bytes_per_s, bytes_text(r->sent_bytes, sent),
           r->is_ideal ? "*" : " ", bytes_text(r->ideal_bytes, ideal), late);
}

static void print_rows(const comm_rows *exec, const comm_rows *sim) {
    bool any_ideal = false;
    printf(" %-13s %10s %3s %-16s %7s %10s %10s %10s %9s %11s %10s %s\n", "operation", "bytes", "n", "by",
           "calls", "predicted", "measured", "waited", "bus GB/s", "sent", "least", "last rank");
    for (int i = 0; i < exec->n; i++) {
        print_row(&exec->row[i], predicted_of(sim, &exec->row[i]));
        any_ideal |= exec->row[i].is_ideal;
    }
    printf("\nper step: calls, bytes sent by all ranks, and the least that such calls must send; predicted, "
           "measured: "
           "from the last member's beginning to the end (median); waited: from the first's to the last's "
           "(mean)\n");
    if (any_ideal) printf("*: a library's own collective; what an ideal one sends, as it does not say\n");
}

/* --- JSON --- */

static json_t *row_json(const hp_comm_row *r, const hp_comm_row *sim) {
    json_t *o = json_pack(
        "{s:s, s:I, s:i, s:i, s:s, s:s, s:f, s:o, s:o, s:o, s:o, s:o, s:b, s:f, s:i, s:f}", "operation",
        r->what, "bytes", (json_int_t)r->bytes, "members", r->members, "group", r->group, "backend",
        hp_backend_names[r->backend], "algorithm", hp_algorithms[r->algorithm]->name, "calls", r->calls,
        "predicted_s", cli_json_number(sim ? sim->time_s : NAN), "measured_s", cli_json_number(r->time_s),
        "wait_s", cli_json_number(r->wait_s), "bus_bytes_per_s", cli_json_number(r->bus_bytes_per_s),
        "sent_bytes", cli_json_number(r->sent_bytes), "ideal", r->is_ideal, "least_bytes", r->ideal_bytes,
        "late_rank", r->late_rank, "late_share", r->late_share);
    HP_ASSERT(o);
    json_object_set_new(o, "dtype", json_string(hp_dtype_names[r->dtype]));
    return o;
}

static json_t *rows_json(const comm_rows *exec, const comm_rows *sim) {
    json_t *list = json_array();
    for (int i = 0; i < exec->n; i++)
        json_array_append_new(list, row_json(&exec->row[i], predicted_of(sim, &exec->row[i])));
    return json_pack("{s:i, s:s, s:i, s:o}", "schema", 1, "strategy", exec->trace.strategy, "steps",
                     exec->trace.n_iter, "rows", list);
}

/* --- */

static hp_status load(hp_arena *arena, hp_db *db, const char *path, comm_rows *exec, comm_rows *sim,
                      hp_error *err) {
    hp_plan plan;
    int64_t sim_run, exec_run;
    HP_TRY(hp_plan_read(arena, db, &plan, err));
    HP_TRY(hp_trace_find_pair(db, &sim_run, &exec_run, err));
    if (exec_run < 0) return hp_fail(err, HP_EDATA, "%s has no run; hplan run %s makes one", path, path);
    HP_TRY(load_rows(arena, db, exec_run, plan.program, exec, err));
    return sim_run < 0 ? HP_OK : load_rows(arena, db, sim_run, plan.program, sim, err);
}

hp_status comm_show(hp_arena *arena, const char *path, bool json, hp_error *err) {
    comm_rows exec = {.n = 0}, sim = {.n = 0};
    hp_db db;
    HP_TRY(hp_db_open(path, &db, err));
    const hp_status s = load(arena, &db, path, &exec, &sim, err);
    hp_db_close(&db);
    HP_TRY(s);
    if (json) return cli_print_json(rows_json(&exec, &sim), err);
    if (exec.n == 0) printf("no messages: one rank alone\n");
    if (exec.n > 0) print_rows(&exec, &sim);
    return cli_finish_stdout(err);
}
