/* memory.c - a GPU's memory as a place for buffers. An event of the executor is one of CUDA's. */
#include "exec/cuda/runtime/cuda.h"

#include <assert.h>
#include <string.h>

/* Behind the compute stream alone: others may hold messages that wait for a rank that waits for this host. */
static hp_status synchronised(hp_cuda **c, hp_error *err) {
    HP_TRY(hp_cuda_open(c, err));
    HP_CUDA(cudaStreamSynchronize((*c)->compute));
    return HP_OK;
}

static hp_status cuda_alloc(int64_t bytes, void **at, hp_error *err) {
    hp_cuda *c;
    HP_TRY(hp_cuda_open(&c, err));
    HP_CUDA(cudaMalloc(at, (size_t)(bytes > 0 ? bytes : 1)));
    HP_CUDA(cudaMemsetAsync(*at, 0, (size_t)bytes, c->compute));
    HP_CUDA(cudaStreamSynchronize(c->compute));
    return HP_OK;
}

static void cuda_free(void *at, int64_t bytes) {
    (void)bytes;
    cudaFree(at);
}

/* On the compute stream, which does not wait for the default one: cudaMemcpy returns before the last bytes of
 * pageable memory have got to the GPU ("CUDA Runtime API", "API synchronization behavior"). */
static hp_status moved(void *to, const void *from, int64_t bytes, enum cudaMemcpyKind kind, hp_error *err) {
    hp_cuda *c;
    HP_TRY(hp_cuda_open(&c, err));
    HP_CUDA(cudaMemcpyAsync(to, from, (size_t)bytes, kind, c->compute));
    HP_CUDA(cudaStreamSynchronize(c->compute));
    return HP_OK;
}

static hp_status cuda_put(void *to, const void *from, int64_t bytes, hp_error *err) {
    return moved(to, from, bytes, cudaMemcpyHostToDevice, err);
}

static hp_status cuda_get(void *to, const void *from, int64_t bytes, hp_error *err) {
    return moved(to, from, bytes, cudaMemcpyDeviceToHost, err);
}

static hp_status cuda_zero(void *at, int64_t bytes, hp_error *err) {
    hp_cuda *c;
    HP_TRY(synchronised(&c, err));
    HP_CUDA(cudaMemsetAsync(at, 0, (size_t)bytes, c->compute));
    HP_CUDA(cudaStreamSynchronize(c->compute));
    return HP_OK;
}

static hp_status event_new(hp_event **event, hp_error *err) {
    hp_cuda *c;
    cudaEvent_t e;
    HP_TRY(hp_cuda_open(&c, err));
    HP_CUDA(cudaEventCreateWithFlags(&e, cudaEventDefault));
    *event = (hp_event *)e;
    return HP_OK;
}

static void event_free(hp_event *event) {
    cudaEventDestroy((cudaEvent_t)event);
}

static hp_status query(hp_event *event, bool *yes, hp_error *err) {
    return hp_cuda_asked(cudaEventQuery((cudaEvent_t)event), "cudaEventQuery", yes, err);
}

static hp_status elapsed(hp_event *from, hp_event *to, double *seconds, hp_error *err) {
    float ms = 0;
    HP_CUDA(cudaEventElapsedTime(&ms, (cudaEvent_t)from, (cudaEvent_t)to));
    *seconds = 1e-3 * (double)ms;
    return HP_OK;
}

static hp_status record(hp_event *event, hp_error *err) {
    hp_cuda *c;
    HP_TRY(synchronised(&c, err));
    HP_CUDA(cudaEventRecord((cudaEvent_t)event, c->compute));
    HP_CUDA(cudaEventSynchronize((cudaEvent_t)event));
    return HP_OK;
}

static hp_status copy(hp_stream stream, void *to, const void *from, int64_t bytes, const hp_order *order,
                      hp_error *err) {
    hp_cuda *c;
    HP_TRY(hp_cuda_open(&c, err));
    const cudaStream_t s = stream == HP_STREAM_COMPUTE ? c->compute : c->copy;
    HP_TRY(hp_cuda_wait(s, order, err));
    HP_CUDA(cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDefault, s));
    return hp_cuda_record(s, order, err);
}

static hp_status host_new(int64_t bytes, void **at, hp_error *err) {
    hp_cuda *c;
    HP_TRY(hp_cuda_open(&c, err));
    HP_CUDA(cudaHostAlloc(at, (size_t)(bytes > 0 ? bytes : 1), cudaHostAllocPortable));
    return HP_OK;
}

static void host_free(void *at) {
    cudaFreeHost(at);
}

static const hp_stream_ops STREAMS = {event_new, event_free, query,     elapsed,         record,
                                      copy,      host_new,   host_free, &hp_capture_cuda};

/* --- another process's memory: CUDA IPC --- */

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(hp_memory_name), "a handle is a name");

static hp_status peer_name(void *at, hp_memory_name *name, hp_error *err) {
    cudaIpcMemHandle_t handle;
    HP_CUDA(cudaIpcGetMemHandle(&handle, at));
    memcpy(name, &handle, sizeof *name);
    return HP_OK;
}

/* Of another GPU as well, where the two have a way to each other; else it fails. */
static hp_status peer_open(const hp_memory_name *name, void **at, hp_error *err) {
    hp_cuda *c;
    cudaIpcMemHandle_t handle;
    memcpy(&handle, name, sizeof handle);
    HP_TRY(hp_cuda_open(&c, err));
    HP_CUDA(cudaIpcOpenMemHandle(at, handle, cudaIpcMemLazyEnablePeerAccess));
    return HP_OK;
}

static void peer_close(void *at) {
    cudaIpcCloseMemHandle(at);
}

static const hp_peer_ops PEERS = {peer_name, peer_open, peer_close};

const hp_memory_ops hp_memory_cuda = {"cuda",    cuda_alloc, cuda_free, cuda_put, cuda_get,
                                      cuda_zero, &STREAMS,   false,     &PEERS};
