/* gpu_kernel.c - combines a kernel's arithmetic and memory times. */
#include "costmodels/gpu/gpu_kernel.h"

#include <math.h>

/* Weights stay in the cache between two uses if it holds this many of their size; rows were fitted with this
 * value. */
static const double OTHERS = 6;

static double seconds(const hp_kernel *k, double bytes, double room) {
    return bytes / (k->bytes_per_s * (bytes < room && k->cached > 1 ? k->cached : 1));
}

double hp_kernel_maps_s(const hp_kernel *k, double bytes) {
    return seconds(k, bytes, k->cache_bytes);
}

double hp_kernel_weights_s(const hp_kernel *k, double bytes) {
    return seconds(k, bytes, k->cache_bytes / OTHERS);
}

double hp_kernel_seconds(const hp_kernel *k, double compute_s, double memory_s) {
    return k->launch_s + pow(pow(compute_s, k->power) + pow(memory_s, k->power), 1 / k->power);
}
