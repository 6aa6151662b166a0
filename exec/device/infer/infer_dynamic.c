/* infer_dynamic.c - samples quantised at run time; see infer_dynamic.h. */
#include "exec/device/infer/infer_dynamic.h"

#include <math.h>
#include <string.h>

typedef struct dynamic {
    float scale; /* NaN: no scale */
    int32_t zero;
} dynamic;

/* Quantisation of a sample, from the least and the greatest of its numbers and 0. */
static dynamic dynamic_of(float lo, float hi) {
    float scale = (hi - lo) / 255.0f;
    if (!isfinite(scale)) return (dynamic){NAN, 0};
    if (!(scale > 0)) scale = 1;
    return (dynamic){scale, (int32_t)fminf(rintf(-lo / scale), 255)};
}

hp_dynamic_places hp_dynamic_places_of(const hp_panels *p, const hp_panels_places *at, const hp_bound *b,
                                       const hp_infer_loops *loops) {
    const hp_panels_scratch room = hp_panels_scratch_of(p);
    unsigned char *scratch = b->scratch.at, *pack = b->pack.forward;
    return (hp_dynamic_places){.loops = loops,
                               .weight_scale = (const float *)(void *)(pack + at->scale),
                               .scale = (float *)(void *)(scratch + room.scale),
                               .map = scratch + room.map,
                               .elems = p->map,
                               .outs = (int64_t)p->groups * p->padded};
}

int32_t hp_dynamic_sample(const hp_dynamic_places *d, const hp_bound *b, int64_t n) {
    const unsigned char *x = (const unsigned char *)b->x[0] + n * d->elems * hp_dtype_bytes(b->stored.x[0]);
    float range[2];
    d->loops->range(x, d->elems, range);
    const dynamic q = dynamic_of(range[0], range[1]);
    if (isnan(q.scale))
        memset(d->map, 0, (size_t)d->elems);
    else
        d->loops->quantise(d->map, x, d->elems, q.scale, q.zero);
    for (int64_t o = 0; o < d->outs; o++) d->scale[o] = (float)((double)q.scale * (double)d->weight_scale[o]);
    return q.zero;
}

hp_bound hp_dynamic_bound(const hp_dynamic_places *d, const hp_bound *b, int64_t n) {
    hp_bound one = *b;
    one.shape.n = 1;
    one.in_elems = d->elems;
    one.out_elems = (int64_t)b->shape.oh * b->shape.ow * b->shape.oc;
    one.x[0] = d->map;
    one.stored.x[0] = HP_U8;
    one.y = (unsigned char *)b->y + n * one.out_elems * hp_dtype_bytes(b->stored.y);
    return one;
}
