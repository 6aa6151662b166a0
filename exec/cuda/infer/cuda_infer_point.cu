/* cuda_infer_point.cu - layers that compute each element from one or two inputs: activations, conversions,
 * sums, products, factors and biases per channel. Also concatenation, where the output has more channels than
 * the input. Limited by memory bandwidth, so a thread takes four elements where they are aligned. */
#include "exec/cuda/infer/cuda_infer_kernel.h"

/* Position of a thread's elements, all in one pixel. */
typedef struct Place {
    int64_t pixel, c, x, y; /* pixel and channel; offsets in x and y */
} Place;

template <int V> static __device__ inline Place place_of(const hp_cuda_point &p, int64_t i) {
    const int64_t at = i * V;
    if (p.pixels == 1) return {0, at, at, p.at + at};
    const int64_t pixel = quotient(at, (int32_t)p.channels), c = at - pixel * p.channels;
    return {pixel, c, at, pixel * p.pitch + p.at + c};
}

template <int V>
static __device__ inline void factors_of(const hp_cuda_point &p, const Place &o, float (&factor)[V],
                                         float (&bias)[V]) {
    for (int v = 0; v < V; v++) {
        factor[v] = __fmul_rn(p.unit[0], p.factor ? p.factor[o.c + v] : p.own[(o.c + v) % HP_CUDA_OWN]);
        bias[v] = __fmul_rn(p.unit[1], p.bias ? p.bias[o.c + v] : p.own_bias[(o.c + v) % HP_CUDA_OWN]);
    }
}

template <int V>
static __device__ inline void combine(const hp_cuda_point &p, const Place &o, float (&v)[V]) {
    float w[V] = {}, bias[V];
    if (p.kind == HP_CUDA_VECTOR)
        load_as<V>(w, p.x[1], quotient(o.pixel, (int32_t)p.map) * p.channels + o.c, p.of[1]);
    else if (p.x[1])
        load_as<V>(w, p.x[1], o.x, p.of[1]);
    for (int k = 0; k < V; k++) {
        if (p.kind == HP_CUDA_ADD) v[k] = __fadd_rn(__fmul_rn(p.unit[0], v[k]), __fmul_rn(p.unit[1], w[k]));
        if (p.kind == HP_CUDA_MUL) v[k] = __fmul_rn(v[k], w[k]);
        if (p.kind == HP_CUDA_VECTOR) v[k] = __fadd_rn(__fmul_rn(v[k], __fmul_rn(p.unit[0], w[k])), 0.0f);
    }
    if (p.kind != HP_CUDA_AFFINE) return;
    float factor[V];
    factors_of<V>(p, o, factor, bias);
    for (int k = 0; k < V; k++) {
        v[k] = __fadd_rn(__fmul_rn(v[k], factor[k]), bias[k]);
        if (p.x[1]) v[k] = __fadd_rn(v[k], w[k]);
    }
}

template <int V> static __global__ void point(hp_cuda_point p) {
    const int64_t n = p.pixels * p.channels / V;
    for (int64_t i = thread_index(); i < n; i += all_threads()) {
        const Place o = place_of<V>(p, i);
        float v[V];
        load_as<V>(v, p.x[0], o.x, p.of[0]);
        combine<V>(p, o, v);
        for (int k = 0; k < V; k++) v[k] = acted(p.act, v[k]);
        store_as<V>(p.y, o.y, v, p.put);
    }
}

template <int V> static __global__ void recode(hp_cuda_point p) {
    __shared__ uint8_t table[256];
    const int64_t n = p.pixels * p.channels / V;
    table[threadIdx.x] = p.recode.byte[threadIdx.x];
    __syncthreads();
    for (int64_t i = thread_index(); i < n; i += all_threads()) {
        const Place o = place_of<V>(p, i);
        Pack<uint8_t, V> q = pack_at<uint8_t, V>(p.x[0], o.x);
        for (int k = 0; k < V; k++) q.at[k] = table[q.at[k]];
        *reinterpret_cast<Pack<uint8_t, V> *>((uint8_t *)p.y + o.y) = q;
    }
}

/* --- launchers --- */

/* If all elements are contiguous and channels are treated alike, the map counts as one pixel. */
static hp_cuda_point flattened(const hp_cuda_point *p) {
    hp_cuda_point f = *p;
    const bool alike = p->kind == HP_CUDA_CONVERT || p->kind == HP_CUDA_ADD || p->kind == HP_CUDA_MUL;
    if (!alike || p->pitch != p->channels || p->at != 0) return f;
    f.channels *= f.pixels;
    f.pitch = f.channels;
    f.pixels = 1;
    return f;
}

static bool takes_fours(const hp_cuda_point *p) {
    return p->channels % 4 == 0 && p->pitch % 4 == 0 && p->at % 4 == 0 && by_fours(p->x[0], p->of[0].dtype) &&
           by_fours(p->x[1], p->of[1].dtype) && by_fours(p->y, p->put.to.dtype);
}

cudaError_t hp_cuda_point_run(const hp_cuda_point *p, cudaStream_t s) {
    const hp_cuda_point f = flattened(p);
    const int64_t n = f.pixels * f.channels;
    if (n == 0) return cudaSuccess;
    if (f.recode.there)
        return takes_fours(&f) ? HP_LAUNCH(recode<4>, blocks_for(n / 4), THREADS, s, f)
                               : HP_LAUNCH(recode<1>, blocks_for(n), THREADS, s, f);
    return takes_fours(&f) ? HP_LAUNCH(point<4>, blocks_for(n / 4), THREADS, s, f)
                           : HP_LAUNCH(point<1>, blocks_for(n), THREADS, s, f);
}
