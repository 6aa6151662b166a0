/* eval_run.h - inside of `eval`: the logits of one network over a test split, by precision. */
#ifndef HP_EVAL_RUN_H
#define HP_EVAL_RUN_H

#include "cli/commands/serve_plan.h"
#include "cli/launch/workspace.h"
#include "traces/npy.h"

enum { EVAL_PASS = 8 };

typedef struct eval_setup {
    serve_request request;        /* all but the precision */
    const char *weights, *quant;  /* quant: of int8; NULL: as drawn from the seed, calibrated on the spot */
    const char *data, *data_name; /* data_name: cleaned, for JSON */
    int64_t threads;
    int n_pass;
    const char *pass[EVAL_PASS]; /* "--mean=0.5": how pixels become numbers */
} eval_setup;

typedef struct eval_result {
    const char *name;  /* precision, or file of logits; cleaned, as why is */
    const char *why;   /* why there are none; NULL */
    hp_npy logits;     /* (..., classes) */
    double accuracy;   /* NaN: there are no labels */
    double agreement;  /* with the first result */
    double sqnr_db;    /* the first result's power over that of the difference */
    double peak_bytes; /* peak of the fullest rank; NaN: only the logits are known */
    double images_per_s;
} eval_result;

/* Runs one precision through hplan-exec. What makes this precision alone impossible becomes r->why. */
hp_status eval_run(hp_arena *arena, const eval_setup *s, const workspace *w, const char *prec, eval_result *r,
                   hp_error *err);

/* Fills agreement and SQNR of r against the reference. Errors: HP_EDATA: other shapes. */
hp_status eval_compare(const eval_result *reference, eval_result *r, hp_error *err);

#endif
