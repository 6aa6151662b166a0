/* cuda_groupnorm.cu - group norm. Sums of the map and of its deviations are in float64: a column per sample
 * and channel, then a warp per group; backward likewise for the gradient. The order of each sum depends only
 * on the sizes, so reruns give the same bits. Definition: exec/device/ref/ref_groupnorm.c. */
#include "exec/cuda/train/sums.h"
#include "exec/cuda/runtime/warp.h"

/* Values in float64 per sample's group: one row of all groups after another. */
enum { MEAN, INVERSE, SHIFT, SLOPE }; /* inverse: 1 / deviation; then means of g, of g times normalised x */

static __device__ inline double &of_group(const hp_cuda_groupnorm &g, int which, int64_t group) {
    return g.group[which * g.all_groups + group];
}

/* The input's pixel at the position of pixel r of the output's box. */
static __device__ inline int64_t pixel_of(const hp_shape &s, int64_t r) {
    const int64_t row = quotient(r, s.ow);
    return (s.oy0 + row - s.iy0) * s.iw + s.ox0 + r - row * s.ow - s.ix0;
}

/* --- terms of the sums: a column is a sample's channel, in the input's or the output's box --- */

typedef struct Column {
    int64_t sample, group; /* group: of all */
    int32_t c;
} Column;

/* first: the input channel of column 0. */
static __device__ inline Column column_of(const hp_cuda_groupnorm &g, int32_t column, int32_t channels,
                                          int32_t first) {
    const int32_t sample = column / channels, c = column - sample * channels;
    return {sample, (int64_t)sample * (g.shape.ic / g.width) + (first + c) / g.width, c};
}

template <typename T> struct MeanTerm {
    hp_cuda_groupnorm g;
    __device__ void add(int64_t r, int32_t column, double (&sum)[1], double (&)[1]) const {
        const hp_shape &s = g.shape;
        const Column at = column_of(g, column, s.ic, 0);
        sum[0] += (double)real(((const T *)g.x)[(at.sample * s.ih * s.iw + r) * s.ic + at.c]);
    }
};

template <typename T> struct SquareTerm {
    hp_cuda_groupnorm g;
    __device__ void add(int64_t r, int32_t column, double (&sum)[1], double (&)[1]) const {
        const hp_shape &s = g.shape;
        const Column at = column_of(g, column, s.ic, 0);
        const double off = (double)real(((const T *)g.x)[(at.sample * s.ih * s.iw + r) * s.ic + at.c]) -
                           of_group(g, MEAN, at.group);
        sum[0] += off * off;
    }
};

/* The gradient, and the gradient times normalised x. */
template <typename T> struct GradientTerm {
    hp_cuda_groupnorm g;
    __device__ void add(int64_t r, int32_t column, double (&sum)[1], double (&product)[1]) const {
        const hp_shape &s = g.shape;
        const Column at = column_of(g, column, s.oc, g.first);
        const int64_t pixel = at.sample * s.ih * s.iw + pixel_of(s, r);
        const double dy = (double)real(((const T *)g.dy)[(at.sample * s.oh * s.ow + r) * s.oc + at.c]);
        const double off =
            (double)real(((const T *)g.x)[pixel * s.ic + g.first + at.c]) - of_group(g, MEAN, at.group);
        sum[0] += dy;
        product[0] += dy * (off * of_group(g, INVERSE, at.group));
    }
};

struct ColumnEnd {
    double *column;
    int32_t columns;
    __device__ void take(int32_t c, double first, double second) const {
        column[c] = first;
        column[columns + c] = second;
    }
};

/* --- one group at a time --- */

/* Reduces the channels' sums to `which`: the group's mean, or 1 / sqrt(variance + eps). */
static __global__ void end_groups(hp_cuda_groupnorm g, int which) {
    for (int64_t i = warp_index(); i < g.all_groups; i += all_warps()) {
        double sum = 0;
        for (int32_t c = (int32_t)threadIdx.x; c < g.width; c += WARP) sum += g.column[i * g.width + c];
        sum = warp_sum(sum) * g.share;
        if (threadIdx.x == 0) of_group(g, which, i) = which == MEAN ? sum : 1 / sqrt(sum + g.eps);
    }
}

/* Means over the whole map; outside the output's box the gradient is 0. */
static __global__ void end_gradients(hp_cuda_groupnorm g) {
    const int32_t groups = g.shape.ic / g.width, outs = g.shape.oc;
    for (int64_t i = warp_index(); i < g.all_groups; i += all_warps()) {
        const int64_t sample = i / groups;
        const double *column = g.column + sample * outs;
        double sum = 0, product = 0;
        for (int32_t k = (int32_t)threadIdx.x; k < g.width; k += WARP) {
            const int32_t c = (int32_t)(i - sample * groups) * g.width + k - g.first;
            if (c < 0 || c >= outs) continue;
            sum += (double)g.gamma[c] * column[c];
            product += (double)g.gamma[c] * column[g.shape.n * outs + c];
        }
        sum = warp_sum(sum) * g.share;
        product = warp_sum(product) * g.share;
        if (threadIdx.x == 0) {
            of_group(g, SHIFT, i) = sum;
            of_group(g, SLOPE, i) = product;
        }
    }
}

static __global__ void parameter_gradients(hp_cuda_groupnorm g) {
    const int32_t outs = g.shape.oc;
    for (int64_t c = thread_index(); c < outs; c += all_threads()) {
        double sum = 0, product = 0;
        for (int64_t n = 0; n < g.shape.n; n++) {
            sum += g.column[n * outs + c];
            product += g.column[(g.shape.n + n) * outs + c];
        }
        g.dgamma[c] = (g.add ? g.dgamma[c] : 0.0f) + (float)product;
        if (g.dbeta) g.dbeta[c] = (g.add ? g.dbeta[c] : 0.0f) + (float)sum;
    }
}

/* --- one element at a time --- */

template <typename T>
static __device__ inline float normed(const hp_cuda_groupnorm &g, int64_t i, int64_t group) {
    return (float)(((double)real(((const T *)g.x)[i]) - of_group(g, MEAN, group)) *
                   of_group(g, INVERSE, group));
}

template <typename T> static __global__ void forward(hp_cuda_groupnorm g, int64_t n) {
    const hp_shape &s = g.shape;
    const int64_t pixels = (int64_t)s.oh * s.ow;
    for (int64_t i = thread_index(); i < n; i += all_threads()) {
        const int64_t row = quotient(i, s.oc), sample = row / pixels;
        const int32_t c = (int32_t)(i - row * s.oc);
        const int64_t group = sample * (s.ic / g.width) + (g.first + c) / g.width,
                      in = sample * s.ih * s.iw + pixel_of(s, row - sample * pixels);
        round_to((T *)g.y + i,
                 normed<T>(g, in * s.ic + g.first + c, group) * g.gamma[c] + (g.beta ? g.beta[c] : 0.0f));
    }
}

/* dx = inverse (g - mean(g) - xhat mean(g xhat)), where g = gamma dy inside the output's box, else 0. */
template <typename T> static __global__ void backward(hp_cuda_groupnorm g, int64_t n) {
    const hp_shape &s = g.shape;
    for (int64_t i = thread_index(); i < n; i += all_threads()) {
        const int64_t pixel = quotient(i, s.ic), row = quotient(pixel, s.iw), sample = row / s.ih;
        const int64_t y = row - sample * s.ih + s.iy0 - s.oy0, x = pixel - row * s.iw + s.ix0 - s.ox0;
        const int32_t at = (int32_t)(i - pixel * s.ic), c = at - g.first;
        const int64_t group = sample * (s.ic / g.width) + at / g.width;
        const bool here = y >= 0 && y < s.oh && x >= 0 && x < s.ow && c >= 0 && c < s.oc;
        const float dy =
            here ? g.gamma[c] * real(((const T *)g.dy)[((sample * s.oh + y) * s.ow + x) * s.oc + c]) : 0.0f;
        round_to((T *)g.dx + i, (float)of_group(g, INVERSE, group) *
                                    (dy - (float)of_group(g, SHIFT, group) -
                                     normed<T>(g, i, group) * (float)of_group(g, SLOPE, group)));
    }
}

/* --- launchers --- */

/* Sums the input by `term`, then reduces the sums per group. */
template <typename Term>
static cudaError_t measure(const hp_cuda_groupnorm *g, Term term, int which, cudaStream_t s) {
    const int32_t columns = (int32_t)(g->shape.n * g->shape.ic);
    TRY(column_sums<1>(term, ColumnEnd{g->column, columns}, (int64_t)g->shape.ih * g->shape.iw, columns,
                       g->partial, s));
    return HP_LAUNCH(end_groups, warps_for(g->all_groups), warps(), s, *g, which);
}

template <typename T> static cudaError_t statistics(const hp_cuda_groupnorm *g, cudaStream_t s) {
    TRY(measure(g, MeanTerm<T>{*g}, MEAN, s));
    return measure(g, SquareTerm<T>{*g}, INVERSE, s);
}

cudaError_t hp_cuda_groupnorm_forward(const hp_cuda_groupnorm *g, cudaStream_t s) {
    const int64_t n = g->shape.n * g->shape.oh * g->shape.ow * g->shape.oc;
    if (n == 0) return cudaSuccess;
    return with_type(g->dtype, [&](auto type) {
        using T = decltype(type);
        TRY(statistics<T>(g, s));
        return HP_LAUNCH(forward<T>, blocks_for(n), THREADS, s, *g, n);
    });
}

cudaError_t hp_cuda_groupnorm_backward(const hp_cuda_groupnorm *g, cudaStream_t s) {
    const hp_shape &o = g->shape;
    const int64_t n = o.n * o.ih * o.iw * o.ic;
    const int32_t columns = (int32_t)(o.n * o.oc);
    if (n == 0 || columns == 0) return cudaSuccess;
    return with_type(g->dtype, [&](auto type) {
        using T = decltype(type);
        TRY(statistics<T>(g, s));
        TRY(column_sums<1>(GradientTerm<T>{*g}, ColumnEnd{g->column, columns}, (int64_t)o.oh * o.ow, columns,
                           g->partial, s));
        TRY(HP_LAUNCH(parameter_gradients, blocks_for(o.oc), THREADS, s, *g));
        if (!g->dx) return cudaSuccess;
        TRY(HP_LAUNCH(end_gradients, warps_for(g->all_groups), warps(), s, *g));
        return HP_LAUNCH(backward<T>, blocks_for(n), THREADS, s, *g, n);
    });
}
