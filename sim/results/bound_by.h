/* bound_by.h - what limits a step: its largest share that is not useful computing. */
#ifndef HP_BOUND_BY_H
#define HP_BOUND_BY_H

#include "sim/engine/sim.h"

/* Returns "compute" unless some waiting or extra work takes at least a quarter of the useful computing
 * time: "halo", "strips" (copied rows), "channels", "exchanges between branches", "batch-norm statistics",
 * "stage transfers", "gradient all-reduce", "pipeline bubble", "imbalance", "compression" (codecs),
 * "memory" (layers recomputed to save it), "host" (devices wait for a framework's host; its share of the
 * step). The note, of n bytes, states the limit with its share, and the next one. busiest: the rank of a
 * replica that computes most. */
const char *hp_bound_by(const hp_strategy *s, const hp_sim_result *r, double host, int busiest, char *note,
                        size_t n);

#endif
