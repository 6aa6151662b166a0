/* search_parts.h - time, memory and traffic of a network's units on one part of a stage. They are prefix
 * sums, so that any range of units is a difference. For bounds and estimates, without lowering. */
#ifndef HP_SEARCH_PARTS_H
#define HP_SEARCH_PARTS_H

#include "plan/lower/lower_choice.h"
#include "plan/strategy/layout.h"
#include "sim/costs/costs.h"

/* Entry u sums over units 0 .. u-1 (n_unit + 1 entries), for one micro-batch, on the part that owns the last
 * rows, columns, samples and channels: no part owns more. Counts only what it owns. */
typedef struct hp_part_sums {
    hp_layout layout;
    int64_t samples;        /* samples of the micro-batch before slicing */
    double *forward;        /* seconds */
    double *backward;       /* likewise; data and weights */
    double *kept_bytes;     /* kept from the forward to the backward pass, by the planner's rules */
    double *eager_bytes;    /* the same by an eager framework's rules */
    double *rounds;         /* number of halo exchanges in the forward pass */
    double *row_bytes;      /* bytes of rows received from above and below in them */
    double *col_bytes;      /* bytes of columns from left and right, including corners */
    double *redundant;      /* seconds added by each further layer of a fused exchange */
    double *extended_bytes; /* copies of kept inputs with their halo; missing bytes of inputs needed whole */
    double *least_forward, *least_backward; /* times of the part that owns least, which is the first */
    double *norm_waits;   /* seconds, both ways: statistics are summed before the layer continues */
    double *gather_waits; /* likewise, one way: maps that one part needs from all others */
    double *busy;         /* forward and backward seconds in which the device is busy (AccDP's util) */
    double *params;       /* trained parameters */
    double *constants;    /* bytes of packed weights in a deployed graph, which replace parameters */
    double *packs;        /* bytes of packed weights beside the parameters */
    double *fresh;        /* bytes of tensors that enter unit u as the first one after their producer's */
    double *entering;     /* not a sum: bytes of tensors that enter unit u from earlier ones */
    double *gathered;     /* not a sum: bytes of the largest map that a layer of unit u assembles, including
                   * messages */
    double scores;        /* bytes of the last layer's output, equal to those of its gradient, which the loss
                           * leaves */
    double *peak, *whole; /* not sums, inference only: see live.h */
} hp_part_sums;

typedef struct hp_parts hp_parts;
hp_parts *hp_parts_new(hp_arena *arena, const hp_graph *g, hp_cost_cache *cache, hp_dtype dtype, hp_mode mode,
                       const hp_device_info *device, const hp_comm_table *comm);
/* Cached per layout and samples. */
const hp_part_sums *hp_parts_of(hp_parts *p, const hp_layout *layout, int64_t samples);

#endif
