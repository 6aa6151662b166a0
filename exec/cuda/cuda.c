/* cuda.c - opens the process's GPU. */
#include "exec/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

static hp_cuda here;
static bool opened;

hp_status hp_cuda_checked(cudaError_t code, const char *call, hp_error *err) {
    if (code == cudaSuccess) return HP_OK;
    const hp_status kind = code == cudaErrorMemoryAllocation ? HP_EPLAN : HP_EUNAVAIL;
    const int length = (int)strcspn(call, "(");
    return hp_fail(err, kind, "GPU %d: %.*s: %s", here.id, length, call, cudaGetErrorString(code));
}

/* Ranks of a node take its GPUs in turn. */
static int place_on_node(void) {
    static const char *const NAMES[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "PMIX_LOCAL_RANK",
                                        "MPI_LOCALRANKID"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (getenv(NAMES[i])) return atoi(getenv(NAMES[i]));
    return 0;
}

static hp_status find(int *devices, hp_error *err) {
    const cudaError_t code = cudaGetDeviceCount(devices);
    if (code == cudaSuccess && *devices > 0) return HP_OK;
    return hp_fail(err, HP_EUNAVAIL, "this machine has no GPU that CUDA can use (%s): run with --device cpu",
                   code == cudaSuccess ? "none found" : cudaGetErrorString(code));
}

/* Host threads of a process share one GPU and its streams. Streams do not wait for the default one. */
static hp_status open_streams(hp_error *err) {
    cudaStream_t *const streams[] = {&here.compute, &here.copy, &here.messages, &here.sums};
    int least, greatest;
    HP_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        HP_CUDA(cudaStreamCreateWithPriority(streams[i], cudaStreamNonBlocking, i == 0 ? least : greatest));
    return HP_OK;
}

hp_status hp_cuda_open(hp_cuda **cuda, hp_error *err) {
    int devices = 0;
    *cuda = &here;
    if (opened) return HP_OK;
    HP_TRY(find(&devices, err));
    here.id = place_on_node() % devices;
    HP_CUDA(cudaSetDevice(here.id));
    HP_CUDA(cudaGetDeviceProperties(&here.properties, here.id));
    HP_TRY(open_streams(err));
    opened = true;
    return HP_OK;
}

hp_status hp_cuda_wait(cudaStream_t stream, const hp_order *order, hp_error *err) {
    for (int i = 0; order && i < order->n; i++)
        HP_CUDA(cudaStreamWaitEvent(stream, (cudaEvent_t)order->after[i], 0));
    return HP_OK;
}

hp_status hp_cuda_record(cudaStream_t stream, const hp_order *order, hp_error *err) {
    if (order && order->done) HP_CUDA(cudaEventRecord((cudaEvent_t)order->done, stream));
    return HP_OK;
}
