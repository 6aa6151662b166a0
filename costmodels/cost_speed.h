/* cost_speed.h - slowdown of an operation relative to the quiet machine: yardsticks by class, and the classes
 * of an operation.
 *
 * A task is a mix: its floating-point operations follow the yardstick of arithmetic, its bytes that of the L2
 * cache or of memory. The weights are its times at the machine's peak rates (the roofline of Williams et al.,
 * CACM 2009): if one dominates, the task follows that class. */
#ifndef HP_COST_SPEED_H
#define HP_COST_SPEED_H

#include "costmodels/cost_rows.h"

/* The row of a yardstick with `ranks` computing at a time on a node, otherwise with the nearest smaller
 * number; NULL: none. */
const hp_row *hp_yardstick_row(const hp_cost_table *t, const char *class, hp_yardstick y, int ranks);

/* The calibration's usual speed, from the yardstick rows of all classes and ranks, weighted by their samples;
 * quiet if there are none. */
hp_speed hp_speed_usual(const hp_cost_table *t);

/* Fraction of a task's time spent in each class of operation; sums to 1. */
void hp_work_mix(const hp_machine *m, const hp_work *w, double mix[HP_SPEED_CLASSES]);
/* The slowdown of a mix. Classes with unknown slowdown (NaN) are left out; NaN if all are unknown. */
double hp_mix_slowdown(const double mix[HP_SPEED_CLASSES], const double slowdown[HP_SPEED_CLASSES]);

/* The slowdown of a task; 1 on devices other than the host's cores, whose speed is independent of the
 * host. */
double hp_speed_of_work(const hp_speed *s, const hp_machine *m, const hp_work *w);
/* The slowdown of a message or collective of `bytes`, which cores copy; 1 elsewhere. */
double hp_speed_of_copy(const hp_speed *s, const hp_machine *m, double bytes);

/* Share of the node's compute that a task takes if its own was not measured. N ranks that do the same slow
 * each other down as yardsticks do, by s = quiet rN / quiet r1, so each has s / N. 0: unknown. */
double hp_speed_share(const hp_cost_table *t, const hp_machine *m, const hp_work *w);

hp_cost hp_cost_times(hp_cost c, double factor);

#endif
