/* attention_back.cu - gradients of attention. Scores are recomputed from the logarithm of each query's sum.
 * Tiles of queries give the queries' gradients, tiles of keys those of keys and values, and offsets that of
 * the bias. Each gradient is summed by its owner in a fixed order. Definition:
 * exec/device/ref/ref_attention.c. */
#include "exec/cuda/train/attend_tile.h"

/* --- dy times y per query and head: the sum of its weights times their gradients --- */

template <typename T> static __global__ void attend_products(hp_cuda_attend a) {
    const int64_t pixels = (int64_t)a.y.h * a.y.w, rows = a.samples * pixels * a.heads;
    for (int64_t r = warp_index(); r < rows; r += all_warps()) {
        const int64_t at = quotient(r, a.heads), n = at / pixels;
        const int32_t head = a.first_head + (int32_t)(r - at * a.heads), pixel = (int32_t)(at - n * pixels);
        const int32_t y = a.y.y0 + pixel / a.y.w, x = a.y.x0 + pixel % a.y.w;
        const Channels<T> of_y = channels_of<T>(a, a.y, n, head, false),
                          of_dy = channels_of<T>(a, a.dy, n, head, false);
        float sum = 0;
        for (int32_t c = of_y.from + (int32_t)threadIdx.x; c < of_y.to; c += WARP)
            sum += real(of_y.pixel(y, x)[c]) * real(of_dy.pixel(y, x)[c]);
        sum = warp_sum(sum);
        if (threadIdx.x == 0) a.product[r] = sum;
    }
}

/* --- a tile of pairs; rows and columns: queries and keys, or the other way round --- */

template <typename T, int D> struct TilePair {
    SharedTile<T, D, ROWS> row[2];                    /* rows of queries: q, dy; rows of keys: k, v */
    SharedTile<T, D, Sizes<T, D>::COLUMNS> column[2]; /* the others */
};

template <typename T, int D> union BackRoom {
    TilePair<T, D> in;
    Stage<D> out;
};

/* First products of queries and keys, and of dy and values; then weights and gradients of scores. */
template <int C> struct Grade { float weight[C][4], dscore[C][4]; };

template <typename T, int D, int C> static __device__ inline Grade<C> products_of(const TilePair<T, D> &in) {
    Grade<C> g = {};
    multiply(g.weight, in.row[0], in.column[0]);
    multiply(g.dscore, in.row[1], in.column[1]);
    return g;
}

/* Computes a pair's weight and the gradient of its score from the products. */
static __device__ inline void grade(const Scores &of, bool alike, bool here, const Spot &query,
                                    const Spot &key, const Query &known, float *weight, float *dscore) {
    const bool seen = alike || (here && of.sees(query, key));
    const float score = alike ? *weight * of.scale : of.of(*weight, query, key);
    *weight = seen ? power_of_two(score - known.log_sum) : 0.0f;
    *dscore = seen ? *weight * (*dscore - known.product) : 0.0f;
}

/* Rows of queries. */
template <int C>
static __device__ inline void grade_queries(Grade<C> &g, const Scores &of, bool alike, const Spot (&query)[2],
                                            const Query (&known)[2], const Spot *key, int32_t keys) {
#pragma unroll
    for (int n = 0; n < C; n++)
        for (int e = 0; e < 4; e++) {
            const int32_t j = column_of(n, e);
            grade(of, alike, j < keys, query[e / 2], key[j], known[e / 2], &g.weight[n][e], &g.dscore[n][e]);
        }
}

/* --- queries --- */

template <typename T, int D>
static __global__ __launch_bounds__(BLOCK, blocks_at_once<D>(3)) void attend_queries(hp_cuda_attend a,
                                                                                     Windows windows) {
    const int COLUMNS = Sizes<T, D>::COLUMNS;
    __shared__ BackRoom<T, D> room;
    __shared__ Spot key_at[COLUMNS];
    const Work work = work_of(a, windows, a.y, (int32_t)blockIdx.x);
    const Pixels &rows = work.rows;
    if (rows.n <= 0) return;
    const int32_t head = a.first_head + (int32_t)blockIdx.y;
    const Rect window = window_in(a, work.ky, work.kx, a.k);
    const Scores scores = scores_of(a, head);
    const Spot mine[2] = {spot_of(rows, row_of(0)), spot_of(rows, row_of(1))}, first = spot_of(rows, 0);
    for (int64_t n = blockIdx.z; n < a.samples; n += gridDim.z) {
        const Operands<T> of = operands_of<T>(a, n, head);
        const Query known[2] = {query_of(a, n, head, mine[0]), query_of(a, n, head, mine[1])};
        float dq[D / 8][4] = {};
        OnTheWay<T, D, COLUMNS> k, v;
        Pixels keys = pixels_from(window, 0, COLUMNS);
        k.fetch(of.k, keys);
        v.fetch(of.v, keys);
        __syncthreads();
        fill(room.in.row[0], of.q, rows);
        fill(room.in.row[1], channels_of<T>(a, a.dy, n, head, false), rows);
        while (keys.n > 0 && any_seen(a, rows, keys)) {
            const int32_t here = keys.n;
            const bool alike = here == COLUMNS && scores.all_alike(first, spot_of(keys, here - 1));
            __syncthreads();
            k.arrive(room.in.column[0], of.k, keys);
            v.arrive(room.in.column[1], of.v, keys);
            find_spots(key_at, keys);
            __syncthreads();
            keys = pixels_from(window, keys.first + COLUMNS, COLUMNS);
            k.fetch(of.k, keys);
            v.fetch(of.v, keys);
            auto g = products_of<T, D, COLUMNS / 8>(room.in);
            grade_queries(g, scores, alike, mine, known, key_at, here);
            add_weighted(dq, g.dscore, room.in.column[0]);
        }
        const float scale[2] = {a.scale, a.scale};
        __syncthreads();
        put_down(room.out, dq, scale);
        __syncthreads();
        give(room.out, channels_of<T>(a, a.dq, n, head, true), rows);
    }
}

/* --- keys and values: summed over all heads that share them --- */

template <typename T, int D>
static __global__ __launch_bounds__(BLOCK, blocks_at_once<D>(3)) void attend_keys(hp_cuda_attend a,
                                                                                  Windows windows,
                                                                                  int32_t first) {
    const int COLUMNS = Sizes<T, D>::COLUMNS;
    __shared__ BackRoom<T, D> room;
    __shared__ Spot query_spot[COLUMNS];
    __shared__ Query known[COLUMNS];
    const Work work = work_of(a, windows, a.k, (int32_t)blockIdx.x);
    const Pixels &rows = work.rows;
    if (rows.n <= 0) return;
    const int32_t shared = first + (int32_t)blockIdx.y;
    const Rect window = window_in(a, work.ky, work.kx, a.y);
    const Spot mine[2] = {spot_of(rows, row_of(0)), spot_of(rows, row_of(1))},
               last = spot_of(rows, rows.n - 1);
    for (int64_t n = blockIdx.z; n < a.samples; n += gridDim.z) {
        float dk[D / 8][4] = {}, dv[D / 8][4] = {};
        __syncthreads();
        fill(room.in.row[0], channels_of<T>(a, a.k, n, shared, true), rows);
        fill(room.in.row[1], channels_of<T>(a, a.v, n, shared, false), rows);
        for (int32_t head = shared * a.group; head < (shared + 1) * a.group; head++) {
            if (head < a.first_head || head >= a.first_head + a.heads) continue;
            const Channels<T> q = channels_of<T>(a, a.q, n, head, true),
                              dy = channels_of<T>(a, a.dy, n, head, false);
            const Scores scores = scores_of(a, head);
            OnTheWay<T, D, COLUMNS> q_next, dy_next;
            Pixels queries = pixels_from(window, 0, COLUMNS);
            while (queries.n > 0 && !any_seen(a, queries, rows))
                queries = pixels_from(window, queries.first + COLUMNS, COLUMNS);
            q_next.fetch(q, queries);
            dy_next.fetch(dy, queries);
            while (queries.n > 0) {
                const int32_t here = queries.n;
                const bool alike = here == COLUMNS && scores.all_alike(spot_of(queries, 0), last);
                __syncthreads();
                q_next.arrive(room.in.column[0], q, queries);
                dy_next.arrive(room.in.column[1], dy, queries);
                find_spots(query_spot, queries);
                if (thread_of_block() < COLUMNS)
                    known[thread_of_block()] = query_of(a, n, head, spot_of(queries, thread_of_block()));
                __syncthreads();
                queries = pixels_from(window, queries.first + COLUMNS, COLUMNS);
                q_next.fetch(q, queries);
                dy_next.fetch(dy, queries);
                auto g = products_of<T, D, COLUMNS / 8>(room.in);
#pragma unroll
                for (int c = 0; c < COLUMNS / 8; c++)
                    for (int e = 0; e < 4; e++) {
                        const int32_t j = column_of(c, e);
                        grade(scores, alike, j < here, query_spot[j], mine[e / 2], known[j], &g.weight[c][e],
                              &g.dscore[c][e]);
                    }
                add_weighted(dv, g.weight, room.in.column[1]);
                add_weighted(dk, g.dscore, room.in.column[0]);
            }
        }
        const float scale[2] = {a.scale, a.scale}, one[2] = {1, 1};
        if (a.dk.at) {
            __syncthreads();
            put_down(room.out, dk, scale);
            __syncthreads();
            give(room.out, channels_of<T>(a, a.dk, n, shared, true), rows);
        }
        if (a.dv.at) {
            __syncthreads();
            put_down(room.out, dv, one);
            __syncthreads();
            give(room.out, channels_of<T>(a, a.dv, n, shared, false), rows);
        }
    }
}

/* --- the bias by relative position --- */

/* Sums a tile's gradients by offset: one thread per offset, which walks through the queries. */
template <int C>
static __device__ inline void add_places(const hp_cuda_attend &a, const float (&dscore)[ROWS][C],
                                         const Spot *query, int32_t queries, const Pixels &keys,
                                         double *partial) {
    const int32_t wide = 2 * a.window.w - 1, places = (2 * a.window.h - 1) * wide;
    for (int32_t place = thread_of_block(); place < places; place += BLOCK) {
        const int32_t dy = place / wide - a.window.h + 1, dx = place % wide - a.window.w + 1;
        float sum = 0;
        for (int32_t r = 0; r < queries; r++) {
            const int32_t y = query[r].y - dy - keys.in.y0, x = query[r].x - dx - keys.in.x0;
            const int32_t j = y * keys.in.w + x - keys.first;
            if (y >= 0 && x >= 0 && x < keys.in.w && j >= 0 && j < keys.n) sum += dscore[r][j];
        }
        partial[place] += (double)sum;
    }
}

/* A block handles every (gridDim.x)th tile of queries, window and sample of one head. */
template <typename T, int D>
static __global__ __launch_bounds__(BLOCK, blocks_at_once<D>(3)) void attend_bias(hp_cuda_attend a,
                                                                                  Windows windows) {
    const int COLUMNS = Sizes<T, D>::COLUMNS;
    __shared__ TilePair<T, D> in;
    __shared__ float dscore[ROWS][COLUMNS + 1];
    __shared__ Spot key_at[COLUMNS], query_spot[ROWS];
    const int32_t head = a.first_head + (int32_t)blockIdx.y,
                  places = (2 * a.window.h - 1) * (2 * a.window.w - 1),
                  tiles = windows.h * windows.w * windows.tiles;
    double *partial = a.partial + ((int64_t)blockIdx.x * gridDim.y + blockIdx.y) * places;
    const Scores scores = scores_of(a, head);
    for (int32_t place = thread_of_block(); place < places; place += BLOCK) partial[place] = 0;
    for (int64_t i = blockIdx.x; i < a.samples * tiles; i += gridDim.x) {
        const int64_t n = i / tiles;
        const Work work = work_of(a, windows, a.y, (int32_t)(i - n * tiles));
        const Pixels &rows = work.rows;
        if (rows.n <= 0) continue;
        const Rect window = window_in(a, work.ky, work.kx, a.k);
        const Operands<T> of = operands_of<T>(a, n, head);
        const Spot mine[2] = {spot_of(rows, row_of(0)), spot_of(rows, row_of(1))};
        const Query known[2] = {query_of(a, n, head, mine[0]), query_of(a, n, head, mine[1])};
        __syncthreads();
        find_spots(query_spot, rows);
        fill(in.row[0], of.q, rows);
        fill(in.row[1], channels_of<T>(a, a.dy, n, head, false), rows);
        for (int32_t from = 0; from < pixels_of(window); from += COLUMNS) {
            const Pixels keys = pixels_from(window, from, COLUMNS);
            __syncthreads();
            fill(in.column[0], of.k, keys);
            fill(in.column[1], of.v, keys);
            find_spots(key_at, keys);
            __syncthreads();
            auto g = products_of<T, D, COLUMNS / 8>(in);
            grade_queries(g, scores, false, mine, known, key_at, keys.n);
#pragma unroll
            for (int c = 0; c < COLUMNS / 8; c++)
                for (int e = 0; e < 4; e++) dscore[row_of(e / 2)][column_of(c, e)] = g.dscore[c][e];
            __syncthreads();
            add_places(a, dscore, query_spot, rows.n, keys, partial);
        }
    }
}

static __global__ void attend_bias_sum(hp_cuda_attend a, int32_t places) {
    for (int64_t i = thread_index(); i < (int64_t)places * a.heads; i += all_threads()) {
        double sum = 0;
        for (int part = 0; part < HP_GPU_BIAS_PARTS; part++)
            sum += a.partial[part * (int64_t)places * a.heads + i];
        a.dbias[i] = (a.add ? a.dbias[i] : 0.0f) + (float)sum;
    }
}

/* --- launchers --- */

template <typename T, int D> static cudaError_t back_of_bias(const hp_cuda_attend *a, cudaStream_t s) {
    if (!a->dbias) return cudaSuccess;
    const int32_t places = (2 * a->window.h - 1) * (2 * a->window.w - 1);
    const dim3 parts(HP_GPU_BIAS_PARTS, (unsigned)a->heads);
    const cudaError_t e = HP_LAUNCH((attend_bias<T, D>), parts, strips(), s, *a, windows_of(a, &a->y, ROWS));
    if (e != cudaSuccess) return e;
    return HP_LAUNCH(attend_bias_sum, blocks_for((int64_t)places * a->heads), THREADS, s, *a, places);
}

template <typename T, int D> static cudaError_t back_of_keys(const hp_cuda_attend *a, cudaStream_t s) {
    if (!a->dk.at && !a->dv.at) return cudaSuccess;
    const Shared heads = shared_of(a);
    const Windows w = windows_of(a, &a->k, ROWS);
    return HP_LAUNCH((attend_keys<T, D>), blocks_of(w, heads.n, a->samples), strips(), s, *a, w, heads.first);
}

template <typename T, int D> static cudaError_t back_of_queries(const hp_cuda_attend *a, cudaStream_t s) {
    if (!a->dq.at) return cudaSuccess;
    const Windows w = windows_of(a, &a->y, ROWS);
    return HP_LAUNCH((attend_queries<T, D>), blocks_of(w, a->heads, a->samples), strips(), s, *a, w);
}

static cudaError_t products(const hp_cuda_attend *a, cudaStream_t s) {
    const int64_t rows = a->samples * a->y.h * a->y.w * a->heads;
    return with_type(a->dtype, [&](auto type) {
        return HP_LAUNCH(attend_products<decltype(type)>, warps_for(rows), warps(), s, *a);
    });
}

cudaError_t hp_cuda_attend_backward(const hp_cuda_attend *a, cudaStream_t s) {
    if (a->samples == 0 || a->heads == 0) return cudaSuccess;
    const cudaError_t e = products(a, s);
    if (e != cudaSuccess) return e;
    if (!fits_tile(a)) return hp_attend_wide_backward(a, s);
    return with_tile(a, [&](auto, auto type, auto d) {
        using T = decltype(type);
        constexpr int D = decltype(d)::value;
        cudaError_t x = back_of_queries<T, D>(a, s);
        if (x == cudaSuccess) x = back_of_keys<T, D>(a, s);
        return x == cudaSuccess ? back_of_bias<T, D>(a, s) : x;
    });
}
