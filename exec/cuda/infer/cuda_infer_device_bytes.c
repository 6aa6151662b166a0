/* cuda_infer_device_bytes.c - prepares matrix layers that read bytes, or quantise what they read.
 *
 * The pack has the weights in the order of infer/taps.h, then scale, shift and sum of weights per output. For
 * raw pixels it has the shift of pixels with all taps instead of the sum, and each tap's share of the shift
 * (as exec/device/cpu/cpu_matrix_pack.c). */
#include "exec/cuda/infer/cuda_infer_device.h"
#include "exec/device/infer/infer_dynamic.h"
#include "base/round.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* MOST_PRODUCTS: products of a byte and a weight, 255 * 127 at most, that fit into a sum of 32 bits. */
enum { MOST_PRODUCTS = 66000, WORD = 4, LINE = 64 };

typedef struct product {
    hp_cuda_bytes bytes;
    hp_cuda_quantise quantise; /* quantises samples at run time; x NULL: the layer reads bytes */
    bool depthwise;
} product;

/* --- running --- */

static cudaError_t start(const product *p, const hp_cuda_bytes *c, cudaStream_t s) {
    return (p->depthwise ? hp_cuda_depthwise_bytes : hp_cuda_conv_bytes)(c, s);
}

static hp_status run_sample(hp_device *d, const hp_bound *b, const product *p, int64_t n, hp_error *err) {
    const hp_shape *s = &b->shape;
    const int64_t out = (int64_t)s->oh * s->ow * s->oc * hp_dtype_bytes(b->stored.y);
    hp_cuda_quantise q = p->quantise;
    hp_cuda_bytes one = p->bytes;
    q.x += n * q.elems;
    one.taps.shape.n = 1;
    one.finish.y = (unsigned char *)one.finish.y + n * out;
    HP_CUDA(hp_cuda_quantise_sample(&q, d->cuda->compute));
    HP_CUDA(start(p, &one, d->cuda->compute));
    return HP_OK;
}

static hp_status run_bytes(hp_device *d, const hp_bound *b, void *self, hp_error *err) {
    const product *p = self;
    if (b->out_elems == 0) return HP_OK;
    if (!p->quantise.x) HP_CUDA(start(p, &p->bytes, d->cuda->compute));
    for (int64_t n = 0; n < b->shape.n && p->quantise.x; n++) HP_TRY(run_sample(d, b, p, n, err));
    return HP_OK;
}

/* --- constants --- */

/* Offsets in the pack, in bytes. */
typedef struct places {
    int64_t outs, scale, shift, third, share, bytes;
    int32_t taps, sums; /* number of taps, and of those with shares */
} places;

/* Inputs of a tap are padded to words, unless a row of taps is contiguous in the map and so one sequence. */
static void set_rows(const hp_bound *b, hp_cuda_taps *t) {
    const bool conv = b->layer->op == HP_CONV, beside = conv && t->groups < 2 && b->layer->window.dil_w < 2;
    if (t->ins % WORD != 0 && !beside && b->layer->op != HP_LINEAR)
        t->tap = (int32_t)hp_round_up(t->ins, WORD);
    t->row_taps = (int32_t)hp_round_up((int64_t)t->shape.kw * t->tap, WORD);
    t->weight_row = (int64_t)t->shape.kh * t->row_taps;
}

static places places_of(const hp_bound *b, const product *p, bool pixels) {
    const hp_cuda_taps *t = &p->bytes.taps;
    places a = {.outs = (int64_t)t->groups * t->outs, .taps = t->shape.kh * t->shape.kw};
    a.sums = b->layer->op == HP_LINEAR ? 1 : a.taps;
    a.scale = hp_round_up(a.outs * (p->depthwise ? a.taps : t->weight_row), LINE);
    a.shift = a.scale + 4 * a.outs;
    a.third = a.shift + 4 * a.outs;
    a.share = a.third + 4 * a.outs;
    a.bytes = a.share + (pixels ? 4 * a.outs * a.sums : 0);
    return a;
}

static void pack_weights(const product *p, int8_t *to, const int8_t *from, int32_t group, int32_t out) {
    const hp_cuda_taps *t = &p->bytes.taps;
    const int32_t kw = t->shape.kw, taps = t->shape.kh * kw;
    const int64_t row = ((int64_t)group * t->outs + out) * t->weight_row;
    for (int32_t tap = 0; tap < taps; tap++)
        for (int32_t i = 0; i < t->ins; i++) {
            const int64_t at =
                p->depthwise ? (int64_t)tap * t->groups + group
                             : row + (int64_t)(tap / kw) * t->row_taps + (int64_t)(tap % kw) * t->tap + i;
            to[at] = from[hp_cuda_canonical(t, group, out, i, tap)];
        }
}

/* Sum of the weights of taps first .. end - 1; for raw pixels, each times its channel's zero point. */
static double sum_of(const hp_cuda_taps *t, const hp_matrix_units *u, const int8_t *w, int32_t group,
                     int32_t out, int32_t first, int32_t end) {
    double sum = 0;
    for (int32_t tap = first; tap < end; tap++)
        for (int32_t i = 0; i < t->ins; i++)
            sum += w[hp_cuda_canonical(t, group, out, i, tap)] *
                   (u->pixels ? (double)u->pixel_zero[(group * t->ins + i) % 4] : 1);
    return sum;
}

static float *floats_at(unsigned char *pack, int64_t place) {
    return (float *)(void *)(pack + place);
}

/* Shares are added in the order of taps, as on all devices. */
static void pack_shares(const places *a, const hp_cuda_taps *t, const hp_matrix_units *u, unsigned char *pack,
                        const int8_t *w, int32_t group, int32_t out) {
    const int64_t o = (int64_t)group * t->outs + out;
    const int32_t each = a->taps / a->sums;
    float *share = floats_at(pack, a->share), sum = 0;
    for (int32_t k = 0; k < a->sums; k++) {
        share[k * a->outs + o] = (float)sum_of(t, u, w, group, out, k * each, (k + 1) * each);
        sum += share[k * a->outs + o];
    }
    floats_at(pack, a->third)[o] = fmaf(-floats_at(pack, a->scale)[o], sum, floats_at(pack, a->shift)[o]);
}

static void pack_output(const product *p, const places *a, const hp_matrix_units *u, const hp_filter *f,
                        unsigned char *pack, int32_t group, int32_t out) {
    const hp_cuda_taps *t = &p->bytes.taps;
    const int64_t o = (int64_t)group * t->outs + out;
    int32_t *total = (int32_t *)(void *)(pack + a->third);
    pack_weights(p, (int8_t *)pack, f->weight8, group, out);
    floats_at(pack, a->scale)[o] = hp_matrix_scale(u, f->weight_scale[o]);
    floats_at(pack, a->shift)[o] = hp_matrix_shift(u, f->bias ? f->bias[o] : 0.0f);
    if (u->pixels)
        pack_shares(a, t, u, pack, f->weight8, group, out);
    else
        total[o] = (int32_t)sum_of(t, u, f->weight8, group, out, 0, a->taps);
}

static hp_status pack_all(hp_device *d, const hp_bound *b, const product *p, const places *a,
                          const hp_matrix_units *u, hp_error *err) {
    hp_filter f;
    if (d->packed[b->layer_id]) return hp_cuda_upload(d, b, NULL, a->bytes, err);
    HP_TRY(hp_constants_filter(d->config.constants, b->layer_id, b->shape.oc0, b->shape.oc, true, &f, err));
    unsigned char *pack = calloc(1, (size_t)a->bytes + 1);
    HP_ASSERT(pack);
    for (int32_t g = 0; g < p->bytes.taps.groups; g++)
        for (int32_t o = 0; o < p->bytes.taps.outs; o++) pack_output(p, a, u, &f, pack, g, o);
    const hp_status s = hp_cuda_upload(d, b, pack, a->bytes, err);
    free(pack);
    return s;
}

static void set_terms(product *p, const hp_bound *b, const places *a, const hp_matrix_units *u) {
    unsigned char *pack = b->pack.forward;
    hp_cuda_bytes *c = &p->bytes;
    c->zero = u->pixels ? 0 : (uint8_t)u->in_zero;
    c->scale = floats_at(pack, a->scale);
    c->shift = floats_at(pack, a->shift);
    if (u->pixels) {
        c->shift_inside = floats_at(pack, a->third);
        c->share = floats_at(pack, a->share);
    } else {
        c->total = (const int32_t *)(void *)(pack + a->third);
    }
}

/* --- inputs quantised at run time; scratch: a sample's bytes, its scales, its range --- */

static hp_status set_dynamic(const hp_bound *b, product *p, const places *a, hp_error *err) {
    const hp_shape *s = &b->shape;
    const int64_t elems = (int64_t)s->ih * s->iw * s->ic, scale = hp_round_up(elems, LINE),
                  sample = scale + hp_round_up(4 * a->outs, LINE),
                  bytes = sample + (int64_t)sizeof(hp_cuda_sample);
    unsigned char *at = b->scratch.at;
    if (bytes > b->scratch.bytes)
        return hp_fail(err, HP_EPLAN,
                       "layer %s needs %lld bytes of scratch, the plan has %lld: plan again for cuda",
                       b->layer->name, (long long)bytes, (long long)b->scratch.bytes);
    p->quantise = (hp_cuda_quantise){.x = b->x[0],
                                     .to = at,
                                     .elems = elems,
                                     .sample = (hp_cuda_sample *)(void *)(at + sample),
                                     .weight_scale = p->bytes.scale,
                                     .scale = floats_at(at, scale),
                                     .outs = a->outs};
    p->bytes.taps.x = at;
    p->bytes.sample = p->quantise.sample;
    p->bytes.scale = p->quantise.scale;
    return HP_OK;
}

/* --- preparing --- */

static hp_status check_products(const hp_bound *b, const hp_cuda_taps *t, hp_error *err) {
    const int64_t products = (int64_t)t->shape.kh * t->shape.kw * t->ins;
    if (products <= MOST_PRODUCTS) return HP_OK;
    return hp_fail(err, HP_EUNAVAIL,
                   "layer %s sums up %lld products of bytes, %d fit in 32 bits: keep it real", b->layer->name,
                   (long long)products, MOST_PRODUCTS);
}

static const char *name_of(const product *p) {
    return p->depthwise ? "own depthwise u8" : "own mma u8";
}

hp_status hp_cuda_infer_bytes(hp_device *d, const hp_bound *b, hp_cuda_launch *l, hp_error *err) {
    product *p = HP_NEW(d->arena, product, 1);
    const hp_infer in = hp_cuda_infer_of(d);
    const hp_infer_op op = hp_matrix_op(&in, b);
    const hp_matrix_units u = hp_matrix_units_of(&in, b, &op);
    hp_cuda_taps *t = &p->bytes.taps;
    *l = (hp_cuda_launch){run_bytes, p, NULL};
    if (b->out_elems == 0) return HP_OK;
    *t = hp_cuda_taps_of(b);
    p->depthwise = t->groups > 1 && t->ins == 1 && t->outs == 1 && !t->transposed;
    set_rows(b, t);
    HP_TRY(check_products(b, t, err));
    const places a = places_of(b, p, u.pixels);
    HP_TRY(pack_all(d, b, p, &a, &u, err));
    if (hp_cuda_is_product(b)) t->transposed = false;
    set_terms(p, b, &a, &u);
    p->bytes.finish = hp_cuda_finish_of(b, &op, &u);
    l->name = name_of(p);
    return b->layer->deployed.dynamic ? set_dynamic(b, p, &a, err) : HP_OK;
}
