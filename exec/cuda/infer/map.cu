/* map.cu - pixels computed from other pixels: padding, maximum and mean over windows, interpolation, softmax
 * over a pixel's channels. Windows and coordinates are those of the whole map
 * (exec/device/kernels/loops_pool.inc, networks/graph/resample.h). A thread computes one element, or up to 16
 * channels of a maximum. Adjacent threads of a warp take adjacent channels, so reads are contiguous. */
#include "exec/cuda/infer/cuda_infer_kernel.h"
#include "exec/cuda/runtime/warp.h"

/* An element of the output. */
typedef struct Spot {
    int64_t n;
    int32_t y, x, c;
} Spot;

static __device__ inline Spot spot_of(const hp_shape &s, int64_t i) {
    const int64_t pixel = quotient(i, s.oc), row = quotient(pixel, s.ow), n = quotient(row, s.oh);
    return {n, (int32_t)(row - n * s.oh), (int32_t)(pixel - row * s.ow), (int32_t)(i - pixel * s.oc)};
}

static __device__ inline int64_t input_at(const hp_shape &s, int64_t n, int64_t y, int64_t x, int32_t c) {
    return ((n * s.ih + y) * s.iw + x) * s.ic + c;
}

static __device__ inline float number_at(const hp_cuda_map &m, int64_t i) {
    float v[1];
    load_as<1>(v, m.x, i, m.of);
    return v[0];
}

static __device__ inline void put_number(const hp_cuda_map &m, int64_t i, float v) {
    const float from[1] = {v};
    store_as<1>(m.y, i, from, m.put);
}

static __device__ inline int64_t elements(const hp_shape &s) {
    return s.n * s.oh * s.ow * s.oc;
}

/* Copies input element `from` to output element i; bytes go through the table. */
static __device__ inline void move_element(const hp_cuda_map &m, int64_t i, int64_t from) {
    if (m.recode.there)
        ((uint8_t *)m.y)[i] = m.recode.byte[((const uint8_t *)m.x)[from]];
    else
        put_number(m, i, acted(m.act, number_at(m, from)));
}

static __global__ void pad_map(hp_cuda_map m) {
    const hp_shape &s = m.shape;
    for (int64_t i = thread_index(); i < elements(s); i += all_threads()) {
        const Spot o = spot_of(s, i);
        const int32_t y = o.y - s.ph, x = o.x - s.pw;
        if (y >= 0 && y < s.ih && x >= 0 && x < s.iw)
            move_element(m, i, input_at(s, o.n, y, x, o.c));
        else
            put_number(m, i, 0.0f);
    }
}

/* --- maximum --- */

/* V adjacent channels. The largest byte is the largest number, as scales are positive. */
template <int V>
static __device__ inline Pack<uint8_t, V> largest_bytes(const hp_cuda_map &m, const Spot &o) {
    const hp_shape &s = m.shape;
    Pack<uint8_t, V> most = {};
    for (int32_t ky = 0; ky < s.kh; ky++)
        for (int32_t kx = 0; kx < s.kw; kx++) {
            const int32_t y = o.y * s.sh - s.ph + ky * s.dh, x = o.x * s.sw - s.pw + kx * s.dw;
            if (y < 0 || x < 0 || y >= s.ih || x >= s.iw) continue;
            const Pack<uint8_t, V> q = pack_at<uint8_t, V>(m.x, input_at(s, o.n, y, x, o.c));
            for (int k = 0; k < V; k++) most.at[k] = q.at[k] > most.at[k] ? q.at[k] : most.at[k];
        }
    return most;
}

template <int V>
static __device__ inline void largest(const hp_cuda_map &m, const Spot &o, float (&most)[V]) {
    const hp_shape &s = m.shape;
    for (int k = 0; k < V; k++) most[k] = -INFINITY;
    for (int32_t ky = 0; ky < s.kh; ky++)
        for (int32_t kx = 0; kx < s.kw; kx++) {
            const int32_t y = o.y * s.sh - s.ph + ky * s.dh, x = o.x * s.sw - s.pw + kx * s.dw;
            if (y < 0 || x < 0 || y >= s.ih || x >= s.iw) continue;
            float v[V];
            load_as<V>(v, m.x, input_at(s, o.n, y, x, o.c), m.of);
            for (int k = 0; k < V; k++) most[k] = v[k] > most[k] ? v[k] : most[k];
        }
}

template <int V> static __global__ void max_map(hp_cuda_map m) {
    for (int64_t i = thread_index(); i < elements(m.shape) / V; i += all_threads()) {
        float most[V];
        largest<V>(m, spot_of(m.shape, i * V), most);
        store_as<V>(m.y, i * V, most, m.put);
    }
}

template <int V> static __global__ void max_bytes(hp_cuda_map m) {
    __shared__ uint8_t table[256];
    table[threadIdx.x] = m.recode.byte[threadIdx.x];
    __syncthreads();
    for (int64_t i = thread_index(); i < elements(m.shape) / V; i += all_threads()) {
        Pack<uint8_t, V> q = largest_bytes<V>(m, spot_of(m.shape, i * V));
        for (int k = 0; k < V; k++) q.at[k] = table[q.at[k]];
        *reinterpret_cast<Pack<uint8_t, V> *>((uint8_t *)m.y + i * V) = q;
    }
}

/* --- mean --- */

typedef struct Span {
    int64_t from, to, count;
} Span;

static __device__ inline Span span_of(const hp_cuda_mean_axis &a, int64_t o) {
    o += a.out0;
    int64_t first = o * a.stride - a.pad, last = first + a.kernel < a.end ? first + a.kernel : a.end;
    if (a.kernel == 0) {
        first = o * a.full_in / a.full_out;
        last = ((o + 1) * a.full_in + a.full_out - 1) / a.full_out;
    }
    Span m = {first - a.in0, last - a.in0 < a.in ? last - a.in0 : a.in, 0};
    if (m.from < 0) m.from = 0;
    m.count = a.counts_pad ? last - first : m.to - m.from;
    return m;
}

/* Whole numbers: exact. */
static __device__ inline float mean_of_bytes(const hp_cuda_map &m, const Spot &o, const Span &rows,
                                             const Span &cols) {
    int64_t sum = 0;
    for (int64_t y = rows.from; y < rows.to; y++)
        for (int64_t x = cols.from; x < cols.to; x++)
            sum += ((const uint8_t *)m.x)[input_at(m.shape, o.n, y, x, o.c)];
    sum -= (rows.to - rows.from) * (cols.to - cols.from) * m.of.zero;
    return __fmul_rn((float)sum, __fdiv_rn(m.of.scale, (float)(rows.count * cols.count)));
}

/* Adds pixel by pixel, in the order and blocks of exec/device/kernels/loops_pool.inc. */
static __device__ inline float mean_of_reals(const hp_cuda_map &m, const Spot &o, const Span &rows,
                                             const Span &cols) {
    BlockedSum<1> sum;
    for (int64_t y = rows.from; y < rows.to; y++)
        for (int64_t x = cols.from; x < cols.to; x++)
            sum.add({number_at(m, input_at(m.shape, o.n, y, x, o.c))});
    return __fmul_rn(sum.total(0), __fdiv_rn(1.0f, (float)(rows.count * cols.count)));
}

static __global__ void mean_map(hp_cuda_map m) {
    for (int64_t i = thread_index(); i < elements(m.shape); i += all_threads()) {
        const Spot o = spot_of(m.shape, i);
        const Span rows = span_of(m.rows, o.y), cols = span_of(m.cols, o.x);
        put_number(m, i,
                   m.of.dtype == HP_U8 ? mean_of_bytes(m, o, rows, cols) : mean_of_reals(m, o, rows, cols));
    }
}

/* --- interpolation: exec/device/kernels/loops_resize.inc --- */

static __device__ inline float blend(float p, float q, float weight) {
    return weight == 0 ? p : __fadd_rn(__fmul_rn(__fadd_rn(1.0f, -weight), p), __fmul_rn(weight, q));
}

static __device__ inline float pixel_at(const hp_cuda_map &m, const Spot &o, int32_t y, int32_t x) {
    return number_at(m, input_at(m.shape, o.n, y - m.shape.iy0, x - m.shape.ix0, o.c));
}

static __device__ inline float along_row(const hp_cuda_map &m, const Spot &o, int32_t y,
                                         const hp_resample &x) {
    return blend(pixel_at(m, o, y, x.lo), pixel_at(m, o, y, x.hi), (float)x.weight);
}

static __device__ inline float cubic_at(const hp_cuda_map &m, const Spot &o, const hp_taps &rows,
                                        const hp_taps &cols) {
    float sum = 0;
    for (int j = 0; j < rows.n; j++) {
        float row = 0;
        for (int k = 0; k < cols.n; k++)
            row = __fadd_rn(row, __fmul_rn((float)cols.share[k], pixel_at(m, o, rows.at[j], cols.at[k])));
        sum = __fadd_rn(sum, __fmul_rn((float)rows.share[j], row));
    }
    return sum;
}

static __global__ void resize_map(hp_cuda_map m) {
    const hp_shape &s = m.shape;
    for (int64_t i = thread_index(); i < elements(s); i += all_threads()) {
        const Spot o = spot_of(s, i);
        const hp_resample y = hp_resample_at(&m.down, s.oy0 + o.y), x = hp_resample_at(&m.along, s.ox0 + o.x);
        if (m.down.interpolation == HP_NEAREST)
            move_element(m, i, input_at(s, o.n, y.lo - s.iy0, x.lo - s.ix0, o.c));
        else
            put_number(m, i, blend(along_row(m, o, y.lo, x), along_row(m, o, y.hi, x), (float)y.weight));
    }
}

static __global__ void cubic_map(hp_cuda_map m) {
    const hp_shape &s = m.shape;
    for (int64_t i = thread_index(); i < elements(s); i += all_threads()) {
        const Spot o = spot_of(s, i);
        put_number(m, i, cubic_at(m, o, hp_taps_at(&m.down, s.oy0 + o.y), hp_taps_at(&m.along, s.ox0 + o.x)));
    }
}

/* --- softmax: one warp per pixel --- */

/* Reads all channels; computes those of the output's box. */
static __global__ void softmax_map(hp_cuda_map m) {
    const hp_shape &s = m.shape;
    const int64_t pixels = s.n * s.oh * s.ow, step = all_threads() / 32;
    const int32_t lane = (int32_t)(threadIdx.x % 32);
    for (int64_t p = thread_index() / 32; p < pixels; p += step) {
        float most = number_at(m, p * s.ic);
        for (int32_t c = lane; c < s.ic; c += 32) {
            const float v = number_at(m, p * s.ic + c);
            most = v > most ? v : most;
        }
        most = warp_most(most);
        double sum = 0;
        for (int32_t c = lane; c < s.ic; c += 32)
            sum += (double)expf(__fadd_rn(number_at(m, p * s.ic + c), -most));
        const float factor = (float)(1 / warp_sum(sum));
        for (int32_t c = lane; c < s.oc; c += 32)
            put_number(m, p * s.oc + c,
                       __fmul_rn(expf(__fadd_rn(number_at(m, p * s.ic + s.oc0 + c), -most)), factor));
    }
}

/* --- launchers --- */

static int64_t elements_of(const hp_cuda_map *m) {
    return m->shape.n * m->shape.oh * m->shape.ow * m->shape.oc;
}

cudaError_t hp_cuda_pad_map(const hp_cuda_map *m, cudaStream_t s) {
    return HP_LAUNCH(pad_map, blocks_for(elements_of(m)), THREADS, s, *m);
}

static uintptr_t bytes_of(int elements, const hp_qparams &q) {
    return (uintptr_t)elements * (q.dtype == HP_U8 ? 1 : q.dtype == HP_F32 ? 4 : 2);
}

/* Can V adjacent channels be handled at once? */
static bool in_packs_of(const hp_cuda_map *m, int v) {
    return m->shape.ic % v == 0 && m->shape.oc % v == 0 && (uintptr_t)m->x % bytes_of(v, m->of) == 0 &&
           (uintptr_t)m->y % bytes_of(v, m->put.to) == 0;
}

cudaError_t hp_cuda_max_map(const hp_cuda_map *m, cudaStream_t s) {
    const int64_t n = elements_of(m);
    if (m->recode.there && in_packs_of(m, 16))
        return HP_LAUNCH(max_bytes<16>, blocks_for(n / 16), THREADS, s, *m);
    if (m->recode.there) return HP_LAUNCH(max_bytes<1>, blocks_for(n), THREADS, s, *m);
    if (in_packs_of(m, 4)) return HP_LAUNCH(max_map<4>, blocks_for(n / 4), THREADS, s, *m);
    return HP_LAUNCH(max_map<1>, blocks_for(n), THREADS, s, *m);
}

cudaError_t hp_cuda_mean_map(const hp_cuda_map *m, cudaStream_t s) {
    return HP_LAUNCH(mean_map, blocks_for(elements_of(m)), THREADS, s, *m);
}

cudaError_t hp_cuda_resize_map(const hp_cuda_map *m, cudaStream_t s) {
    if (m->down.interpolation == HP_CUBIC)
        return HP_LAUNCH(cubic_map, blocks_for(elements_of(m)), THREADS, s, *m);
    return HP_LAUNCH(resize_map, blocks_for(elements_of(m)), THREADS, s, *m);
}

cudaError_t hp_cuda_softmax_map(const hp_cuda_map *m, cudaStream_t s) {
    return HP_LAUNCH(softmax_map, blocks_for(32 * m->shape.n * m->shape.oh * m->shape.ow), THREADS, s, *m);
}
