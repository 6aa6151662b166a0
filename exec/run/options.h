/* options.h - the command line of hplan-exec; `hplan run` passes its own options on under the same names. */
#ifndef HP_OPTIONS_H
#define HP_OPTIONS_H

#include "exec/bench/bench.h"
#include "exec/data/dataset/dataset.h"
#include "exec/train/rates.h"

#include <stdbool.h>

typedef struct hp_exec_options {
    const char *plan;        /* plan.db or run.db; NULL: --check-speed, --bench-comm */
    const char *rings;       /* --rings: folder for rank-N.ring and the watchdog's board; NULL: no trace */
    const char *data;        /* --data, "synthetic" */
    const char *init, *save; /* --init, --save: safetensors; NULL */
    const char *checkpoint, *every; /* --checkpoint: folder, NULL; --every: steps or time */
    int64_t every_steps, keep;
    double every_s; /* 0: by steps */
    bool resume;
    const char *input;    /* --input: one image instead of --data; NULL */
    const char *quantise; /* --quantise: calibrates and writes this file instead of results; NULL */
    const char *observer, *float_layers; /* of --quantise: "mse"; layers kept real, NULL */
    double percentile;
    int64_t images;         /* number of calibration images */
    bool equalise, correct; /* equalise channels between layers; correct biases */
    const char *heatmap;    /* --heatmap: from the patches of an image; NULL */
    bool argmax;            /* --argmax: classes instead of logits in output and heat map */
    const char *output;     /* --output: file for the output of a deployed network; NULL */
    int64_t steps, epochs;  /* 0: not given */
    int64_t threads;
    hp_rate_words rates; /* --lr, --betas, ... */
    double deadline_s;   /* > 0: timeout that replaces the rule of watchdog.h */
    const char *on_nan;  /* --on-nan: "stop", "go-on", "skip" or "skip:N" when a number is not finite */
    const char
        *on_broken;     /* --on-broken: "stop", "skip" or "skip:P" when images of a folder cannot be read */
    bool deterministic; /* --deterministic: records hashes of the weights after every step */
    bool goes_on;       /* --on-nan go-on */
    int64_t skips;      /* --on-nan skip: steps in a row that may be skipped; 0: none */
    double broken_percent; /* --on-broken skip: of the images, that may be left out; negative: stop */
    bool shuffle, dropout, eval;
    bool check_options; /* --check-options: says what is wrong with them, runs nothing */
    bool check_speed;   /* --check-speed: times the yardsticks for `seconds`, runs no plan */
    double seconds;
    hp_bench_request bench; /* --bench-comm, --bench-...: series NULL: none; runs no plan */
    bool yardsticks;        /* sampled between steps, for the trace; cleared by --no-yardsticks */
    bool bind;              /* ranks to shares of the cores; cleared by --no-bind */
    const char *quota;      /* --quota: processors of each rank (machines/quota.h); NULL: no limit */
    bool gpu_mpi; /* messages of device memory go to an MPI that takes them; cleared by --no-gpu-mpi */
    bool ipc;     /* direct messages between devices of one node; cleared by --no-ipc */
    hp_data_options pixels; /* --mean --std --channels --resize; the job sets the rest */
} hp_exec_options;

/* Errors: HP_EUSAGE. --help prints and exits 0. */
hp_status hp_exec_options_parse(int argc, char **argv, hp_exec_options *o, hp_error *err);

/* Would a run of the plan take them, whatever its data, ranks and devices? The optimiser's numbers and those of pixels. Of one
 * process, without MPI. Errors: HP_EUSAGE, those of reading a plan. */
hp_status hp_exec_options_check(const hp_exec_options *o, hp_error *err);

#endif
