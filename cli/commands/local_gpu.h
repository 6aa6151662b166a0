/* local_gpu.h - this node's GPUs, as hplan-exec sees them: hplan itself links no CUDA. */
#ifndef HP_LOCAL_GPU_H
#define HP_LOCAL_GPU_H

#include "machines/machine.h"

typedef struct local_gpu {
    hp_gpu gpu;
    char driver[64]; /* "580.65.06, MPS": its version, and how ranks share a GPU */
} local_gpu;

/* Asks hplan-exec. Errors: HP_EUNAVAIL (no GPU, or no GPU part). */
hp_status local_gpu_find(local_gpu *g, hp_error *err);

/* How ranks of one GPU share it: by NVIDIA's multi-process service, whose control daemon answers on this
 * pipe, or in time slices. `pipe` (of n bytes) gets where that was looked for. */
bool local_gpu_mps(char *pipe, size_t n);

#endif
