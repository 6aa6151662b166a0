/* trace_export.h - exports a trace to other viewers' formats. Every text is escaped for its format; an output
 * file is complete or absent. */
#ifndef HP_TRACE_EXPORT_H
#define HP_TRACE_EXPORT_H

#include "traces/query.h"

typedef struct hp_export_counter { /* a counter over time */
    const char *name;
    hp_trace_value *value;
    int64_t n;
} hp_export_counter;

/* A run with its counters. */
typedef struct hp_export_side {
    hp_trace trace;
    hp_export_counter *counter;
    int n_counter;
} hp_export_side;

/* Chrome trace JSON (Perfetto, chrome://tracing): a process per side, "predicted" or "measured"; a track per
 * rank, queue kind and lane, on which complete events never overlap; a flow from the sender's to the
 * receiver's event of every message; counters by rank, and the bytes in flight. Microseconds from the
 * measurement's first span; a prediction beside it begins with the first step that counts, after the
 * warm-up. One side or two, the measurement last; a counter's name is one of counters.def. Format: "Trace
 * Event Format", Chromium project. Errors: HP_ECREATE, HP_EIO. */
hp_status hp_export_chrome(hp_arena *arena, const hp_export_side *side, int n_side, const char *path,
                           hp_error *err);

/* One line per span: rank, role, task, iter, phase, kind, label, t0_s, t1_s, bytes. Errors: HP_ECREATE,
 * HP_EIO. */
hp_status hp_export_csv(const hp_trace *t, const char *path, hp_error *err);

/* SQLite with the tables of `nsys export --type sqlite` that queries use most: StringIds, NVTX_EVENTS (all
 * tasks), CUPTI_ACTIVITY_KIND_KERNEL (compute tasks), CUPTI_ACTIVITY_KIND_MEMCPY (moves between ranks).
 * deviceId = rank, streamId = queue kind; globalTid is packed like nsys does: pid * 2^24 + tid. Errors:
 * HP_ECREATE, HP_EIO. */
hp_status hp_export_nsys(hp_arena *arena, const hp_trace *t, const char *path, hp_error *err);

#endif
