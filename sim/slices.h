/* slices.h - what chance makes of ranks on fewer cores; see slices.c. */
#ifndef HP_SLICES_H
#define HP_SLICES_H

/* Of `ranks` ranks on `cores` cores, no core having two more than another, `computing` compute, which is chance: the
 * expected number of cores on which one of them is. */
double sim_slices_busy(int ranks, int cores, int computing);

/* The probability that one of the `computing` others is on the core of a rank that waits. */
double sim_slices_beside(int ranks, int cores, int computing);

#endif
