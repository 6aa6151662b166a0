/* cuda_infer_dynamic.cu - quantises a sample at run time: first its range, then its scale, then its bytes
 * (exec/device/infer/infer_dynamic.h). Atomics find the maxima: a maximum does not depend on the order, and
 * non-negative floats compare like their bits. */
#include "exec/cuda/infer/cuda_infer_kernel.h"

static __device__ inline uint32_t warp_greatest(uint32_t v) {
    for (int by = 16; by > 0; by /= 2) {
        const uint32_t other = __shfl_xor_sync(0xffffffffu, v, by);
        v = other > v ? other : v;
    }
    return v;
}

static __global__ void find_range(hp_cuda_quantise q) {
    uint32_t range[3] = {};
    for (int64_t i = thread_index(); i < q.elems; i += all_threads()) {
        const float v = q.x[i];
        const uint32_t bits = __float_as_uint(v) & 0x7fffffffu;
        if (bits >= 0x7f800000u)
            range[2] = 1;
        else if (v < 0)
            range[0] = bits > range[0] ? bits : range[0];
        else
            range[1] = bits > range[1] ? bits : range[1];
    }
    for (int k = 0; k < 3; k++) {
        const uint32_t most = warp_greatest(range[k]);
        if (threadIdx.x % 32 == 0 && most > 0) atomicMax(&q.sample->range[k], most);
    }
}

typedef struct Quantised {
    float scale;
    int32_t zero;
} Quantised;

/* As dynamic_of in exec/device/infer/infer_dynamic.c. */
static __device__ inline Quantised quantised(const hp_cuda_sample *s) {
    const float lo = -__uint_as_float(s->range[0]), hi = __uint_as_float(s->range[1]);
    float scale = __fdiv_rn(__fadd_rn(hi, -lo), 255.0f);
    if (s->range[2] || __float_as_uint(scale) >= 0x7f800000u) return {__uint_as_float(0x7fc00000u), 0};
    if (!(scale > 0)) scale = 1;
    const float zero = rintf(__fdiv_rn(-lo, scale));
    return {scale, (int32_t)(zero < 255 ? zero : 255)};
}

static __global__ void set_terms(hp_cuda_quantise q) {
    const int64_t o = thread_index();
    const Quantised s = quantised(q.sample);
    if (o == 0) {
        q.sample->scale = s.scale;
        q.sample->zero = s.zero;
    }
    if (o < q.outs) q.scale[o] = (float)((double)s.scale * (double)q.weight_scale[o]);
}

static __global__ void quantise(hp_cuda_quantise q) {
    const float scale = q.sample->scale, lo = (float)-q.sample->zero, hi = (float)(255 - q.sample->zero);
    const bool none = scale != scale;
    for (int64_t i = thread_index(); i < q.elems; i += all_threads())
        q.to[i] = none ? 0 : (uint8_t)(nearest(__fdiv_rn(q.x[i], scale), lo, hi) + q.sample->zero);
}

cudaError_t hp_cuda_quantise_sample(const hp_cuda_quantise *q, cudaStream_t s) {
    const unsigned blocks = (unsigned)((q->outs + THREADS - 1) / THREADS);
    cudaError_t e = cudaMemsetAsync(q->sample, 0, sizeof *q->sample, s);
    if (e == cudaSuccess) e = HP_LAUNCH(find_range, blocks_for(q->elems), THREADS, s, *q);
    if (e == cudaSuccess) e = HP_LAUNCH(set_terms, blocks, THREADS, s, *q);
    return e == cudaSuccess ? HP_LAUNCH(quantise, blocks_for(q->elems), THREADS, s, *q) : e;
}
