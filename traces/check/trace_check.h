/* trace_check.h - the regression gate: are runs slower, larger or worse than earlier ones, beyond
 * noise and a limit? */
#ifndef HP_TRACE_CHECK_H
#define HP_TRACE_CHECK_H

#include "traces/query.h"

typedef enum hp_verdict {
    HP_VERDICT_SAME,       /* no significant difference, or within the limit */
    HP_VERDICT_BETTER,     /* significantly better, beyond the limit */
    HP_VERDICT_REGRESSION, /* significantly worse, beyond the limit */
    HP_VERDICT_INFO,       /* shown, not judged */
    HP_VERDICT_UNKNOWN     /* too few samples to tell */
} hp_verdict;
extern const char *const hp_verdict_names[]; /* "ok", "better", "regression", "info", "unknown" */

typedef enum hp_check_unit {
    HP_CHECK_SECONDS,
    HP_CHECK_BYTES,
    HP_CHECK_PLAIN,
    HP_CHECK_STATUS
} hp_check_unit;

/* A side of a row. */
typedef struct hp_check_value {
    double median;
    double spread; /* half the interquartile range over the median (fraction) */
    double half;   /* half width of the median's 95 % interval, fraction; infinite: too few samples for one;
                       * NaN: not a random variable */
} hp_check_value;

typedef struct hp_check_row {
    const char
        *name; /* "step", a phase, "waiting", "planned memory", "peak memory", "final loss", "exit status" */
    hp_check_unit unit;
    hp_check_value old, new;
    double delta; /* hp_change; loss with an absolute limit: new - old; NaN: none */
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
    bool phases;           /* hold the phases to max_slowdown, too */
} hp_check_limits;

typedef struct hp_check {
    int n_row, n_regression;
    hp_check_row *row;
    bool by_run;      /* the samples are runs; otherwise the steps of one run a side */
    int n_old, n_new; /* samples; steps without warm-up */
    int warmup_old, warmup_new;
    bool too_few; /* a side has fewer than n_needed samples */
    int n_needed; /* samples per side that would suffice */
    double alpha; /* level of a test: HP_COMPARE_ALPHA, shared by the times that are judged (Bonferroni) */
    bool plans_differ;
} hp_check;

typedef struct hp_checked_run {
    const char *path;
    hp_trace trace;
    double planned_bytes, peak_bytes; /* largest over ranks; NaN: not recorded */
    double final_loss;                /* last step's loss, mean over ranks; NaN: none, or NaN itself */
    bool has_loss;
} hp_checked_run;

/* One side: its runs, at least one. */
typedef struct hp_check_side {
    int n;
    hp_checked_run *run;
} hp_check_side;

/* Loads the newest executed run of each file. Errors: HP_EDATA, of one
 * without a complete step, too. */
hp_status hp_check_load(hp_arena *arena, const char *const *path, int n, hp_check_side *s, hp_error *err);

/* Judges what was asked for: step time (Mann-Whitney at `alpha`, and the limit), memory and loss (only the
 * limit; medians over the runs). Where a side has several runs, a run is a sample: its median step. Runs
 * differ by more than the steps of one run do (placement, caches, neighbours), so steps of one run a side
 * tell whether those two runs differ, and runs whether the programs do. A run that did not end well, or whose
 * loss became NaN, is a regression whatever its limits. Phases and waiting are only shown, phases unless
 * asked for: time may move between them, by another plan or by chance, and what it costs is in the step. */
void hp_check_run(hp_arena *arena, hp_check_side *old_side, hp_check_side *new_side,
                  const hp_check_limits *limits, hp_check *c);

#endif
