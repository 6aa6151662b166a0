/* bytes.cu - convolutions of bytes: u8 activations times s8 weights as an implicit matrix product on
 * the tensor cores, sums exact in 32 bits, ended by the formula of exec/device/kernels/panel.h.
 *
 * A block makes 128 pixels x 128 (or 64) outputs in steps of 64 products: 256 threads, each with up to 64
 * sums. Both operands go through shared memory, 16 bytes to a chunk and 4 chunks to a row; chunk c of row r
 * lies at c ^ (r / 2 % 4), so that neither the stores of 16 bytes nor the loads of fragments (8 rows x 4
 * words) meet in a bank. The next step is on its way in registers while this one is multiplied. Blocks that
 * share pixels follow each other, so that these come from the second-level cache.
 *
 * Measured on an H100, ResNet-101 at 256 x 256, 64 images: 101 of the 1979 dense Tops that its data sheet
 * promises to wgmma, 197 in 3x3 layers of 256 channels. Limits: a step of a block is 2 * 128 * 128 * 64
 * operations for 16 KiB of loads, 128 operations to a byte, most of which the second-level cache serves;
 * mma.sync reaches a part of what wgmma does. Layers of few channels, 1x1 ones of 64 to 256, are bound by
 * memory: by their own bytes, since every output is written once and every input comes from memory about once.
 * Where a group's inputs are no multiple of 16 a load is 4 bytes or one, bound by the arithmetic of addresses;
 * groups of few outputs leave most of a tile empty. */
#include "exec/cuda/infer/pixels.h"
#include "exec/cuda/runtime/mma.h"

enum { BM = 128, BK = 64, CHUNK = 16, CHUNKS = BK / CHUNK };

/* What a block works on. */
typedef struct Block {
    int64_t pixel;  /* first */
    int32_t out, g; /* first output of the group; the group */
} Block;

template <int BN> static __device__ inline Block block_of(const hp_cuda_bytes &c) {
    const uint32_t across = (uint32_t)((c.taps.outs + BN - 1) / BN);
    return {(int64_t)(blockIdx.x / across) * BM, (int32_t)(blockIdx.x % across) * BN, (int32_t)blockIdx.y};
}

static __device__ inline int swizzled(int row, int chunk) {
    return row * CHUNKS + (chunk ^ (row / 2 % CHUNKS));
}

static __device__ inline uint32_t four_times(int32_t byte) {
    return (uint32_t)byte * 0x01010101u;
}

/* --- from memory to registers --- */

/* A byte that the tap reads. */
static __device__ inline uint32_t byte_under(const hp_cuda_bytes &c, const Pixel &p, const Tap &a, int32_t g,
                                             int32_t zero) {
    const int64_t at = is_filling(c.taps, a) ? -1 : element_under(c.taps, p, a, g);
    return at < 0 ? (uint32_t)zero : ((const uint8_t *)c.taps.x)[at];
}

/* Four bytes, of one tap where W = 4. */
template <int W>
static __device__ inline uint32_t word_under(const hp_cuda_bytes &c, const Pixel &p, Tap &a, int32_t g,
                                             int32_t zero) {
    uint32_t word = 0;
    if constexpr (W == 4) {
        const int64_t at = is_filling(c.taps, a) ? -1 : element_under(c.taps, p, a, g);
        word = at < 0 ? four_times(zero) : *(const uint32_t *)((const uint8_t *)c.taps.x + at);
        advance(c.taps, a, 4);
    } else {
        HP_ROLLED
        for (int i = 0; i < 4; i++, advance(c.taps, a, 1)) word |= byte_under(c, p, a, g, zero) << 8 * i;
    }
    return word;
}

/* W = 16, 4 or 1 bytes at a time. */
template <int W>
static __device__ inline uint4 inputs_at(const hp_cuda_bytes &c, const Pixel &p, int64_t k, int32_t g,
                                         int32_t zero) {
    Tap a = tap_of(c.taps, k);
    uint4 to;
    if constexpr (W == CHUNK) {
        const int64_t at = is_filling(c.taps, a) ? -1 : element_under(c.taps, p, a, g);
        const uint32_t z = four_times(zero);
        to = at < 0 ? make_uint4(z, z, z, z) : *(const uint4 *)((const uint8_t *)c.taps.x + at);
    } else {
        to.x = word_under<W>(c, p, a, g, zero);
        to.y = word_under<W>(c, p, a, g, zero);
        to.z = word_under<W>(c, p, a, g, zero);
        to.w = word_under<W>(c, p, a, g, zero);
    }
    return to;
}

template <int W>
static __device__ inline uint4 weights_at(const hp_cuda_bytes &c, int32_t out, int64_t k, int32_t g) {
    union {
        uint32_t word[4];
        uint4 all;
    } to;
    to.all = make_uint4(0, 0, 0, 0);
    if (out >= c.taps.outs || k >= c.taps.weight_row) return to.all;
    const int8_t *w =
        (const int8_t *)c.taps.weight + ((int64_t)g * c.taps.outs + out) * c.taps.weight_row + k;
    if constexpr (W == CHUNK) {
        to.all = *(const uint4 *)w;
    } else {
        HP_UNROLL
        for (int i = 0; i < 4; i++)
            if (k + 4 * i < c.taps.weight_row) to.word[i] = ((const uint32_t *)w)[i];
    }
    return to.all;
}

/* A thread's chunks of the next step: rows 64 apart. */
template <int BN> struct Ahead { uint4 x[BM / 64], w[BN / 64]; };

template <int BN, int W>
static __device__ inline void fetch(const hp_cuda_bytes &c, const Block &b, const Pixel (&p)[BM / 64],
                                    int64_t step, int32_t zero, Ahead<BN> &to) {
    const int row = (int)threadIdx.x / CHUNKS;
    const int64_t k = step * BK + (int64_t)(threadIdx.x % CHUNKS) * CHUNK;
    HP_UNROLL
    for (int i = 0; i < BM / 64; i++) to.x[i] = inputs_at<W>(c, p[i], k, b.g, zero);
    HP_UNROLL
    for (int i = 0; i < BN / 64; i++) to.w[i] = weights_at<W>(c, b.out + row + 64 * i, k, b.g);
}

template <int BN> static __device__ inline void put_down(uint4 *x, uint4 *w, const Ahead<BN> &from) {
    const int row = (int)threadIdx.x / CHUNKS, chunk = (int)threadIdx.x % CHUNKS;
    HP_UNROLL
    for (int i = 0; i < BM / 64; i++) x[swizzled(row + 64 * i, chunk)] = from.x[i];
    HP_UNROLL
    for (int i = 0; i < BN / 64; i++) w[swizzled(row + 64 * i, chunk)] = from.w[i];
}

/* --- products --- */

/* Warps of a block: WM down, 8 / WM across; a warp's tiles of 16 x 8. */
template <int BN> struct Warps {
    static const int WM = BN == 128 ? 2 : 4, WN = 8 / WM, MT = BM / WM / 16, NT = BN / WN / 8;
    int32_t sum[MT][NT][4];
    static __device__ inline int row(int m) {
        return ((int)threadIdx.x / 32 % WM * MT + m) * 16 + (int)threadIdx.x % 32 / 4;
    }
    static __device__ inline int column(int n) {
        return ((int)threadIdx.x / 32 / WM * NT + n) * 8;
    }
};

/* A word of chunk `chunk` of the row `down` (a multiple of 8) after the lane's first, which has `swap` in
 * place of row / 2 % 4: what is left of swizzled(), so that addresses differ by constants. */
static __device__ inline uint32_t word_at(const uint4 *first, int down, int chunk, int swap) {
    return ((const uint32_t *)(first + down * CHUNKS + (chunk ^ swap)))[threadIdx.x % 4];
}

template <int BN> static __device__ inline void multiply(Warps<BN> &t, const uint4 *x, const uint4 *w) {
    const int g = (int)threadIdx.x % 32 / 4, swap = g / 2 % CHUNKS;
    const uint4 *const xs = x + t.row(0) * CHUNKS, *const ws = w + (t.column(0) + g) * CHUNKS;
    HP_UNROLL
    for (int chunk = 0; chunk < CHUNKS; chunk += 2) {
        uint32_t b[Warps<BN>::NT][2];
        HP_UNROLL
        for (int n = 0; n < Warps<BN>::NT; n++) HP_UNROLL
        for (int i = 0; i < 2; i++) b[n][i] = word_at(ws, 8 * n, chunk + i, swap);
        HP_UNROLL
        for (int m = 0; m < Warps<BN>::MT; m++) {
            uint32_t a[4];
            HP_UNROLL
            for (int i = 0; i < 4; i++) a[i] = word_at(xs, 16 * m + i % 2 * 8, chunk + i / 2, swap);
            HP_UNROLL
            for (int n = 0; n < Warps<BN>::NT; n++) hp_mma_u8s8_16x8x32(t.sum[m][n], a, b[n]);
        }
    }
}

/* --- what becomes of the sums --- */

/* Sums pass through shared memory, 16 rows of a warp at a time, so that memory sees whole rows. 4 words more
 * than a row has keep rows in different banks. */
template <int BN> struct Slab {
    static const int ROWS = Warps<BN>::WM * 16, PITCH = BN + 4;
    int32_t *at;
};

/* Tile `m` of every warp. */
template <int BN> static __device__ inline void put_sums(const Warps<BN> &w, int m, const Slab<BN> &s) {
    const int row = (int)threadIdx.x / 32 % Warps<BN>::WM * 16 + (int)threadIdx.x % 32 / 4;
    HP_UNROLL
    for (int i = 0; i < Warps<BN>::MT; i++) HP_UNROLL
    for (int n = 0; n < Warps<BN>::NT; n++) HP_UNROLL
    for (int k = 0; k < 4; k++)
        if (i == m)
            s.at[(row + k / 2 * 8) * Slab<BN>::PITCH + w.column(n) + (int)threadIdx.x % 4 * 2 + k % 2] =
                w.sum[i][n][k];
}

/* What ends the sums of V neighbouring outputs: the same for all pixels but at borders. */
template <int V> struct Ends {
    int64_t output; /* first */
    float scale[V], shift[V];
    uint32_t share[V]; /* the zero point's */
};

template <int V>
static __device__ inline Ends<V> ends_of(const hp_cuda_bytes &c, int64_t output, int32_t zero) {
    Ends<V> e = {output, {}, {}, {}};
    for (int k = 0; k < V; k++) {
        e.scale[k] = c.scale[output + k];
        e.shift[k] = c.share ? 0 : c.shift[output + k];
        e.share[k] = c.total ? (uint32_t)zero * (uint32_t)c.total[output + k] : 0;
    }
    return e;
}

/* V neighbours of a row. All 32 bits wrap, as in whole_sum(). */
template <int V>
static __device__ inline void finish_sums(const hp_cuda_bytes &c, const Pixel &p, int64_t y, const Ends<V> &e,
                                          const int32_t *sum) {
    float v[V];
    for (int k = 0; k < V; k++)
        v[k] = __fmaf_rn(e.scale[k], (float)(int32_t)((uint32_t)sum[k] - e.share[k]),
                         c.share ? shift_of(c, p, e.output + k) : e.shift[k]);
    finish_at<V>(c.finish, y, v);
}

/* Outputs of one thread of a slab: four columns, of every so manieth row. */
template <int BN> struct Column {
    static const int ACROSS = BN / 4, DOWN = THREADS / ACROSS;
    int first, row;
    static __device__ inline Column of_thread() {
        return {(int)threadIdx.x % ACROSS * 4, (int)threadIdx.x / ACROSS};
    }
};

template <int BN>
static __device__ inline void finish_slab(const hp_cuda_bytes &c, const Block &b, int m, int32_t zero,
                                          bool fours, const Ends<4> &ends, const Slab<BN> &s) {
    const Column<BN> mine = Column<BN>::of_thread();
    const int32_t out = b.out + mine.first;
    for (int row = mine.row; row < Slab<BN>::ROWS && out < c.taps.outs; row += Column<BN>::DOWN) {
        const int64_t pixel = b.pixel + (row / 16 * Warps<BN>::MT + m) * 16 + row % 16;
        if (pixel >= pixels_of(c.taps)) continue;
        const Pixel p = c.share ? pixel_of(c.taps, pixel) : Pixel{};
        const int64_t output = (int64_t)b.g * c.taps.outs + out, y = pixel * c.taps.shape.oc + output;
        const int32_t *sum = s.at + row * Slab<BN>::PITCH + mine.first;
        HP_ROLLED
        for (int k = 0; !fours && k < 4 && out + k < c.taps.outs; k++)
            finish_sums<1>(c, p, y + k, ends_of<1>(c, output + k, zero), sum + k);
        if (fours) finish_sums<4>(c, p, y, ends, sum);
    }
}

template <int BN>
static __device__ inline void finish(const hp_cuda_bytes &c, const Block &b, const Warps<BN> &w, int32_t zero,
                                     const Slab<BN> &s) {
    const unsigned aligned = c.finish.put.to.dtype == HP_U8 ? 4 : 16;
    const bool fours =
        c.taps.shape.oc % 4 == 0 && c.taps.outs % 4 == 0 && (uint64_t)c.finish.y % aligned == 0;
    const int32_t out = b.out + Column<BN>::of_thread().first;
    Ends<4> ends = {};
    if (fours && out < c.taps.outs) ends = ends_of<4>(c, (int64_t)b.g * c.taps.outs + out, zero);
    HP_ROLLED
    for (int m = 0; m < Warps<BN>::MT; m++) {
        put_sums<BN>(w, m, s);
        __syncthreads();
        finish_slab<BN>(c, b, m, zero, fours, ends, s);
        __syncthreads();
    }
}

/* --- the kernel --- */

template <int BN, int W> static __global__ __launch_bounds__(THREADS, 2) void conv_bytes(hp_cuda_bytes c) {
    __shared__ uint4 room[2][(BM + BN) * CHUNKS];
    const Block b = block_of<BN>(c);
    const int32_t zero = zero_of(c);
    const int64_t steps = (c.taps.weight_row + BK - 1) / BK, last = pixels_of(c.taps) - 1;
    Pixel p[BM / 64];
    Ahead<BN> ahead;
    Warps<BN> warps = {};
    HP_UNROLL
    for (int i = 0; i < BM / 64; i++) {
        const int64_t pixel = b.pixel + threadIdx.x / CHUNKS + 64 * i;
        p[i] = pixel_of(c.taps, pixel < last ? pixel : last);
    }
    fetch<BN, W>(c, b, p, 0, zero, ahead);
    put_down<BN>(room[0], room[0] + BM * CHUNKS, ahead);
    __syncthreads();
    for (int64_t step = 0; step < steps; step++) {
        const uint4 *now = room[step % 2];
        uint4 *next = room[(step + 1) % 2];
        if (step + 1 < steps) fetch<BN, W>(c, b, p, step + 1, zero, ahead);
        multiply<BN>(warps, now, now + BM * CHUNKS);
        if (step + 1 < steps) put_down<BN>(next, next + BM * CHUNKS, ahead);
        __syncthreads();
    }
    finish<BN>(c, b, warps, zero, Slab<BN>{(int32_t *)room});
}

/* --- launchers --- */

template <int BN, int W> static cudaError_t start(const hp_cuda_bytes *c, cudaStream_t s) {
    static_assert(Slab<BN>::ROWS * Slab<BN>::PITCH * 4 <= 2 * (BM + BN) * BK, "sums lie where operands were");
    const int64_t down = (pixels_of(c->taps) + BM - 1) / BM, across = (c->taps.outs + BN - 1) / BN;
    const dim3 grid((unsigned)(down * across), (unsigned)c->taps.groups);
    return HP_LAUNCH((conv_bytes<BN, W>), grid, THREADS, s, *c);
}

template <int W> static cudaError_t start_width(const hp_cuda_bytes *c, cudaStream_t s) {
    return c->taps.outs > 64 ? start<128, W>(c, s) : start<64, W>(c, s);
}

static bool in_words_of(const hp_cuda_taps *t, int bytes) {
    return t->ins % bytes == 0 && t->shape.ic % bytes == 0 && (uintptr_t)t->x % bytes == 0;
}

cudaError_t hp_cuda_conv_bytes(const hp_cuda_bytes *c, cudaStream_t s) {
    if (in_words_of(&c->taps, 16)) return start_width<16>(c, s);
    if (in_words_of(&c->taps, 4)) return start_width<4>(c, s);
    return start_width<1>(c, s);
}
