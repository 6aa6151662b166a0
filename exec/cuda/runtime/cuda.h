/* cuda.h - the GPU of this process: its streams, its errors, its memory (exec/base/memory.h). */
#ifndef HP_CUDA_H
#define HP_CUDA_H

#include "exec/base/memory.h"

#include <cuda_runtime_api.h>

typedef struct hp_cuda {
    int id;
    cudaStream_t compute, copy, messages, sums; /* messages: of point-to-point, sums: of all-reduces */
    struct cudaDeviceProp properties;
    bool captures; /* what the compute stream is given is kept, not done (cuda/capture.c) */
} hp_cuda;

/* Before the first opening: `clients` replicas in a row, of `roles` ranks each, share their GPUs role by
 * role. */
void hp_cuda_share(int32_t roles, int32_t clients);

/* Opens the GPU on the first call: of several on the node, the one of this process's place among the node's
 * ranks (what the launcher says). Lives as long as the process. Any thread may call it, and does before other
 * calls of CUDA's: they go to this GPU then. Errors: HP_EUNAVAIL (no driver, no GPU). */
hp_status hp_cuda_open(hp_cuda **cuda, hp_error *err);

/* HP_OK, or HP_EUNAVAIL naming the call and the device's reason; memory that is not there: HP_EPLAN. */
hp_status hp_cuda_checked(cudaError_t code, const char *call, hp_error *err);
#define HP_CUDA(call) HP_TRY(hp_cuda_checked(call, #call, err))
/* Of a query: has it happened? Errors: as above. */
hp_status hp_cuda_asked(cudaError_t code, const char *call, bool *yes, hp_error *err);

/* Waits for the order's events on the stream; behind the work, records what comes of it. */
hp_status hp_cuda_wait(cudaStream_t stream, const hp_order *order, hp_error *err);
hp_status hp_cuda_record(cudaStream_t stream, const hp_order *order, hp_error *err);

extern const hp_memory_ops hp_memory_cuda;
extern const hp_capture_ops hp_capture_cuda;

#endif
