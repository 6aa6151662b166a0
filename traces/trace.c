/* trace.c - writing runs into SQLite: one writer, prepared statements, one transaction (the caller's
 * hp_db). */
#include "traces/trace.h"

#include "base/host.h"
#include "base/version.h"
#include "plan/program/print.h"
#include "traces/meetings.h"

#include <math.h>
#include <string.h>
#include <time.h>

enum { LABEL_BYTES = 256 };

/* "2024-05-31T12:00:00Z"; empty for a simulation, so that equal inputs give equal files. */
static const char *started_text(const char *kind, char out[32]) {
    out[0] = '\0';
    if (strcmp(kind, "sim") == 0) return out;
    const time_t now = time(NULL);
    struct tm utc;
    strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    return out;
}

static hp_status insert_run(hp_db *db, const hp_run_info *i, int64_t *run, hp_error *err) {
    char started[32], host[128] = "", processor[128] = "", version[96];
    snprintf(version, sizeof version, "%s", hp_version());
    if (strcmp(i->kind, "sim") != 0) {
        hp_host_name(host, sizeof host);
        hp_host_processor(processor, sizeof processor);
        snprintf(version, sizeof version, "%s (commit %s)", hp_version(), hp_commit());
    }
    HP_TRY(hp_db_exec(
        db, err,
        "INSERT INTO run(kind, plan_hash, strategy, machine, device, version, seed, ranks, started,"
        " host, processor, status) VALUES(?,?,?,?,?,?,?,?,?,?,?,-1)",
        "ssssssiisss", i->kind, i->plan_hash, i->strategy, i->machine, i->device, version, (int64_t)i->seed,
        (int64_t)i->ranks, started_text(i->kind, started), host, processor));
    *run = sqlite3_last_insert_rowid(db->sql);
    return HP_OK;
}

/* "fwd.conv", "send": the opcode and, for compute tasks of a layer, its operator. */
static void kind_text(const hp_graph *g, const hp_task *t, char *out, size_t n) {
    const char *op = hp_task_infos[t->op].name;
    if (t->layer < 0 || hp_task_infos[t->op].queue != HP_QUEUE_COMPUTE)
        snprintf(out, n, "%s", op);
    else
        snprintf(out, n, "%s.%s", op, hp_layer_infos[g->layer[t->layer].op].name);
}

/* Bytes moved between ranks; 0 for compute tasks. */
static int64_t moved_bytes(const hp_task *t) {
    return hp_task_infos[t->op].queue == HP_QUEUE_COMPUTE ? 0 : hp_task_bytes(t);
}

static hp_status insert_task(hp_db *db, sqlite3_stmt *st, int64_t run, const hp_meetings *m,
                             const hp_graph *g, int role, int task, hp_error *err) {
    const hp_program *p = m->wiring->program;
    const hp_role *r = &p->role[role];
    const hp_task *t = &r->task[task];
    char kind[64], label[LABEL_BYTES];
    kind_text(g, t, kind, sizeof kind);
    hp_task_label(p, g, r, task, label, sizeof label);
    hp_db_bind(st, "iiisssiiiii", run, (int64_t)role, (int64_t)task, kind,
               hp_phase_names[hp_task_infos[t->op].phase], label, (int64_t)t->layer, (int64_t)t->micro,
               moved_bytes(t), (int64_t)hp_meeting_of(m, role, task),
               (int64_t)hp_meeting_is_world(m, role, task));
    return hp_db_step_done(db, st, err);
}

static hp_status insert_tasks(hp_db *db, int64_t run, const hp_program *p, const hp_graph *g, hp_error *err) {
    sqlite3_stmt *st = NULL;
    HP_TRY(hp_db_prepare(db,
                         "INSERT INTO task(run, role, task, op, phase, label, layer, micro, bytes, meeting,"
                         " world) VALUES(?,?,?,?,?,?,?,?,?,?,?)",
                         &st, err));
    hp_arena *scratch = hp_arena_new();
    const hp_meetings m = hp_meetings_new(scratch, p);
    hp_status status = HP_OK;
    for (int role = 0; role < p->n_role && status == HP_OK; role++)
        for (int task = 0; task < p->role[role].n_task && status == HP_OK; task++)
            status = insert_task(db, st, run, &m, g, role, task, err);
    hp_arena_free(scratch);
    sqlite3_finalize(st);
    return status;
}

hp_status hp_trace_begin(hp_db *db, const hp_run_info *info, const hp_program *p, const hp_graph *g,
                         int64_t *run, hp_error *err) {
    HP_TRY(insert_run(db, info, run, err));
    return insert_tasks(db, *run, p, g, err);
}

hp_status hp_trace_spans(hp_db *db, int64_t run, int rank, int role, const hp_span *span, int64_t n,
                         hp_error *err) {
    sqlite3_stmt *st = NULL;
    HP_TRY(hp_db_prepare(
        db, "INSERT INTO span(run, rank, role, task, iter, t0_ns, t1_ns) VALUES(?,?,?,?,?,?,?)", &st, err));
    hp_status status = HP_OK;
    for (int64_t i = 0; i < n && status == HP_OK; i++) {
        hp_db_bind(st, "iiiiiii", run, (int64_t)rank, (int64_t)role, (int64_t)span[i].task,
                   (int64_t)span[i].iter, span[i].t0_ns, span[i].t1_ns);
        status = hp_db_step_done(db, st, err);
    }
    sqlite3_finalize(st);
    return status;
}

hp_status hp_trace_samples(hp_db *db, int64_t run, int rank, const hp_sample *sample, int64_t n,
                           hp_error *err) {
    sqlite3_stmt *st = NULL;
    HP_TRY(hp_db_prepare(db, "INSERT INTO counter(run, rank, iter, name, t_ns, value) VALUES(?,?,?,?,?,?)",
                         &st, err));
    hp_status status = HP_OK;
    for (int64_t i = 0; i < n && status == HP_OK; i++) {
        hp_db_bind(st, "iiisid", run, (int64_t)rank, (int64_t)sample[i].iter,
                   hp_counter_names[sample[i].name], sample[i].t_ns,
                   sample[i].value); /* SQLite stores NaN as NULL */
        status = hp_db_step_done(db, st, err);
    }
    sqlite3_finalize(st);
    return status;
}

hp_status hp_trace_end(hp_db *db, int64_t run, int status, hp_error *err) {
    return hp_db_exec(db, err, "UPDATE run SET status = ? WHERE id = ?", "ii", (int64_t)status, run);
}

/* Merges one rank's ring; *found: false if no ring can be read. */
static hp_status merge_rank(hp_db *db, int64_t run, const char *dir, int rank, bool *found, hp_error *err) {
    char path[4200];
    *found = false;
    if (snprintf(path, sizeof path, "%s/rank-%d.ring", dir, rank) >= (int)sizeof path) return HP_OK;
    hp_ring_data d;
    if (hp_ring_read(path, &d, NULL) != HP_OK) return HP_OK;
    hp_status status = HP_OK;
    if (d.rank == rank) {
        *found = true;
        status = hp_trace_spans(db, run, rank, d.role, d.span, d.n_span, err);
        if (status == HP_OK) status = hp_trace_samples(db, run, rank, d.sample, d.n_sample, err);
    }
    hp_ring_free(&d);
    return status;
}

hp_status hp_trace_merge(hp_db *db, int64_t run, const char *dir, int ranks, int *missing, hp_error *err) {
    *missing = 0;
    for (int rank = 0; rank < ranks; rank++) {
        bool found = false;
        HP_TRY(merge_rank(db, run, dir, rank, &found, err));
        *missing += !found;
    }
    return HP_OK;
}

hp_status hp_trace_find(hp_db *db, const char *kind, int64_t *run, hp_error *err) {
    sqlite3_stmt *st = NULL;
    HP_TRY(hp_db_prepare(db, "SELECT coalesce(max(id), -1) FROM run WHERE kind = ?", &st, err));
    hp_db_bind(st, "s", kind);
    bool row = false;
    const hp_status status = hp_db_next(db, st, &row, err);
    *run = row ? sqlite3_column_int64(st, 0) : -1;
    sqlite3_finalize(st);
    return status;
}
