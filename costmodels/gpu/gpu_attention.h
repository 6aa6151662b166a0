/* gpu_attention.h - time of fused attention on a GPU: a thread block holds some queries of one head, visits
 * their keys step by step with a running maximum and sum, and stores no scores (Dao et al., NeurIPS 2022). */
#ifndef HP_GPU_ATTENTION_H
#define HP_GPU_ATTENTION_H

#include <stdbool.h>

typedef struct hp_attend_rates {
    double rows;        /* queries of the largest block */
    double penalty;     /* relative rate of a block half as large */
    double fill;        /* keys that could be processed while a block starts and ends */
    double softmax;     /* operations whose time a score takes, in addition to its products */
    double units;       /* multiprocessors */
    double flops_per_s; /* rate of the device */
} hp_attend_rates;

typedef struct hp_attend_shape {
    double queries;  /* queries per head and sample, or per window */
    double keys;     /* mean keys per query */
    double channels; /* channels per head */
    double groups;   /* number of heads, over all samples or all their windows */
    double products; /* products of queries with keys or channels: 2 forward, 5 backward */
    bool causal;     /* a block visits the keys of its last query; earlier queries skip some */
} hp_attend_shape;

/* Seconds of the arithmetic with the best block, at least the time of the products at the device's rate. */
double hp_attend_seconds(const hp_attend_rates *a, const hp_attend_shape *s);
/* Fraction of the multiprocessors that are busy meanwhile. */
double hp_attend_busy(const hp_attend_rates *a, const hp_attend_shape *s);

#endif
