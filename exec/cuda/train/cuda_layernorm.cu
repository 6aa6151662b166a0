/* cuda_layernorm.cu - layer norm and RMS norm: one warp per pixel, in float32. The parameters' gradients are
 * column sums in float64. Definition: exec/device/ref/ref_layernorm.c. */
#include "exec/cuda/train/sums.h"
#include "exec/cuda/runtime/warp.h"

struct LayerMoments {
    float mean, inverse; /* 1 / deviation */
};

/* Two passes keep the variance accurate when the mean is large. */
template <typename T>
static __device__ inline LayerMoments moments_of(const T *x, const hp_cuda_layernorm &l, int32_t lane) {
    float sum = 0, square = 0;
    for (int32_t c = lane; l.centred && c < l.ins; c += WARP) sum += real(x[c]);
    const float mean = warp_sum(sum) / (float)l.ins;
    for (int32_t c = lane; c < l.ins; c += WARP) square += (real(x[c]) - mean) * (real(x[c]) - mean);
    return {mean, 1 / sqrtf(warp_sum(square) / (float)l.ins + l.eps)};
}

template <typename T> static __global__ void forward_rows(hp_cuda_layernorm l) {
    const int32_t lane = (int32_t)threadIdx.x;
    for (int64_t r = warp_index(); r < l.pixels; r += all_warps()) {
        const T *x = (const T *)l.x + r * l.ins;
        const LayerMoments m = moments_of(x, l, lane);
        for (int32_t c = lane; c < l.outs; c += WARP)
            round_to((T *)l.y + r * l.outs + c,
                     (real(x[l.first + c]) - m.mean) * m.inverse * l.gamma[c] + (l.beta ? l.beta[c] : 0.0f));
    }
}

/* g = gamma dy; gamma = 1 if there is none. */
template <typename T>
static __device__ inline float scaled(const hp_cuda_layernorm &l, const T *dy, int32_t c) {
    const int32_t out = c - l.first;
    return out >= 0 && out < l.outs ? l.gamma[out] * real(dy[out]) : 0.0f;
}

/* dx = inverse (g - mean(g) - xhat mean(g xhat)); RMS norm: without mean(g). */
template <typename T> static __global__ void backward_rows(hp_cuda_layernorm l) {
    const int32_t lane = (int32_t)threadIdx.x;
    for (int64_t r = warp_index(); r < l.pixels; r += all_warps()) {
        const T *x = (const T *)l.x + r * l.ins, *dy = (const T *)l.dy + r * l.outs;
        const LayerMoments m = moments_of(x, l, lane);
        if (lane == 0) {
            l.moments[2 * r] = m.mean;
            l.moments[2 * r + 1] = m.inverse;
        }
        if (!l.dx) continue;
        float sum = 0, product = 0;
        for (int32_t c = lane; c < l.ins; c += WARP) {
            const float g = scaled(l, dy, c);
            sum += g;
            product += g * ((real(x[c]) - m.mean) * m.inverse);
        }
        const float shift = warp_sum(l.centred ? sum : 0.0f) / (float)l.ins,
                    slope = warp_sum(product) / (float)l.ins;
        for (int32_t c = lane; c < l.ins; c += WARP)
            round_to((T *)l.dx + r * l.ins + c,
                     m.inverse * (scaled(l, dy, c) - shift - (real(x[c]) - m.mean) * m.inverse * slope));
    }
}

/* Terms of gamma's and beta's gradients. */
template <typename T> struct LayerTerm {
    hp_cuda_layernorm l;
    __device__ void add(int64_t r, int32_t c, double (&gamma)[1], double (&beta)[1]) const {
        const float dy = real(((const T *)l.dy)[r * l.outs + c]),
                    x = real(((const T *)l.x)[r * l.ins + l.first + c]);
        gamma[0] += (double)(dy * ((x - l.moments[2 * r]) * l.moments[2 * r + 1]));
        beta[0] += (double)dy;
    }
};

struct LayerEnd {
    float *dgamma, *dbeta;
    bool add;
    __device__ void take(int32_t c, double gamma, double beta) const {
        dgamma[c] = (add ? dgamma[c] : 0.0f) + (float)gamma;
        if (dbeta) dbeta[c] = (add ? dbeta[c] : 0.0f) + (float)beta;
    }
};

/* --- launchers --- */

cudaError_t hp_cuda_layernorm_forward(const hp_cuda_layernorm *l, cudaStream_t s) {
    if (l->pixels == 0) return cudaSuccess;
    return with_type(l->dtype, [&](auto type) {
        using T = decltype(type);
        return HP_LAUNCH(forward_rows<T>, warps_for(l->pixels), warps(), s, *l);
    });
}

cudaError_t hp_cuda_layernorm_backward(const hp_cuda_layernorm *l, cudaStream_t s) {
    return with_type(l->dtype, [&](auto type) {
        using T = decltype(type);
        const cudaError_t e =
            l->pixels == 0 ? cudaSuccess : HP_LAUNCH(backward_rows<T>, warps_for(l->pixels), warps(), s, *l);
        if (e != cudaSuccess) return e;
        return column_sums<1>(LayerTerm<T>{*l}, LayerEnd{l->dgamma, l->dbeta, l->add}, l->pixels, l->outs,
                              l->partial, s);
    });
}
