/* cuda_infer_device_trained.c - prepares layers that run as trained (networks/deploy/deploy.h): they use the
 * launches of training, with parameters as float32 in the layer's pack, one after another. */
#include "exec/cuda/infer/cuda_infer_device.h"
#include "base/alloc.h"
#include "networks/deploy/deploy.h"

#include <stdlib.h>

static hp_status read_params(const hp_device *d, const hp_bound *b, unsigned char *to, hp_error *err) {
    for (int i = 0; i < b->layer->n_param; i++)
        HP_TRY(hp_constants_param(d->config.constants, b->layer->param[i], HP_F32,
                                  to + hp_constant_at(b->graph, b->layer, i, HP_F32), err));
    return HP_OK;
}

static hp_status upload_params(hp_device *d, const hp_bound *b, hp_error *err) {
    const int64_t bytes = hp_constant_at(b->graph, b->layer, b->layer->n_param, HP_F32);
    if (d->packed[b->layer_id]) return hp_cuda_upload(d, b, NULL, bytes, err);
    unsigned char *params = hp_zeroed((size_t)bytes + 1, 1);
    hp_status s = read_params(d, b, params, err);
    if (s == HP_OK) s = hp_cuda_upload(d, b, params, bytes, err);
    free(params);
    return s;
}

hp_status hp_cuda_infer_trained(hp_device *d, const hp_bound *b, hp_cuda_launch *l, hp_error *err) {
    HP_TRY(upload_params(d, b, err));
    return hp_cuda_forward[b->layer->op](d, b, l, err);
}
