/* bytes_end.h - turns a block's sums into outputs, by the formula of exec/device/kernels/panel.h.
 *
 * Most layers of a network give clamped bytes. These are finished in registers, where the sums are; each
 * is put into its place in a slab of shared memory. The slab first receives the addends, if there are
 * any, and is written to memory in whole rows. All other sums pass through shared memory themselves, a
 * few rows at a time. */
#ifndef HP_BYTES_END_H
#define HP_BYTES_END_H

#include "exec/cuda/infer/bytes_read.h"

/* A block has WM x WN warps; each has MT x NT tiles of 16 x 8 sums. */
template <int BN> struct Warps {
    static const int WM = 2, WN = TEAM / 32 / WM, MT = BM / WM / 16, NT = BN / WN / 8;
    int32_t sum[MT][NT][4];
    static __device__ inline int row(int m) {
        return ((int)threadIdx.x / 32 % WM * MT + m) * 16 + (int)threadIdx.x % 32 / 4;
    }
    static __device__ inline int column(int n) {
        return ((int)threadIdx.x / 32 / WM * NT + n) * 8;
    }
};

/* Constants that finish the sums of an output channel: the same for all pixels except at borders. */
typedef struct End {
    float scale, shift;
    uint32_t share; /* the zero point's */
} End;

/* Constants of the block's output `k`; past the last output, whose results are discarded,
 * those of the last. */
static __device__ inline End end_of(const hp_cuda_bytes &c, const Block &b, int k, int32_t zero) {
    const int32_t out = b.out + k, last = c.taps.outs - 1;
    const int64_t output = (int64_t)b.g * c.taps.outs + (out < last ? out : last);
    return {c.scale[output], c.share ? c.shift_inside[output] : c.shift[output],
            c.total ? (uint32_t)zero * (uint32_t)c.total[output] : 0};
}

/* Subtraction wraps at 32 bits, as in whole_sum(). */
static __device__ inline float ended(float scale, uint32_t share, float shift, int32_t sum) {
    return __fmaf_rn(scale, (float)(int32_t)((uint32_t)sum - share), shift);
}

/* --- bytes with a clamp --- */

/* Overlays the operands, which are no longer needed. 16 bytes of padding per row keep rows in different
 * banks. Layers that read raw pixels have 64 outputs per block; their pixels at the image's border have
 * shifts of their own. */
template <int BN> struct Bytes {
    static const int PITCH = BN + 16;
    uint8_t at[BM * PITCH];
    float scale[BN], shift[BN];
    uint32_t share[BN];
    uint8_t is_border[BN == 64 ? BM : 1];
    float border[BN == 64 ? BM * BN : 1];
};

/* `mine`: constants of output threadIdx.x. */
template <int BN> static __device__ inline void put_ends(const End &mine, Bytes<BN> *s) {
    static_assert(TEAM >= BN, "a thread to each output");
    if (threadIdx.x >= BN) return;
    s->scale[threadIdx.x] = mine.scale;
    s->shift[threadIdx.x] = mine.shift;
    s->share[threadIdx.x] = mine.share;
}

/* A warp handles adjacent rows: most of them read through the same taps. */
template <int BN>
static __device__ inline void find_borders(const hp_cuda_bytes &c, const Block &b, Bytes<BN> *s) {
    const int64_t last = pixels_of(c.taps) - 1;
    for (int row = (int)threadIdx.x; row < BM; row += TEAM)
        s->is_border[row] =
            !has_all_taps(c.taps, pixel_of(c.taps, b.pixel + row < last ? b.pixel + row : last));
    __syncthreads();
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, rows = BM / (TEAM / 32);
    Inside last_in = {{-1, -1}, {-1, -1}};
    float shift[BN / 32] = {};
    for (int row = warp * rows; row < (warp + 1) * rows; row++) {
        if (!s->is_border[row]) continue;
        const Pixel p = pixel_of(c.taps, b.pixel + row < last ? b.pixel + row : last);
        const Inside in = inside_of(c.taps, p);
        HP_UNROLL
        for (int k = 0; k < BN / 32; k++) {
            const int32_t out = b.out + 32 * k + lane;
            if ((c.taps.transposed || !same(in, last_in)) && out < c.taps.outs)
                shift[k] = border_shift(c, p, in, (int64_t)b.g * c.taps.outs + out);
            s->border[row * BN + 32 * k + lane] = shift[k];
        }
        last_in = in;
    }
}

/* Starts loading the addends, which are needed at the end. */
template <int BN> static __device__ inline void fetch_added(const hp_cuda_bytes &c, const Block &b) {
    const int64_t left = pixels_of(c.taps) - b.pixel;
    for (int row = (int)threadIdx.x; row < BM && row < left; row += TEAM)
        hp_fetch_line((const uint8_t *)c.finish.y + (b.pixel + row) * c.taps.shape.oc +
                      (int64_t)b.g * c.taps.outs + b.out);
}

/* Copies a block's rows between the map and the slab, as elements of T. */
template <typename T, int BN, bool OUT>
static __device__ inline void move_rows(const hp_cuda_bytes &c, const Block &b, Bytes<BN> *s) {
    const int across = BN / (int)sizeof(T), down = TEAM / across, first = (int)threadIdx.x / across,
              column = (int)threadIdx.x % across * (int)sizeof(T);
    const int64_t left = pixels_of(c.taps) - b.pixel, step = (int64_t)down * c.taps.shape.oc;
    const int rows = left < BM ? (int)left : BM;
    uint8_t *slab = s->at + first * Bytes<BN>::PITCH + column;
    uint8_t *map = (uint8_t *)c.finish.y + (b.pixel + first) * c.taps.shape.oc + (int64_t)b.g * c.taps.outs +
                   b.out + column;
    if (b.out + column >= c.taps.outs) return;
    HP_UNROLL_SOME
    for (int row = first; row < rows; row += down, map += step, slab += down * Bytes<BN>::PITCH) {
        if constexpr (OUT)
            *(T *)map = *(T *)slab;
        else if constexpr (sizeof(T) == 16)
            hp_copy_16(slab, map);
        else
            *(T *)slab = *(T *)map;
    }
}

template <int BN, bool OUT>
static __device__ inline void move_slab(const hp_cuda_bytes &c, const Block &b, Bytes<BN> *s) {
    const uint64_t places =
        (uint64_t)c.taps.shape.oc | (uint64_t)c.taps.outs | (uint64_t)(uintptr_t)c.finish.y;
    if (places % 16 == 0)
        move_rows<uint4, BN, OUT>(c, b, s);
    else if (places % 4 == 0)
        move_rows<uint32_t, BN, OUT>(c, b, s);
    else
        move_rows<uint8_t, BN, OUT>(c, b, s);
}

/* Finishes two adjacent outputs of a pixel. Clamping before rounding gives the same byte as rounding before
 * clamping; a NaN becomes the smallest. */
template <int BN, bool ADDS, bool BORDERS>
static __device__ inline void put_pair(const hp_cuda_finish &f, const End (&e)[2], const int32_t *sum,
                                       int row, int column, Bytes<BN> *s) {
    Pack<uint8_t, 2> *const at = (Pack<uint8_t, 2> *)(s->at + row * Bytes<BN>::PITCH + column);
    const float lo = f.lo8, hi = f.hi8;
    Pack<uint8_t, 2> to = {};
    if (ADDS) to = *at;
    HP_UNROLL
    for (int k = 0; k < 2; k++) {
        const bool border = BORDERS && s->is_border[row];
        float v =
            ended(e[k].scale, e[k].share, border ? s->border[row * BN + column + k] : e[k].shift, sum[k]);
        if (ADDS) v = __fmaf_rn(f.add_scale, (float)to.at[k], v);
        to.at[k] = (uint8_t)__float2int_rn(fminf(fmaxf(v, lo), hi));
    }
    *at = to;
}

template <int BN, bool ADDS, bool BORDERS>
static __device__ inline void put_bytes(const hp_cuda_bytes &c, const Warps<BN> &w, Bytes<BN> *s) {
    HP_UNROLL
    for (int n = 0; n < Warps<BN>::NT; n++) {
        const int column = Warps<BN>::column(n) + (int)threadIdx.x % 4 * 2;
        End e[2];
        HP_UNROLL
        for (int k = 0; k < 2; k++) e[k] = {s->scale[column + k], s->shift[column + k], s->share[column + k]};
        HP_UNROLL
        for (int m = 0; m < Warps<BN>::MT; m++) HP_UNROLL
        for (int half = 0; half < 2; half++)
            put_pair<BN, ADDS, BORDERS>(c.finish, e, &w.sum[m][n][2 * half], Warps<BN>::row(m) + 8 * half,
                                        column, s);
    }
}

template <int BN>
static __device__ inline void finish_bytes(const hp_cuda_bytes &c, const Block &b, const Warps<BN> &w,
                                           const End &mine, void *room) {
    Bytes<BN> *const s = (Bytes<BN> *)room;
    const bool adds = c.finish.adds, borders = BN == 64 && c.share;
    if (adds) move_slab<BN, false>(c, b, s);
    hp_copies_commit();
    put_ends<BN>(mine, s);
    if (borders) find_borders<BN>(c, b, s);
    hp_copies_wait<0>();
    __syncthreads();
    if (borders && adds)
        put_bytes<BN, true, BN == 64>(c, w, s);
    else if (borders)
        put_bytes<BN, false, BN == 64>(c, w, s);
    else if (adds)
        put_bytes<BN, true, false>(c, w, s);
    else
        put_bytes<BN, false, false>(c, w, s);
    __syncthreads();
    move_slab<BN, true>(c, b, s);
}

/* --- all other outputs --- */

/* Takes 16 rows per warp at a time, so that whole rows are written. 4 words of padding per row keep rows
 * in different banks. */
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

/* Finishes V adjacent sums of a row. */
template <int V>
static __device__ inline void finish_sums(const hp_cuda_bytes &c, const Block &b, int64_t pixel, int first,
                                          const End (&e)[V], const int32_t *sum) {
    const int64_t output = (int64_t)b.g * c.taps.outs + b.out + first;
    float v[V];
    for (int k = 0; k < V; k++) {
        const float shift = c.share ? shift_of(c, pixel_of(c.taps, pixel), output + k) : e[k].shift;
        v[k] = ended(e[k].scale, e[k].share, shift, sum[k]);
    }
    finish_at<V>(c.finish, pixel * c.taps.shape.oc + output, v);
}

/* Finishes a thread's part of a slab: four columns of every (TEAM / across)th row. */
template <int BN>
static __device__ inline void finish_slab(const hp_cuda_bytes &c, const Block &b, int m, int32_t zero,
                                          bool fours, const End (&ends)[4], const Slab<BN> &s) {
    const int across = BN / 4, first = (int)threadIdx.x % across * 4;
    for (int row = (int)threadIdx.x / across; row < Slab<BN>::ROWS && b.out + first < c.taps.outs;
         row += TEAM / across) {
        const int64_t pixel = b.pixel + (row / 16 * Warps<BN>::MT + m) * 16 + row % 16;
        if (pixel >= pixels_of(c.taps)) continue;
        const int32_t *sum = s.at + row * Slab<BN>::PITCH + first;
        HP_ROLLED
        for (int k = 0; !fours && k < 4 && b.out + first + k < c.taps.outs; k++) {
            const End one[1] = {end_of(c, b, first + k, zero)};
            finish_sums<1>(c, b, pixel, first + k, one, sum + k);
        }
        if (fours) finish_sums<4>(c, b, pixel, first, ends, sum);
    }
}

template <int BN>
static __device__ inline void finish_numbers(const hp_cuda_bytes &c, const Block &b, const Warps<BN> &w,
                                             int32_t zero, void *room) {
    const Slab<BN> s = {(int32_t *)room};
    const unsigned aligned = c.finish.put.to.dtype == HP_U8 ? 4 : 16;
    const bool fours =
        c.taps.shape.oc % 4 == 0 && c.taps.outs % 4 == 0 && (uint64_t)c.finish.y % aligned == 0;
    End ends[4];
    HP_UNROLL
    for (int k = 0; k < 4; k++) ends[k] = end_of(c, b, (int)threadIdx.x % (BN / 4) * 4 + k, zero);
    HP_ROLLED
    for (int m = 0; m < Warps<BN>::MT; m++) {
        put_sums<BN>(w, m, s);
        __syncthreads();
        finish_slab<BN>(c, b, m, zero, fours, ends, s);
        __syncthreads();
    }
}

#endif
