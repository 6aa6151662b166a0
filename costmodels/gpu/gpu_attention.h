/* gpu_attention.h - how long fused attention takes on a GPU: a thread block has some queries of one head, goes over their keys
 * step by step with a running maximum and sum, and keeps no scores (Dao et al., NeurIPS 2022). */
#ifndef HP_GPU_ATTENTION_H
#define HP_GPU_ATTENTION_H

#include <stdbool.h>

typedef struct hp_attend_rates {
    double rows;        /* queries of the largest block */
    double penalty;     /* rate of a block of half as many */
    double fill;        /* keys that could be gone over while a block starts and ends */
    double softmax;     /* operations that a score takes the time of, beside those of its products */
    double units;       /* multiprocessors */
    double flops_per_s; /* of the device */
} hp_attend_rates;

typedef struct hp_attend_shape {
    double queries;  /* of a head of a sample; of a window */
    double keys;     /* of a query, in the mean */
    double channels; /* of a head */
    double groups;   /* heads of all samples, or of all their windows */
    double products; /* of queries by keys or channels: 2 forward, 5 backward */
    bool causal;     /* of the keys that the last query of a block sees, the others leave some */
} hp_attend_shape;

/* Seconds of the arithmetic with the block that suits it best: no less than the products take at the device's rate. */
double hp_attend_seconds(const hp_attend_rates *a, const hp_attend_shape *s);
/* Part of the multiprocessors that have work then. */
double hp_attend_busy(const hp_attend_rates *a, const hp_attend_shape *s);

#endif
