/* cuda_mul.cu - products of two maps, or of a map and a vector per sample, and parametric ReLU. Definition:
 * exec/device/ref/ref_mul.c. */
#include "exec/cuda/train/sums.h"

/* The gradient before the activation. */
template <typename T> static __device__ inline float passed(const hp_cuda_mul &m, int64_t i) {
    const float g = real(((const T *)m.dy)[i]);
    if (!m.y) return g;
    const float y = real(((const T *)m.y)[i]);
    return y > m.clamp.lo && y < m.clamp.hi ? g : 0.0f;
}

/* The element of the second input that belongs to element i. */
static __device__ inline int64_t second_at(const hp_cuda_mul &m, int64_t i) {
    if (!m.vector) return i;
    const int64_t pixel = quotient(i, m.channels);
    return pixel / m.pixels * m.channels + i - pixel * m.channels;
}

template <typename T> static __global__ void multiply(hp_cuda_mul m, int64_t n) {
    for (int64_t i = thread_index(); i < n; i += all_threads())
        round_to((T *)m.to + i,
                 clamped(real(((const T *)m.x)[i]) * real(((const T *)m.second)[second_at(m, i)]), m.clamp));
}

template <typename T> static __global__ void multiply_backward(hp_cuda_mul m, int64_t n) {
    for (int64_t i = thread_index(); i < n; i += all_threads()) {
        const float g = passed<T>(m, i);
        const int64_t at = second_at(m, i);
        if (m.dsecond && !m.vector) round_to((T *)m.dsecond + i, g * real(((const T *)m.x)[i]));
        if (m.dx) round_to((T *)m.dx + i, g * real(((const T *)m.second)[at]));
    }
}

/* Terms of a sample's product, summed over its rows. */
template <typename T> struct ProductTerm {
    hp_cuda_mul m;
    int64_t first; /* element */
    __device__ void add(int64_t r, int32_t c, double (&sum)[1], double (&)[1]) const {
        const int64_t i = first + r * m.channels + c;
        sum[0] += (double)passed<T>(m, i) * (double)real(((const T *)m.x)[i]);
    }
};

template <typename T> struct ProductEnd {
    T *to;
    __device__ void take(int32_t c, double sum, double) const {
        round_to(to + c, (float)sum);
    }
};

template <typename T> static cudaError_t vector_gradients(const hp_cuda_mul &m, cudaStream_t s) {
    for (int64_t n = 0; n < m.samples; n++) {
        const ProductTerm<T> term = {m, n * m.pixels * m.channels};
        const ProductEnd<T> end = {(T *)m.dsecond + n * m.channels};
        const cudaError_t e = column_sums<1>(term, end, m.pixels, m.channels, m.partial, s);
        if (e != cudaSuccess) return e;
    }
    return cudaSuccess;
}

/* --- parametric ReLU --- */

template <typename T> static __global__ void prelu(hp_cuda_prelu p, int64_t n) {
    for (int64_t i = thread_index(); i < n; i += all_threads()) {
        const float x = real(((const T *)p.x)[i]), slope = p.slope[p.one ? 0 : i % p.channels];
        const float g = p.dy ? real(((const T *)p.dy)[i]) : x;
        round_to((T *)p.to + i, x < 0 ? slope * g : g);
    }
}

template <typename T> struct SlopeTerm {
    const T *x, *dy;
    int32_t channels;
    __device__ void add(int64_t r, int32_t c, double (&sum)[1], double (&)[1]) const {
        const int64_t i = r * channels + c;
        const float v = real(x[i]);
        if (v < 0) sum[0] += (double)v * (double)real(dy[i]);
    }
};

struct SlopeEnd {
    float *grad;
    bool add;
    __device__ void take(int32_t c, double sum, double) const {
        grad[c] = (add ? grad[c] : 0) + (float)sum;
    }
};

/* --- launchers --- */

cudaError_t hp_cuda_multiply(hp_dtype t, const hp_cuda_mul *m, cudaStream_t s) {
    const int64_t n = m->samples * m->pixels * m->channels;
    if (n == 0) return cudaSuccess;
    return with_type(t, [&](auto type) {
        using T = decltype(type);
        return HP_LAUNCH(multiply<T>, blocks_for(n), THREADS, s, *m, n);
    });
}

cudaError_t hp_cuda_multiply_backward(hp_dtype t, const hp_cuda_mul *m, cudaStream_t s) {
    const int64_t n = m->samples * m->pixels * m->channels;
    if (n == 0) return cudaSuccess;
    return with_type(t, [&](auto type) {
        using T = decltype(type);
        if (m->dsecond && m->vector) {
            const cudaError_t e = vector_gradients<T>(*m, s);
            if (e != cudaSuccess) return e;
        }
        if (!m->dx && m->vector) return cudaSuccess;
        return HP_LAUNCH(multiply_backward<T>, blocks_for(n), THREADS, s, *m, n);
    });
}

cudaError_t hp_cuda_prelu_map(hp_dtype t, const hp_cuda_prelu *p, cudaStream_t s) {
    const int64_t n = p->pixels * p->channels;
    if (n == 0) return cudaSuccess;
    return with_type(t, [&](auto type) {
        using T = decltype(type);
        return HP_LAUNCH(prelu<T>, blocks_for(n), THREADS, s, *p, n);
    });
}

cudaError_t hp_cuda_prelu_slopes(hp_dtype t, const hp_cuda_prelu *p, cudaStream_t s) {
    const int64_t rows = p->one ? p->pixels * p->channels : p->pixels;
    const int32_t channels = p->one ? 1 : p->channels;
    return with_type(t, [&](auto type) {
        using T = decltype(type);
        const SlopeTerm<T> term = {(const T *)p->x, (const T *)p->dy, channels};
        return column_sums<1>(term, SlopeEnd{p->grad, p->add}, rows, channels, p->partial, s);
    });
}
