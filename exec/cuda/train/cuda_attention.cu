/* cuda_attention.cu - attention with a running maximum and sum (Milakov and Gimelshein 2018): a tile of
 * queries visits its keys tile by tile. Definition: exec/device/ref/ref_attention.c. */
#include "exec/cuda/train/attend_tile.h"

/* The other lanes of a row are adjacent. */
static __device__ inline float row_most(float mine) {
    mine = fmaxf(mine, __shfl_xor_sync(~0u, mine, 1));
    return fmaxf(mine, __shfl_xor_sync(~0u, mine, 2));
}
static __device__ inline float row_sum(float mine) {
    mine += __shfl_xor_sync(~0u, mine, 1);
    return mine + __shfl_xor_sync(~0u, mine, 2);
}

/* The lane's two rows: the largest score so far, the lane's part of the sum of weights. */
struct RunningRows {
    float most[2], sum[2];

    /* Turns scores into weights; scale: factor for earlier sums. */
    template <int C> __device__ void add(float (&score)[C][4], float (&scale)[2]) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float top = most[half];
#pragma unroll
            for (int n = 0; n < C; n++) top = fmaxf(top, fmaxf(score[n][2 * half], score[n][2 * half + 1]));
            top = row_most(top);
            const float base = top == -INFINITY ? 0.0f : top; /* -INFINITY: the row has seen no key yet */
            scale[half] = power_of_two(most[half] - base);
            most[half] = top;
            sum[half] *= scale[half];
#pragma unroll
            for (int n = 0; n < C; n++)
                for (int e = 2 * half; e < 2 * half + 2; e++) {
                    score[n][e] = power_of_two(score[n][e] - base);
                    sum[half] += score[n][e];
                }
        }
    }
};

static __device__ inline float score_of(const Scores &of, bool alike, float product, int32_t keys,
                                        const Spot &query, const Spot *key, int32_t j) {
    if (alike) return product * of.scale;
    return j < keys && of.sees(query, key[j]) ? of.of(product, query, key[j]) : -INFINITY;
}

/* Products become scores; key: the spots of the tile's keys. */
template <int C>
static __device__ inline void find_scores(float (&score)[C][4], const Scores &of, bool alike, int32_t keys,
                                          const Spot (&query)[2], const Spot *key) {
#pragma unroll
    for (int c = 0; c < C; c++)
        for (int e = 0; e < 4; e++)
            score[c][e] = score_of(of, alike, score[c][e], keys, query[e / 2], key, column_of(c, e));
}

/* The rows' factors once all keys are seen, and the logarithms of their sums. */
static __device__ inline void end_rows(const hp_cuda_attend &a, const RunningRows &run, const Pixels &rows,
                                       const Spot (&query)[2], int64_t n, int32_t head, float (&scale)[2]) {
    for (int half = 0; half < 2; half++) {
        const float sum = row_sum(run.sum[half]);
        scale[half] = 1 / sum;
        if (a.log_sum && row_of(half) < rows.n && threadIdx.x % 4 == 0)
            a.log_sum[query_at(a, n, query[half].y, query[half].x, head)] =
                (run.most[half] + log2f(sum)) * LN_2;
    }
}

template <typename T, int D> union ForwardRoom {
    struct {
        SharedTile<T, D, ROWS> q;
        SharedTile<T, D, Sizes<T, D>::COLUMNS> k, v;
    } in;
    Stage<D> out;
};

template <typename S, typename T, int D>
static __global__ __launch_bounds__(BLOCK, blocks_at_once<D>(4)) void attend_forward(hp_cuda_attend a,
                                                                                     Windows windows) {
    const int COLUMNS = Sizes<T, D>::COLUMNS;
    __shared__ ForwardRoom<T, D> room;
    __shared__ Spot key_at[COLUMNS];
    const Work work = work_of(a, windows, a.y, (int32_t)blockIdx.x);
    const Pixels &rows = work.rows;
    if (rows.n <= 0) return;
    const int32_t head = a.first_head + (int32_t)blockIdx.y;
    const Rect window = window_in(a, work.ky, work.kx, a.k);
    const Scores scores = scores_of(a, head);
    const Spot mine[2] = {spot_of(rows, row_of(0)), spot_of(rows, row_of(1))};
    const Spot first = spot_of(rows, 0);
    for (int64_t n = blockIdx.z; n < a.samples; n += gridDim.z) {
        const Operands<S> of = operands_of<S>(a, n, head);
        RunningRows run = {{-INFINITY, -INFINITY}, {0, 0}};
        float out[D / 8][4] = {}, scale[2];
        OnTheWay<T, D, COLUMNS, S> k, v;
        Pixels keys = pixels_from(window, 0, COLUMNS);
        k.fetch(of.k, keys);
        v.fetch(of.v, keys);
        __syncthreads();
        fill(room.in.q, of.q, rows);
        while (keys.n > 0 && any_seen(a, rows, keys)) {
            const int32_t here = keys.n;
            const bool alike = here == COLUMNS && scores.all_alike(first, spot_of(keys, here - 1));
            __syncthreads();
            k.arrive(room.in.k, of.k, keys);
            v.arrive(room.in.v, of.v, keys);
            find_spots(key_at, keys);
            __syncthreads();
            keys = pixels_from(window, keys.first + COLUMNS, COLUMNS);
            k.fetch(of.k, keys);
            v.fetch(of.v, keys);
            float score[COLUMNS / 8][4] = {};
            multiply(score, room.in.q, room.in.k);
            find_scores(score, scores, alike, here, mine, key_at);
            run.add(score, scale);
#pragma unroll
            for (int c = 0; c < D / 8; c++)
                for (int e = 0; e < 4; e++) out[c][e] *= scale[e / 2];
            add_weighted(out, score, room.in.v);
        }
        end_rows(a, run, rows, mine, n, head, scale);
        __syncthreads();
        put_down(room.out, out, scale);
        __syncthreads();
        give(room.out, channels_of<S>(a, a.y, n, head, false), rows);
    }
}

cudaError_t hp_cuda_attend_forward(const hp_cuda_attend *a, cudaStream_t s) {
    if (a->samples == 0 || a->heads == 0) return cudaSuccess;
    if (!fits_tile(a)) return hp_attend_wide_forward(a, s);
    const Windows w = windows_of(a, &a->y, ROWS);
    return with_tile(a, [&](auto maps, auto factors, auto d) {
        using S = decltype(maps);
        using T = decltype(factors);
        constexpr int D = decltype(d)::value;
        return HP_LAUNCH((attend_forward<S, T, D>), blocks_of(w, a->heads, a->samples), strips(), s, *a, w);
    });
}
