/* gpu_kernel.h - a kernel of a library on a GPU: its launch, then its arithmetic while memory is read and written. */
#ifndef HP_GPU_KERNEL_H
#define HP_GPU_KERNEL_H

typedef struct hp_kernel {
    double launch_s; /* until it computes, and after */
    double
        power; /* of the mean of arithmetic and memory: infinite where the longer hides the shorter, 1 where none does */
    double bytes_per_s;         /* of memory */
    double cache_bytes, cached; /* tensors that fit are read so many times as fast; 0: not told apart */
} hp_kernel;

/* Of tensors that the layer before has just written, or that the one after reads. */
double hp_kernel_maps_s(const hp_kernel *k, double bytes);
/* Of those that lie in memory while others are computed with: they fit where a few of their size do. */
double hp_kernel_weights_s(const hp_kernel *k, double bytes);
/* The whole kernel's seconds. */
double hp_kernel_seconds(const hp_kernel *k, double compute_s, double memory_s);

#endif
