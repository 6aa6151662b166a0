/* cuda_tokens.cu - tables of embeddings and positions, and sums over blocks of channels. The thread that owns
 * an element of a table sums its gradient, in the order of the pixels: no atomics. Definition:
 * exec/device/ref/ref_tokens.c. */
#include "exec/cuda/train/cuda_train_kernel.h"

/* --- embedding --- */

static __device__ inline int32_t row_of(const hp_cuda_embedding &e, int64_t pixel) {
    const float id = e.id[pixel], last = (float)(e.all - 1);
    return (id > 0 ? (int32_t)(id < last ? id : last) : 0) - e.first;
}

template <typename T> static __global__ void embed(T *y, const float *table, hp_cuda_embedding e) {
    const int64_t step = (int64_t)gridDim.y * blockDim.y;
    const int32_t across = (int32_t)(gridDim.x * blockDim.x);
    for (int64_t p = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; p < e.pixels; p += step) {
        const int32_t row = row_of(e, p);
        const bool here = row >= 0 && row < e.rows;
        for (int32_t c = (int32_t)thread_index(); c < e.channels; c += across)
            round_to(y + p * e.channels + c, here ? table[(int64_t)row * e.channels + c] : 0.0f);
    }
}

/* One block per row of the table. It searches as many pixels at a time as it has threads for the row, and
 * adds up those found, EMBED_EACH channels per thread; more channels take another pass. */
enum { EMBED_EACH = 4 };

template <typename T>
static __global__ void embed_backward(float *grad, const T *dy, hp_cuda_embedding e, bool add) {
    __shared__ unsigned char mine[THREADS];
    __shared__ int32_t found;
    const int32_t me = (int32_t)threadIdx.x;
    for (int32_t row = (int32_t)blockIdx.x; row < e.rows; row += (int32_t)gridDim.x)
        for (int32_t from = 0; from < e.channels; from += EMBED_EACH * THREADS) {
            float *to = grad + (int64_t)row * e.channels;
            BlockedSum<EMBED_EACH> sum;
            for (int64_t p = 0; p < e.pixels; p += THREADS) {
                __syncthreads(); /* the previous batch has been read */
                if (me == 0) found = 0;
                __syncthreads();
                mine[me] = p + me < e.pixels && row_of(e, p + me) == row;
                if (mine[me]) atomicAdd(&found, 1);
                __syncthreads();
                for (int32_t k = 0, left = found; left > 0; k++) {
                    float v[EMBED_EACH] = {};
                    if (!mine[k]) continue;
                    left--;
                    for (int32_t j = 0, c = from + me; j < EMBED_EACH && c < e.channels; j++, c += THREADS)
                        v[j] = real(dy[(p + k) * e.channels + c]);
                    sum.add(v);
                }
            }
            for (int32_t j = 0, c = from + me; j < EMBED_EACH && c < e.channels; j++, c += THREADS)
                to[c] = (add ? to[c] : 0.0f) + sum.total(j);
        }
}

/* --- places --- */

/* The table's element for element i of a sample's box. */
static __device__ inline int64_t place_of(const hp_cuda_places &p, int64_t i) {
    const int64_t pixel = quotient(i, p.c), row = quotient(pixel, p.w);
    return p.first + row * p.row + (pixel - row * p.w) * p.pixel + i - pixel * p.c;
}

template <typename T>
static __global__ void add_places(T *y, const T *x, const float *table, hp_cuda_places p) {
    const int64_t box = (int64_t)p.h * p.w * p.c;
    for (int64_t i = thread_index(); i < box; i += all_threads()) {
        const float v = table[place_of(p, i)];
        for (int64_t n = 0; n < p.samples; n++) {
            const int64_t at = n * p.sample + i;
            round_to(y + at, (x ? real(x[at]) : 0.0f) + v);
        }
    }
}

template <typename T>
static __global__ void sum_places(float *grad, const T *dy, hp_cuda_places p, bool add) {
    const int64_t box = (int64_t)p.h * p.w * p.c;
    for (int64_t i = thread_index(); i < box; i += all_threads()) {
        float *to = grad + place_of(p, i), sum = add ? *to : 0.0f;
        for (int64_t n = 0; n < p.samples; n++) sum += real(dy[n * p.sample + i]);
        *to = sum;
    }
}

/* --- sums of blocks --- */

template <typename T>
static __global__ void sum_blocks(T *y, const T *x, const float *bias, int64_t n, int32_t outs, int32_t ins) {
    for (int64_t i = thread_index(); i < n; i += all_threads()) {
        const int64_t pixel = quotient(i, outs);
        const int32_t c = (int32_t)(i - pixel * outs);
        float sum = bias ? bias[c] : 0.0f;
        for (int32_t k = c; k < ins; k += outs) sum += real(x[pixel * ins + k]);
        round_to(y + i, sum);
    }
}

/* --- launchers --- */

cudaError_t hp_cuda_embed(hp_dtype t, void *y, const float *table, const hp_cuda_embedding *e,
                          cudaStream_t s) {
    if (e->pixels == 0 || e->channels == 0) return cudaSuccess;
    const Matrix m = matrix_of(e->pixels, e->channels, 1, MOST_BLOCKS);
    return with_type(t, [&](auto type) {
        using T = decltype(type);
        return HP_LAUNCH(embed<T>, m.grid, m.block, s, (T *)y, table, *e);
    });
}

cudaError_t hp_cuda_embed_backward(hp_dtype t, float *grad, const void *dy, const hp_cuda_embedding *e,
                                   bool add, cudaStream_t s) {
    if (e->channels == 0) return cudaSuccess;
    return with_type(t, [&](auto type) {
        using T = decltype(type);
        return HP_LAUNCH(embed_backward<T>, dim3((unsigned)e->rows), THREADS, s, grad, (const T *)dy, *e,
                         add);
    });
}

static int64_t box_of(const hp_cuda_places *p) {
    return (int64_t)p->h * p->w * p->c;
}

cudaError_t hp_cuda_add_places(hp_dtype t, void *y, const void *x, const float *table,
                               const hp_cuda_places *p, cudaStream_t s) {
    if (p->samples == 0 || box_of(p) == 0) return cudaSuccess;
    return with_type(t, [&](auto type) {
        using T = decltype(type);
        return HP_LAUNCH(add_places<T>, blocks_for(box_of(p)), THREADS, s, (T *)y, (const T *)x, table, *p);
    });
}

cudaError_t hp_cuda_sum_places(hp_dtype t, float *grad, const void *dy, const hp_cuda_places *p, bool add,
                               cudaStream_t s) {
    if (box_of(p) == 0) return cudaSuccess;
    return with_type(t, [&](auto type) {
        using T = decltype(type);
        return HP_LAUNCH(sum_places<T>, blocks_for(box_of(p)), THREADS, s, grad, (const T *)dy, *p, add);
    });
}

cudaError_t hp_cuda_sum_blocks(hp_dtype t, void *y, const void *x, const float *bias, int64_t pixels,
                               int32_t outs, int32_t ins, cudaStream_t s) {
    if (pixels == 0 || outs == 0) return cudaSuccess;
    return with_type(t, [&](auto type) {
        using T = decltype(type);
        return HP_LAUNCH(sum_blocks<T>, blocks_for(pixels * outs), THREADS, s, (T *)y, (const T *)x, bias,
                         pixels * outs, outs, ins);
    });
}
