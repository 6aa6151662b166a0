/* gpu_kernel.h - a library's kernel on a GPU: its launch, then its arithmetic while memory is read and
 * written. */
#ifndef HP_GPU_KERNEL_H
#define HP_GPU_KERNEL_H

typedef struct hp_kernel {
    double launch_s; /* time before and after computing */
    /* exponent of the power mean of arithmetic and memory time: infinite if the longer hides the shorter, 1
     * if nothing overlaps */
    double power;
    double bytes_per_s;         /* memory bandwidth */
    double cache_bytes, cached; /* tensors that fit into the cache are read this many times as fast; 0: no
                                 * difference */
} hp_kernel;

/* Time of tensors that the previous layer has just written or the next one reads. */
double hp_kernel_maps_s(const hp_kernel *k, double bytes);
/* Time of tensors that stay in memory while others are used: they fit in cache if a few of their size do. */
double hp_kernel_weights_s(const hp_kernel *k, double bytes);
/* The whole kernel's seconds. */
double hp_kernel_seconds(const hp_kernel *k, double compute_s, double memory_s);

#endif
