/* attend.h - attention by tiles of 32 queries and 32 keys: what its forward and backward kernels share. A block of
 * threads, 8 warps, has a tile of one head of one sample; each warp has 4 of its rows, a lane one column: no more than
 * a tile of scores is ever there (Dao et al., NeurIPS 2022). Channels come through shared memory, 32 at a time.
 *
 * Windows (Liu et al., ICCV 2021) are tiled one by one; without windows the whole map is one. */
#ifndef HP_TRAIN_ATTEND_H
#define HP_TRAIN_ATTEND_H

#include "exec/cuda/runtime/warp.h"
#include "exec/cuda/train/kernel.h"

enum { TILE = WARP, DEEP = THREADS / WARP, OWN = TILE / DEEP }; /* rows of a tile, its warps, rows of each */

typedef float Tile[TILE][TILE + 1]; /* columns lie in different banks */

struct Rect {
    int32_t y0, x0, h, w;
};

/* Up to TILE pixels of a rectangle, row by row, from the `first` on. */
struct Pixels {
    Rect in;
    int32_t first, n;
    __device__ int32_t y(int32_t i) const {
        return in.y0 + (first + i) / in.w;
    }
    __device__ int32_t x(int32_t i) const {
        return in.x0 + (first + i) % in.w;
    }
};

static __host__ __device__ inline int32_t floor_of(int32_t v, int32_t by) {
    return (v >= 0 ? v : v - by + 1) / by;
}

/* --- windows --- */

/* The k-th window along an axis, clipped to [lo, hi). */
static __device__ inline void clip_window(int32_t k, int32_t window, int32_t shift, int32_t lo, int32_t hi,
                                          int32_t *from, int32_t *n) {
    const int64_t begin = (int64_t)k * window + shift, end = begin + window;
    *from = begin > lo ? (int32_t)begin : lo;
    *n = (int32_t)(end < hi ? end : hi) - *from;
}

static __device__ inline Rect window_in(const hp_cuda_attend &a, int32_t ky, int32_t kx,
                                        const hp_cuda_heads &box) {
    Rect r;
    clip_window(ky, a.window_h, a.shift_h, box.y0, box.y0 + box.h, &r.y0, &r.h);
    clip_window(kx, a.window_w, a.shift_w, box.x0, box.x0 + box.w, &r.x0, &r.w);
    return r;
}

static __device__ inline int32_t pixels_of(const Rect &r) {
    return r.h > 0 && r.w > 0 ? r.h * r.w : 0;
}

static __device__ inline Pixels pixels_from(const Rect &r, int32_t first) {
    const int32_t left = pixels_of(r) - first;
    return {r, first, left < TILE ? left : TILE};
}

/* Which windows a box has pixels of, and how many tiles a window may have. */
struct Windows {
    int32_t y, x, h, w, tiles;
};

/* The block's window; its tile of pixels of `box`, of which n may be 0 or less. */
struct Work {
    int32_t ky, kx;
    Pixels rows;
};

static __device__ inline Work work_of(const hp_cuda_attend &a, const Windows &w, const hp_cuda_heads &box) {
    const int32_t at = (int32_t)blockIdx.x, window = at / w.tiles;
    const int32_t ky = w.y + window / w.w, kx = w.x + window % w.w;
    return {ky, kx, pixels_from(window_in(a, ky, kx, box), at % w.tiles * TILE)};
}

/* --- channels of heads --- */

/* Channels [from, to) of a head, of one sample's pixels; the others are 0. */
template <typename T> struct Channels {
    const T *at; /* the head's first channel of the box's first pixel */
    hp_cuda_heads box;
    int32_t from, to, channels, map_w;
    const float *turn; /* NULL: as they are */

    __device__ const T *pixel(int32_t y, int32_t x) const {
        return at + ((int64_t)(y - box.y0) * box.w + x - box.x0) * box.c;
    }
    __device__ float value(int32_t y, int32_t x, int32_t c) const {
        const T *p = pixel(y, x);
        const int32_t half = channels / 2;
        if (!turn || c >= 2 * half) return real(p[c]);
        const float *cosine = turn + ((int64_t)y * map_w + x) * channels, *sine = cosine + half;
        return c < half ? real(p[c]) * cosine[c] - real(p[c + half]) * sine[c]
                        : real(p[c - half]) * sine[c - half] + real(p[c]) * cosine[c - half];
    }
    /* Channels [c0, c0 + TILE) of the pixels into shared memory. */
    __device__ void fill(Tile &to_tile, const Pixels &p, int32_t c0) const {
        const int32_t c = c0 + (int32_t)threadIdx.x;
        for (int i = 0; i < OWN; i++) {
            const int32_t r = (int32_t)threadIdx.y + i * DEEP;
            to_tile[r][threadIdx.x] = r < p.n && c >= from && c < to ? value(p.y(r), p.x(r), c) : 0.0f;
        }
    }
};

template <typename T>
static __device__ inline Channels<T> channels_of(const hp_cuda_attend &a, const hp_cuda_heads &box, int64_t n,
                                                 int32_t head, bool turns) {
    const int32_t low = head * a.channels, end = box.c0 + box.c;
    Channels<T> c;
    c.at = (const T *)box.at + n * box.h * box.w * box.c + low - box.c0;
    c.box = box;
    c.from = low > box.c0 ? 0 : box.c0 - low;
    c.to = low + a.channels < end ? a.channels : end - low;
    c.channels = a.channels;
    c.map_w = a.map_w;
    c.turn = turns ? a.turn : NULL;
    return c;
}

/* What a query's head reads. */
template <typename T> struct Operands { Channels<T> q, k, v; };

template <typename T>
static __device__ inline Operands<T> operands_of(const hp_cuda_attend &a, int64_t n, int32_t head) {
    return {channels_of<T>(a, a.q, n, head, true), channels_of<T>(a, a.k, n, head / a.group, true),
            channels_of<T>(a, a.v, n, head / a.group, false)};
}

/* --- products --- */

/* sum[i] = row i of `rows` times this lane's row of `columns`, over a head's channels. */
template <typename T>
static __device__ inline void multiply(float (&sum)[OWN], const Channels<T> &rows, const Pixels &of_rows,
                                       const Channels<T> &columns, const Pixels &of_columns, Tile &left,
                                       Tile &right) {
    for (int i = 0; i < OWN; i++) sum[i] = 0;
    for (int32_t c0 = 0; c0 < rows.channels; c0 += TILE) {
        __syncthreads();
        rows.fill(left, of_rows, c0);
        columns.fill(right, of_columns, c0);
        __syncthreads();
        for (int c = 0; c < TILE; c++)
            for (int i = 0; i < OWN; i++) sum[i] += left[threadIdx.y + i * DEEP][c] * right[threadIdx.x][c];
    }
}

/* sum[.][i] += row i of `weight` times the columns' channels, TILE of them after another. */
template <typename T, int CHUNKS>
static __device__ inline void add_weighted(float (&sum)[CHUNKS][OWN], const Tile &weight,
                                           const Channels<T> &columns, const Pixels &of_columns,
                                           Tile &right) {
#pragma unroll
    for (int k = 0; k < CHUNKS; k++) {
        __syncthreads();
        columns.fill(right, of_columns, k * TILE);
        __syncthreads();
        for (int j = 0; j < TILE; j++)
            for (int i = 0; i < OWN; i++)
                sum[k][i] += weight[threadIdx.y + i * DEEP][j] * right[j][threadIdx.x];
    }
}

/* --- scores --- */

struct Pair {
    int32_t qy, qx, ky, kx;
};

static __device__ inline bool is_seen(const hp_cuda_attend &a, const Pair &p) {
    return !a.causal || (int64_t)p.ky * a.map_w + p.kx <= (int64_t)p.qy * a.map_w + p.qx;
}

static __device__ inline float bias_of(const hp_cuda_attend &a, int32_t head, const Pair &p) {
    if (!a.bias) return 0;
    const int32_t wide = 2 * a.window_w - 1, places = (2 * a.window_h - 1) * wide;
    return a.bias[(int64_t)(head - a.first_head) * places + (p.qy - p.ky + a.window_h - 1) * wide + p.qx -
                  p.kx + a.window_w - 1];
}

/* Of a query, among log_sum and product. */
static __device__ inline int64_t query_at(const hp_cuda_attend &a, int64_t n, int32_t y, int32_t x,
                                          int32_t head) {
    return ((n * a.y.h + y - a.y.y0) * a.y.w + x - a.y.x0) * a.heads + head - a.first_head;
}

/* Of tiles of queries and keys, is there a pair that is seen? */
static __device__ inline bool any_seen(const hp_cuda_attend &a, const Pixels &queries, const Pixels &keys) {
    return is_seen(a, {queries.y(queries.n - 1), queries.x(queries.n - 1), keys.y(0), keys.x(0)});
}

/* --- results --- */

/* Rows of a tile to where they belong, times `scale`, turned back by the angles of their places. */
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

/* --- on the host --- */

static inline Windows windows_of(const hp_cuda_attend *a, const hp_cuda_heads *box) {
    Windows w;
    w.y = floor_of(box->y0 - a->shift_h, a->window_h);
    w.x = floor_of(box->x0 - a->shift_w, a->window_w);
    w.h = floor_of(box->y0 + box->h - 1 - a->shift_h, a->window_h) - w.y + 1;
    w.w = floor_of(box->x0 + box->w - 1 - a->shift_w, a->window_w) - w.x + 1;
    const int64_t high = box->h < a->window_h ? box->h : a->window_h,
                  wide = box->w < a->window_w ? box->w : a->window_w;
    w.tiles = (int32_t)((high * wide + TILE - 1) / TILE);
    return w;
}

/* A block for each tile, head and sample; of many samples several for each block. */
static inline dim3 blocks_of(const Windows &w, int32_t heads, int64_t samples) {
    const int64_t most = 65535;
    return dim3((unsigned)(w.h * w.w * w.tiles), (unsigned)heads,
                (unsigned)(samples < most ? samples : most));
}

/* Calls f with the element type and how many times TILE channels a head has at most. */
template <typename F> static cudaError_t with_head(hp_dtype t, int32_t channels, F f) {
    return with_type(t, [&](auto type) {
        if (channels <= TILE) return f(type, std::integral_constant<int, 1>());
        if (channels <= 2 * TILE) return f(type, std::integral_constant<int, 2>());
        if (channels <= 4 * TILE) return f(type, std::integral_constant<int, 4>());
        return f(type, std::integral_constant<int, HP_CUDA_HEAD_CHANNELS / TILE>());
    });
}

#endif
