/* check.h - the regression gate: is a run slower, larger or worse than an earlier one, beyond noise and a
 * limit? */
#ifndef HP_CHECK_H
#define HP_CHECK_H

#include "traces/query.h"

typedef enum hp_verdict {
    HP_VERDICT_SAME,       /* no significant difference, or within the limit */
    HP_VERDICT_BETTER,     /* significantly better, beyond the limit */
    HP_VERDICT_REGRESSION, /* significantly worse, beyond the limit */
    HP_VERDICT_INFO        /* shown, not judged */
} hp_verdict;
extern const char *const hp_verdict_names[]; /* "ok", "better", "regression", "info" */

typedef enum hp_check_unit { HP_CHECK_SECONDS, HP_CHECK_BYTES, HP_CHECK_PLAIN } hp_check_unit;

typedef struct hp_check_row {
    const char *name; /* "step", a phase, "waiting", "planned memory", "peak memory", "final loss" */
    hp_check_unit unit;
    double old_median, new_median;
    double old_spread, new_spread; /* half the interquartile range over the median (fraction) */
    double delta;                  /* new / old - 1; loss with an absolute limit: new - old */
    bool delta_absolute;
    double p;     /* NaN: not a random variable (memory, loss) */
    double limit; /* NaN: none */
    hp_verdict verdict;
} hp_check_row;

typedef struct hp_check_limits {
    double max_slowdown;   /* fraction, 0.05 */
    double max_memory;     /* fraction, 0.05 */
    double max_loss_drift; /* NaN: not judged */
    bool loss_relative;    /* the drift is a fraction of the baseline's loss, otherwise a difference */
} hp_check_limits;

typedef struct hp_check {
    int n_row, n_regression;
    hp_check_row *row;
    int n_old, n_new; /* steps judged, without warm-up */
    int warmup_old, warmup_new;
    bool too_few; /* too few steps for any difference to be significant */
    bool plans_differ;
} hp_check;

/* One side: one run. */
typedef struct hp_check_side {
    hp_trace trace;
    double planned_bytes, peak_bytes; /* largest over ranks; NaN: not recorded */
    double final_loss;                /* of the last step, mean over ranks; NaN: none, or NaN itself */
    bool has_loss;
} hp_check_side;

/* Loads the newest executed run of a file. Errors: HP_EDATA. */
hp_status hp_check_load(hp_arena *arena, const char *path, hp_check_side *s, hp_error *err);

/* Judges. Step time: Mann-Whitney at 0.05 and the limit. Phases: the same with Holm's correction over the
 * phases, and the loss of time must be at least HP_CHECK_MIN_SHARE of the baseline's step; waiting and
 * communication phases are only shown, because their spans include waiting for peers, whose effect is in the
 * step time. Memory and loss: the limit only. Errors: HP_EDATA when a side has no complete step. */
#define HP_CHECK_MIN_SHARE 0.01 /* a slowdown of less than 1 % of the step is not visible to a user */
hp_status hp_check_run(hp_arena *arena, hp_check_side *old_side, hp_check_side *new_side,
                       const hp_check_limits *limits, hp_check *c, hp_error *err);

#endif
