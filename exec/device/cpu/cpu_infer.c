/* cpu_infer.c - the CPU device on deployed graphs: float32 or quantised. */
#include "exec/device/cpu/cpu_matrix.h"
#include "exec/device/cpu/cpu_trained.h"
#include "exec/device/kernels/kernels.h"

static hp_status open_infer(const hp_device_config *config, hp_device **device, hp_error *err) {
    const hp_infer_host host = {.loops = hp_kernels_pick()->loops,
                                .matrix = hp_cpu_prepare_matrix,
                                .trained = hp_cpu_prepare_trained};
    return hp_infer_host_open(&host, config, device, err);
}

const hp_device_ops hp_device_cpu_infer = {
    .name = "cpu",
    .dtype = HP_F32,
    .open = open_infer,
    .run = hp_infer_host_run,
    .close = hp_infer_host_close,
    .memory = &hp_memory_host,
};
