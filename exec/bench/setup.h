/* setup.h - inside of bench: a parsed request. */
#ifndef HP_SETUP_H
#define HP_SETUP_H

#include "exec/bench/bench.h"

enum { HP_BENCH_SENDRECV = HP_COLLECTIVES /* each rank sends to the next and receives from the previous */ };
enum { HP_BENCH_MOST_SERIES = 128, HP_BENCH_MOST_SIZES = 64 };

typedef struct hp_bench_run {
    int32_t what; /* hp_collective, or HP_BENCH_SENDRECV */
    int32_t backend, algorithm;
} hp_bench_run;

typedef struct hp_bench_setup {
    const hp_bench_request *r;
    hp_dtype dtype;
    hp_reduction reduction;
    int ranks;
    int n_series;
    hp_bench_run series[HP_BENCH_MOST_SERIES]; /* series of one operation are adjacent */
} hp_bench_setup;

/* Errors: HP_EUSAGE. */
hp_status hp_bench_setup_make(const hp_bench_request *r, int ranks, hp_bench_setup *s, hp_error *err);

/* Removes the series of a back end. */
void hp_bench_setup_drop(hp_bench_setup *s, int32_t backend);

const char *hp_bench_name(int32_t what);

/* Elements of the whole data that fit into `bytes`; equal blocks, of at least one element each, where
 * every member has one. */
int64_t hp_bench_count(int32_t what, int64_t bytes, int elem_bytes, int ranks);
/* An operation's counts, ascending and distinct; returns their number. */
int hp_bench_counts(const hp_bench_setup *s, int32_t what, int64_t count[HP_BENCH_MOST_SIZES]);

#endif
