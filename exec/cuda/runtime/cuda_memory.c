/* cuda_memory.c - a GPU's memory for buffers. Events of the executor are CUDA events. */
#include "exec/cuda/runtime/cuda.h"

#include <assert.h>
#include <string.h>

static hp_status cuda_open(hp_memory *m, const struct hp_placement *ranks, hp_error *err) {
    hp_cuda *c = NULL;
    HP_TRY(hp_cuda_open(ranks, &c, err));
    m->device = c;
    return HP_OK;
}

static void cuda_close(hp_memory *m) {
    if (m->device) hp_cuda_close(m->device);
}

/* Waits only for the compute stream: others may hold messages for a rank that waits for this host. */
static hp_status synchronise(const hp_memory *m, hp_error *err) {
    HP_CUDA(cudaStreamSynchronize(hp_cuda_of(m)->compute));
    return HP_OK;
}

static hp_status cuda_alloc(const hp_memory *m, int64_t bytes, void **at, hp_error *err) {
    const hp_cuda *c = hp_cuda_of(m);
    HP_CUDA(cudaMalloc(at, (size_t)(bytes > 0 ? bytes : 1)));
    HP_CUDA(cudaMemsetAsync(*at, 0, (size_t)bytes, c->compute));
    HP_CUDA(cudaStreamSynchronize(c->compute));
    return HP_OK;
}

static void cuda_free(const hp_memory *m, void *at, int64_t bytes) {
    (void)m, (void)bytes;
    cudaFree(at);
}

/* Copies on the compute stream, which does not wait for the default one. There cudaMemcpy would return
 * before the last bytes of pageable memory have reached the GPU ("CUDA Runtime API", "API
 * synchronization behavior"). */
static hp_status move(const hp_memory *m, void *to, const void *from, int64_t bytes, enum cudaMemcpyKind kind,
                      hp_error *err) {
    const hp_cuda *c = hp_cuda_of(m);
    HP_CUDA(cudaMemcpyAsync(to, from, (size_t)bytes, kind, c->compute));
    HP_CUDA(cudaStreamSynchronize(c->compute));
    return HP_OK;
}

static hp_status cuda_put(const hp_memory *m, void *to, const void *from, int64_t bytes, hp_error *err) {
    return move(m, to, from, bytes, cudaMemcpyHostToDevice, err);
}

static hp_status cuda_get(const hp_memory *m, void *to, const void *from, int64_t bytes, hp_error *err) {
    return move(m, to, from, bytes, cudaMemcpyDeviceToHost, err);
}

static hp_status cuda_zero(const hp_memory *m, void *at, int64_t bytes, hp_error *err) {
    const hp_cuda *c = hp_cuda_of(m);
    HP_TRY(synchronise(m, err));
    HP_CUDA(cudaMemsetAsync(at, 0, (size_t)bytes, c->compute));
    HP_CUDA(cudaStreamSynchronize(c->compute));
    return HP_OK;
}

static hp_status event_new(const hp_memory *m, hp_event **event, hp_error *err) {
    cudaEvent_t e;
    (void)m;
    HP_CUDA(cudaEventCreateWithFlags(&e, cudaEventDefault));
    *event = (hp_event *)e;
    return HP_OK;
}

static void event_free(const hp_memory *m, hp_event *event) {
    (void)m;
    cudaEventDestroy((cudaEvent_t)event);
}

static hp_status query(const hp_memory *m, hp_event *event, bool *yes, hp_error *err) {
    (void)m;
    return hp_cuda_asked(cudaEventQuery((cudaEvent_t)event), "cudaEventQuery", yes, err);
}

static hp_status elapsed(const hp_memory *m, hp_event *from, hp_event *to, double *seconds, hp_error *err) {
    (void)m;
    float ms = 0;
    HP_CUDA(cudaEventElapsedTime(&ms, (cudaEvent_t)from, (cudaEvent_t)to));
    *seconds = 1e-3 * (double)ms;
    return HP_OK;
}

static hp_status record(const hp_memory *m, hp_event *event, hp_error *err) {
    const hp_cuda *c = hp_cuda_of(m);
    HP_TRY(synchronise(m, err));
    HP_CUDA(cudaEventRecord((cudaEvent_t)event, c->compute));
    HP_CUDA(cudaEventSynchronize((cudaEvent_t)event));
    return HP_OK;
}

static hp_status copy(const hp_memory *m, hp_stream stream, void *to, const void *from, int64_t bytes,
                      const hp_order *order, hp_error *err) {
    const hp_cuda *c = hp_cuda_of(m);
    const cudaStream_t s = stream == HP_STREAM_COMPUTE ? c->compute : c->copy;
    HP_TRY(hp_cuda_wait(s, order, err));
    HP_CUDA(cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDefault, s));
    return hp_cuda_record(c, s, order, err);
}

static hp_status host_new(const hp_memory *m, int64_t bytes, void **at, hp_error *err) {
    (void)m;
    HP_CUDA(cudaHostAlloc(at, (size_t)(bytes > 0 ? bytes : 1), cudaHostAllocPortable));
    return HP_OK;
}

static void host_free(const hp_memory *m, void *at) {
    (void)m;
    cudaFreeHost(at);
}

static const hp_stream_ops STREAMS = {.event_new = event_new,
                                      .event_free = event_free,
                                      .query = query,
                                      .elapsed = elapsed,
                                      .record = record,
                                      .copy = copy,
                                      .host_new = host_new,
                                      .host_free = host_free,
                                      .capture = &hp_capture_cuda};

/* --- another process's memory: CUDA IPC --- */

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(hp_memory_name), "a handle is a name");

static hp_status peer_name(const hp_memory *m, void *at, hp_memory_name *name, hp_error *err) {
    (void)m;
    cudaIpcMemHandle_t handle;
    HP_CUDA(cudaIpcGetMemHandle(&handle, at));
    memcpy(name, &handle, sizeof *name);
    return HP_OK;
}

/* Memory of another GPU as well, where the two can reach each other; else this fails. */
static hp_status peer_open(const hp_memory *m, const hp_memory_name *name, void **at, hp_error *err) {
    cudaIpcMemHandle_t handle;
    (void)m;
    memcpy(&handle, name, sizeof handle);
    HP_CUDA(cudaIpcOpenMemHandle(at, handle, cudaIpcMemLazyEnablePeerAccess));
    return HP_OK;
}

static void peer_close(const hp_memory *m, void *at) {
    (void)m;
    cudaIpcCloseMemHandle(at);
}

static const hp_peer_ops PEERS = {.name = peer_name, .open = peer_open, .close = peer_close};

const hp_memory_ops hp_memory_cuda = {.name = "cuda",
                                      .open = cuda_open,
                                      .close = cuda_close,
                                      .alloc = cuda_alloc,
                                      .free = cuda_free,
                                      .put = cuda_put,
                                      .get = cuda_get,
                                      .zero = cuda_zero,
                                      .streams = &STREAMS,
                                      .peers = &PEERS};
