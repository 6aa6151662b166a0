/* export_nsys.c - the subset of Nsight Systems' SQLite export that existing queries read. Names and types of
 * columns are those of NVIDIA's "Nsight Systems exporter" documentation. eventType 60 is NvtxStartEndRange
 * (ranges that may overlap), copyKind 10 a peer-to-peer copy. */
#include "traces/export/trace_export.h"

#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

static const char schema[] =
    "CREATE TABLE StringIds(id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE NVTX_EVENTS(start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT,"
    " globalTid INTEGER, textId INTEGER, domainId INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER "
    "NOT NULL,"
    " contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,"
    " demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER "
    "NOT NULL,"
    " contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,"
    " bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL);";

enum {
    NVTX_START_END = 60,
    COPY_PEER = 10,
    EVAL_NAME = 0 /* StringIds row of evaluation tasks; task i has i + 1 */
};

typedef struct writer {
    hp_db db; /* only for its statements' error messages: the schema is Nsight's */
    sqlite3_stmt *string, *nvtx, *kernel, *copy;
} writer;

static hp_status write_strings(writer *w, const hp_trace *t, hp_error *err) {
    hp_db_bind(w->string, "is", (int64_t)EVAL_NAME, "eval");
    HP_TRY(hp_db_step_done(&w->db, w->string, err));
    for (int i = 0; i < t->n_task; i++) {
        hp_db_bind(w->string, "is", (int64_t)i + 1, t->task[i].label);
        HP_TRY(hp_db_step_done(&w->db, w->string, err));
    }
    return HP_OK;
}

static hp_status write_span(writer *w, const hp_trace *t, int64_t i, hp_error *err) {
    const hp_trace_span *s = &t->span[i];
    const hp_trace_task *k = s->task < 0 ? NULL : &t->task[s->task];
    const int64_t queue = k ? k->queue : HP_QUEUE_COMPUTE, name = s->task + 1;
    const int64_t pid = ((int64_t)s->rank + 1) << 24;
    hp_db_bind(w->nvtx, "iiiii", s->t0_ns, s->t1_ns, (int64_t)NVTX_START_END, pid + queue, name);
    HP_TRY(hp_db_step_done(&w->db, w->nvtx, err));
    if (queue == HP_QUEUE_COMPUTE) {
        hp_db_bind(w->kernel, "iiiiiii", s->t0_ns, s->t1_ns, (int64_t)s->rank, queue, i, pid, name);
        return hp_db_step_done(&w->db, w->kernel, err);
    }
    hp_db_bind(w->copy, "iiiiiiii", s->t0_ns, s->t1_ns, (int64_t)s->rank, queue, i, pid, k->bytes,
               (int64_t)COPY_PEER);
    return hp_db_step_done(&w->db, w->copy, err);
}

static hp_status prepare_all(writer *w, hp_error *err) {
    HP_TRY(hp_db_prepare(&w->db, "INSERT INTO StringIds VALUES(?,?)", &w->string, err));
    HP_TRY(hp_db_prepare(&w->db, "INSERT INTO NVTX_EVENTS VALUES(?1,?2,?3,NULL,?4,?5,0)", &w->nvtx, err));
    HP_TRY(hp_db_prepare(&w->db, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(?1,?2,?3,1,?4,?5,?6,?7,?7)",
                         &w->kernel, err));
    return hp_db_prepare(&w->db, "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES(?1,?2,?3,1,?4,?5,?6,?7,?8)",
                         &w->copy, err);
}

static hp_status write_all(writer *w, const hp_trace *t, hp_error *err) {
    HP_TRY(prepare_all(w, err));
    HP_TRY(write_strings(w, t, err));
    for (int64_t i = 0; i < t->n_span; i++) HP_TRY(write_span(w, t, i, err));
    return HP_OK;
}

hp_status hp_export_nsys(hp_arena *arena, const hp_trace *t, const char *path, hp_error *err) {
    writer *w = HP_NEW(arena, writer, 1);
    hp_status s = hp_db_create_other(path, schema, &w->db, err);
    if (s == HP_OK) s = write_all(w, t, err);
    sqlite3_finalize(w->string);
    sqlite3_finalize(w->nvtx);
    sqlite3_finalize(w->kernel);
    sqlite3_finalize(w->copy);
    if (s == HP_OK) s = hp_db_commit(&w->db, err);
    hp_db_close(&w->db);
    return s;
}
