/* cuda_ranges.h - NVTX ranges around the launches of every task, for Nsight Systems: named as `hplan
 * explain` names the task ("fwd layer1.0.conv1 m2"), of the category of its phase. They are on the thread
 * that launches; a profiler projects them onto the kernels. Of a step that is replayed as a graph there are
 * the ranges of its capture alone. Source: NVIDIA Tools Extension, version 3. */
#ifndef HP_CUDA_RANGES_H
#define HP_CUDA_RANGES_H

#include "exec/device/device.h"

typedef struct hp_cuda_ranges hp_cuda_ranges;

/* Names the role's tasks if a profiler is attached to the process; otherwise NULL. */
hp_cuda_ranges *hp_cuda_ranges_open(hp_arena *arena, const hp_device_config *config);
void hp_cuda_ranges_close(hp_cuda_ranges *r); /* NULL is fine, here and below */

void hp_cuda_range_begin(const hp_cuda_ranges *r, int task);
void hp_cuda_range_end(const hp_cuda_ranges *r);

#endif
