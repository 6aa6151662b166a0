/* estimate.h - what can be said of a strategy without lowering it: microseconds instead of milliseconds, so
 * that spaces of hundreds of thousands of points are looked at and only the promising ones simulated. */
#ifndef HP_ESTIMATE_H
#define HP_ESTIMATE_H

#include "sim/search/cuts.h"

typedef struct hp_estimate {
    double bound_s;    /* no simulation is faster */
    double estimate_s; /* what it will take, roughly: with exchanges, boundaries, recomputation, gradients */
    double memory_bytes; /* the least that its largest rank needs */
    double likely_bytes; /* what it will need, roughly: with halo copies and gradients under way */
    int position;        /* which rank that is */
} hp_estimate;

typedef struct hp_estimate_setup {
    hp_parts *parts;
    const hp_graph *graph;
    hp_cost_cache *costs;
    const hp_machine *machine;
    hp_mode mode;
    hp_dtype dtype;
    const hp_device_info *device; /* as in hp_eval_setup */
    const hp_comm_table *comm;    /* as in hp_lower_options */
    int64_t batch;
    double params; /* trained elements of the graph */
    bool eager;    /* memory as an eager framework keeps it */
} hp_estimate_setup;

/* Of a legal strategy whose cut is written out, or is `counts`. */
hp_estimate hp_estimate_of(const hp_estimate_setup *o, const hp_strategy *s, const int32_t *counts);

/* A lower bound of memory_bytes for any cut, in no time: the fullest position has its share of the weights, their
 * gradients and the optimiser's states at least. 0 where nothing is known. */
double hp_estimate_weights(const hp_estimate_setup *o, const hp_strategy *s);

#endif
