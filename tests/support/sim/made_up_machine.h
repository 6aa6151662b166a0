/* made_up_machine.h - a machine on which every shape class has a rate of its own. Runs on it are known, so
 * predictions of a table calibrated from some of them can be compared with the truth for others. */
#ifndef HP_TESTS_MADE_UP_MACHINE_H
#define HP_TESTS_MADE_UP_MACHINE_H

#include "costmodels/calibrate.h"
#include "base/rng.h"
#include "sim/search/evaluate.h"
#include "tests/support/plan/data_files.h"
#include "traces/trace.h"
#include "plan/program/work.h"

#include <math.h>

hp_machine local_like(int cores);
bool near(double have, double want, double relative);
hp_plan make_plan(hp_arena *arena, const hp_machine *m, hp_mode mode, const char *strategy, int64_t batch);

/* "Executes" the plan on the made-up machine, five iterations; returns the step time in seconds. */
double execute(hp_arena *arena, const hp_plan *plan, const char *path);

/* A machine whose speed drifts: it is quiet about half of the time; otherwise everything takes up to about
 * twice as long, for several consecutive steps. Yardsticks are read after every step, with an error of 2 %.
 * seed 0: always quiet. */
typedef struct drifting {
    uint64_t seed;
    int steps;
    bool yardsticks;     /* recorded */
    double availability; /* below 1: no processor for the rest of the time, in slices shorter than
                          * any task; 0 means 1 */
} drifting;
enum { YARDSTICK_NS = 75000 }; /* on the quiet machine */
double execute_drifting(hp_arena *arena, const hp_plan *plan, const drifting *d, const char *path);
hp_cost_table *calibrate(hp_arena *arena, const hp_machine *m, hp_mode mode, const char *const *strategy,
                         int n);
double predict(hp_arena *arena, const hp_cost_table *t, const hp_plan *plan);

#endif
