/* trace_fixture.c - runs with known durations, written row by row. */
#include "tests/support/traces/trace_fixture.h"

const fixture_task fixture_tasks[FIXTURE_TASKS] = {
    {"load", "load", true},         {"fwd.conv", "forward", true}, {"bwd.conv", "backward", true},
    {"update", "optimizer", true},  {"send", "transfer", false},   {"recv", "transfer", false},
    {"allreduce", "reduce", false},
};

void fixture_ok(hp_status status, const hp_error *err) {
    if (status != HP_OK) fail_msg("status %d: %s", status, err->text);
}

void fixture_near(double have, double want) {
    if (!(fabs(have - want) <= 1e-9 * fabs(want))) fail_msg("%.12g is not %.12g", have, want);
}

void fixture_path(char *out, size_t n, const char *name) {
    snprintf(out, n, "/tmp/hplan-test-%d-%s", (int)getpid(), name);
}

static void fixture_rows(hp_db *db, int64_t run, const fixture_run *r) {
    hp_error err = {0};
    for (int role = 0; role < FIXTURE_ROLES; role++)
        for (int task = 0; task < FIXTURE_TASKS; task++) {
            char label[600];
            const fixture_task *t = &fixture_tasks[task];
            snprintf(label, sizeof label, "%s%s %d", r->label ? r->label : "", t->op, task);
            fixture_ok(hp_db_exec(db, &err, "INSERT INTO task VALUES(?,?,?,?,?,?,?,?,?,-1,0)", "iiisssiii",
                                  run, (int64_t)role, (int64_t)task, t->op, t->phase, label, (int64_t)-1,
                                  (int64_t)0, (int64_t)(t->compute ? 0 : 4096)),
                       &err);
        }
}

static void fixture_spans(hp_db *db, int64_t run, const fixture_run *r, int rank, int iter) {
    hp_error err = {0};
    hp_span span[FIXTURE_TASKS];
    const int64_t start = (int64_t)iter * 1000000000;
    int64_t now = start;
    for (int task = 0; task < FIXTURE_TASKS; task++) {
        const int64_t d = r->duration(r->self, rank, task, iter);
        const int64_t t0 = fixture_tasks[task].compute ? now : start;
        span[task] = (hp_span){task, iter, t0, t0 + d};
        if (fixture_tasks[task].compute) now += d;
    }
    fixture_ok(hp_trace_spans(db, run, rank, rank % FIXTURE_ROLES, span, FIXTURE_TASKS, &err), &err);
}

int64_t fixture_add(hp_db *db, const fixture_run *r) {
    hp_error err = {0};
    fixture_ok(hp_db_exec(db, &err, "INSERT INTO run VALUES(NULL,?,?,?,'local','cpu','0',1,?,'','','',0)",
                          "sssi", r->kind, r->plan_hash ? r->plan_hash : "p",
                          r->strategy ? r->strategy : "dp=2,stages=2", (int64_t)r->ranks),
               &err);
    const int64_t run = sqlite3_last_insert_rowid(db->sql);
    fixture_rows(db, run, r);
    for (int rank = 0; rank < (r->span_ranks ? r->span_ranks : r->ranks); rank++)
        for (int iter = 0; iter < r->iters; iter++) fixture_spans(db, run, r, rank, iter);
    return run;
}

void fixture_sample(hp_db *db, int64_t run, int rank, int iter, hp_counter name, int64_t t_ns, double value) {
    hp_error err = {0};
    const hp_sample s = {(int32_t)name, iter, t_ns, value};
    fixture_ok(hp_trace_samples(db, run, rank, &s, 1, &err), &err);
}
