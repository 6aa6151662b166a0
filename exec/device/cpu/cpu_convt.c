/* cpu_convt.c - transposed convolution as a matrix product. A block of input pixels (P, I) times the weights
 * (I, taps*O) gives what each pixel adds to the patch of the output under its kernel. Backward, patches of
 * the gradient are gathered and multiplied back. Handles every shape with one layout of the weights. Reaches
 * 75 to 95 GF/s on a Zen 4 core from 64 channels on, kernel and stride 2. oneDNN's kernels for the adjoint
 * convolution reach 25 (backward weights) to 105 there. Every task reorders the weights in scratch, which
 * costs little next to the products. */
#include "exec/device/cpu/cpu_train.h"

#include "plan/memory/memory_device.h"
#include "plan/memory/gradient_bands.h"

#include <string.h>

static int64_t patch_elems(const hp_shape *s) {
    return (int64_t)s->kh * s->kw * s->oc;
}

static const float *bias_of(const hp_bound *b) {
    return b->layer->n_param > 1 ? b->param[1] : NULL;
}

/* (I, O, taps) to (I, taps, O). */
static void reorder(float *to, const float *w, const hp_shape *s) {
    const int taps = s->kh * s->kw;
    for (int c = 0; c < s->ic; c++, to += patch_elems(s))
        for (int o = 0; o < s->oc; o++)
            for (int t = 0; t < taps; t++) to[(int64_t)t * s->oc + o] = *w++;
}

/* Takes the sums if there are any, else `from`. */
static void reorder_back(float *dw, const float *from, const double *sums, const hp_shape *s, bool add) {
    const int taps = s->kh * s->kw;
    for (int64_t c = 0, at = 0; c < s->ic; c++, at += patch_elems(s))
        for (int o = 0; o < s->oc; o++)
            for (int t = 0; t < taps; t++, dw++) {
                const int64_t e = at + (int64_t)t * s->oc + o;
                *dw = (add ? *dw : 0.0f) + (sums ? (float)sums[e] : from[e]);
            }
}

/* --- patches --- */

/* Row ky of an input pixel's patch: its taps begin .. end lie in the output, contiguously. */
typedef struct patch_row {
    int64_t at; /* index of the first element in (N, OH, OW, O) */
    int begin, end;
} patch_row;

static patch_row row_of(const hp_shape *s, int64_t pixel, int ky) {
    const int64_t n = pixel / s->iw / s->ih;
    const int oy = (int)(pixel / s->iw % s->ih) * s->sh - s->ph + ky,
              ox = (int)(pixel % s->iw) * s->sw - s->pw;
    patch_row r = {0, ox < 0 ? -ox : 0, s->ow - ox < s->kw ? s->ow - ox : s->kw};
    if (oy < 0 || oy >= s->oh || r.end < r.begin) r.end = r.begin;
    r.at = ((n * s->oh + oy) * s->ow + ox + r.begin) * s->oc;
    return r;
}

/* Adds patches (count, kh, kw, O) to the output, or stores them if no two overlap. */
static void scatter(const hp_f32_kernels *k, float *y, const float *patches, const hp_shape *s, int64_t first,
                    int64_t count, bool store) {
    for (int64_t p = 0; p < count; p++)
        for (int ky = 0; ky < s->kh; ky++, patches += (int64_t)s->kw * s->oc) {
            const patch_row r = row_of(s, first + p, ky);
            const int64_t n = (int64_t)(r.end - r.begin) * s->oc;
            const float *from = patches + (int64_t)r.begin * s->oc;
            if (n > 0 && store)
                memcpy(y + r.at, from, (size_t)n * sizeof *y);
            else if (n > 0)
                k->point.accum(y + r.at, from, n);
        }
}

/* Gathers the output under each pixel's kernel; zero where the kernel extends beyond. */
static void gather(float *patches, const float *dy, const hp_shape *s, int64_t first, int64_t count) {
    const int64_t row = (int64_t)s->kw * s->oc;
    for (int64_t p = 0; p < count; p++)
        for (int ky = 0; ky < s->kh; ky++, patches += row) {
            const patch_row r = row_of(s, first + p, ky);
            const size_t n = (size_t)(r.end - r.begin) * (size_t)s->oc;
            if ((int64_t)n < row) memset(patches, 0, (size_t)row * sizeof *patches);
            if (n > 0) memcpy(patches + (int64_t)r.begin * s->oc, dy + r.at, n * sizeof *patches);
        }
}

/* Fills `rows` rows with the bias, or zeros. */
static void fill(float *to, const float *bias, int64_t rows, int channels) {
    if (!bias) memset(to, 0, (size_t)(rows * channels) * sizeof *to);
    for (int64_t r = 0; bias && r < rows; r++) memcpy(to + r * channels, bias, (size_t)channels * sizeof *to);
}

/* --- tasks --- */

/* Number of pixels per block, and the task's two matrices in scratch. */
typedef struct work {
    int64_t pixels, patch;
    float *weights, *patches; /* (I, taps*O), (HP_CONVT_PIXELS, taps*O) */
} work;

static work begin(const hp_bound *b) {
    const hp_shape *s = &b->shape;
    work w = {s->n * s->ih * s->iw, patch_elems(s), b->scratch.at, b->scratch.at};
    w.patches += s->ic * w.patch;
    return w;
}

static int64_t block_of(const work *w, int64_t first) {
    return w->pixels - first < HP_CONVT_PIXELS ? w->pixels - first : HP_CONVT_PIXELS;
}

hp_status hp_cpu_convt_prepare(hp_device *d, const hp_bound *b, hp_error *err) {
    const int64_t need =
        hp_scratch_bytes(d->config.graph, b->layer_id, (hp_task_op)b->task->op, &b->shape, HP_F32);
    if (need <= b->scratch.bytes) return HP_OK;
    return hp_fail(err, HP_EPLAN,
                   "layer %s needs %lld bytes of scratch, the plan has %lld: plan again with this version",
                   b->layer->name, (long long)need, (long long)b->scratch.bytes);
}

/* Patches that do not overlap include the bias, so that the output is written once. */
hp_status hp_cpu_convt_fwd(hp_device *d, const hp_bound *b, const hp_step *step, hp_error *err) {
    (void)step;
    const hp_shape *s = &b->shape;
    const work w = begin(b);
    const bool apart = s->kh <= s->sh && s->kw <= s->sw, dense = s->kh == s->sh && s->kw == s->sw;
    const float *x = b->x[0], *bias = bias_of(b);
    reorder(w.weights, b->param[0], s);
    if (!dense) fill(b->y, bias, s->n * s->oh * s->ow, s->oc);
    for (int64_t first = 0; first < w.pixels; first += HP_CONVT_PIXELS) {
        const int64_t count = block_of(&w, first);
        const bool carry = apart && bias;
        if (carry) fill(w.patches, bias, count * s->kh * s->kw, s->oc);
        HP_TRY(hp_onednn_matrix(w.patches, x + first * s->ic, w.weights, count, w.patch, s->ic, false, false,
                                carry, err));
        scatter(d->kernels, b->y, w.patches, s, first, count, apart);
    }
    return HP_OK;
}

hp_status hp_cpu_convt_bwd(hp_device *d, const hp_bound *b, const hp_step *step, hp_error *err) {
    (void)d;
    (void)step;
    const hp_shape *s = &b->shape;
    const work w = begin(b);
    float *dx = b->dx[0];
    reorder(w.weights, b->param[0], s);
    for (int64_t first = 0; first < w.pixels; first += HP_CONVT_PIXELS) {
        const int64_t count = block_of(&w, first);
        gather(w.patches, b->dy, s, first, count);
        HP_TRY(hp_onednn_matrix(dx + first * s->ic, w.patches, w.weights, count, s->ic, w.patch, false, true,
                                false, err));
    }
    return HP_OK;
}

/* With many pixels, a few thousand at a time are summed in float32 and these sums in float64: see
 * plan/memory/gradient_bands.h. */
hp_status hp_cpu_convt_bwdw(hp_device *d, const hp_bound *b, const hp_step *step, hp_error *err) {
    (void)step;
    const hp_shape *s = &b->shape;
    const work w = begin(b);
    const int64_t n = s->ic * w.patch;
    const float *x = b->x[0];
    const bool add = b->task->flags & HP_FLAG_ADD, wide = w.pixels > HP_GRADIENT_PIXELS;
    double *sums = wide ? b->scratch.at : NULL; /* precede the matrices */
    float *weights = wide ? (float *)(sums + n) : w.weights, *patches = weights + n;
    for (int64_t i = 0; wide && i < n; i++) sums[i] = 0;
    memset(weights, 0, (size_t)n * sizeof *weights);
    for (int64_t first = 0; first < w.pixels; first += HP_CONVT_PIXELS) {
        const int64_t count = block_of(&w, first);
        const bool fresh = wide && first % HP_GRADIENT_PIXELS == 0;
        gather(patches, b->dy, s, first, count);
        HP_TRY(hp_onednn_matrix(weights, x + first * s->ic, patches, s->ic, w.patch, count, true, false,
                                !fresh, err));
        const int64_t end = first + count;
        if (wide && (end % HP_GRADIENT_PIXELS == 0 || end == w.pixels))
            d->kernels->point.accum_wide(sums, weights, n);
    }
    reorder_back(b->grad[0], weights, sums, s, add);
    if (b->layer->n_param > 1) d->kernels->sum.rows(b->grad[1], b->dy, s->n * s->oh * s->ow, s->oc, add);
    return HP_OK;
}
