/* plugin_cuda.c - the door of the GPU's part: everything else in this library is hidden. */
#include "exec/cuda/comm_nccl.h"
#include "exec/cuda/device.h"
#include "exec/plugin.h"

#include <cudnn.h>
#include <nccl.h>

static const char *describe(char *out, size_t n) {
    int runtime = 0, nccl = 0;
    const size_t dnn = cudnnGetVersion();
    hp_cuda *c = NULL;
    hp_error none;
    cudaRuntimeGetVersion(&runtime);
    ncclGetVersion(&nccl);
    const bool found = hp_cuda_open(&c, &none) == HP_OK;
    snprintf(out, n, "CUDA %d.%d, cuDNN %zu.%zu.%zu, NCCL %d.%d.%d; %s", runtime / 1000, runtime % 1000 / 10,
             dnn / 10000, dnn % 10000 / 100, dnn % 100, nccl / 10000, nccl % 10000 / 100, nccl % 100,
             found ? c->properties.name : "no GPU");
    return out;
}

__attribute__((visibility("default"))) const hp_plugin hp_plugin_of_cuda = {.version = HP_PLUGIN_VERSION,
                                                                            .describe = describe,
                                                                            .device = &hp_device_cuda,
                                                                            .deployed = &hp_device_infer_cuda,
                                                                            .nccl = hp_comm_nccl};
