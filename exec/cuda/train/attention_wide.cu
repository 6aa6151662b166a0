/* attention_wide.cu - attention of heads too wide for the shared memory of attend_tile.h: tiles of 32
 * queries and 32 keys, 8 warps. Each warp has 4 of the rows, each lane one column. Channels come through
 * shared memory, 32 at a time. Softmax uses a running maximum and sum (Milakov and Gimelshein 2018); the
 * backward pass recomputes scores from the logarithm of each query's sum. Definition:
 * exec/device/ref/ref_attention.c. */
#include "exec/cuda/train/attend.h"

enum { TILE = WARP, DEEP = THREADS / WARP, OWN = TILE / DEEP }; /* rows of a tile, its warps, rows per warp */

typedef float Tile[TILE][TILE + 1]; /* padded: columns lie in different banks */

/* Loads channels [c0, c0 + TILE) of the pixels into shared memory. */
template <typename T>
static __device__ inline void fill(Tile &to, const Channels<T> &of, const Pixels &p, int32_t c0) {
    const int32_t c = c0 + (int32_t)threadIdx.x;
    for (int i = 0; i < OWN; i++) {
        const int32_t r = (int32_t)threadIdx.y + i * DEEP;
        to[r][threadIdx.x] = r < p.n && c >= of.from && c < of.to ? of.value(p.y(r), p.x(r), c) : 0.0f;
    }
}

/* --- products --- */

/* sum[i] = row i of `rows` times this lane's row of `columns`, summed over a head's channels. */
template <typename T>
static __device__ inline void multiply(float (&sum)[OWN], const Channels<T> &rows, const Pixels &of_rows,
                                       const Channels<T> &columns, const Pixels &of_columns, Tile &left,
                                       Tile &right) {
    for (int i = 0; i < OWN; i++) sum[i] = 0;
    for (int32_t c0 = 0; c0 < rows.channels; c0 += TILE) {
        __syncthreads();
        fill(left, rows, of_rows, c0);
        fill(right, columns, of_columns, c0);
        __syncthreads();
        for (int c = 0; c < TILE; c++)
            for (int i = 0; i < OWN; i++) sum[i] += left[threadIdx.y + i * DEEP][c] * right[threadIdx.x][c];
    }
}

/* sum[.][i] += row i of `weight` times the columns' channels, TILE at a time. */
template <typename T, int CHUNKS>
static __device__ inline void add_weighted(float (&sum)[CHUNKS][OWN], const Tile &weight,
                                           const Channels<T> &columns, const Pixels &of_columns,
                                           Tile &right) {
#pragma unroll
    for (int k = 0; k < CHUNKS; k++) {
        __syncthreads();
        fill(right, columns, of_columns, k * TILE);
        __syncthreads();
        for (int j = 0; j < TILE; j++)
            for (int i = 0; i < OWN; i++)
                sum[k][i] += weight[threadIdx.y + i * DEEP][j] * right[j][threadIdx.x];
    }
}

/* --- results --- */

/* Writes rows of a tile to memory, times `scale`, with their rotation undone. */
template <typename T, int CHUNKS>
static __device__ inline void store_rows(const float (&sum)[CHUNKS][OWN], const Channels<T> &to,
                                         const Pixels &p, const float (&scale)[OWN]) {
    __shared__ float row[DEEP][CHUNKS * TILE];
    const int32_t half = to.channels / 2;
    for (int i = 0; i < OWN; i++) {
        const int32_t r = (int32_t)threadIdx.y + i * DEEP;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < CHUNKS; k++) row[threadIdx.y][k * TILE + threadIdx.x] = sum[k][i] * scale[i];
        __syncthreads();
        for (int32_t c = (int32_t)threadIdx.x; r < p.n && c < to.to; c += TILE) {
            if (c < to.from) continue;
            const int32_t y = p.y(r), x = p.x(r);
            float v = row[threadIdx.y][c];
            if (to.turn && c < 2 * half) {
                const float *cosine = to.turn + ((int64_t)y * to.map_w + x) * to.channels,
                            *sine = cosine + half;
                v = c < half ? v * cosine[c] + row[threadIdx.y][c + half] * sine[c]
                             : v * cosine[c - half] - row[threadIdx.y][c - half] * sine[c - half];
            }
            round_to((T *)to.pixel(y, x) + c, v);
        }
    }
}

/* --- forward --- */

/* Turns scores of a row into weights, and returns the factor that rescales earlier sums
 * to the new maximum. */
struct Running {
    float most, sum;
    __device__ float add(float score, float *weight) {
        const float top = warp_most(fmaxf(score, most)), scale = top == -INFINITY ? 1.0f : expf(most - top);
        *weight = score == -INFINITY ? 0.0f : expf(score - top);
        sum = sum * scale + warp_sum(*weight);
        most = top;
        return scale;
    }
};

template <typename T, int CHUNKS> static __global__ void wide_forward(hp_cuda_attend a, Windows windows) {
    __shared__ Tile left, right, weight;
    const Work work = work_of(a, windows, a.y, (int32_t)blockIdx.x);
    const Pixels &rows = work.rows;
    const int32_t head = a.first_head + (int32_t)blockIdx.y;
    const Rect window = window_in(a, work.ky, work.kx, a.k);
    for (int64_t n = blockIdx.z; n < a.samples && rows.n > 0; n += gridDim.z) {
        const Operands<T> of = operands_of<T>(a, n, head);
        Running run[OWN];
        float out[CHUNKS][OWN] = {}, score[OWN];
        for (int i = 0; i < OWN; i++) run[i] = {-INFINITY, 0};
        for (int32_t from = 0; from < pixels_of(window); from += TILE) {
            const Pixels keys = pixels_from(window, from, TILE);
            if (!any_seen(a, rows, keys)) break;
            multiply(score, of.q, rows, of.k, keys, left, right);
            for (int i = 0; i < OWN; i++) {
                const int32_t r = (int32_t)threadIdx.y + i * DEEP, j = (int32_t)threadIdx.x;
                const Pair p = {rows.y(r), rows.x(r), keys.y(j), keys.x(j)};
                const bool seen = r < rows.n && j < keys.n && is_seen(a, p);
                const float scale =
                    run[i].add(seen ? score[i] * a.scale + bias_of(a, head, p) : -INFINITY, &weight[r][j]);
#pragma unroll
                for (int c = 0; c < CHUNKS; c++) out[c][i] *= scale;
            }
            add_weighted(out, weight, of.v, keys, right);
        }
        float scale[OWN];
        for (int i = 0; i < OWN; i++) {
            const int32_t r = (int32_t)threadIdx.y + i * DEEP;
            scale[i] = 1 / run[i].sum;
            if (a.log_sum && r < rows.n && threadIdx.x == 0)
                a.log_sum[query_at(a, n, rows.y(r), rows.x(r), head)] = run[i].most + logf(run[i].sum);
        }
        store_rows(out, channels_of<T>(a, a.y, n, head, false), rows, scale);
    }
}

/* --- backward --- */

/* A pair's weight, and the gradient of its score. */
struct Gradient {
    float weight, score;
};

static __device__ inline Gradient gradient_of(const hp_cuda_attend &a, int32_t head, const Pair &p,
                                              int64_t query, float score, float dweight) {
    const float weight = expf(score * a.scale + bias_of(a, head, p) - a.log_sum[query]);
    return {weight, weight * (dweight - a.product[query])};
}

/* --- queries --- */

template <typename T, int CHUNKS> static __global__ void wide_queries(hp_cuda_attend a, Windows windows) {
    __shared__ Tile left, right, dscore;
    const Work work = work_of(a, windows, a.y, (int32_t)blockIdx.x);
    const Pixels &rows = work.rows;
    const int32_t head = a.first_head + (int32_t)blockIdx.y;
    const Rect window = window_in(a, work.ky, work.kx, a.k);
    for (int64_t n = blockIdx.z; n < a.samples && rows.n > 0; n += gridDim.z) {
        const Operands<T> of = operands_of<T>(a, n, head);
        const Channels<T> dy = channels_of<T>(a, a.dy, n, head, false);
        float dq[CHUNKS][OWN] = {}, score[OWN], dweight[OWN];
        for (int32_t from = 0; from < pixels_of(window); from += TILE) {
            const Pixels keys = pixels_from(window, from, TILE);
            if (!any_seen(a, rows, keys)) break;
            multiply(score, of.q, rows, of.k, keys, left, right);
            multiply(dweight, dy, rows, of.v, keys, left, right);
            for (int i = 0; i < OWN; i++) {
                const int32_t r = (int32_t)threadIdx.y + i * DEEP, j = (int32_t)threadIdx.x;
                const Pair p = {rows.y(r), rows.x(r), keys.y(j), keys.x(j)};
                const bool seen = r < rows.n && j < keys.n && is_seen(a, p);
                dscore[r][j] =
                    seen ? gradient_of(a, head, p, query_at(a, n, p.qy, p.qx, head), score[i], dweight[i])
                               .score
                         : 0.0f;
            }
            add_weighted(dq, dscore, of.k, keys, right);
        }
        float scale[OWN];
        for (int i = 0; i < OWN; i++) scale[i] = a.scale;
        store_rows(dq, channels_of<T>(a, a.dq, n, head, true), rows, scale);
    }
}

/* --- keys and values: summed over all heads that share them --- */

template <typename T, int CHUNKS>
static __global__ void wide_keys(hp_cuda_attend a, Windows windows, int32_t first) {
    __shared__ Tile left, right, weight, dscore;
    const Work work = work_of(a, windows, a.k, (int32_t)blockIdx.x);
    const Pixels &rows = work.rows;
    const int32_t shared = first + (int32_t)blockIdx.y;
    const Rect window = window_in(a, work.ky, work.kx, a.y);
    for (int64_t n = blockIdx.z; n < a.samples && rows.n > 0; n += gridDim.z) {
        const Channels<T> k = channels_of<T>(a, a.k, n, shared, true),
                          v = channels_of<T>(a, a.v, n, shared, false);
        float dk[CHUNKS][OWN] = {}, dv[CHUNKS][OWN] = {}, score[OWN], dweight[OWN];
        for (int32_t head = shared * a.group; head < (shared + 1) * a.group; head++) {
            if (head < a.first_head || head >= a.first_head + a.heads) continue;
            const Channels<T> q = channels_of<T>(a, a.q, n, head, true),
                              dy = channels_of<T>(a, a.dy, n, head, false);
            for (int32_t from = 0; from < pixels_of(window); from += TILE) {
                const Pixels queries = pixels_from(window, from, TILE);
                if (!any_seen(a, queries, rows)) continue;
                multiply(score, k, rows, q, queries, left, right);
                multiply(dweight, v, rows, dy, queries, left, right);
                for (int i = 0; i < OWN; i++) {
                    const int32_t r = (int32_t)threadIdx.y + i * DEEP, j = (int32_t)threadIdx.x;
                    const Pair p = {queries.y(j), queries.x(j), rows.y(r), rows.x(r)};
                    Gradient g = {0, 0};
                    if (r < rows.n && j < queries.n && is_seen(a, p))
                        g = gradient_of(a, head, p, query_at(a, n, p.qy, p.qx, head), score[i], dweight[i]);
                    weight[r][j] = g.weight;
                    dscore[r][j] = g.score;
                }
                add_weighted(dv, weight, dy, queries, right);
                add_weighted(dk, dscore, q, queries, right);
            }
        }
        float scale[OWN], one[OWN];
        for (int i = 0; i < OWN; i++) {
            scale[i] = a.scale;
            one[i] = 1;
        }
        if (a.dk.at) store_rows(dk, channels_of<T>(a, a.dk, n, shared, true), rows, scale);
        if (a.dv.at) store_rows(dv, channels_of<T>(a, a.dv, n, shared, false), rows, one);
    }
}

/* --- the bias by relative position: one block per offset in the table --- */

template <typename T> static __global__ void wide_bias(hp_cuda_attend a) {
    __shared__ double part[THREADS];
    const int32_t me = (int32_t)threadIdx.x, wide = 2 * a.window.w - 1;
    const int32_t dy = (int32_t)blockIdx.x / wide - a.window.h + 1,
                  dx = (int32_t)blockIdx.x % wide - a.window.w + 1;
    const int32_t head = a.first_head + (int32_t)blockIdx.y;
    const int64_t pixels = (int64_t)a.y.h * a.y.w;
    double sum = 0;
    for (int64_t i = me; i < a.samples * pixels; i += THREADS) {
        const int64_t n = i / pixels;
        const int32_t pixel = (int32_t)(i - n * pixels);
        const Pair p = {a.y.y0 + pixel / a.y.w, a.y.x0 + pixel % a.y.w, a.y.y0 + pixel / a.y.w - dy,
                        a.y.x0 + pixel % a.y.w - dx};
        const bool inside = p.ky >= 0 && p.ky < a.window.map_h && p.kx >= 0 && p.kx < a.window.map_w,
                   same = floor_of(p.qy - a.window.shift_h, a.window.h) ==
                              floor_of(p.ky - a.window.shift_h, a.window.h) &&
                          floor_of(p.qx - a.window.shift_w, a.window.w) ==
                              floor_of(p.kx - a.window.shift_w, a.window.w);
        if (!inside || !same || !is_seen(a, p)) continue;
        const Operands<T> of = operands_of<T>(a, n, head);
        const Channels<T> of_dy = channels_of<T>(a, a.dy, n, head, false);
        float score = 0, dweight = 0;
        for (int32_t c = 0; c < a.channels; c++)
            score += of.q.value(p.qy, p.qx, c) * of.k.value(p.ky, p.kx, c);
        for (int32_t c = of_dy.from; c < of_dy.to; c++)
            dweight += of_dy.value(p.qy, p.qx, c) * of.v.value(p.ky, p.kx, c);
        sum += (double)gradient_of(a, head, p, query_at(a, n, p.qy, p.qx, head), score, dweight).score;
    }
    part[me] = sum;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (me < half) part[me] += part[me + half];
        __syncthreads();
    }
    float *to = a.dbias + (int64_t)blockIdx.y * gridDim.x + blockIdx.x;
    if (me == 0) *to = (a.add ? *to : 0.0f) + (float)part[0];
}

/* --- launchers --- */

/* Calls f with the element type and the number of chunks of TILE channels that a head needs. */
template <typename F> static cudaError_t with_head(hp_dtype t, int32_t channels, F f) {
    return with_type(t, [&](auto type) {
        if (channels <= 4 * TILE) return f(type, std::integral_constant<int, 4>());
        return f(type, std::integral_constant<int, HP_GPU_HEAD_CHANNELS / TILE>());
    });
}

cudaError_t hp_attend_wide_forward(const hp_cuda_attend *a, cudaStream_t s) {
    const Windows w = windows_of(a, &a->y, TILE);
    return with_head(a->dtype, a->channels, [&](auto type, auto chunks) {
        using T = decltype(type);
        constexpr int CHUNKS = decltype(chunks)::value;
        return HP_LAUNCH((wide_forward<T, CHUNKS>), blocks_of(w, a->heads, a->samples), warps(), s, *a, w);
    });
}

template <typename T> static cudaError_t back_of_bias(const hp_cuda_attend *a, cudaStream_t s) {
    if (!a->dbias) return cudaSuccess;
    const dim3 grid((unsigned)((2 * a->window.h - 1) * (2 * a->window.w - 1)), (unsigned)a->heads);
    return HP_LAUNCH(wide_bias<T>, grid, THREADS, s, *a);
}

template <typename T, int CHUNKS> static cudaError_t back_of_keys(const hp_cuda_attend *a, cudaStream_t s) {
    if (!a->dk.at && !a->dv.at) return cudaSuccess;
    const Shared heads = shared_of(a);
    const Windows w = windows_of(a, &a->k, TILE);
    return HP_LAUNCH((wide_keys<T, CHUNKS>), blocks_of(w, heads.n, a->samples), warps(), s, *a, w,
                     heads.first);
}

template <typename T, int CHUNKS>
static cudaError_t back_of_queries(const hp_cuda_attend *a, cudaStream_t s) {
    if (!a->dq.at) return cudaSuccess;
    const Windows w = windows_of(a, &a->y, TILE);
    return HP_LAUNCH((wide_queries<T, CHUNKS>), blocks_of(w, a->heads, a->samples), warps(), s, *a, w);
}

cudaError_t hp_attend_wide_backward(const hp_cuda_attend *a, cudaStream_t s) {
    return with_head(a->dtype, a->channels, [&](auto type, auto chunks) {
        using T = decltype(type);
        constexpr int CHUNKS = decltype(chunks)::value;
        cudaError_t e = back_of_queries<T, CHUNKS>(a, s);
        if (e == cudaSuccess) e = back_of_keys<T, CHUNKS>(a, s);
        return e == cudaSuccess ? back_of_bias<T>(a, s) : e;
    });
}
