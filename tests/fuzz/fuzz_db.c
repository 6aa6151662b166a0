/* fuzz_db.c - any bytes in place of plan.db or run.db: refused with a message, or everything that commands
 * read of it is readable. The seeds declare their content as changed on purpose ("none", docs/formats.md), so
 * that the code after that check is reached, too. */
#include "costmodels/cost_stored.h"
#include "costmodels/drift.h"
#include "plan/store/store.h"
#include "traces/trace_bench.h"
#include "traces/check/compare.h"
#include "traces/meetings.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(hp_status s, const hp_error *err) {
    if (s != HP_OK && (!err->text[0] || (s != HP_EDATA && s != HP_EUNAVAIL))) abort();
}

/* A loaded run, as charts and comparisons look at it. */
static void use_trace(hp_arena *a, hp_db *db, int64_t run) {
    hp_trace t;
    hp_error err = {0};
    hp_trace_value *v;
    int64_t n;
    const hp_status s = hp_trace_load(a, db, run, true, &t, &err);
    check(s, &err);
    if (s != HP_OK) return;
    hp_trace_drop_warmup(&t);
    hp_trace_steps(a, &t);
    hp_trace_medians(a, &t, &n);
    hp_trace_waiting(a, &t);
    for (int i = 0; i < t.n_iter && i < 4; i++) hp_trace_met(a, &t, &t.iter[i]);
    check(hp_trace_counter(a, db, run, "loss", &v, &n, &err), &err);
    hp_drift d;
    check(hp_drift_read(a, db, &t, &d, &err), &err);
}

static void compare(hp_arena *a, const char *path) {
    hp_trace predicted, measured;
    hp_comparison c;
    hp_error err = {0};
    hp_status s = hp_compare_load(a, path, NULL, &predicted, &measured, &err);
    check(s, &err);
    if (s == HP_OK) check(hp_compare(a, &predicted, &measured, &c, &err), &err);
}

static void use(hp_arena *a, hp_db *db) {
    hp_plan plan;
    hp_candidate *c;
    hp_rejected *r;
    hp_cost_table *t;
    hp_bench_series *b;
    int n, n_rejected;
    int64_t sim, exec;
    hp_error err = {0};
    check(hp_plan_read(a, db, &plan, &err), &err);
    check(hp_candidates_read(a, db, &c, &n, &r, &n_rejected, &err), &err);
    check(hp_cost_restore(a, db, &t, &err), &err);
    check(hp_bench_read(a, db, &b, &n, &err), &err);
    const hp_status s = hp_trace_find_pair(db, &sim, &exec, &err);
    check(s, &err);
    if (s != HP_OK) return;
    if (sim >= 0) use_trace(a, db, sim);
    if (exec >= 0) use_trace(a, db, exec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char path[64];
    snprintf(path, sizeof path, "/dev/shm/fuzz-%d.db", (int)getpid());
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0) abort();
    hp_arena *a = hp_arena_new();
    hp_db db = {0};
    hp_error err = {0};
    const hp_status s = hp_db_open(path, &db, &err);
    check(s, &err);
    if (s == HP_OK) {
        use(a, &db);
        compare(a, path);
    }
    hp_db_close(&db);
    hp_arena_free(a);
    unlink(path);
    return 0;
}
