/* calibrate_store.c - opens the samples beside a table, and adds runs of plans. */
#include "cli/calibrate/calibrate_store.h"

#include "costmodels/sample_store.h"
#include "base/host.h"
#include "traces/trace.h"

#include <string.h>
#include <time.h>

hp_status calibrate_store_open(calibrate_store *s, const char *cost_path, const char *gpu, const char *jobs,
                               hp_calibration *c, hp_error *err) {
    bool other = false;
    char host[128];
    hp_sample_store_path(cost_path, s->path, sizeof s->path);
    hp_host_processor(host, sizeof host);
    snprintf(s->processor, sizeof s->processor, "%s%s%s", host, *gpu ? ", " : "", gpu);
    HP_TRY(hp_sample_store_read(s->path, s->processor, c, &other, err));
    if (other) fprintf(stderr, "%s: samples of another processor; measuring anew\n", s->path);
    s->since_s = time(NULL);
    if (!*jobs) return HP_OK;
    return hp_sample_store_begin(s->path, s->processor, jobs, time(NULL), &s->since_s, err);
}

/* Reads where the run was executed, and what it ran. */
static hp_status read_run(hp_db *db, char *processor, size_t n, char *job, size_t n_job, hp_error *err) {
    sqlite3_stmt *st = NULL;
    bool row = false;
    int64_t run = -1;
    HP_TRY(hp_trace_find(db, "exec", &run, err));
    if (run < 0) return hp_fail(err, HP_EDATA, "%s holds no executed run; hplan run writes one", db->path);
    HP_TRY(hp_db_prepare(db, "SELECT processor, plan_hash FROM run WHERE id = ?", &st, err));
    hp_db_bind(st, "i", run);
    const hp_status s = hp_db_next(db, st, &row, err);
    if (s == HP_OK && row) {
        snprintf(processor, n, "%s", hp_db_text(st, 0));
        snprintf(job, n_job, "plan %.64s", hp_db_text(st, 1));
    }
    sqlite3_finalize(st);
    return s;
}

static hp_status take(const calibrate_store *s, hp_db *db, hp_calibration *c, hp_error *err) {
    char processor[128] = "", here[128], job[96] = "";
    HP_TRY(read_run(db, processor, sizeof processor, job, sizeof job, err));
    hp_host_processor(here, sizeof here);
    if (strcmp(processor, here) != 0)
        return hp_fail(err, HP_EDATA,
                       "%s was executed on %s, this is %s: calibrate there, or here with runs of here",
                       db->path, *processor ? processor : "an unknown processor", here);
    HP_TRY(hp_calibration_add(c, job, time(NULL), db, err));
    return hp_sample_store_append(s->path, s->processor, c, err);
}

hp_status calibrate_store_take(const calibrate_store *s, const char *run_db, hp_calibration *c,
                               hp_error *err) {
    hp_db db = {0};
    HP_TRY(hp_db_open(run_db, &db, err));
    const hp_status status = take(s, &db, c, err);
    hp_db_close(&db);
    return status;
}
