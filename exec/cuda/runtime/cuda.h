/* cuda.h - the GPU of this process: its streams, its errors, its memory (exec/base/exec_memory.h). */
#ifndef HP_CUDA_H
#define HP_CUDA_H

#include "exec/base/exec_memory.h"
#include "machines/placement.h"

#include <cuda_runtime_api.h>

typedef struct hp_cuda {
    int id;
    cudaStream_t compute, copy, messages, sums; /* messages: of point-to-point, sums: of all-reduces */
    struct cudaDeviceProp properties;
    bool captures; /* work given to the compute stream is captured, not run (runtime/cuda_capture.c) */
} hp_cuda;

/* Opens a GPU of the node: the one that the program's placement (its roles and clients; NULL: every rank has
 * the next) gives to this process, whose number among the node's ranks the launcher says. The calling
 * thread's CUDA calls go to this GPU then. Errors: HP_EUNAVAIL (no driver, no GPU). */
hp_status hp_cuda_open(const hp_placement *ranks, hp_cuda **cuda, hp_error *err);
void hp_cuda_close(hp_cuda *cuda); /* nothing uses its streams any more */
/* The same choice for another thread: CUDA keeps it per thread. */
hp_status hp_cuda_use(const hp_cuda *cuda, hp_error *err);

/* What hp_memory_cuda has opened. */
static inline hp_cuda *hp_cuda_of(const hp_memory *m) {
    return (hp_cuda *)m->device; /* a cast for C++ */
}

/* HP_OK, or HP_EUNAVAIL naming the call and the device's reason; memory that is not there: HP_EPLAN. */
hp_status hp_cuda_checked(cudaError_t code, const char *call, hp_error *err);
#define HP_CUDA(call) HP_TRY(hp_cuda_checked(call, #call, err))
/* Of a query: is it complete? Errors: as above. */
hp_status hp_cuda_asked(cudaError_t code, const char *call, bool *yes, hp_error *err);

/* Makes the stream wait for the order's events; after the work, records its completion. */
hp_status hp_cuda_wait(cudaStream_t stream, const hp_order *order, hp_error *err);
hp_status hp_cuda_record(const hp_cuda *cuda, cudaStream_t stream, const hp_order *order, hp_error *err);

extern const hp_memory_ops hp_memory_cuda;
extern const hp_capture_ops hp_capture_cuda;

#endif
