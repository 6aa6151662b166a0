/* cuda_train_device_tokens.c - the layers of transformers except products and attention: norms of a pixel's
 * channels, tables, tokens, crops, merged pixels, sums of blocks. The arguments of their kernels. */
#include "exec/cuda/train/cuda_train_device.h"

static bool adds(const hp_bound *b) {
    return b->task->flags & HP_FLAG_ADD;
}

static hp_status copy(hp_device *d, void *to, const void *from, int64_t bytes, hp_error *err) {
    if (to != from && bytes > 0)
        HP_CUDA(cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDeviceToDevice, d->cuda->compute));
    return HP_OK;
}

/* --- layer norm --- */

static hp_cuda_layernorm norm_of(const hp_device *d, const hp_bound *b) {
    hp_cuda_layernorm l = {.dtype = hp_cuda_elements(d, b),
                           .pixels = hp_cuda_pixels(&b->shape),
                           .ins = b->shape.ic,
                           .first = b->shape.oc0,
                           .outs = b->shape.oc,
                           .centred = b->layer->op == HP_LAYERNORM,
                           .add = adds(b),
                           .eps = (float)b->layer->eps,
                           .x = b->x[0],
                           .dy = b->dy,
                           .y = b->y,
                           .dx = b->dx[0],
                           .gamma = b->param[0],
                           .beta = b->layer->n_param > 1 ? b->param[1] : NULL,
                           .dgamma = b->grad[0],
                           .dbeta = b->layer->n_param > 1 ? b->grad[1] : NULL,
                           .partial = b->scratch.at};
    if (b->scratch.at) /* the forward pass has none */
        l.moments = (float *)((unsigned char *)b->scratch.at + hp_column_sums_bytes(l.pixels, l.outs));
    return l;
}

hp_status hp_cuda_layernorm_fwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_cuda_layernorm l = norm_of(d, b);
    HP_CUDA(hp_cuda_layernorm_forward(&l, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_layernorm_bwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_cuda_layernorm l = norm_of(d, b);
    HP_CUDA(hp_cuda_layernorm_backward(&l, d->cuda->compute));
    return HP_OK;
}

/* --- embedding: ids are float32 whatever the precision --- */

static hp_cuda_embedding embedding_of(const hp_bound *b) {
    const hp_extent here = hp_embedding_rows(b);
    return (hp_cuda_embedding){.pixels = hp_cuda_pixels(&b->shape),
                               .rows = (int32_t)(here.hi - here.lo),
                               .channels = b->shape.oc,
                               .first = (int32_t)here.lo,
                               .all = b->graph->param[b->layer->param[0]].dim[0],
                               .id = b->x[0]};
}

hp_status hp_cuda_embedding_fwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_cuda_embedding e = embedding_of(b);
    HP_CUDA(hp_cuda_embed(hp_cuda_elements(d, b), b->y, b->param[0], &e, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_embedding_bwdw(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_cuda_embedding e = embedding_of(b);
    HP_CUDA(hp_cuda_embed_backward(hp_cuda_elements(d, b), b->grad[0], b->dy, &e, adds(b), d->cuda->compute));
    return HP_OK;
}

/* --- places --- */

static hp_cuda_places places_of(const hp_shape *s) {
    return (hp_cuda_places){.samples = s->n,
                            .sample = (int64_t)s->oh * s->ow * s->oc,
                            .first = ((int64_t)s->oy0 * s->full.ow + s->ox0) * s->full.oc + s->oc0,
                            .h = s->oh,
                            .w = s->ow,
                            .c = s->oc,
                            .row = (int64_t)s->full.ow * s->full.oc,
                            .pixel = s->full.oc};
}

hp_status hp_cuda_position_fwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_cuda_places p = places_of(&b->shape);
    HP_CUDA(hp_cuda_add_places(hp_cuda_elements(d, b), b->y, b->x[0], b->param[0], &p, d->cuda->compute));
    return HP_OK;
}

/* Clears the whole table's gradient, because the box may not cover it. */
hp_status hp_cuda_position_bwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_cuda_places p = places_of(&b->shape);
    const int64_t table = b->graph->param[b->layer->param[0]].count, box = (int64_t)p.h * p.w * p.c;
    const hp_dtype t = hp_cuda_elements(d, b);
    if (!adds(b) && box < table) HP_TRY(hp_cuda_clear(d, b->grad[0], 4 * table, err));
    HP_CUDA(hp_cuda_sum_places(t, b->grad[0], b->dy, &p, adds(b), d->cuda->compute));
    return b->dx[0] ? copy(d, b->dx[0], b->dy, b->out_elems * hp_dtype_bytes(t), err) : HP_OK;
}

/* --- class tokens: each sample has its class token first, then the input's pixels in order --- */

/* The class token in every sample's box. */
static hp_cuda_places token_of(const hp_shape *s) {
    return (hp_cuda_places){.samples = s->n,
                            .sample = (int64_t)s->oh * s->oc,
                            .h = 1,
                            .w = 1,
                            .c = s->oc,
                            .row = s->oc,
                            .pixel = s->oc};
}

/* Copies pixels between the input's box and the tokens after the class token, either way. They are contiguous
 * in both: a box of several rows has all columns. */
static hp_cuda_runs pixels_of(const hp_bound *b, void *tokens, void *pixels, bool back, int bytes) {
    const hp_shape *s = &b->shape;
    const int64_t has = s->oy0 == 0 ? 1 : 0, token = s->oy0 + has - 1;
    const int64_t at = ((token / s->full.iw - s->iy0) * s->iw + token % s->full.iw - s->ix0) * s->ic,
                  in = (int64_t)s->ih * s->iw * s->ic, out = (int64_t)s->oh * s->oc;
    unsigned char *of_tokens = (unsigned char *)tokens + has * s->oc * bytes,
                  *of_pixels = (unsigned char *)pixels + at * bytes;
    return (hp_cuda_runs){.to = back ? of_pixels : of_tokens,
                          .from = back ? of_tokens : of_pixels,
                          .n = {1, 1, s->n},
                          .to_stride = {0, 0, back ? in : out},
                          .from_stride = {0, 0, back ? out : in},
                          .run = out - has * s->oc};
}

hp_status hp_cuda_classtoken_fwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_dtype t = hp_cuda_elements(d, b);
    const hp_cuda_runs r = pixels_of(b, b->y, b->x[0], false, hp_dtype_bytes(t));
    const hp_cuda_places token = token_of(&b->shape);
    HP_CUDA(hp_cuda_move(hp_dtype_bytes(t), &r, d->cuda->compute));
    if (b->shape.oy0 == 0) HP_CUDA(hp_cuda_add_places(t, b->y, NULL, b->param[0], &token, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_classtoken_bwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_dtype t = hp_cuda_elements(d, b);
    const int bytes = hp_dtype_bytes(t);
    const hp_cuda_places token = token_of(&b->shape);
    if (b->dx[0]) {
        const hp_cuda_runs r = pixels_of(b, b->dy, b->dx[0], true, bytes);
        HP_TRY(hp_cuda_clear(d, b->dx[0], b->in_elems * bytes, err));
        HP_CUDA(hp_cuda_move(bytes, &r, d->cuda->compute));
    }
    if (b->shape.oy0 == 0)
        HP_CUDA(hp_cuda_sum_places(t, b->grad[0], b->dy, &token, adds(b), d->cuda->compute));
    else if (!adds(b))
        HP_TRY(hp_cuda_clear(d, b->grad[0], 4 * (int64_t)b->shape.oc, err));
    return HP_OK;
}

/* --- crops: the boxes read and written are the same --- */

hp_status hp_cuda_crop_fwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    return copy(d, b->y, b->x[0], b->out_elems * hp_dtype_bytes(hp_cuda_elements(d, b)), err);
}

hp_status hp_cuda_crop_bwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    return copy(d, b->dx[0], b->dy, b->out_elems * hp_dtype_bytes(hp_cuda_elements(d, b)), err);
}

/* --- merged pixels: the upper left, the one below it, the one to its right, the one below that --- */

static int32_t at_most(int32_t a, int32_t b) {
    return a < b ? a : b;
}

static int32_t at_least(int32_t a, int32_t b) {
    return a > b ? a : b;
}

/* Runs of the output's channels that come from one of the four pixels; empty beyond the map. */
static hp_cuda_runs quarter_of(const hp_bound *b, int which, void *merged, void *map, bool back, int bytes) {
    const hp_shape *s = &b->shape;
    const int32_t quarter = s->full.oc / 4, dy = which % 2, dx = which / 2;
    const int32_t c0 = at_least(which * quarter, s->oc0), c1 = at_most((which + 1) * quarter, s->oc0 + s->oc);
    const int32_t rows = at_most(s->oh, (s->full.ih - dy + 1) / 2 - s->oy0),
                  cols = at_most(s->ow, (s->full.iw - dx + 1) / 2 - s->ox0);
    const int64_t at = ((int64_t)(2 * s->oy0 + dy - s->iy0) * s->iw + 2 * s->ox0 + dx - s->ix0) * s->ic + c0 -
                       which * quarter - b->map.in_box[0].lo[HP_AXIS_C];
    unsigned char *of_merged = (unsigned char *)merged + (int64_t)(c0 - s->oc0) * bytes,
                  *of_map = (unsigned char *)map + at * bytes;
    const int64_t out[3] = {(int64_t)s->oh * s->ow * s->oc, (int64_t)s->ow * s->oc, s->oc},
                  in[3] = {(int64_t)s->ih * s->iw * s->ic, 2 * (int64_t)s->iw * s->ic, 2 * (int64_t)s->ic};
    hp_cuda_runs r = {.to = back ? of_map : of_merged,
                      .from = back ? of_merged : of_map,
                      .n = {s->n, at_least(rows, 0), at_least(cols, 0)},
                      .run = at_least(c1 - c0, 0)};
    for (int a = 0; a < 3; a++) {
        r.to_stride[a] = back ? in[a] : out[a];
        r.from_stride[a] = back ? out[a] : in[a];
    }
    return r;
}

static hp_status merge(hp_device *d, const hp_bound *b, void *merged, void *map, bool back, hp_error *err) {
    const int bytes = hp_dtype_bytes(hp_cuda_elements(d, b));
    HP_TRY(hp_cuda_clear(d, back ? map : merged, (back ? b->in_elems : b->out_elems) * bytes, err));
    for (int which = 0; which < 4; which++) {
        const hp_cuda_runs r = quarter_of(b, which, merged, map, back, bytes);
        HP_CUDA(hp_cuda_move(bytes, &r, d->cuda->compute));
    }
    return HP_OK;
}

hp_status hp_cuda_merge_fwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    return merge(d, b, b->y, b->x[0], false, err);
}

hp_status hp_cuda_merge_bwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    return merge(d, b, b->dy, b->dx[0], true, err);
}

/* --- sums over blocks of channels --- */

hp_status hp_cuda_sum_fwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    HP_CUDA(hp_cuda_sum_blocks(hp_cuda_elements(d, b), b->y, b->x[0],
                               b->layer->n_param > 0 ? b->param[0] : NULL, hp_cuda_pixels(&b->shape),
                               b->shape.oc, b->shape.ic, d->cuda->compute));
    return HP_OK;
}

hp_status hp_cuda_sum_bwd(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    (void)self;
    const hp_dtype t = hp_cuda_elements(d, b);
    const int64_t pixels = hp_cuda_pixels(&b->shape), outs = b->shape.oc, ins = b->shape.ic;
    if (b->layer->n_param > 0)
        HP_CUDA(hp_cuda_bias_gradient(t, b->grad[0], b->dy, pixels, b->shape.oc, adds(b), b->scratch.at,
                                      d->cuda->compute));
    if (!b->dx[0] || b->dx[0] == b->dy) return HP_OK;
    const hp_cuda_runs r = {.to = b->dx[0],
                            .from = b->dy,
                            .n = {1, pixels, ins / outs},
                            .to_stride = {0, ins, outs},
                            .from_stride = {0, outs, 0},
                            .run = outs};
    HP_CUDA(hp_cuda_move(hp_dtype_bytes(t), &r, d->cuda->compute));
    return HP_OK;
}
