/* attention.cu - attention with a running maximum and sum (Milakov and Gimelshein 2018): a tile of queries meets its
 * keys tile by tile. Definition: exec/device/ref/attention.c. */
#include "exec/cuda/train/attend.h"

/* Scores of a row become weights, and what was added up before is scaled to the new maximum. */
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

template <typename T, int CHUNKS> static __global__ void attend_forward(hp_cuda_attend a, Windows windows) {
    __shared__ Tile left, right, weight;
    const Work work = work_of(a, windows, a.y);
    const Pixels &rows = work.rows;
    const int32_t head = a.first_head + (int32_t)blockIdx.y;
    const Rect window = window_in(a, work.ky, work.kx, a.k);
    for (int64_t n = blockIdx.z; n < a.samples && rows.n > 0; n += gridDim.z) {
        const Operands<T> of = operands_of<T>(a, n, head);
        Running run[OWN];
        float out[CHUNKS][OWN] = {}, score[OWN];
        for (int i = 0; i < OWN; i++) run[i] = {-INFINITY, 0};
        for (int32_t from = 0; from < pixels_of(window); from += TILE) {
            const Pixels keys = pixels_from(window, from);
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

cudaError_t hp_cuda_attend_forward(const hp_cuda_attend *a, cudaStream_t s) {
    if (a->samples == 0 || a->heads == 0) return cudaSuccess;
    const Windows w = windows_of(a, &a->y);
    return with_head(a->dtype, a->channels, [&](auto type, auto chunks) {
        using T = decltype(type);
        constexpr int CHUNKS = decltype(chunks)::value;
        return HP_LAUNCH((attend_forward<T, CHUNKS>), blocks_of(w, a->heads, a->samples), warps(), s, *a, w);
    });
}
