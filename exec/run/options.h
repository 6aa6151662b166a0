/* options.h - the command line of hplan-exec; `hplan run` passes its own options on under the same names. */
#ifndef HP_OPTIONS_H
#define HP_OPTIONS_H

#include "exec/bench/bench.h"
#include "exec/data/dataset/dataset.h"
#include "exec/train/rates.h"

#include <stdbool.h>

typedef struct hp_exec_data {
    const char *name;       /* --data, "synthetic" */
    const char *input;      /* --input: one image instead; NULL */
    hp_data_options pixels; /* --mean --std --channels --resize; the job sets the rest */
    bool shuffle;
    const char
        *on_broken; /* --on-broken: "stop", "skip" or "skip:P" when images of a folder cannot be read */
    double broken_percent; /* percentage of images that may be left out; negative: stop */
} hp_exec_data;

typedef struct hp_exec_checkpoint {
    const char *dir;     /* --checkpoint: folder; NULL: none are saved */
    const char *every;   /* --every: steps or time */
    int64_t every_steps; /* the same as numbers: steps, */
    double every_s;      /* or a time; 0: by steps */
    int64_t keep;        /* --keep: the newest */
    bool resume;         /* --resume */
} hp_exec_checkpoint;

typedef struct hp_exec_quantise {
    const char *file;         /* --quantise: calibrates and writes this file instead of results; NULL */
    const char *observer;     /* "mse" */
    const char *float_layers; /* layers kept real; NULL */
    double percentile;
    int64_t images;         /* number of calibration images */
    bool equalise, correct; /* equalise channels between layers; correct biases */
} hp_exec_quantise;

typedef struct hp_exec_output { /* deployed network */
    const char *file;           /* --output; NULL */
    const char *heatmap;        /* --heatmap: from the patches of an image; NULL */
    bool argmax;                /* --argmax: classes instead of logits in both */
} hp_exec_output;

typedef struct hp_exec_nan { /* when a number is not finite */
    const char *action;      /* --on-nan: "stop", "go-on", "skip" or "skip:N" */
    bool goes_on;            /* go-on */
    int64_t skips;           /* skip: steps in a row that may be skipped; 0: none */
} hp_exec_nan;

typedef struct hp_exec_speed {
    bool check;     /* --check-speed: times the yardsticks, runs no plan */
    double seconds; /* for so long */
} hp_exec_speed;

typedef struct hp_exec_machine { /* how a rank uses it */
    bool yardsticks;             /* sampled between steps, for the trace; cleared by --no-yardsticks */
    bool bind;                   /* ranks to shares of the cores; cleared by --no-bind */
    const char *quota;           /* --quota: processors of each rank (machines/quota.h); NULL: no limit */
    bool gpu_mpi; /* messages of device memory go to an MPI that takes them; cleared by --no-gpu-mpi */
    bool ipc;     /* direct messages between devices of one node; cleared by --no-ipc */
} hp_exec_machine;

typedef struct hp_exec_options {
    const char *plan;        /* plan.db or run.db; NULL: --check-speed, --bench-comm */
    const char *rings;       /* --rings: folder for rank-N.ring and the watchdog's board; NULL: no trace */
    const char *init, *save; /* --init, --save: safetensors; NULL */
    hp_exec_data data;
    hp_exec_checkpoint checkpoint;
    hp_exec_quantise quantise;
    hp_exec_output output;
    int64_t steps, epochs; /* 0: not given */
    int64_t threads;
    hp_rate_words rates; /* --lr, --betas, ... */
    double deadline_s;   /* > 0: timeout that replaces the rule of watchdog.h */
    hp_exec_nan nan;
    bool deterministic; /* --deterministic: records hashes of the weights after every step */
    bool dropout, eval;
    bool check_options; /* --check-options: says what is wrong with them, runs nothing */
    hp_exec_speed speed;
    hp_bench_request bench; /* --bench-comm, --bench-...: series NULL: none; runs no plan */
    hp_exec_machine machine;
} hp_exec_options;

/* Errors: HP_EUSAGE. --help prints and exits 0. */
hp_status hp_exec_options_parse(int argc, char **argv, hp_exec_options *o, hp_error *err);

/* Would a run of the plan accept these options, whatever its data, ranks and devices? Checks the optimiser's
 * and the pixels' numbers. Works in one process, without MPI. Errors: HP_EUSAGE, those of reading a plan. */
hp_status hp_exec_options_check(const hp_exec_options *o, hp_error *err);

#endif
