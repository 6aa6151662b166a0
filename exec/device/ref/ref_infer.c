/* ref_infer.c - the reference on deployed graphs: float64, and quantised arithmetic by its definition. */
#include "exec/device/ref/ref_matrix.h"
#include "exec/device/ref/ref.h"

static hp_status run_trained(void *self, const hp_bound *b, hp_error *err) {
    (void)self;
    (void)err;
    if (b->out_elems > 0) hp_ref_forward(b->layer)(b, NULL);
    return HP_OK;
}

static hp_status prepare_trained(hp_infer *in, const hp_bound *b, hp_infer_kernel *k, hp_error *err) {
    (void)in;
    (void)b;
    (void)err;
    *k = (hp_infer_kernel){run_trained, NULL, "ref"};
    return HP_OK;
}

static hp_status open_infer(const hp_device_config *config, hp_device **device, hp_error *err) {
    const hp_infer_host host = {.loops = &hp_ref_loops_f32,
                                .wide = &hp_ref_loops_f64,
                                .matrix = hp_ref_prepare_matrix,
                                .trained = prepare_trained};
    return hp_infer_host_open(&host, config, device, err);
}

const hp_device_ops hp_device_ref_infer = {
    .name = "ref",
    .dtype = HP_F64,
    .open = open_infer,
    .run = hp_infer_host_run,
    .close = hp_infer_host_close,
    .memory = &hp_memory_host,
};
