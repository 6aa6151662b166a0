/* bytes_read.h - loads a step's operands of byte convolutions into shared memory.
 *
 * Operands are rows of 64 bytes, one per pixel and one per output, in 4 chunks of 16. Chunk c of row r lies
 * at c ^ (r / 2 % 4), so that neither stores of 16 bytes nor loads of 8 rows of a matrix conflict in a bank.
 * A thread handles the same chunk of rows 32 apart, so its rows differ only by constants. */
#ifndef HP_BYTES_READ_H
#define HP_BYTES_READ_H

#include "exec/cuda/infer/cuda_infer_pixels.h"
#include "exec/cuda/runtime/copies.h"

/* BM: pixels of a block, BK: products of a step; a thread's rows are DOWN apart. */
enum {
    BM = 128,
    BK = 64,
    CHUNK = 16,
    CHUNKS = BK / CHUNK,
    TEAM = 128,
    DOWN = TEAM / CHUNKS,
    MINE = BM / DOWN
};

/* How a block reads its inputs. */
typedef enum Reading {
    COPIED,   /* a tap's inputs are multiples of 16 bytes: chunks are copied asynchronously during
               * the multiplication */
    CHUNKED,  /* the same in a transposed convolution: chunks go through registers */
    WORDS,    /* multiples of 4 */
    SEQUENCE, /* the inputs of a row of taps are contiguous, as its weights are: words at any address */
    SINGLE    /* bytes */
} Reading;

/* The part of the output that a block computes. */
typedef struct Block {
    int64_t pixel;  /* first */
    int32_t out, g; /* first output within the group; the group */
} Block;

static __device__ inline int swizzled(int row, int chunk) {
    return row * CHUNKS + (chunk ^ (row / 2 % CHUNKS));
}

/* The thread's first chunk of an operand; its next chunks follow DOWN * CHUNKS apart. */
static __device__ inline int first_chunk() {
    return swizzled((int)threadIdx.x / CHUNKS, (int)threadIdx.x % CHUNKS);
}

static __device__ inline uint32_t four_times(int32_t byte) {
    return (uint32_t)byte * 0x01010101u;
}

typedef union Chunk {
    uint32_t word[4];
    uint4 all;
} Chunk;

/* --- inputs --- */

/* A thread's pixels, and the tap of its chunk in the next step. With COPIED and SEQUENCE, `image` is the
 * element under tap (0, 0), input 0 of the group, even if that lies outside the map. */
struct Inputs {
    Pixel pixel[MINE];
    Tap tap;
    int64_t k;
};

/* Does every output pixel read exactly the input pixel of the same index? */
static __device__ inline bool is_pointwise(const hp_cuda_taps &t) {
    const hp_shape &s = t.shape;
    return !t.transposed && s.kh == 1 && s.kw == 1 && s.sh == 1 && s.sw == 1 && s.ph == 0 && s.pw == 0 &&
           s.ih == s.oh && s.iw == s.ow;
}

template <Reading R>
static __device__ inline void begin_inputs(const hp_cuda_bytes &c, const Block &b, Inputs &in) {
    const hp_shape &s = c.taps.shape;
    const int64_t last = pixels_of(c.taps) - 1;
    const bool pointwise = R == COPIED && is_pointwise(c.taps);
    HP_UNROLL
    for (int i = 0; i < MINE; i++) {
        const int64_t mine = b.pixel + threadIdx.x / CHUNKS + DOWN * i, pixel = mine < last ? mine : last;
        Pixel &p = in.pixel[i];
        if (pointwise) {
            p = {pixel * s.ic + (int64_t)b.g * c.taps.ins, 0, 0};
            continue;
        }
        p = pixel_of(c.taps, pixel);
        if (R == COPIED || R == SEQUENCE)
            p.image += ((int64_t)p.y * s.iw + p.x) * s.ic + (int64_t)b.g * c.taps.ins;
    }
    in.k = (int64_t)(threadIdx.x % CHUNKS) * CHUNK;
    in.tap = tap_of(c.taps, in.k);
}

/* The byte that the tap reads. */
static __device__ inline uint32_t byte_under(const hp_cuda_bytes &c, const Pixel &p, const Tap &a, int32_t g,
                                             int32_t zero) {
    const int64_t at = is_filling(c.taps, a) ? -1 : element_under(c.taps, p, a, g);
    return at < 0 ? (uint32_t)zero : ((const uint8_t *)c.taps.x)[at];
}

/* CHUNKED, WORDS, SINGLE. */
template <Reading R>
static __device__ inline uint4 chunk_under(const hp_cuda_bytes &c, const Pixel &p, Tap a, int32_t g,
                                           int32_t zero) {
    Chunk to;
    const uint32_t z = four_times(zero);
    const uint8_t *const x = (const uint8_t *)c.taps.x;
    if constexpr (R == CHUNKED) {
        const int64_t at = is_filling(c.taps, a) ? -1 : element_under(c.taps, p, a, g);
        to.all = at < 0 ? make_uint4(z, z, z, z) : *(const uint4 *)(x + at);
    }
    for (int i = 0; R != CHUNKED && i < 4; i++) {
        if constexpr (R == WORDS) {
            const int64_t at = is_filling(c.taps, a) ? -1 : element_under(c.taps, p, a, g);
            to.word[i] = at < 0 ? z : *(const uint32_t *)(x + at);
            advance(c.taps, a, 4);
        } else {
            to.word[i] = 0;
            HP_ROLLED
            for (int k = 0; k < 4; k++, advance(c.taps, a, 1))
                to.word[i] |= byte_under(c, p, a, g, zero) << 8 * k;
        }
    }
    return to.all;
}

/* --- sequences --- */

/* Reads four bytes of a row of taps, from its input `e` on, whose element is `at`. Bytes outside
 * the map are `zero`. */
static __device__ inline uint32_t bytes_of_sequence(const hp_cuda_bytes &c, const Pixel &p, int32_t e,
                                                    int64_t at, int32_t zero) {
    uint32_t word = 0;
    HP_ROLLED
    for (int k = 0; k < 4; k++) {
        const int32_t kx = (e + k) / c.taps.tap;
        const bool there = kx < c.taps.shape.kw && (uint32_t)(p.x + kx) < (uint32_t)c.taps.shape.iw;
        word |= (there ? ((const uint8_t *)c.taps.x)[at + k] : (uint32_t)zero) << 8 * k;
    }
    return word;
}

/* Loads words from unaligned addresses as two aligned words each, where the row of taps lies in the map and
 * not in its last bytes. Elsewhere a load from the map's start takes the place, so that all loads of a step
 * are in flight together; bytes at borders are read afterwards. */
static __device__ inline void bring_sequences(const hp_cuda_bytes &c, const Inputs &in, int32_t zero,
                                              uint4 *x) {
    enum { WORDS_OF_CHUNK = 4 };
    const hp_shape &s = c.taps.shape;
    const int64_t most = s.n * s.ih * s.iw * s.ic - 8;
    Chunk to[MINE];
    int32_t y[WORDS_OF_CHUNK], e[WORDS_OF_CHUNK];
    uint32_t border = 0;
    Tap a = in.tap;
    HP_UNROLL
    for (int k = 0; k < WORDS_OF_CHUNK; k++) {
        y[k] = a.ky * s.dh;
        e[k] = a.e;
        const bool row = a.ky < s.kh;
        HP_UNROLL
        for (int i = 0; i < MINE; i++) {
            const Pixel &p = in.pixel[i];
            const int64_t at = p.image + (int64_t)y[k] * s.iw * s.ic + e[k];
            const bool inside = row && (uint32_t)(p.y + y[k]) < (uint32_t)s.ih,
                       whole = inside && p.x >= 0 && p.x + s.kw <= s.iw && at <= most;
            const uint8_t *const from = (const uint8_t *)c.taps.x + (whole ? at : 0);
            const uint32_t off = (uint32_t)(uintptr_t)from % 4;
            const uint32_t *const word = (const uint32_t *)(from - off);
            to[i].word[k] = (uint32_t)((word[0] | (uint64_t)word[1] << 32) >> 8 * off);
            if (!inside) to[i].word[k] = four_times(zero);
            border |= (uint32_t)(inside && !whole) << (k * MINE + i);
        }
        a.e += 4;
        if (a.e >= c.taps.row_taps) a = {a.ky + 1, 0, 0, 0};
    }
    HP_UNROLL
    for (int k = 0; k < WORDS_OF_CHUNK * MINE; k++)
        if (border >> k & 1) {
            const Pixel &p = in.pixel[k % MINE];
            const int32_t ahead = e[k / MINE];
            to[k % MINE].word[k / MINE] =
                bytes_of_sequence(c, p, ahead, p.image + (int64_t)y[k / MINE] * s.iw * s.ic + ahead, zero);
        }
    HP_UNROLL
    for (int i = 0; i < MINE; i++) x[first_chunk() + DOWN * CHUNKS * i] = to[i].all;
}

/* --- copies --- */

static __device__ inline void bring_copies(const hp_cuda_bytes &c, const Inputs &in, int32_t zero, uint4 *x) {
    const hp_shape &s = c.taps.shape;
    const int32_t down = in.tap.ky * s.dh, across = in.tap.kx * s.dw;
    const uint8_t *const from = (const uint8_t *)c.taps.x + ((int64_t)down * s.iw + across) * s.ic + in.tap.i;
    const bool there = in.tap.ky < s.kh;
    const uint32_t z = four_times(zero);
    uint4 *const to = x + first_chunk();
    HP_UNROLL
    for (int i = 0; i < MINE; i++) {
        const Pixel &p = in.pixel[i];
        if (there && (uint32_t)(p.y + down) < (uint32_t)s.ih && (uint32_t)(p.x + across) < (uint32_t)s.iw)
            hp_copy_16(to + DOWN * CHUNKS * i, from + p.image);
        else
            to[DOWN * CHUNKS * i] = make_uint4(z, z, z, z);
    }
}

/* Advances along rows of weights with `tap` inputs per tap and no padding in between. */
static __device__ inline void next_tap(const hp_cuda_taps &t, Tap &a) {
    for (a.i += BK; a.i >= t.tap;) {
        a.i -= t.tap;
        if (++a.kx < t.shape.kw) continue;
        a.kx = 0;
        a.ky++;
    }
}

/* --- a step's chunks --- */

/* Loads the thread's chunks of the next step. */
template <Reading R>
static __device__ inline void bring_inputs(const hp_cuda_bytes &c, const Block &b, Inputs &in, int32_t zero,
                                           uint4 *x) {
    if constexpr (R == COPIED) {
        bring_copies(c, in, zero, x);
        next_tap(c.taps, in.tap);
        return;
    }
    if constexpr (R == SEQUENCE) {
        bring_sequences(c, in, zero, x);
    } else {
        HP_UNROLL
        for (int i = 0; i < MINE; i++)
            x[first_chunk() + DOWN * CHUNKS * i] = chunk_under<R>(c, in.pixel[i], in.tap, b.g, zero);
    }
    in.k += BK;
    in.tap = tap_of(c.taps, in.k);
}

/* A thread's rows of weights. */
struct Weights {
    const int8_t *at; /* its chunk of the first row, in the next step */
    int64_t pitch;    /* bytes between its rows */
    int32_t rows;     /* number of its rows that exist */
    int64_t left;     /* bytes left in a row */
};

static __device__ inline Weights weights_of(const hp_cuda_bytes &c, const Block &b) {
    const int32_t out = b.out + (int32_t)threadIdx.x / CHUNKS, k = (int32_t)threadIdx.x % CHUNKS * CHUNK;
    const int64_t row = c.taps.weight_row;
    return {(const int8_t *)c.taps.weight + ((int64_t)b.g * c.taps.outs + out) * row + k, DOWN * row,
            (c.taps.outs - out + DOWN - 1) / DOWN, row - k};
}

/* Rows of weights are aligned to 16 bytes if taps' inputs are multiples of 16 bytes, else to words. */
template <int BN, Reading R> static __device__ inline void bring_weights(Weights &w, uint4 *room) {
    uint4 *const to = room + first_chunk();
    HP_UNROLL
    for (int i = 0; i < BN / DOWN; i++) {
        const int8_t *const from = w.at + i * w.pitch;
        const bool there = i < w.rows && w.left > 0;
        if constexpr (R == COPIED || R == CHUNKED) {
            if (there)
                hp_copy_16(to + DOWN * CHUNKS * i, from);
            else
                to[DOWN * CHUNKS * i] = make_uint4(0, 0, 0, 0);
        } else {
            Chunk one;
            HP_UNROLL
            for (int k = 0; k < 4; k++)
                one.word[k] = there && 4 * k < w.left ? ((const uint32_t *)from)[k] : 0;
            to[DOWN * CHUNKS * i] = one.all;
        }
    }
    w.at += BK;
    w.left -= BK;
}

#endif
