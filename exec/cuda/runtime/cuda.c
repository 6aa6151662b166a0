/* cuda.c - opens the GPU of this process. */
#include "exec/cuda/runtime/cuda.h"

#include <stdlib.h>
#include <string.h>

/* Clears the error: the runtime keeps an error until someone reads it, and a known one must not look like the
 * next launch's failure. */
hp_status hp_cuda_checked(cudaError_t code, const char *call, hp_error *err) {
    if (code == cudaSuccess) return HP_OK;
    int gpu = 0;
    cudaGetLastError();
    cudaGetDevice(&gpu);
    const hp_status kind = code == cudaErrorMemoryAllocation ? HP_EPLAN : HP_EUNAVAIL;
    const int length = (int)strcspn(call, "(");
    return hp_fail(err, kind, "GPU %d: %.*s: %s", gpu, length, call, cudaGetErrorString(code));
}

hp_status hp_cuda_asked(cudaError_t code, const char *call, bool *yes, hp_error *err) {
    *yes = code == cudaSuccess;
    if (code != cudaErrorNotReady) return hp_cuda_checked(code, call, err);
    cudaGetLastError();
    return HP_OK;
}

/* Index of this process among those of its node. Slurm's comes last: if Slurm started one launcher per node,
 * that launcher numbers its ranks itself. */
static int rank_on_node(void) {
    static const char *const NAMES[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                        "MV2_COMM_WORLD_LOCAL_RANK", "PMIX_LOCAL_RANK", "SLURM_LOCALID"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (getenv(NAMES[i])) return atoi(getenv(NAMES[i]));
    return 0;
}

/* The plan's rule, applied to the ranks and GPUs of this node. */
static int gpu_on_node(const hp_placement *ranks, int gpus) {
    hp_placement node = ranks ? *ranks : (hp_placement){.roles = 1, .replicas = 1, .clients = 1};
    node.nodes = 1;
    node.devices_per_node = gpus;
    return hp_placement_device(&node, rank_on_node());
}

/* Streams share this many hardware queues, 8 by default. In a shared queue, work may wait behind
 * another stream that waits for a rank, which in turn waits for this one. ("CUDA Programming Guide",
 * environment variables.) */
static void want_queues(void) {
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
}

static hp_status count_gpus(int *gpus, hp_error *err) {
    want_queues();
    const cudaError_t code = cudaGetDeviceCount(gpus);
    if (code == cudaSuccess && *gpus > 0) return HP_OK;
    return hp_fail(err, HP_EUNAVAIL, "this machine has no GPU that CUDA can use (%s): run with --device cpu",
                   code == cudaSuccess ? "none found" : cudaGetErrorString(code));
}

/* None of the streams waits for the default stream. */
static hp_status open_streams(hp_cuda *c, hp_error *err) {
    cudaStream_t *const streams[] = {&c->compute, &c->copy, &c->messages, &c->sums};
    int least, greatest;
    HP_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        HP_CUDA(cudaStreamCreateWithPriority(streams[i], cudaStreamNonBlocking, i == 0 ? least : greatest));
    return HP_OK;
}

static hp_status open_gpu(hp_cuda *c, const hp_placement *ranks, hp_error *err) {
    int gpus = 0;
    HP_TRY(count_gpus(&gpus, err));
    c->id = gpu_on_node(ranks, gpus);
    HP_TRY(hp_cuda_use(c, err));
    HP_CUDA(cudaGetDeviceProperties(&c->properties, c->id));
    return open_streams(c, err);
}

hp_status hp_cuda_open(const hp_placement *ranks, hp_cuda **cuda, hp_error *err) {
    hp_cuda *c = calloc(1, sizeof *c);
    HP_ASSERT(c);
    const hp_status s = open_gpu(c, ranks, err);
    if (s == HP_OK)
        *cuda = c;
    else
        hp_cuda_close(c);
    return s;
}

void hp_cuda_close(hp_cuda *c) {
    const cudaStream_t streams[] = {c->compute, c->copy, c->messages, c->sums};
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        if (streams[i]) cudaStreamDestroy(streams[i]);
    free(c);
}

hp_status hp_cuda_use(const hp_cuda *c, hp_error *err) {
    HP_CUDA(cudaSetDevice(c->id));
    return HP_OK;
}

hp_status hp_cuda_wait(cudaStream_t stream, const hp_order *order, hp_error *err) {
    for (int i = 0; order && i < order->n; i++)
        HP_CUDA(cudaStreamWaitEvent(stream, (cudaEvent_t)order->after[i], 0));
    return HP_OK;
}

/* During a capture, only events marked external are visible outside the captured work. */
hp_status hp_cuda_record(const hp_cuda *c, cudaStream_t stream, const hp_order *order, hp_error *err) {
    const bool captured = c->captures && stream == c->compute;
    if (order && order->done)
        HP_CUDA(cudaEventRecordWithFlags((cudaEvent_t)order->done, stream,
                                         captured ? cudaEventRecordExternal : cudaEventRecordDefault));
    return HP_OK;
}
