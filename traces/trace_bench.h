/* trace_bench.h - the measurements of `hplan bench` in SQLite: one series per network, image size, precision
 * and scenario, with the latency of every query. Memory is that of the fullest rank. */
#ifndef HP_TRACE_BENCH_H
#define HP_TRACE_BENCH_H

#include "base/arena.h"
#include "base/db.h"
#include "traces/serving.h"

typedef struct hp_bench_query {
    int32_t round; /* from 0; each round measures every series */
    int64_t ns;
} hp_bench_query;

typedef struct hp_bench_series {
    const char *net, *prec, *strategy, *machine, *device, *version, *started; /* cleaned when read */
    int32_t image_h, image_w, threads, ranks;
    int32_t scenario; /* hp_scenario */
    int64_t batch;    /* images per query */
    double predicted_s;
    int64_t planned_bytes, peak_bytes, rss_bytes; /* rss: of the whole process, including libraries */
    int64_t n_query;
    hp_bench_query *query; /* by round, in the order they were answered */
} hp_bench_series;

/* Writes to a database that was just created. Errors: HP_EIO. */
hp_status hp_bench_write(hp_db *db, const hp_bench_series *s, hp_error *err);

/* All series of a file; n may be 0. Errors: HP_EDATA: values that bench cannot have written. */
hp_status hp_bench_read(hp_arena *arena, hp_db *db, hp_bench_series **s, int *n, hp_error *err);

/* Medians over the rounds of a series with at least one query, and statistics of all its queries together. */
hp_serving hp_bench_median(const hp_bench_series *s);
hp_serving hp_bench_pooled(const hp_bench_series *s);
/* The scenario's figure as MLPerf defines it: the early-stopping estimate of its tail latency, in seconds;
 * NaN with too few queries, or where the figure is images/s. */
double hp_bench_tail(const hp_bench_series *s);

#endif
