/* attend.h - attention by tiles of queries and keys: shared by its kernels. A block of threads handles one
 * tile of one head of one sample. No more than a tile of scores exists at a time (Dao et al., NeurIPS 2022).
 *
 * Windows (Liu et al., ICCV 2021) are tiled one by one; without windows the whole map counts as one. */
#ifndef HP_ATTEND_H
#define HP_ATTEND_H

#include "exec/cuda/runtime/warp.h"
#include "exec/cuda/train/cuda_train_kernel.h"

struct Rect {
    int32_t y0, x0, h, w;
};

/* n pixels of a rectangle in row-major order, from `first` on. */
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
    clip_window(ky, a.window.h, a.window.shift_h, box.y0, box.y0 + box.h, &r.y0, &r.h);
    clip_window(kx, a.window.w, a.window.shift_w, box.x0, box.x0 + box.w, &r.x0, &r.w);
    return r;
}

static __device__ inline int32_t pixels_of(const Rect &r) {
    return r.h > 0 && r.w > 0 ? r.h * r.w : 0;
}

/* At most `most`. */
static __device__ inline Pixels pixels_from(const Rect &r, int32_t first, int32_t most) {
    const int32_t left = pixels_of(r) - first;
    return {r, first, left < most ? left : most};
}

/* The windows that a box touches; tiles per window, pixels per tile. */
struct Windows {
    int32_t y, x, h, w, tiles, tile;
};

/* A window, and a tile of its pixels within a box; rows.n <= 0: the tile is empty. */
struct Work {
    int32_t ky, kx;
    Pixels rows;
};

/* The work with index `at`. */
static __device__ inline Work work_of(const hp_cuda_attend &a, const Windows &w, const hp_cuda_heads &box,
                                      int32_t at) {
    const int32_t window = at / w.tiles, ky = w.y + window / w.w, kx = w.x + window % w.w;
    return {ky, kx, pixels_from(window_in(a, ky, kx, box), at % w.tiles * w.tile, w.tile)};
}

/* --- channels of heads --- */

/* Channels [from, to) of a head in one sample's pixels; other channels read as 0. */
template <typename T> struct Channels {
    const T *at; /* the head's first channel of the box's first pixel */
    hp_cuda_heads box;
    int32_t from, to, channels, map_w;
    const float *turn; /* angles of rotary positions; NULL: no rotation */

    __device__ const T *pixel(int32_t y, int32_t x) const {
        return at + ((int64_t)(y - box.y0) * box.w + x - box.x0) * box.c;
    }
    /* Address of pixel i; needs no division if the rectangle has the box's full rows. */
    __device__ const T *pixel_of(const Pixels &p, int32_t i) const {
        if (p.in.x0 != box.x0 || p.in.w != box.w) return pixel(p.y(i), p.x(i));
        return at + ((int64_t)(p.in.y0 - box.y0) * box.w + p.first + i) * box.c;
    }
    __device__ float value(int32_t y, int32_t x, int32_t c) const {
        const T *p = pixel(y, x);
        const int32_t half = channels / 2;
        if (!turn || c >= 2 * half) return real(p[c]);
        const float *cosine = turn + ((int64_t)y * map_w + x) * channels, *sine = cosine + half;
        return c < half ? real(p[c]) * cosine[c] - real(p[c + half]) * sine[c]
                        : real(p[c - half]) * sine[c - half] + real(p[c]) * cosine[c - half];
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
    c.map_w = a.window.map_w;
    c.turn = turns ? a.turn : NULL;
    return c;
}

/* The tensors that a query head reads. */
template <typename T> struct Operands { Channels<T> q, k, v; };

template <typename T>
static __device__ inline Operands<T> operands_of(const hp_cuda_attend &a, int64_t n, int32_t head) {
    return {channels_of<T>(a, a.q, n, head, true), channels_of<T>(a, a.k, n, head / a.group, true),
            channels_of<T>(a, a.v, n, head / a.group, false)};
}

/* --- scores --- */

struct Pair {
    int32_t qy, qx, ky, kx;
};

static __device__ inline bool is_seen(const hp_cuda_attend &a, const Pair &p) {
    return !a.causal || (int64_t)p.ky * a.window.map_w + p.kx <= (int64_t)p.qy * a.window.map_w + p.qx;
}

static __device__ inline float bias_of(const hp_cuda_attend &a, int32_t head, const Pair &p) {
    if (!a.bias) return 0;
    const int32_t wide = 2 * a.window.w - 1, places = (2 * a.window.h - 1) * wide;
    return a.bias[(int64_t)(head - a.first_head) * places + (p.qy - p.ky + a.window.h - 1) * wide + p.qx -
                  p.kx + a.window.w - 1];
}

/* Index of a query in log_sum and product. */
static __device__ inline int64_t query_at(const hp_cuda_attend &a, int64_t n, int32_t y, int32_t x,
                                          int32_t head) {
    return ((n * a.y.h + y - a.y.y0) * a.y.w + x - a.y.x0) * a.heads + head - a.first_head;
}

/* Does any query of one tile see any key of the other? */
static __device__ inline bool any_seen(const hp_cuda_attend &a, const Pixels &queries, const Pixels &keys) {
    return is_seen(a, {queries.y(queries.n - 1), queries.x(queries.n - 1), keys.y(0), keys.x(0)});
}

/* --- on the host --- */

static inline Windows windows_of(const hp_cuda_attend *a, const hp_cuda_heads *box, int32_t tile) {
    Windows w;
    w.tile = tile;
    w.y = floor_of(box->y0 - a->window.shift_h, a->window.h);
    w.x = floor_of(box->x0 - a->window.shift_w, a->window.w);
    w.h = floor_of(box->y0 + box->h - 1 - a->window.shift_h, a->window.h) - w.y + 1;
    w.w = floor_of(box->x0 + box->w - 1 - a->window.shift_w, a->window.w) - w.x + 1;
    const int64_t high = box->h < a->window.h ? box->h : a->window.h,
                  wide = box->w < a->window.w ? box->w : a->window.w;
    w.tiles = (int32_t)((high * wide + tile - 1) / tile);
    return w;
}

/* One block per tile, head and sample; if there are too many samples, a block takes several. */
static inline dim3 blocks_of(const Windows &w, int32_t heads, int64_t samples) {
    const int64_t most = 65535;
    return dim3((unsigned)(w.h * w.w * w.tiles), (unsigned)heads,
                (unsigned)(samples < most ? samples : most));
}

/* Heads of keys and values that the query heads read. */
struct Shared {
    int32_t first, n;
};
static inline Shared shared_of(const hp_cuda_attend *a) {
    const int32_t first = a->first_head / a->group;
    return {first, (a->first_head + a->heads + a->group - 1) / a->group - first};
}

/* attention_wide.cu; the backward pass needs a->product to be computed already. */
cudaError_t hp_attend_wide_forward(const hp_cuda_attend *a, cudaStream_t s);
cudaError_t hp_attend_wide_backward(const hp_cuda_attend *a, cudaStream_t s);

#endif
