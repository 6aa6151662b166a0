/* cuda.h - the GPU of this process: its streams, its errors, its memory (exec/memory.h). */
#ifndef HP_CUDA_H
#define HP_CUDA_H

#include "exec/memory.h"

#include <cuda_runtime_api.h>

typedef struct hp_cuda {
    int id;
    cudaStream_t compute, copy, messages, sums; /* messages: of point-to-point, sums: of all-reduces */
    struct cudaDeviceProp properties;
} hp_cuda;

/* Opens the GPU on the first call: of several on the node, the one of this process's place among the node's
 * ranks (what the launcher says). Lives as long as the process. Errors: HP_EUNAVAIL (no driver, no GPU). */
hp_status hp_cuda_open(hp_cuda **cuda, hp_error *err);

/* HP_OK, or HP_EUNAVAIL naming the call and the device's reason; memory that is not there: HP_EPLAN. */
hp_status hp_cuda_checked(cudaError_t code, const char *call, hp_error *err);
#define HP_CUDA(call) HP_TRY(hp_cuda_checked(call, #call, err))

/* Waits for the order's events on the stream; behind the work, records what comes of it. */
hp_status hp_cuda_wait(cudaStream_t stream, const hp_order *order, hp_error *err);
hp_status hp_cuda_record(cudaStream_t stream, const hp_order *order, hp_error *err);

extern const hp_memory_ops hp_memory_cuda;

#endif
