/* search_parts.h - what the units of a network take, keep and exchange on one part of a stage: sums over units, so
 * that any run of units is a difference. For bounds and estimates, without lowering. */
#ifndef HP_SEARCH_PARTS_H
#define HP_SEARCH_PARTS_H

#include "plan/lower/lower_choice.h"
#include "plan/strategy/layout.h"
#include "sim/costs.h"

/* Entry u sums over units 0 .. u-1 (n_unit + 1 entries), of one micro-batch, on the part that owns the last
 * rows, columns, samples and channels: no part owns more. Only what it owns counts. */
typedef struct hp_part_sums {
    hp_layout layout;
    int64_t samples;        /* of the micro-batch, before it is sliced */
    double *forward;        /* seconds */
    double *backward;       /* likewise; data and weights */
    double *kept_bytes;     /* from the forward to the backward pass, by the planner's rules */
    double *eager_bytes;    /* and by an eager framework's */
    double *rounds;         /* halo exchanges of the forward pass */
    double *row_bytes;      /* rows received from above and below in them */
    double *col_bytes;      /* columns from left and right, corners included */
    double *redundant;      /* seconds that each further layer of a fused exchange adds */
    double *extended_bytes; /* copies of kept inputs with their halo; what is missing of those wanted whole */
    double *least_forward, *least_backward; /* of the part that owns least, which is the first */
    double *norm_waits;   /* seconds, there and back: statistics are added up before the layer goes on */
    double *gather_waits; /* likewise, one way: maps that one part wants from all others */
    double *busy;   /* forward and backward seconds in which the device has something to do (AccDP's util) */
    double *params; /* trained parameters */
    double *constants; /* bytes of weights in the device's layout: what a deployed graph has instead */
    double *packs;     /* bytes of weights in the device's layout beside these parameters */
    double *fresh;     /* bytes of the tensors that enter unit u as the first one after their producer's */
    double *entering;  /* no sum: bytes of the tensors that enter unit u from earlier ones */
    double *
        gathered; /* no sum: bytes of the largest map that a layer of unit u brings together, with messages */
    double scores;        /* bytes of the last layer's output: those of its gradient, which the loss leaves */
    double *peak, *whole; /* no sums, inference alone: see live.h */
} hp_part_sums;

typedef struct hp_parts hp_parts;
hp_parts *hp_parts_new(hp_arena *arena, const hp_graph *g, hp_cost_cache *cache, hp_dtype dtype, hp_mode mode,
                       const hp_device_info *device, const hp_comm_table *comm);
/* Looked up once per layout and samples. */
const hp_part_sums *hp_parts_of(hp_parts *p, const hp_layout *layout, int64_t samples);

#endif
