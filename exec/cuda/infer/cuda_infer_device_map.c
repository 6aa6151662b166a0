/* cuda_infer_device_map.c - prepares the layers that compute pixels from other pixels (infer/map.cu). */
#include "exec/cuda/infer/cuda_infer_device.h"

typedef cudaError_t start_fn(const hp_cuda_map *m, cudaStream_t s);
static start_fn *const starts[HP_LAYER_OPS] = {
    [HP_MAXPOOL] = hp_cuda_max_map,   [HP_AVGPOOL] = hp_cuda_mean_map, [HP_ADAPTPOOL] = hp_cuda_mean_map,
    [HP_RESIZE] = hp_cuda_resize_map, [HP_PAD] = hp_cuda_pad_map,      [HP_SOFTMAX] = hp_cuda_softmax_map};

static hp_status run_map(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    if (b->out_elems > 0) HP_CUDA(starts[b->layer->op](self, d->cuda->compute));
    return HP_OK;
}

/* As exec/device/kernels/loops_pool.inc. */
static hp_cuda_mean_axis mean_axis_of(const hp_bound *b, bool rows) {
    const hp_shape *s = &b->shape;
    const hp_layer *l = b->layer;
    const bool windows = l->op == HP_AVGPOOL;
    const int pad = rows ? l->window.pad_h : l->window.pad_w, sized = rows ? l->out_h : l->out_w;
    hp_cuda_mean_axis a = {.pad = pad, .counts_pad = windows && l->window.count_include_pad};
    a.in = rows ? s->ih : s->iw;
    a.in0 = rows ? s->iy0 : s->ix0;
    a.full_in = rows ? s->full.ih : s->full.iw;
    a.out0 = rows ? s->oy0 : s->ox0;
    a.full_out = rows ? s->full.oh : s->full.ow;
    a.kernel = !windows ? 0 : rows ? s->kh : s->kw;
    a.stride = rows ? s->sh : s->sw;
    a.end = sized > 0 ? INT64_MAX : a.full_in + pad;
    return a;
}

/* Does the layer only move elements? Softmax, interpolation and means compute. */
static bool moves(const hp_layer *l) {
    return l->op == HP_MAXPOOL || l->op == HP_PAD ||
           (l->op == HP_RESIZE && l->resize.interpolation == HP_NEAREST);
}

hp_status hp_cuda_infer_map(hp_device *d, const hp_bound *b, hp_cuda_launch *l, hp_error *err) {
    const hp_shape *s = &b->shape;
    hp_infer_op o;
    hp_cuda_map *m = HP_NEW(d->arena, hp_cuda_map, 1);
    HP_TRY(hp_cuda_op_of(d, b, &o, err));
    *m = (hp_cuda_map){.x = b->x[0],
                       .y = b->y,
                       .of = o.x[0],
                       .put = hp_cuda_put_of(&o.y),
                       .act = hp_cuda_act_of(&o),
                       .shape = b->shape,
                       .rows = mean_axis_of(b, true),
                       .cols = mean_axis_of(b, false),
                       .down = hp_resampling_of(b->layer, true, s->full.ih, s->full.oh),
                       .along = hp_resampling_of(b->layer, false, s->full.iw, s->full.ow)};
    if (moves(b->layer)) m->recode = hp_cuda_recode_of(&o, 0);
    *l = (hp_cuda_launch){run_map, m, "own"};
    return HP_OK;
}
