/* cuda_infer_depthwise.cu - depthwise convolutions of bytes. Each output has one input, so there is no
 * product for tensor cores. A thread computes four adjacent channels of a pixel. Overlapping windows make the
 * second-level cache the bottleneck. */
#include "exec/cuda/infer/cuda_infer_pixels.h"

template <int V>
static __device__ inline void add_tap(const hp_cuda_bytes &c, int64_t at, int32_t tap, int32_t channel,
                                      int32_t zero, int32_t (&sum)[V]) {
    Pack<uint8_t, V> x;
    for (int v = 0; v < V; v++) x.at[v] = (uint8_t)zero;
    if (at >= 0) x = pack_at<uint8_t, V>(c.taps.x, at);
    const Pack<int8_t, V> w = pack_at<int8_t, V>(c.taps.weight, (int64_t)tap * c.taps.groups + channel);
    for (int v = 0; v < V; v++) sum[v] += (int32_t)x.at[v] * w.at[v];
}

template <int V> static __global__ void depthwise(hp_cuda_bytes c) {
    const hp_shape &s = c.taps.shape;
    const int32_t zero = zero_of(c);
    const int64_t n = pixels_of(c.taps) * s.oc / V;
    for (int64_t i = thread_index(); i < n; i += all_threads()) {
        const int64_t pixel = quotient(i * V, s.oc);
        const int32_t channel = (int32_t)(i * V - pixel * s.oc);
        const Pixel p = pixel_of(c.taps, pixel);
        int32_t sum[V] = {};
        for (int32_t ky = 0; ky < s.kh; ky++)
            for (int32_t kx = 0; kx < s.kw; kx++)
                add_tap<V>(c, element_under(c.taps, p, {ky, 0, kx, 0}, channel), ky * s.kw + kx, channel,
                           zero, sum);
        float out[V];
        for (int v = 0; v < V; v++)
            out[v] = __fmaf_rn(c.scale[channel + v], (float)whole_sum(c, zero, channel + v, sum[v]),
                               shift_of(c, p, channel + v));
        finish_at<V>(c.finish, i * V, out);
    }
}

cudaError_t hp_cuda_depthwise_bytes(const hp_cuda_bytes *c, cudaStream_t s) {
    const int64_t n = pixels_of(c->taps) * c->taps.shape.oc;
    const bool fours = by_fours(c->taps.x, HP_U8) && by_fours(c->finish.y, c->finish.put.to.dtype);
    if (c->taps.shape.oc % 4 == 0 && fours) return HP_LAUNCH(depthwise<4>, blocks_for(n / 4), THREADS, s, *c);
    return HP_LAUNCH(depthwise<1>, blocks_for(n), THREADS, s, *c);
}
