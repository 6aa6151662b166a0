/* cuda_move.cu - moves runs of elements: copies between boxes, concatenation, padding. A copy does not depend
 * on the element type, so it uses the widest words to which all addresses are aligned. */
#include "exec/cuda/train/cuda_train_kernel.h"

/* The first element of run `r` on either side. */
static __device__ inline void run_start(const hp_cuda_runs &m, int64_t r, int64_t *to, int64_t *from) {
    const int64_t row = r / m.n[2], slab = row / m.n[1],
                  at[3] = {slab, row - slab * m.n[1], r - row * m.n[2]};
    *to = *from = 0;
    for (int a = 0; a < 3; a++) {
        *to += at[a] * m.to_stride[a];
        *from += at[a] * m.from_stride[a];
    }
}

template <typename Word> static __global__ void move_words(hp_cuda_runs m) {
    const int64_t runs = m.n[0] * m.n[1] * m.n[2], step = (int64_t)gridDim.y * blockDim.y;
    for (int64_t r = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; r < runs; r += step) {
        int64_t to, from;
        run_start(m, r, &to, &from);
        for (int64_t i = thread_index(); i < m.run; i += all_threads())
            ((Word *)m.to)[to + i] = ((const Word *)m.from)[from + i];
    }
}

template <typename T> static __global__ void add_elements(hp_cuda_runs m) {
    const int64_t runs = m.n[0] * m.n[1] * m.n[2], step = (int64_t)gridDim.y * blockDim.y;
    for (int64_t r = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; r < runs; r += step) {
        int64_t to, from;
        run_start(m, r, &to, &from);
        for (int64_t i = thread_index(); i < m.run; i += all_threads()) {
            float a[1], b[1];
            load<T, 1>(a, (const T *)m.to, to + i);
            load<T, 1>(b, (const T *)m.from, from + i);
            a[0] += b[0];
            store<T, 1>((T *)m.to, to + i, a);
        }
    }
}

/* --- launchers --- */

static int64_t runs_of(const hp_cuda_runs *r) {
    return r->n[0] * r->n[1] * r->n[2];
}

/* Threads along a run, blocks across runs; a long run gets several blocks. */
static Matrix threads_for(const hp_cuda_runs *r) {
    Matrix m = {dim3(1), dim3(1)};
    while (m.block.x < THREADS && m.block.x < (uint64_t)r->run) m.block.x *= 2;
    m.block.y = THREADS / m.block.x;
    const int64_t down = (runs_of(r) + m.block.y - 1) / m.block.y, across = (r->run + THREADS - 1) / THREADS;
    m.grid.y = down < MOST_BLOCKS ? (unsigned)down : (unsigned)MOST_BLOCKS;
    const int64_t most = MOST_BLOCKS / m.grid.y;
    m.grid.x = (unsigned)(across < most ? across : most);
    return m;
}

/* The same runs, counted in words of `elements` elements. */
static hp_cuda_runs in_words(const hp_cuda_runs *r, int64_t elements) {
    hp_cuda_runs w = *r;
    w.run /= elements;
    for (int a = 0; a < 3; a++) {
        w.to_stride[a] /= elements;
        w.from_stride[a] /= elements;
    }
    return w;
}

static int word_bytes(int element_bytes, const hp_cuda_runs *r) {
    uint64_t all = (uint64_t)(uintptr_t)r->to | (uint64_t)(uintptr_t)r->from |
                   (uint64_t)r->run * (uint64_t)element_bytes;
    for (int a = 0; a < 3; a++)
        if (r->n[a] > 1) all |= (uint64_t)(r->to_stride[a] | r->from_stride[a]) * (uint64_t)element_bytes;
    int word = element_bytes;
    while (word < 16 && all % (2 * (uint64_t)word) == 0) word *= 2;
    return word;
}

cudaError_t hp_cuda_move(int element_bytes, const hp_cuda_runs *r, cudaStream_t s) {
    if (runs_of(r) == 0 || r->run == 0) return cudaSuccess;
    const int word = word_bytes(element_bytes, r);
    const hp_cuda_runs w = in_words(r, word / element_bytes);
    const Matrix m = threads_for(&w);
    if (word == 16) return HP_LAUNCH(move_words<int4>, m.grid, m.block, s, w);
    if (word == 8) return HP_LAUNCH(move_words<uint64_t>, m.grid, m.block, s, w);
    if (word == 4) return HP_LAUNCH(move_words<uint32_t>, m.grid, m.block, s, w);
    if (word == 2) return HP_LAUNCH(move_words<uint16_t>, m.grid, m.block, s, w);
    return HP_LAUNCH(move_words<uint8_t>, m.grid, m.block, s, w);
}

cudaError_t hp_cuda_move_add(hp_dtype t, const hp_cuda_runs *r, cudaStream_t s) {
    if (runs_of(r) == 0 || r->run == 0) return cudaSuccess;
    const Matrix m = threads_for(r);
    return with_type(t, [&](auto type) {
        using T = decltype(type);
        return HP_LAUNCH(add_elements<T>, m.grid, m.block, s, *r);
    });
}
