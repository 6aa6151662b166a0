/* compare.h - two recordings of a step side by side: predicted and measured, or two measurements. */
#ifndef HP_COMPARE_H
#define HP_COMPARE_H

#include "traces/query.h"

#define HP_COMPARE_ALPHA 0.05 /* differences with p at or above this are shown as "~" (benchstat's level) */

/* Relative change from `old`: (new - old) / old. Positive means slower, larger, worse. Infinite if old is 0,
 * 0 if both are. The only measure of `compare` between two runs and of `check`. */
double hp_change(double old, double new);
/* Formats as "+8.00%"; `out` holds 32 chars. */
const char *hp_format_change(double change, char out[32]);

/* Seconds per step. `predicted` is the first side, `measured` the second. */
typedef struct hp_compare_row {
    const char *name;               /* phase, kind of task ("fwd.conv") or label of a task */
    double predicted_s, measured_s; /* NaN: not on that side */
    double error;  /* for a prediction: (predicted - measured) / measured; NaN if measured is 0 or absent */
    double change; /* between two runs of a kind: hp_change of the first to the second;
                    * NaN for a prediction */
    double p;      /* two-sided; NaN: no test possible */
    double expected_s,
        model_error; /* error of a prediction at the speed of the run (compare_speed.h); NaN: unknown */
    int32_t role, task, op, phase; /* task rows: identifies the task; otherwise -1 */
    const char *kind;              /* task rows: "fwd.conv"; otherwise name */
} hp_compare_row;

typedef struct hp_comparison {
    bool of_prediction; /* the first side predicted the second; otherwise two runs of a kind */
    hp_compare_row step;
    int n_phase, n_kind, n_task;
    hp_compare_row *phase; /* phases that occur, in program order, then "waiting" */
    hp_compare_row *kind;  /* longest measured first */
    hp_compare_row *task;  /* tasks in both programs (equal role, id and label); mean over the role's ranks */
    int warmup[2], n_iter[2]; /* iterations dropped as warm-up and kept, per side */
    int n_partial[2];
} hp_comparison;

/* Compares phases and kinds: seconds per rank per step, the mean over ranks of the sum over tasks of the
 * median over iterations. A simulation of folded replicas has one rank per role, which gives the same mean.
 * Waiting is the step minus the time that the compute queue is busy; so load + pack + forward + backward +
 * optimizer + waiting = step on every rank. p: Wilcoxon signed-rank of the per-iteration totals against a
 * single prediction, Mann-Whitney between two runs. The first of three or more iterations is dropped
 * (warm-up), also from a and b. Errors: HP_EDATA (a side has no complete iteration). */
hp_status hp_compare(hp_arena *arena, hp_trace *a, hp_trace *b, hp_comparison *c, hp_error *err);

/* Seconds per rank and step of every phase, and last of waiting, as hp_compare has them; HP_PHASES + 1
 * values. Needs complete iterations. */
double *hp_compare_phases(hp_arena *arena, const hp_trace *t);

/* Loads the sides of `compare`: from one file (its simulation and its execution) or two (path_b not NULL):
 * the execution of each, or the simulation of a file without one. A simulation always comes first. Errors:
 * HP_EDATA naming the file and what is missing. */
hp_status hp_compare_load(hp_arena *arena, const char *path_a, const char *path_b, hp_trace *a, hp_trace *b,
                          hp_error *err);

#endif
