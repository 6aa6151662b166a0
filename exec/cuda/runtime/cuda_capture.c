/* cuda_capture.c - captures work of the compute stream once and replays it: CUDA graphs, by stream capture.
 *
 * Events recorded in a capture are nodes of the graph: "each launch of the graph will record event to capture
 * execution of the node's dependencies" ("CUDA Runtime API", cudaGraphAddEventRecordNode). So other streams
 * and the host wait for the last launch as for the last record.
 *
 * The capture mode concerns only the capturing thread. Other threads, such as NCCL's, may make any call
 * except submit to the compute stream, which only one thread of a process does. One-time work of kernels and
 * libraries, such as loading code, was done when the work first ran. */
#include "exec/cuda/runtime/cuda.h"

static hp_status begin(const hp_memory *m, hp_error *err) {
    hp_cuda *c = hp_cuda_of(m);
    HP_CUDA(cudaStreamBeginCapture(c->compute, cudaStreamCaptureModeThreadLocal));
    c->captures = true;
    return HP_OK;
}

/* Does now what a launch would otherwise have to allocate or copy. */
static hp_status instantiate(const hp_cuda *c, cudaGraph_t graph, hp_captured **captured, hp_error *err) {
    cudaGraphExec_t exec = NULL;
    HP_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    *captured = (hp_captured *)exec;
    HP_CUDA(cudaGraphUpload(exec, c->compute));
    return HP_OK;
}

static void release(const hp_memory *m, hp_captured *captured) {
    (void)m;
    cudaGraphExecDestroy((cudaGraphExec_t)captured);
}

static hp_status end(const hp_memory *m, hp_captured **captured, hp_error *err) {
    hp_cuda *c = hp_cuda_of(m);
    cudaGraph_t graph = NULL;
    *captured = NULL;
    c->captures = false;
    HP_CUDA(cudaStreamEndCapture(c->compute, &graph));
    const hp_status s = instantiate(c, graph, captured, err);
    cudaGraphDestroy(graph);
    if (s != HP_OK && *captured) release(m, *captured);
    return s;
}

static hp_status launch(const hp_memory *m, hp_captured *captured, const hp_order *order, hp_error *err) {
    hp_cuda *c = hp_cuda_of(m);
    HP_TRY(hp_cuda_wait(c->compute, order, err));
    HP_CUDA(cudaGraphLaunch((cudaGraphExec_t)captured, c->compute));
    return hp_cuda_record(c, c->compute, order, err);
}

const hp_capture_ops hp_capture_cuda = {.begin = begin, .end = end, .launch = launch, .free = release};
