/* estimate.h - estimates a strategy without lowering it, in microseconds instead of milliseconds: a search
 * can look at spaces of hundreds of thousands of points and simulate only the promising ones. */
#ifndef HP_ESTIMATE_H
#define HP_ESTIMATE_H

#include "sim/search/cuts.h"

typedef struct hp_estimate {
    double bound_s;      /* no simulation is faster */
    double estimate_s;   /* rough time, including exchanges, boundaries, recomputation and gradients */
    double memory_bytes; /* lower bound of its largest rank's need */
    double likely_bytes; /* rough need, including halo copies and gradients in flight */
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
    bool eager;    /* counts memory as an eager framework does */
} hp_estimate_setup;

/* Estimates a legal strategy whose cut is written out, or is `counts`. */
hp_estimate hp_estimate_of(const hp_estimate_setup *o, const hp_strategy *s, const int32_t *counts);

/* A lower bound of memory_bytes for any cut, almost free: the fullest position holds at least its share of
 * weights, gradients and optimiser states. 0 if nothing is known. */
double hp_estimate_weights(const hp_estimate_setup *o, const hp_strategy *s);

#endif
