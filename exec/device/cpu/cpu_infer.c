/* cpu_infer.c - the CPU device on deployed graphs: float32 or quantised. Layers without a kernel of their
 * own for inference run as in training (networks/deploy/deploy.h): float32, on a training device without
 * tasks. */
#include "exec/device/cpu/cpu_matrix.h"
#include "exec/device/cpu/cpu_train.h"
#include "exec/device/kernels/kernels.h"

static hp_status run_trained(void *self, const hp_bound *b, hp_error *err) {
    if (b->out_elems == 0) return HP_OK;
    return hp_cpu_forward(b->layer)(self, b, NULL, err);
}

/* Tables belong to a layer, whatever its tasks are. */
static hp_device *trainer(hp_infer *in) {
    if (in->shared) return in->shared;
    hp_device *d = HP_NEW(in->arena, hp_device, 1);
    *d = (hp_device){.config = *in->config, .arena = in->arena, .kernels = hp_kernels_pick()->f32};
    d->turns = HP_NEW(in->arena, float *, in->config->graph->n_layer);
    in->shared = d;
    return d;
}

static hp_status prepare_trained(hp_infer *in, const hp_bound *b, hp_infer_kernel *k, hp_error *err) {
    hp_device *d = trainer(in);
    if (b->layer->op == HP_ATTENTION) HP_TRY(hp_cpu_attention_prepare(d, b, err));
    *k = (hp_infer_kernel){run_trained, d,
                           hp_arena_printf(in->arena, "own %s f32", hp_layer_infos[b->layer->op].name)};
    return HP_OK;
}

static hp_status open_infer(const hp_device_config *config, hp_device **device, hp_error *err) {
    const hp_infer_host host = {
        .loops = hp_kernels_pick()->loops, .matrix = hp_cpu_prepare_matrix, .trained = prepare_trained};
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
