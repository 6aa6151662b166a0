/* attend_tile.h - tiles of attention in shared memory, and their products.
 *
 * 4 warps have 16 rows each; the number of columns follows from the memory available. Sums lie in a warp as
 * tensor cores leave them (exec/cuda/runtime/mma.h). Let g = lane / 4 and t = lane % 4. The first two of
 * sum[n][4] are row g, columns 8n + 2t and 8n + 2t + 1; the other two are the same columns of row g + 8.
 *
 * Factors of 16 bits go to the tensor cores, with weights rounded to their type and sums in float32. float32
 * factors are multiplied as they are, by the ordinary units. Inference in 16 bits has float32 maps here and
 * rounds them on the way into the tiles. S is the type of the maps, T that of the tiles. */
#ifndef HP_ATTEND_TILE_H
#define HP_ATTEND_TILE_H

#include "exec/cuda/runtime/mma.h"
#include "exec/cuda/train/attend.h"

#include <type_traits>

enum { STRIP = 16, STRIPS = 4, ROWS = STRIPS * STRIP, BLOCK = STRIPS * WARP };

/* Heads have at most D channels. */
template <typename T, int D> struct Sizes {
    static const int COLUMNS = 4096 / (D * (int)sizeof(T)); /* columns of a tile */
    static const int PITCH =
        D + 16 / (int)sizeof(T); /* row pitch, an odd multiple of 16 bytes: rows lie in different banks */
};

template <typename T, int D, int N> struct alignas(16) SharedTile { T at[N][Sizes<T, D>::PITCH]; };

/* A pixel's position in the map. */
struct Spot {
    int32_t y, x;
};

static __device__ inline int32_t thread_of_block() {
    return (int32_t)(threadIdx.y * WARP + threadIdx.x);
}

/* Position of pixel i, or of the last pixel beyond the end. */
static __device__ inline Spot spot_of(const Pixels &p, int32_t i) {
    const int32_t j = i < p.n ? i : p.n - 1;
    return {p.y(j), p.x(j)};
}

/* The lane's row of the tile; half = 1: its second row. */
static __device__ inline int32_t row_of(int half) {
    return (int32_t)(threadIdx.y * STRIP + threadIdx.x / 4) + 8 * half;
}

/* The lane's column of sum[n][e]. */
static __device__ inline int32_t column_of(int n, int e) {
    return 8 * n + (int32_t)threadIdx.x % 4 * 2 + e % 2;
}

template <int N> static __device__ inline void find_spots(Spot (&to)[N], const Pixels &p) {
    if (thread_of_block() < N) to[thread_of_block()] = spot_of(p, thread_of_block());
}

/* --- between memory and shared memory, 16 bytes at a time where aligned --- */

template <typename S> static __device__ inline bool is_aligned(const Channels<S> &c, int32_t unit) {
    return c.from == 0 && c.to == c.channels && c.channels % unit == 0 && c.box.c % unit == 0 &&
           (uintptr_t)c.at % 16 == 0;
}

/* May `unit` channels of a head be read at once, without rotation? */
template <typename S> static __device__ inline bool is_plain(const Channels<S> &c, int32_t unit) {
    return is_aligned(c, unit) && !c.turn;
}

/* Reads UNIT adjacent elements, rounded to T if S differs. */
template <typename T, int UNIT, typename S> static __device__ inline Pack<T, UNIT> unit_at(const S *from) {
    if constexpr (std::is_same<S, T>::value) {
        return *(const Pack<T, UNIT> *)from;
    } else {
        const int EACH = 16 / (int)sizeof(S);
        Pack<T, UNIT> to;
        for (int u = 0; u < UNIT; u += EACH) {
            float v[EACH];
            load<S, EACH>(v, from, u);
            for (int k = 0; k < EACH; k++) round_to(&to.at[u + k], v[k]);
        }
        return to;
    }
}

/* A thread's part of a tile of N pixels, prefetched into registers if the head is plain; else it is read on
 * arrival. Missing elements are 0. */
template <typename T, int D, int N, typename S = T> struct OnTheWay {
    static const int UNIT = 16 / (int)sizeof(T), UNITS = D / UNIT, MINE = N * UNITS / BLOCK;
    static_assert(N * UNITS % BLOCK == 0, "all threads have as many");
    using Unit = Pack<T, UNIT>; /* 16 bytes */
    Unit unit[MINE];

    static __device__ int32_t row(int m) {
        return (thread_of_block() + m * BLOCK) / UNITS;
    }
    static __device__ int32_t channel(int m) {
        return (thread_of_block() + m * BLOCK) % UNITS * UNIT;
    }
    __device__ void fetch(const Channels<S> &of, const Pixels &p) {
        const bool plain = is_plain(of, UNIT);
#pragma unroll
        for (int m = 0; m < MINE; m++) {
            unit[m] = Unit{};
            if (plain && row(m) < p.n && channel(m) < of.channels)
                unit[m] = unit_at<T, UNIT>(of.pixel_of(p, row(m)) + channel(m));
        }
    }
    __device__ void arrive(SharedTile<T, D, N> &to, const Channels<S> &of, const Pixels &p) const {
        if (is_plain(of, UNIT)) {
#pragma unroll
            for (int m = 0; m < MINE; m++) *(Unit *)&to.at[row(m)][channel(m)] = unit[m];
            return;
        }
#pragma unroll 1
        for (int32_t i = thread_of_block(); i < N * D; i += BLOCK) {
            const int32_t r = i / D, c = i % D;
            const bool there = r < p.n && c >= of.from && c < of.to;
            round_to(&to.at[r][c], there ? of.value(p.y(r), p.x(r), c) : 0.0f);
        }
    }
};

template <typename T, int D, int N, typename S>
static __device__ inline void fill(SharedTile<T, D, N> &to, const Channels<S> &of, const Pixels &p) {
    OnTheWay<T, D, N, S> all;
    all.fetch(of, p);
    all.arrive(to, of, p);
}

/* Results on their way to memory, in float32. */
template <int D> struct Stage { float at[ROWS][D + 4]; };

/* Multiplies sums by scale[0] and scale[1], one per row of the lane. */
template <int D>
static __device__ inline void put_down(Stage<D> &to, const float (&sum)[D / 8][4], const float (&scale)[2]) {
#pragma unroll
    for (int n = 0; n < D / 8; n++)
        for (int e = 0; e < 4; e++) to.at[row_of(e / 2)][column_of(n, e)] = sum[n][e] * scale[e / 2];
}

/* Undoes the rotation by the angles of the pixels' positions. */
template <typename T, int D>
static __device__ inline float turned_back(const Stage<D> &s, const Channels<T> &to, const Spot &p, int32_t r,
                                           int32_t c) {
    const int32_t half = to.channels / 2;
    if (!to.turn || c >= 2 * half) return s.at[r][c];
    const float *cosine = to.turn + ((int64_t)p.y * to.map_w + p.x) * to.channels, *sine = cosine + half;
    return c < half ? s.at[r][c] * cosine[c] + s.at[r][c + half] * sine[c]
                    : s.at[r][c] * cosine[c - half] - s.at[r][c - half] * sine[c - half];
}

template <typename T, int D>
static __device__ inline void give(const Stage<D> &from, const Channels<T> &to, const Pixels &p) {
    const int UNIT = 16 / (int)sizeof(T), UNITS = D / UNIT;
    if (is_plain(to, UNIT)) {
#pragma unroll 1
        for (int32_t i = thread_of_block(); i < p.n * UNITS; i += BLOCK) {
            const int32_t r = i / UNITS, c = i % UNITS * UNIT;
            if (c >= to.channels) continue;
            float v[UNIT];
            for (int u = 0; u < UNIT; u++) v[u] = from.at[r][c + u];
            store<T, UNIT>((T *)to.pixel_of(p, r), c, v);
        }
        return;
    }
#pragma unroll 1
    for (int32_t i = thread_of_block(); i < p.n * D; i += BLOCK) {
        const int32_t r = i / D, c = i % D;
        if (c < to.from || c >= to.to) continue;
        round_to((T *)to.pixel_of(p, r) + c, turned_back(from, to, spot_of(p, r), r, c));
    }
}

/* --- products --- */

template <typename T> static __device__ inline uint32_t word_of(const T (&two)[2]) {
    uint32_t word;
    memcpy(&word, two, sizeof word);
    return word;
}
static __device__ inline uint32_t pair_of(float a, float b, __nv_bfloat16) {
    const __nv_bfloat16 two[] = {__float2bfloat16(a), __float2bfloat16(b)};
    return word_of(two);
}
static __device__ inline uint32_t pair_of(float a, float b, __half) {
    const __half two[] = {__float2half(a), __float2half(b)};
    return word_of(two);
}

/* Rows and columns of the address that a lane passes to the tensor cores' loads: 16 rows, then the same
 * 8 columns further. */
static __device__ inline int32_t down_of_lane() {
    return (int32_t)threadIdx.x % 16;
}
static __device__ inline int32_t across_of_lane() {
    return (int32_t)threadIdx.x / 16 * 8;
}

/* sum += the warp's rows times columns, summed over channels. */
template <typename T, int D, int C>
static __device__ inline void multiply(float (&sum)[C][4], const SharedTile<T, D, ROWS> &rows,
                                       const SharedTile<T, D, 8 * C> &columns) {
#pragma unroll
    for (int k = 0; k < D; k += 16) {
        uint32_t a[4], b[4];
        hp_load_8x8(a, &rows.at[threadIdx.y * STRIP + down_of_lane()][k + across_of_lane()]);
#pragma unroll
        for (int n = 0; n < C; n += 2) {
            hp_load_8x8(
                b, &columns.at[8 * n + down_of_lane() % 8 + across_of_lane()][k + down_of_lane() / 8 * 8]);
            hp_mma_16x8x16(sum[n], a, b, T());
            hp_mma_16x8x16(sum[n + 1], a, b + 2, T());
        }
    }
}

/* sum += the warp's weights times columns, summed over the 8 C columns, for D channels. */
template <typename T, int D, int C>
static __device__ inline void add_weighted(float (&sum)[D / 8][4], const float (&weight)[C][4],
                                           const SharedTile<T, D, 8 * C> &columns) {
#pragma unroll
    for (int k = 0; k < C; k += 2) {
        const float(*const w)[4] = weight + k;
        const uint32_t a[4] = {pair_of(w[0][0], w[0][1], T()), pair_of(w[0][2], w[0][3], T()),
                               pair_of(w[1][0], w[1][1], T()), pair_of(w[1][2], w[1][3], T())};
#pragma unroll
        for (int n = 0; n < D / 8; n += 2) {
            uint32_t b[4];
            hp_load_8x8_transposed(b, &columns.at[8 * k + down_of_lane()][8 * n + across_of_lane()]);
            hp_mma_16x8x16(sum[n], a, b, T());
            hp_mma_16x8x16(sum[n + 1], a, b + 2, T());
        }
    }
}

static __device__ inline float4 four_at(const float *at) {
    return *(const float4 *)at;
}
static __device__ inline float dot(const float4 &a, const float4 &b, float sum) {
    return __fmaf_rn(a.w, b.w, __fmaf_rn(a.z, b.z, __fmaf_rn(a.y, b.y, __fmaf_rn(a.x, b.x, sum))));
}

template <int D, int C>
static __device__ inline void multiply(float (&sum)[C][4], const SharedTile<float, D, ROWS> &rows,
                                       const SharedTile<float, D, 8 * C> &columns) {
#pragma unroll 2
    for (int k = 0; k < D; k += 4) {
        const float4 row[2] = {four_at(&rows.at[row_of(0)][k]), four_at(&rows.at[row_of(1)][k])};
#pragma unroll
        for (int n = 0; n < C; n++)
            for (int e = 0; e < 2; e++) {
                const float4 column = four_at(&columns.at[column_of(n, e)][k]);
                sum[n][e] = dot(row[0], column, sum[n][e]);
                sum[n][2 + e] = dot(row[1], column, sum[n][2 + e]);
            }
    }
}

template <int D, int C>
static __device__ inline void add_weighted(float (&sum)[D / 8][4], const float (&weight)[C][4],
                                           const SharedTile<float, D, 8 * C> &columns) {
#pragma unroll
    for (int j = 0; j < 8 * C; j++) {
        /* the lane that has column j of the same rows */
        const int lane = (int)threadIdx.x / 4 * 4 + j % 8 / 2;
        const float w[2] = {__shfl_sync(~0u, weight[j / 8][j % 2], lane),
                            __shfl_sync(~0u, weight[j / 8][2 + j % 2], lane)};
#pragma unroll
        for (int n = 0; n < D / 8; n++)
            for (int e = 0; e < 4; e++)
                sum[n][e] = __fmaf_rn(w[e / 2], columns.at[j][column_of(n, e)], sum[n][e]);
    }
}

/* --- scores --- */

/* Scores of a head, as powers of two. */
struct Scores {
    const float *bias; /* at the offset of a pixel to itself; NULL: no bias */
    int32_t wide;
    float scale;
    bool causal;

    __device__ bool sees(const Spot &query, const Spot &key) const {
        return !causal || key.y < query.y || (key.y == query.y && key.x <= query.x);
    }
    /* Can all pairs of a full tile be treated alike? first: its first query; last: its last key. */
    __device__ bool all_alike(const Spot &first, const Spot &last) const {
        return !bias && sees(first, last);
    }
    __device__ float of(float product, const Spot &query, const Spot &key) const {
        const float s = product * scale;
        return bias ? __fmaf_rn(bias[(query.y - key.y) * wide + query.x - key.x], 1.44269504f, s) : s;
    }
};

static const float LOG2_E = 1.44269504f, LN_2 = 0.693147181f;

static __device__ inline Scores scores_of(const hp_cuda_attend &a, int32_t head) {
    const int32_t wide = 2 * a.window.w - 1, places = (2 * a.window.h - 1) * wide;
    const float *bias = a.bias ? a.bias + (int64_t)(head - a.first_head) * places +
                                     (int64_t)(a.window.h - 1) * wide + a.window.w - 1
                               : NULL;
    return {bias, wide, a.scale * LOG2_E, a.causal};
}

/* What the backward pass keeps of a query. */
struct Query {
    float log_sum, product; /* in powers of two */
};

static __device__ inline Query query_of(const hp_cuda_attend &a, int64_t n, int32_t head, const Spot &p) {
    const int64_t at = query_at(a, n, p.y, p.x, head);
    return {a.log_sum[at] * LOG2_E, a.product[at]};
}

/* --- on the host --- */

/* Minimum number of blocks per multiprocessor: limits the registers. */
template <int D> static constexpr int blocks_at_once(int of_narrow) {
    return D > 64 ? 2 : of_narrow;
}

static inline dim3 strips() {
    return dim3(WARP, STRIPS);
}

/* Do two tiles of rows and two of columns fit into 48 KiB? */
static inline bool fits_tile(const hp_cuda_attend *a) {
    return a->channels <= (a->factors == HP_F32 ? 64 : 128);
}

/* Calls f with D and the types of maps and tiles, which differ only where maps are float32. */
template <typename F> static cudaError_t with_tile(const hp_cuda_attend *a, F f) {
    return with_type(a->factors, [&](auto factors) {
        using T = decltype(factors);
        const auto sized = [&](auto maps) {
            if constexpr (sizeof(T) == 2)
                if (a->channels > 64) return f(maps, factors, std::integral_constant<int, 128>());
            if (a->channels > 32) return f(maps, factors, std::integral_constant<int, 64>());
            return f(maps, factors, std::integral_constant<int, 32>());
        };
        if constexpr (sizeof(T) == 2)
            if (a->dtype == HP_F32) return sized(float());
        return sized(factors);
    });
}

#endif
