/* real.cu - float convolutions for which the library has no engine: transposed layers, different types of
 * input and output, negative padding. Also what the library does not fuse.
 *
 * A tiled float32 product: 64 pixels x 64 outputs per block, 4 x 4 sums per thread. Every sum starts from the
 * bias and is one chain of fused multiply-adds in the order of taps. So bits do not depend on the box, and in
 * float32 equal the processor's (exec/device/kernels/panel.h). */
#include "exec/cuda/infer/taps.h"

enum { SIDE = 64, DEEP = 16, EACH = 4, PITCH = SIDE + 4 };

typedef struct Operand {
    float at[DEEP][PITCH];
} Operand;

static __device__ inline float number(const void *x, int64_t i, int32_t dtype) {
    if (dtype == HP_BF16) return real(((const __nv_bfloat16 *)x)[i]);
    if (dtype == HP_F16) return real(((const __half *)x)[i]);
    return ((const float *)x)[i];
}

static __device__ inline void finish_sum(const hp_cuda_real &c, int64_t pixel, int64_t output, float sum) {
    float v[1] = {sum};
    finish_at<1>(c.finish, pixel * c.taps.shape.oc + output, v);
}

/* Stores four columns of a row: thread t those of row t / 4. */
static __device__ inline void put_inputs(const hp_cuda_real &c, const Pixel &p, int64_t k, int32_t g,
                                         Operand &to) {
    const int row = (int)threadIdx.x / 4, from = (int)threadIdx.x % 4 * EACH;
    Tap a = tap_of(c.taps, k + from);
    HP_UNROLL
    for (int i = 0; i < EACH; i++, advance(c.taps, a, 1)) {
        const int64_t at = is_filling(c.taps, a) ? -1 : element_under(c.taps, p, a, g);
        to.at[from + i][row] = at < 0 ? 0.0f : number(c.taps.x, at, c.x_dtype);
    }
}

static __device__ inline int64_t weight_at(const hp_cuda_taps &t, const Tap &a, int32_t g, int32_t out,
                                           int64_t k) {
    if (!t.transposed) return ((int64_t)g * t.outs + out) * t.weight_row + k;
    const int64_t taps = (int64_t)t.shape.kh * t.shape.kw, tap = (int64_t)a.ky * t.shape.kw + a.kx;
    return (((int64_t)g * t.ins + a.i) * taps + tap) * t.outs + out;
}

static __device__ inline void put_weights(const hp_cuda_real &c, int32_t out, int64_t k, int32_t g,
                                          Operand &to) {
    const int row = (int)threadIdx.x / 4, from = (int)threadIdx.x % 4 * EACH;
    Tap a = tap_of(c.taps, k + from);
    HP_UNROLL
    for (int i = 0; i < EACH; i++, advance(c.taps, a, 1)) {
        const bool there = out + row < c.taps.outs && k + from + i < c.taps.weight_row;
        to.at[from + i][row] =
            there ? number(c.taps.weight, weight_at(c.taps, a, g, out + row, k + from + i), c.x_dtype) : 0.0f;
    }
}

static __device__ inline void multiply(float (&sum)[EACH][EACH], const Operand &x, const Operand &w) {
    const int row = (int)threadIdx.x / 16 * EACH, column = (int)threadIdx.x % 16 * EACH;
    HP_UNROLL
    for (int k = 0; k < DEEP; k++) HP_UNROLL
    for (int i = 0; i < EACH; i++) HP_UNROLL
    for (int j = 0; j < EACH; j++) sum[i][j] = __fmaf_rn(x.at[k][row + i], w.at[k][column + j], sum[i][j]);
}

static __global__ void conv_real(hp_cuda_real c) {
    __shared__ Operand x, w;
    const uint32_t across = (uint32_t)((c.taps.outs + SIDE - 1) / SIDE);
    const int64_t first = (int64_t)(blockIdx.x / across) * SIDE, pixels = pixels_of(c.taps);
    const int32_t out = (int32_t)(blockIdx.x % across) * SIDE, g = (int32_t)blockIdx.y;
    const int row = (int)threadIdx.x / 16 * EACH, column = (int)threadIdx.x % 16 * EACH;
    const int64_t mine = first + threadIdx.x / 4;
    const Pixel p = pixel_of(c.taps, mine < pixels ? mine : pixels - 1);
    float sum[EACH][EACH];
    HP_UNROLL
    for (int i = 0; i < EACH; i++) HP_UNROLL
    for (int j = 0; j < EACH; j++)
        sum[i][j] =
            out + column + j < c.taps.outs ? c.bias[(int64_t)g * c.taps.outs + out + column + j] : 0.0f;
    for (int64_t k = 0; k < c.taps.weight_row; k += DEEP) {
        put_inputs(c, p, k, g, x);
        put_weights(c, out, k, g, w);
        __syncthreads();
        multiply(sum, x, w);
        __syncthreads();
    }
    HP_UNROLL
    for (int i = 0; i < EACH; i++) HP_UNROLL
    for (int j = 0; j < EACH; j++)
        if (first + row + i < pixels && out + column + j < c.taps.outs)
            finish_sum(c, first + row + i, (int64_t)g * c.taps.outs + out + column + j, sum[i][j]);
}

cudaError_t hp_cuda_conv_real(const hp_cuda_real *c, cudaStream_t s) {
    const int64_t down = (pixels_of(c->taps) + SIDE - 1) / SIDE, across = (c->taps.outs + SIDE - 1) / SIDE;
    const dim3 grid((unsigned)(down * across), (unsigned)c->taps.groups);
    return HP_LAUNCH(conv_real, grid, THREADS, s, *c);
}

/* --- after the library --- */

template <int V>
static __global__ void finish_real(hp_cuda_finish f, const float *bias, int64_t n, int32_t channels) {
    for (int64_t i = thread_index(); i < n / V; i += all_threads()) {
        const int64_t at = i * V, c = at - quotient(at, channels) * channels;
        float v[V];
        load_as<V>(v, f.y, at, f.put.to);
        for (int k = 0; k < V; k++) v[k] = acted(f.act, bias ? __fadd_rn(v[k], bias[c + k]) : v[k]);
        store_as<V>(f.y, at, v, f.put);
    }
}

cudaError_t hp_cuda_finish_real(const hp_cuda_finish *f, const float *bias, int64_t pixels, int32_t channels,
                                cudaStream_t s) {
    const int64_t n = pixels * channels;
    if (channels % 4 == 0 && by_fours(f->y, f->put.to.dtype))
        return HP_LAUNCH(finish_real<4>, blocks_for(n / 4), THREADS, s, *f, bias, n, channels);
    return HP_LAUNCH(finish_real<1>, blocks_for(n), THREADS, s, *f, bias, n, channels);
}
