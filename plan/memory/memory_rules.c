/* memory_rules.c - the memory needs of each device beyond the tensors. */
#include "plan/memory/memory_device.h"
#include "plan/memory/gpu_scratch.h"

static int64_t no_loss_scratch(void) {
    return 0;
}

const hp_device_memory hp_memory_rules_cpu = {.pack = hp_pack_bytes,
                                              .scratch = hp_scratch_bytes,
                                              .infer_pack = hp_infer_pack_bytes,
                                              .infer_scratch = hp_infer_scratch_bytes,
                                              .loss = no_loss_scratch};
const hp_device_memory hp_memory_rules_gpu = {.pack = hp_gpu_pack_bytes,
                                              .scratch = hp_gpu_task_scratch_bytes,
                                              .infer_pack = hp_gpu_infer_pack_bytes,
                                              .infer_scratch = hp_gpu_infer_scratch_bytes,
                                              .loss = hp_gpu_loss_bytes,
                                              .shares = true};

const hp_device_memory *hp_device_memory_of(int32_t device) {
    static const hp_device_memory *const rules[HP_DEVICES] = {
#define DEVICE(id, name, dtype, trains, infers, heads, backends, own, where, memory, loaded)                 \
    [HP_DEVICE_##id] = &hp_memory_rules_##memory,
#include "machines/device/devices.def"
    };
    return rules[device];
}
