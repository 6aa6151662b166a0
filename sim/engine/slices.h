/* slices.h - expected sharing if ranks outnumber cores; see slices.c. */
#ifndef HP_SLICES_H
#define HP_SLICES_H

/* Expected number of busy cores if `computing` of `ranks` ranks compute, with random placement on `cores`
 * cores, none of which has two ranks more than another. */
double sim_slices_busy(int ranks, int cores, int computing);

/* Probability that one of the `computing` other ranks is on the core of a waiting rank. */
double sim_slices_beside(int ranks, int cores, int computing);

#endif
