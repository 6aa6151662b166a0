/* trace_check.h - the regression gate: is a run slower, larger or worse than an earlier one, beyond
 * noise and a limit? */
#ifndef HP_TRACE_CHECK_H
#define HP_TRACE_CHECK_H

#include "traces/query.h"

typedef enum hp_verdict {
    HP_VERDICT_SAME,       /* no significant difference, or within the limit */
    HP_VERDICT_BETTER,     /* significantly better, beyond the limit */
    HP_VERDICT_REGRESSION, /* significantly worse, beyond the limit */
    HP_VERDICT_INFO,       /* shown, not judged */
    HP_VERDICT_UNKNOWN     /* too few steps to tell */
} hp_verdict;
extern const char *const hp_verdict_names[]; /* "ok", "better", "regression", "info", "unknown" */

typedef enum hp_check_unit {
    HP_CHECK_SECONDS,
    HP_CHECK_BYTES,
    HP_CHECK_PLAIN,
    HP_CHECK_STATUS
} hp_check_unit;

typedef struct hp_check_row {
    const char
        *name; /* "step", a phase, "waiting", "planned memory", "peak memory", "final loss", "exit status" */
    hp_check_unit unit;
    double old_median, new_median;
    double old_spread, new_spread; /* half the interquartile range over the median (fraction) */
    double delta;                  /* hp_change; loss with an absolute limit: new - old; NaN: none */
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
    bool too_few; /* a side has fewer than n_needed steps */
    int n_needed; /* steps per side that would suffice */
    bool plans_differ;
} hp_check;

/* One side: a run. */
typedef struct hp_check_side {
    hp_trace trace;
    double planned_bytes, peak_bytes; /* largest over ranks; NaN: not recorded */
    double final_loss;                /* last step's loss, mean over ranks; NaN: none, or NaN itself */
    bool has_loss;
} hp_check_side;

/* Loads the newest executed run of a file. Errors: HP_EDATA. */
hp_status hp_check_load(hp_arena *arena, const char *path, hp_check_side *s, hp_error *err);

/* Judges what was asked for: step time (Mann-Whitney at HP_COMPARE_ALPHA, and the limit), memory and loss
 * (only the limit). A run that did not end well, or whose loss became NaN, is a regression whatever its
 * limits. Phases and waiting are only shown: time may move between them, by another plan or by chance, and
 * what it costs is in the step. Errors: HP_EDATA (a side has no complete step). */
hp_status hp_check_run(hp_arena *arena, hp_check_side *old_side, hp_check_side *new_side,
                       const hp_check_limits *limits, hp_check *c, hp_error *err);

#endif
