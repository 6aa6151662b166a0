/* cuda_plugin.c - the only symbols that the GPU library exports; everything else in it is hidden. */
#include "exec/cuda/nccl/nccl.h"
#include "exec/cuda/runtime/cuda_runtime_device.h"
#include "exec/cuda/facts.h"
#include "exec/device/device_plugin.h"

#include <cudnn.h>
#include <nccl.h>

/* "2 x NVIDIA H200", or why there is no GPU. */
static const char *gpus(char *out, size_t n) {
    hp_cuda *c = NULL;
    hp_error why = {.code = HP_OK, .text = ""};
    int count = 0;
    if (hp_cuda_open(NULL, &c, &why) == HP_OK && cudaGetDeviceCount(&count) == cudaSuccess)
        snprintf(out, n, "%d x %.200s", count, c->properties.name);
    else
        snprintf(out, n, "%.200s", why.text);
    if (c) hp_cuda_close(c);
    return out;
}

static const char *describe(char *out, size_t n) {
    int runtime = 0, nccl = 0;
    char found[256];
    const size_t dnn = cudnnGetVersion();
    cudaRuntimeGetVersion(&runtime);
    ncclGetVersion(&nccl);
    snprintf(out, n, "CUDA %d.%d, cuDNN %zu.%zu.%zu, NCCL %d.%d.%d; %s", runtime / 1000, runtime % 1000 / 10,
             dnn / 10000, dnn % 10000 / 100, dnn % 100, nccl / 10000, nccl % 10000 / 100, nccl % 100,
             gpus(found, sizeof found));
    return out;
}

extern const hp_plugin hp_plugin_of_cuda;
__attribute__((visibility("default"))) const hp_plugin hp_plugin_of_cuda = {.version = HP_PLUGIN_VERSION,
                                                                            .describe = describe,
                                                                            .facts = hp_cuda_facts,
                                                                            .device = &hp_device_cuda,
                                                                            .deployed = &hp_device_cuda_infer,
                                                                            .nccl = hp_comm_nccl};
