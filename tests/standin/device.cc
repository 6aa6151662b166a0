/* device.cc - the simulated GPUs, their errors, and injected failures. */
#include "tests/standin/runtime.h"

#include <map>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long from_environment(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text && *text ? atol(text) : otherwise;
}

static standin_state *new_state() {
    standin_state *r = new standin_state;
    r->seed = (uint64_t)from_environment("HPLAN_STANDIN_SEED", 0);
    r->streams.push_back(standin_new_stream());
    return r;
}

standin_state &standin() {
    static standin_state *const state = new_state();
    return *state;
}

int standin_rank() {
    return (int)from_environment("OMPI_COMM_WORLD_RANK", 0);
}

/* --- faults --- */

namespace {
struct fault {
    std::string call;
    long n = 0;
    bool here = true;
    fault() {
        const char *text = getenv("HPLAN_STANDIN_FAIL");
        const char *colon = text ? strchr(text, ':') : nullptr;
        if (!colon) return;
        call.assign(text, colon);
        n = atol(colon + 1);
        const char *at = strchr(colon, '@');
        here = !at || atol(at + 1) == standin_rank();
    }
};
} // namespace

bool standin_fails(const char *call) {
    static const fault wanted;
    static std::mutex lock;
    static long calls;
    if (!wanted.here || wanted.call != call) return false;
    const std::lock_guard<std::mutex> hold(lock);
    return ++calls == wanted.n;
}

/* During a capture, calls that would wait or query are refused. */
cudaError_t standin_enter(const char *call, bool waits) {
    standin_state &r = standin();
    if (standin_fails(call))
        return standin_noted(strcmp(call, "cudaMalloc") == 0 ? cudaErrorMemoryAllocation : cudaErrorUnknown);
    const std::lock_guard<std::mutex> hold(r.lock);
    if (r.sticky != cudaSuccess) return r.sticky;
    return standin_noted(waits && standin_capture_refuses() ? cudaErrorStreamCaptureUnsupported
                                                            : cudaSuccess);
}

/* --- errors --- */

static const struct {
    cudaError_t code;
    const char *name, *text;
} ERRORS[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorDeviceUninitialized, "cudaErrorDeviceUninitialized", "invalid device context"},
    {cudaErrorMapBufferObjectFailed, "cudaErrorMapBufferObjectFailed", "mapping of buffer object failed"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not initiated in this stream"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"}};

const char *cudaGetErrorString(cudaError_t code) {
    for (const auto &e : ERRORS)
        if (e.code == code) return e.text;
    return "unknown error";
}

const char *cudaGetErrorName(cudaError_t code) {
    for (const auto &e : ERRORS)
        if (e.code == code) return e.name;
    return "cudaErrorUnknown";
}

static thread_local cudaError_t noted;

cudaError_t standin_noted(cudaError_t code) {
    if (code != cudaSuccess) noted = code;
    return code;
}

cudaError_t cudaPeekAtLastError(void) {
    const std::lock_guard<std::mutex> hold(standin().lock);
    return standin().sticky != cudaSuccess ? standin().sticky : noted;
}

cudaError_t cudaGetLastError(void) {
    const cudaError_t last = cudaPeekAtLastError();
    noted = cudaSuccess;
    return last;
}

/* --- the GPU --- */

static int gpus() {
    return (int)from_environment("HPLAN_STANDIN_GPUS", from_environment("OMPI_COMM_WORLD_LOCAL_SIZE", 1));
}

size_t standin_bytes() {
    return (size_t)from_environment("HPLAN_STANDIN_BYTES", 4L << 30);
}

static int chosen;

cudaError_t cudaGetDeviceCount(int *count) {
    STANDIN_ENTER(false);
    *count = gpus();
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaSetDevice(int device) {
    STANDIN_ENTER(false);
    if (device < 0 || device >= gpus()) return cudaErrorInvalidDevice;
    chosen = device;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
    STANDIN_ENTER(false);
    *device = chosen;
    return cudaSuccess;
}

/* The stand-in identifies itself; its limits are those of sm_90. */
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device) {
    STANDIN_ENTER(false);
    if (device < 0 || device >= gpus()) return cudaErrorInvalidDevice;
    *p = {};
    snprintf(p->name, sizeof p->name, "stand-in for a GPU");
    p->totalGlobalMem = standin_bytes();
    p->sharedMemPerBlock = 48 << 10;
    p->sharedMemPerBlockOptin = 227 << 10;
    p->major = 9;
    p->multiProcessorCount = 2;
    p->warpSize = 32;
    p->maxThreadsPerBlock = 1024;
    p->maxThreadsPerMultiProcessor = 2048;
    p->regsPerBlock = 65536;
    p->l2CacheSize = 1 << 20;
    p->pciBusID = 0x10 + device;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
    cudaDeviceProp p;
    const cudaError_t code = cudaGetDeviceProperties(&p, device);
    if (code != cudaSuccess) return code;
    const std::map<cudaDeviceAttr, int> values = {{cudaDevAttrMultiProcessorCount, p.multiProcessorCount},
                                                  {cudaDevAttrComputeCapabilityMajor, p.major},
                                                  {cudaDevAttrComputeCapabilityMinor, p.minor}};
    const auto at = values.find(attribute);
    if (at == values.end()) return cudaErrorInvalidValue;
    *value = at->second;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int n, int device) {
    STANDIN_ENTER(false);
    if (device < 0 || device >= gpus()) return cudaErrorInvalidDevice;
    snprintf(text, (size_t)n, "0000:%02x:00.0", 0x10 + device);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    STANDIN_ENTER(false);
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}
