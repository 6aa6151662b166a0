/* bound_by.h - what limits a step: the largest share of it that is not useful computing. */
#ifndef HP_BOUND_BY_H
#define HP_BOUND_BY_H

#include "sim/interp.h"

/* "compute" unless some waiting or extra work costs at least a quarter of what the useful computing takes:
 * "halo", "strips" (their rows are copied), "channels", "exchanges between branches", "batch-norm
 * statistics", "stage transfers", "gradient all-reduce", "pipeline bubble", "imbalance", "compression" (codecs), "memory" (layers are
 * run again to save it). The note, of n bytes, says it with its share, and what comes next. busiest: the rank
 * of a replica that computes most. */
const char *hp_bound_by(const hp_strategy *s, const hp_sim_result *r, int busiest, char *note, size_t n);

#endif
