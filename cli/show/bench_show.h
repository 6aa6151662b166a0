/* bench_show.h - the results of `bench` as text and as JSON. */
#ifndef HP_BENCH_SHOW_H
#define HP_BENCH_SHOW_H

#include "cli/bench/bench_job.h"
#include "cli/cli.h"

/* Print as a table; the same as one JSON object. */
void bench_print(const bench_setup *s, const bench_job *jobs, int n);
json_t *bench_json(const bench_setup *s, const bench_job *jobs, int n);

#endif
