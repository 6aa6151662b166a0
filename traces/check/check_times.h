/* check_times.h - the times of one side of a gate, as samples: the steps of its run, or its runs. */
#ifndef HP_CHECK_TIMES_H
#define HP_CHECK_TIMES_H

#include "plan/program/program.h"
#include "traces/check/trace_check.h"

/* Rows: the step, the phases in program order, waiting. */
enum { HP_TIME_STEP, HP_TIME_PHASE, HP_TIME_WAITING = HP_TIME_PHASE + HP_PHASES, HP_TIMES };

typedef struct hp_check_times {
    int n;                    /* samples */
    double *sample[HP_TIMES]; /* seconds per rank and step */
    double value[HP_TIMES];   /* of all samples; of one run the figures of hp_compare */
} hp_check_times;

/* by_run: a sample is a run, of a side with one run, too; otherwise it is a step of the side's only run. */
hp_check_times hp_check_times_of(hp_arena *arena, const hp_check_side *s, bool by_run);

/* Median, spread and interval of samples, which it sorts; `value` becomes the median. The interval is that of
 * order statistics, as benchstat's: the narrowest pair of symmetric ranks that covers 95 %. It exists from
 * six samples on. Source: Conover 1999, ch. 3.2. */
hp_check_value hp_check_describe(double value, double *sample, int n);

#endif
