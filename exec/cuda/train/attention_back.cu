/* attention_back.cu - gradients of attention: scores come again from the logarithm of each query's sum. Queries' gradients
 * by tiles of queries, keys' and values' by tiles of keys, the bias's by its places: each is added up by those that own
 * it, in a fixed order. Definition: exec/device/ref/attention.c. */
#include "exec/cuda/train/attend.h"

/* --- dy times y of each query and head, which is the sum of its weights times their gradients --- */

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

/* A pair's weight, and the gradient of its score from that of the weight. */
struct Gradient {
    float weight, score;
};

static __device__ inline Gradient gradient_of(const hp_cuda_attend &a, int32_t head, const Pair &p,
                                              int64_t query, float score, float dweight) {
    const float weight = expf(score * a.scale + bias_of(a, head, p) - a.log_sum[query]);
    return {weight, weight * (dweight - a.product[query])};
}

/* --- queries --- */

template <typename T, int CHUNKS> static __global__ void attend_queries(hp_cuda_attend a, Windows windows) {
    __shared__ Tile left, right, dscore;
    const Work work = work_of(a, windows, a.y);
    const Pixels &rows = work.rows;
    const int32_t head = a.first_head + (int32_t)blockIdx.y;
    const Rect window = window_in(a, work.ky, work.kx, a.k);
    for (int64_t n = blockIdx.z; n < a.samples && rows.n > 0; n += gridDim.z) {
        const Operands<T> of = operands_of<T>(a, n, head);
        const Channels<T> dy = channels_of<T>(a, a.dy, n, head, false);
        float dq[CHUNKS][OWN] = {}, score[OWN], dweight[OWN];
        for (int32_t from = 0; from < pixels_of(window); from += TILE) {
            const Pixels keys = pixels_from(window, from);
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

/* --- keys and values: of all heads that share them --- */

template <typename T, int CHUNKS>
static __global__ void attend_keys(hp_cuda_attend a, Windows windows, int32_t first) {
    __shared__ Tile left, right, weight, dscore;
    const Work work = work_of(a, windows, a.k);
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
                const Pixels queries = pixels_from(window, from);
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

/* --- the bias by relative position: a block for each place of the table --- */

template <typename T> static __global__ void attend_bias(hp_cuda_attend a) {
    __shared__ double part[THREADS];
    const int32_t me = (int32_t)threadIdx.x, wide = 2 * a.window_w - 1;
    const int32_t dy = (int32_t)blockIdx.x / wide - a.window_h + 1,
                  dx = (int32_t)blockIdx.x % wide - a.window_w + 1;
    const int32_t head = a.first_head + (int32_t)blockIdx.y;
    const int64_t pixels = (int64_t)a.y.h * a.y.w;
    double sum = 0;
    for (int64_t i = me; i < a.samples * pixels; i += THREADS) {
        const int64_t n = i / pixels;
        const int32_t pixel = (int32_t)(i - n * pixels);
        const Pair p = {a.y.y0 + pixel / a.y.w, a.y.x0 + pixel % a.y.w, a.y.y0 + pixel / a.y.w - dy,
                        a.y.x0 + pixel % a.y.w - dx};
        const bool inside = p.ky >= 0 && p.ky < a.map_h && p.kx >= 0 && p.kx < a.map_w,
                   same = floor_of(p.qy - a.shift_h, a.window_h) == floor_of(p.ky - a.shift_h, a.window_h) &&
                          floor_of(p.qx - a.shift_w, a.window_w) == floor_of(p.kx - a.shift_w, a.window_w);
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

template <typename T> static cudaError_t back_of_bias(const hp_cuda_attend *a, cudaStream_t s) {
    if (!a->dbias) return cudaSuccess;
    const dim3 grid((unsigned)((2 * a->window_h - 1) * (2 * a->window_w - 1)), (unsigned)a->heads);
    return HP_LAUNCH(attend_bias<T>, grid, THREADS, s, *a);
}

template <typename T, int CHUNKS> static cudaError_t back_of_keys(const hp_cuda_attend *a, cudaStream_t s) {
    if (!a->dk.at && !a->dv.at) return cudaSuccess;
    const Windows w = windows_of(a, &a->k);
    const int32_t first = a->first_head / a->group,
                  end = (a->first_head + a->heads + a->group - 1) / a->group;
    return HP_LAUNCH((attend_keys<T, CHUNKS>), blocks_of(w, end - first, a->samples), warps(), s, *a, w,
                     first);
}

template <typename T, int CHUNKS>
static cudaError_t back_of_queries(const hp_cuda_attend *a, cudaStream_t s) {
    if (!a->dq.at) return cudaSuccess;
    const Windows w = windows_of(a, &a->y);
    return HP_LAUNCH((attend_queries<T, CHUNKS>), blocks_of(w, a->heads, a->samples), warps(), s, *a, w);
}

cudaError_t hp_cuda_attend_backward(const hp_cuda_attend *a, cudaStream_t s) {
    if (a->samples == 0 || a->heads == 0) return cudaSuccess;
    return with_head(a->dtype, a->channels, [&](auto type, auto chunks) {
        using T = decltype(type);
        constexpr int CHUNKS = decltype(chunks)::value;
        const int64_t rows = a->samples * a->y.h * a->y.w * a->heads;
        cudaError_t e = HP_LAUNCH(attend_products<T>, warps_for(rows), warps(), s, *a);
        if (e == cudaSuccess) e = back_of_queries<T, CHUNKS>(a, s);
        if (e == cudaSuccess) e = back_of_keys<T, CHUNKS>(a, s);
        return e == cudaSuccess ? back_of_bias<T>(a, s) : e;
    });
}
