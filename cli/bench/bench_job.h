/* bench_job.h - internals of `bench`: what is measured (networks x images x precisions x scenarios), the plan
 * of each, and one turn of it. */
#ifndef HP_BENCH_JOB_H
#define HP_BENCH_JOB_H

#include "cli/bench/bench_list.h"
#include "cli/launch/workspace.h"
#include "traces/trace_bench.h"

typedef struct bench_setup {
    bench_list net, image, prec, scenario;
    const char *strategy, *device;
    bool any_image; /* no image size was requested: uses the networks' own */
    int64_t batch;  /* offline batch; 0: by image size */
    int64_t threads, rounds;
    int64_t queries; /* queries per series, over all rounds; 0: by time */
    double seconds;  /* seconds per series, over all rounds */
} bench_setup;

typedef struct bench_job {
    hp_bench_series series;
    int capacity;     /* capacity of series.query */
    const char *text; /* "resnet50 224x224 int8 offline" */
    char *plan;       /* plan.db in the workspace */
    bool on_gpus;
    const char *why; /* sanitised reason why it cannot be measured; NULL */
    double expected_s;
} bench_job;

/* Makes every combination, with a plan or with the reason why there is none. Errors: HP_EUSAGE (no such
 * network, strategy, scenario), HP_ECREATE, HP_EIO. */
hp_status bench_jobs_make(hp_arena *arena, const bench_setup *s, const workspace *w, bench_job **jobs, int *n,
                          hp_error *err);

/* Runs the job's queries of one round, after an uncounted one. Failures that concern only this job become its
 * `why`. Errors: all others of cli_launch_run. */
hp_status bench_job_turn(hp_arena *arena, const bench_setup *s, const workspace *w, bench_job *job, int round,
                         hp_error *err);

#endif
