/* dnn_check.cu - randomly drawn elements of a convolution's result, each summed by one block in float64. */
#include "exec/cuda/dnn/dnn_check.h"
#include "exec/cuda/runtime/cuda_elements.h"
#include "networks/graph/acts.h"

enum { PLACES = 256, LEAST_PLACES = 16, ACROSS = 128 };
static const int64_t MOST_TERMS = INT64_C(1) << 30; /* terms of all drawn elements: takes milliseconds */

/* --- operands --- */

/* The finaliser of splitmix64: Steele, Lea and Flood, "Fast splittable pseudorandom number
 * generators", 2014. */
static __device__ inline uint64_t mixed(uint64_t v) {
    v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
    v = (v ^ v >> 27) * 0x94d049bb133111ebu;
    return v ^ v >> 31;
}

static __device__ inline float drawn(int32_t operand, int64_t i) {
    const uint64_t r = mixed(((uint64_t)operand << 56) + (uint64_t)i * 0x9e3779b97f4a7c15u);
    return (float)((int32_t)(r >> 32) % 5) * 0.25f;
}

template <typename T> static __global__ void draw(T *to, int64_t n, int32_t operand) {
    for (int64_t i = thread_index(); i < n; i += all_threads()) round_to(&to[i], drawn(operand, i));
}

/* --- the expected value of an element --- */

typedef struct Sum {
    double value, size; /* sum of the terms, and of their magnitudes */
    int64_t terms;
} Sum;

static __device__ inline void add_term(Sum &to, float a, float b) {
    const double v = (double)a * (double)b;
    to.value += v;
    to.size += v < 0 ? -v : v;
    to.terms++;
}

static __device__ inline float x_at(const hp_dnn_conv &c, int64_t n, int32_t y, int32_t x, int32_t channel) {
    const int64_t row = c.x_row ? c.x_row : (int64_t)c.iw * c.ic,
                  sample = c.x_sample ? c.x_sample : c.ih * row;
    return drawn(HP_DNN_DRAW_X, n * sample + y * row + (int64_t)x * c.ic + channel);
}

static __device__ inline float y_at(const hp_dnn_conv &c, int64_t n, int32_t y, int32_t x, int32_t channel) {
    return drawn(HP_DNN_DRAW_Y, ((n * c.oh + y) * c.ow + x) * c.oc + channel);
}

static __device__ inline float w_at(const hp_dnn_conv &c, int32_t out, int32_t r, int32_t s, int32_t in) {
    return drawn(HP_DNN_DRAW_W, (((int64_t)out * c.kh + r) * c.kw + s) * (c.ic / c.groups) + in);
}

/* Splits i = (quotient, remainder) by `by`; returns the remainder. */
static __device__ inline int32_t take(int64_t &i, int32_t by) {
    const int64_t rest = i / by, last = i - rest * by;
    i = rest;
    return (int32_t)last;
}

static __device__ Sum forward_sum(const hp_dnn_conv &c, int64_t at) {
    Sum sum = {};
    const int32_t ins = c.ic / c.groups, out = take(at, c.oc), g = out / (c.oc / c.groups),
                  ox = take(at, c.ow), oy = take(at, c.oh);
    for (int64_t k = threadIdx.x; k < (int64_t)c.kh * c.kw * ins; k += ACROSS) {
        int64_t i = k;
        const int32_t in = take(i, ins), s = take(i, c.kw), r = (int32_t)i,
                      y = oy * c.stride_h - c.pad.top + r * c.dil_h,
                      x = ox * c.stride_w - c.pad.left + s * c.dil_w;
        if (y >= 0 && y < c.ih && x >= 0 && x < c.iw)
            add_term(sum, x_at(c, at, y, x, g * ins + in), w_at(c, out, r, s, in));
    }
    return sum;
}

static __device__ Sum dgrad_sum(const hp_dnn_conv &c, int64_t at) {
    Sum sum = {};
    const int32_t ins = c.ic / c.groups, outs = c.oc / c.groups, channel = take(at, c.ic), g = channel / ins,
                  ix = take(at, c.iw), iy = take(at, c.ih);
    for (int64_t k = threadIdx.x; k < (int64_t)c.kh * c.kw * outs; k += ACROSS) {
        int64_t i = k;
        const int32_t out = g * outs + take(i, outs), s = take(i, c.kw), r = (int32_t)i,
                      y = iy + c.pad.top - r * c.dil_h, x = ix + c.pad.left - s * c.dil_w;
        if (y >= 0 && x >= 0 && y % c.stride_h == 0 && x % c.stride_w == 0 && y / c.stride_h < c.oh &&
            x / c.stride_w < c.ow)
            add_term(sum, y_at(c, at, y / c.stride_h, x / c.stride_w, out),
                     w_at(c, out, r, s, channel % ins));
    }
    return sum;
}

static __device__ Sum wgrad_sum(const hp_dnn_conv &c, int64_t at) {
    Sum sum = {};
    const int32_t ins = c.ic / c.groups, in = take(at, ins), s = take(at, c.kw), r = take(at, c.kh),
                  out = (int32_t)at, g = out / (c.oc / c.groups);
    for (int64_t k = threadIdx.x; k < c.n * c.oh * c.ow; k += ACROSS) {
        int64_t i = k;
        const int32_t ox = take(i, c.ow), oy = take(i, c.oh), y = oy * c.stride_h - c.pad.top + r * c.dil_h,
                      x = ox * c.stride_w - c.pad.left + s * c.dil_w;
        if (y >= 0 && y < c.ih && x >= 0 && x < c.iw)
            add_term(sum, x_at(c, i, y, x, g * ins + in), y_at(c, i, oy, ox, out));
    }
    return sum;
}

/* Applies a forward convolution's epilogue to the sum. */
static __device__ double followed(const hp_dnn_conv &c, double v, int64_t at) {
    if (c.bias) v += (double)drawn(HP_DNN_DRAW_BIAS, at % c.oc);
    if (c.add) v += (double)drawn(HP_DNN_DRAW_Z, at);
    if (c.act != HP_ACT_NONE && v < 0) v = 0;
    return c.act == HP_ACT_RELU6 && v > 6 ? 6 : v;
}

/* --- the check --- */

/* Offset of element i of a dense map. */
static __device__ inline int64_t place(const hp_dnn_conv &c, int64_t i) {
    if (c.kind != HP_DNN_DGRAD || !c.x_row) return i;
    const int64_t row = (int64_t)c.iw * c.ic, y = i / row, n = y / c.ih;
    return n * c.x_sample + (y - n * c.ih) * c.x_row + (i - y * row);
}

/* rounding: relative, of the type; a sum of exact terms is rounded once. */
static __device__ bool is_near(const hp_dnn_conv &c, const Sum &sum, int64_t at, int64_t lies, double have,
                               double rounding) {
    double want = sum.value;
    if (c.kind == HP_DNN_FORWARD) want = followed(c, want, at);
    if (c.kind == HP_DNN_DGRAD && c.add) want += (double)drawn(HP_DNN_DRAW_X, lies);
    if (c.kind == HP_DNN_WGRAD && c.add) want += (double)drawn(HP_DNN_DRAW_W, lies);
    const double size = want < 0 ? -want : want, off = have < want ? want - have : have - want;
    return off <= rounding * (1 + size + sum.size / sqrt(1.0 + (double)sum.terms));
}

template <typename T>
static __global__ void check(hp_dnn_conv c, const T *result, int64_t n, double rounding, int32_t *wrong) {
    __shared__ double value[ACROSS], size[ACROSS];
    __shared__ int64_t terms[ACROSS];
    const int64_t at = blockIdx.x == 0               ? 0
                       : blockIdx.x + 1 == gridDim.x ? n - 1
                                                     : (int64_t)(mixed(blockIdx.x) % (uint64_t)n);
    Sum sum = c.kind == HP_DNN_FORWARD ? forward_sum(c, at)
              : c.kind == HP_DNN_DGRAD ? dgrad_sum(c, at)
                                       : wgrad_sum(c, at);
    value[threadIdx.x] = sum.value;
    size[threadIdx.x] = sum.size;
    terms[threadIdx.x] = sum.terms;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int i = 1; i < ACROSS; i++) {
        sum.value += value[i];
        sum.size += size[i];
        sum.terms += terms[i];
    }
    /* an engine need not write elements that get no terms */
    const int64_t lies = place(c, at);
    if (c.kind == HP_DNN_DGRAD && sum.terms == 0) return;
    if (!is_near(c, sum, at, lies, (double)real(result[lies]), rounding)) atomicAdd(wrong, 1);
}

/* --- launchers --- */

cudaError_t hp_dnn_draw(void *to, int32_t dtype, int64_t n, hp_dnn_drawn operand, cudaStream_t s) {
    if (n == 0) return cudaSuccess;
    return with_type(dtype, [&](auto type) {
        return HP_LAUNCH(draw<decltype(type)>, blocks_for(n), THREADS, s, (decltype(type) *)to, n,
                         (int32_t)operand);
    });
}

cudaError_t hp_dnn_check(const hp_dnn_conv *c, const hp_dnn_data *data, int32_t *wrong, cudaStream_t s) {
    const void *const result[] = {data->y, data->x, data->w};
    const int64_t filter = (int64_t)c->oc * (c->ic / c->groups) * c->kh * c->kw,
                  n[] = {c->n * c->oh * c->ow * c->oc, c->n * c->ih * c->iw * c->ic, filter};
    const double rounding = c->dtype == HP_BF16 ? 0x1p-7 : c->dtype == HP_F16 ? 0x1p-9 : 0x1p-11;
    const int64_t terms = c->kind == HP_DNN_WGRAD ? c->n * c->oh * c->ow : filter,
                  most = terms > 0 ? MOST_TERMS / terms : 0;
    const unsigned places = (unsigned)(most > PLACES         ? (int64_t)PLACES
                                       : most < LEAST_PLACES ? (int64_t)LEAST_PLACES
                                                             : most);
    if (n[c->kind] == 0) return cudaSuccess;
    return with_type(c->dtype, [&](auto type) {
        return HP_LAUNCH(check<decltype(type)>, places, ACROSS, s, *c,
                         (const decltype(type) *)result[c->kind], n[c->kind], rounding, wrong);
    });
}
