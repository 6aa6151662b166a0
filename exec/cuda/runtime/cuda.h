/* cuda.h - the GPU of this process: its streams, its errors, its memory (exec/base/exec_memory.h). */
#ifndef HP_CUDA_H
#define HP_CUDA_H

#include "exec/base/exec_memory.h"
#include "machines/placement.h"

#include <cuda_runtime_api.h>

typedef struct hp_cuda {
    int id;
    cudaStream_t compute, copy, messages, sums; /* messages: point-to-point; sums: all-reduces */
    struct cudaDeviceProp properties;
    bool captures; /* work for the compute stream is being captured, not run (runtime/cuda_capture.c) */
} hp_cuda;

/* Opens a GPU of the node. The program's placement (roles and clients; NULL: every rank has the next GPU)
 * decides which, by this process's index on the node, which the launcher tells. The calling thread's CUDA
 * calls then go to this GPU. Errors: HP_EUNAVAIL (no driver, no GPU). */
hp_status hp_cuda_open(const hp_placement *ranks, hp_cuda **cuda, hp_error *err);
void hp_cuda_close(hp_cuda *cuda); /* its streams must be idle */
/* Selects the same GPU in another thread: CUDA keeps the selection per thread. */
hp_status hp_cuda_use(const hp_cuda *cuda, hp_error *err);

/* The GPU that hp_memory_cuda opened. */
static inline hp_cuda *hp_cuda_of(const hp_memory *m) {
    return (hp_cuda *)m->device; /* C++ needs the cast */
}

/* Converts a CUDA status. Errors: HP_EUNAVAIL, naming the call and the device's reason; out
 * of memory: HP_EPLAN. */
hp_status hp_cuda_checked(cudaError_t code, const char *call, hp_error *err);
#define HP_CUDA(call) HP_TRY(hp_cuda_checked(call, #call, err))
/* Converts the status of a query; *yes: complete. Errors: as above. */
hp_status hp_cuda_asked(cudaError_t code, const char *call, bool *yes, hp_error *err);

/* Makes the stream wait for the order's events; records the order's completion after the work. */
hp_status hp_cuda_wait(cudaStream_t stream, const hp_order *order, hp_error *err);
hp_status hp_cuda_record(const hp_cuda *cuda, cudaStream_t stream, const hp_order *order, hp_error *err);

extern const hp_memory_ops hp_memory_cuda;
extern const hp_capture_ops hp_capture_cuda;

#endif
