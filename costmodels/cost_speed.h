/* cost_speed.h - how much slower than on the quiet machine an operation is: yardsticks by class, and what class an operation
 * is of.
 *
 * A task is a mix: its floating-point operations go with the yardstick of arithmetic, its bytes with that of the
 * second-level cache or of memory. The weights are its times at the machine's peak rates (the roofline of Williams et al.,
 * CACM 2009): where one dominates, the task goes with that class. */
#ifndef HP_COST_SPEED_H
#define HP_COST_SPEED_H

#include "costmodels/cost_rows.h"

/* The row of a yardstick with `ranks` computing at a time on a node, else with the nearest smaller number; NULL: none. */
const hp_row *hp_yardstick_row(const hp_cost_table *t, const char *class, hp_yardstick y, int ranks);

/* The usual speed of the calibration, from the yardstick rows of all classes and ranks, weighted by their samples; quiet
 * where there is none. */
hp_speed hp_speed_usual(const hp_cost_table *t);

/* What part of a task's time each class of operation takes; sums to 1. */
void hp_work_mix(const hp_machine *m, const hp_work *w, double mix[HP_SPEED_CLASSES]);
/* The slowdown of a mix; classes whose slowdown is not known (NaN) are left out, all: NaN. */
double hp_mix_slowdown(const double mix[HP_SPEED_CLASSES], const double slowdown[HP_SPEED_CLASSES]);

/* The slowdown of a task. On devices other than the host's cores: 1, their speed is not the host's. */
double hp_speed_of_work(const hp_speed *s, const hp_machine *m, const hp_work *w);
/* Of a message or a collective of so many bytes, which cores copy; elsewhere 1. */
double hp_speed_of_copy(const hp_speed *s, const hp_machine *m, double bytes);

/* Share of the node's compute that a task takes where its own was not measured. Ranks that all do the like slow each other
 * down as yardsticks of as many ranks do, by s = quiet rN / quiet r1: each has s / N. 0: not known. */
double hp_speed_share(const hp_cost_table *t, const hp_machine *m, const hp_work *w);

hp_cost hp_cost_times(hp_cost c, double factor);

#endif
