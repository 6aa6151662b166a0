/* of.c - devices, and what each needs beyond the tensors. */
#include "plan/memory/device.h"
#include "plan/memory/gpu_scratch.h"

#include <string.h>

static int64_t no_loss_scratch(void) {
    return 0;
}

static const hp_device_memory rules[HP_DEVICES] = {
    [HP_DEVICE_CPU] = {"cpu", hp_pack_bytes, hp_scratch_bytes, hp_infer_pack_bytes, hp_infer_scratch_bytes,
                       no_loss_scratch, false},
    [HP_DEVICE_REF] = {"ref", hp_pack_bytes, hp_scratch_bytes, hp_infer_pack_bytes, hp_infer_scratch_bytes,
                       no_loss_scratch, false},
    [HP_DEVICE_CUDA] = {"cuda", hp_cuda_pack_bytes, hp_cuda_scratch_bytes, hp_cuda_infer_pack_bytes,
                        hp_cuda_infer_scratch_bytes, hp_gpu_loss_bytes, true}};

hp_device_kind hp_device_kind_of(const char *name) {
    for (int i = 0; i < HP_DEVICES && name; i++)
        if (strcmp(rules[i].name, name) == 0) return (hp_device_kind)i;
    return HP_DEVICE_CPU;
}

const hp_device_memory *hp_device_memory_of(int32_t device) {
    return &rules[device];
}
