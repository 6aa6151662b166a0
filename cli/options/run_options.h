/* run_options.h - the options of `hplan run`: its own, and those it hands on to hplan-exec. */
#ifndef HP_RUN_OPTIONS_H
#define HP_RUN_OPTIONS_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { RUN_PASS = 32 };

typedef struct run_options {
    const char *path;                                                  /* plan.db */
    const char *init;                                                  /* weights: safetensors or ONNX */
    const char *trace, *plan, *device, *launcher, *hostfile, *metrics; /* NULL: not given; trace: run.db */
    int64_t threads, restarts;
    bool json, force, no_history, random_weights, dry_run, fit_here, elastic;
    int n_pass;
    const char *pass[RUN_PASS]; /* "--name=value" for hplan-exec */
} run_options;

/* What an option of hplan-exec was given, "" where it takes nothing; NULL: it was not. */
const char *run_options_passed(const run_options *o, const char *name);

/* Errors: HP_EUSAGE. */
hp_status run_options_parse(hp_arena *arena, int argc, char **argv, run_options *o, hp_error *err);

#endif
