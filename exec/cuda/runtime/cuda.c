/* cuda.c - opens the process's GPU. */
#include "exec/cuda/runtime/cuda.h"
#include "plan/machine/placement.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static hp_cuda here;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static bool opened;
static int32_t roles = 1, clients = 1; /* ranks of a replica; replicas in a row that share their GPUs */
static _Thread_local bool chosen;      /* by this thread */

/* The runtime keeps what a call answered until somebody asks, and launches ask behind themselves: what is
 * known here must not come back as the next launch's failure. */
hp_status hp_cuda_checked(cudaError_t code, const char *call, hp_error *err) {
    if (code == cudaSuccess) return HP_OK;
    cudaGetLastError();
    const hp_status kind = code == cudaErrorMemoryAllocation ? HP_EPLAN : HP_EUNAVAIL;
    const int length = (int)strcspn(call, "(");
    return hp_fail(err, kind, "GPU %d: %.*s: %s", here.id, length, call, cudaGetErrorString(code));
}

hp_status hp_cuda_asked(cudaError_t code, const char *call, bool *yes, hp_error *err) {
    *yes = code == cudaSuccess;
    if (code != cudaErrorNotReady) return hp_cuda_checked(code, call, err);
    cudaGetLastError();
    return HP_OK;
}

/* Ranks of a node take its GPUs in turn. Slurm's number comes last: a launcher that Slurm started one of on
 * each node gives its ranks numbers of its own. */
static int rank_on_node(void) {
    static const char *const NAMES[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                        "MV2_COMM_WORLD_LOCAL_RANK", "PMIX_LOCAL_RANK", "SLURM_LOCALID"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (getenv(NAMES[i])) return atoi(getenv(NAMES[i]));
    return 0;
}

void hp_cuda_share(int32_t of_roles, int32_t of_clients) {
    roles = of_roles;
    clients = of_clients;
}

/* The plan's rule, over the ranks and the GPUs of this node. */
static int gpu_on_node(int gpus) {
    const hp_placement node = {.roles = roles, .clients = clients, .nodes = 1, .devices_per_node = gpus};
    return hp_placement_device(&node, rank_on_node());
}

/* Streams share this many queues to the GPU, 8 unless it is said; in a shared one work waits behind what
 * another stream waits for, which may be a rank that waits for this one. ("CUDA Programming Guide",
 * environment variables.) */
static void want_queues(void) {
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
}

static hp_status find(int *devices, hp_error *err) {
    want_queues();
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

static hp_status open_gpu(hp_error *err) {
    int devices = 0;
    if (opened) return HP_OK;
    HP_TRY(find(&devices, err));
    here.id = gpu_on_node(devices);
    HP_CUDA(cudaSetDevice(here.id));
    HP_CUDA(cudaGetDeviceProperties(&here.properties, here.id));
    HP_TRY(open_streams(err));
    opened = true;
    return HP_OK;
}

/* Which GPU a thread's calls go to is the thread's own affair. */
hp_status hp_cuda_open(hp_cuda **cuda, hp_error *err) {
    *cuda = &here;
    if (chosen) return HP_OK;
    pthread_mutex_lock(&opening);
    const hp_status s = open_gpu(err);
    pthread_mutex_unlock(&opening);
    HP_TRY(s);
    HP_CUDA(cudaSetDevice(here.id));
    chosen = true;
    return HP_OK;
}

hp_status hp_cuda_wait(cudaStream_t stream, const hp_order *order, hp_error *err) {
    for (int i = 0; order && i < order->n; i++)
        HP_CUDA(cudaStreamWaitEvent(stream, (cudaEvent_t)order->after[i], 0));
    return HP_OK;
}

/* Within a capture an event would be known to what is captured alone, unless it is said to be of outside. */
hp_status hp_cuda_record(cudaStream_t stream, const hp_order *order, hp_error *err) {
    const bool kept = here.captures && stream == here.compute;
    if (order && order->done)
        HP_CUDA(cudaEventRecordWithFlags((cudaEvent_t)order->done, stream,
                                         kept ? cudaEventRecordExternal : cudaEventRecordDefault));
    return HP_OK;
}
