/* cuda_infer_bytes.cu - convolutions of bytes: u8 activations times s8 weights as an implicit matrix product
 * on the tensor cores, with exact sums in 32 bits.
 *
 * A block computes 128 pixels x 128 (or 64) outputs in steps of 64 products. It has 4 warps of 64 x 64 (64 x
 * 32) sums each, so that products take more time than loads of fragments from shared memory. While a step is
 * multiplied, the next two are being loaded. Blocks that share pixels run one after another and find them in
 * the second-level cache. The code uses mma.sync, which every GPU since the A100 has; on an H100 it reaches
 * only part of the speed of wgmma.
 *
 * Measured on an H100, ResNet-101 at 256 x 256, 64 images; the data sheet says 1979 dense Tops. 3x3 layers of
 * 256 channels reach 531, of 64 channels 300. 1x1 layers from 1024 to 256 reach 417; back to 1024, where they
 * also add, 232. Blocks of 8 warps, or of 64 outputs throughout, were slower in almost all layers: 7.3 and
 * 6.5 ms instead of 5.6. */
#include "exec/cuda/infer/bytes_end.h"
#include "exec/cuda/runtime/mma.h"

enum { STAGES = 3 };

/* --- products --- */

template <int BN> static __device__ inline void multiply(Warps<BN> &t, const uint4 *x, const uint4 *w) {
    const int lane = (int)threadIdx.x % 32,
              down = (int)threadIdx.x / 32 % Warps<BN>::WM * Warps<BN>::MT * 16 + lane % 16,
              column = Warps<BN>::column(0) + lane % 8 + lane / 16 * 8;
    const uint4 *const xs = x + down * CHUNKS, *const ws = w + column * CHUNKS;
    HP_UNROLL
    for (int chunk = 0; chunk < CHUNKS; chunk += 2) {
        const int of_x = (chunk + lane / 16) ^ (down / 2 % CHUNKS),
                  of_w = (chunk + lane / 8 % 2) ^ (column / 2 % CHUNKS);
        uint32_t b[Warps<BN>::NT / 2][4], a[Warps<BN>::MT][4];
        HP_UNROLL
        for (int n = 0; n < Warps<BN>::NT / 2; n++) hp_load_8x8(b[n], ws + 16 * n * CHUNKS + of_w);
        HP_UNROLL
        for (int m = 0; m < Warps<BN>::MT; m++) hp_load_8x8(a[m], xs + 16 * m * CHUNKS + of_x);
        HP_UNROLL
        for (int m = 0; m < Warps<BN>::MT; m++) HP_UNROLL
        for (int n = 0; n < Warps<BN>::NT; n++) hp_mma_u8s8_16x8x32(t.sum[m][n], a[m], &b[n / 2][n % 2 * 2]);
    }
}

/* --- the kernel --- */

template <int BN> static __device__ inline Block block_of(const hp_cuda_bytes &c) {
    const uint32_t across = (uint32_t)((c.taps.outs + BN - 1) / BN);
    return {(int64_t)(blockIdx.x / across) * BM, (int32_t)(blockIdx.x % across) * BN, (int32_t)blockIdx.y};
}

/* Bytes of shared memory: the stages, later overlaid by what finish_bytes() needs. */
template <int BN> struct Room {
    static const int STAGE = (BM + BN) * BK, ENDS = (int)sizeof(Bytes<BN>),
                     ALL = STAGES * STAGE > ENDS ? STAGES *STAGE : ENDS;
};

template <int BN, Reading R>
static __global__ __launch_bounds__(TEAM, BN == 64 ? 3 * 128 / TEAM : 2) void conv_bytes(hp_cuda_bytes c) {
    __shared__ uint4 room[(Room<BN>::ALL + CHUNK - 1) / CHUNK];
    const Block b = block_of<BN>(c);
    const int32_t zero = zero_of(c), steps = (int32_t)((c.taps.weight_row + BK - 1) / BK);
    const End mine = end_of(c, b, (int)threadIdx.x, zero);
    Inputs in;
    Weights weights = weights_of(c, b);
    Warps<BN> warps = {};
    uint4 *next = room;      /* stage to fill next */
    const uint4 *now = room; /* to be multiplied */
    if (c.finish.adds && c.finish.units) fetch_added<BN>(c, b);
    begin_inputs<R>(c, b, in);
    for (int32_t step = 1 - STAGES; step < steps; step++) {
        if (step >= 0) { /* this step's operands have arrived, and the last step's are no longer read */
            hp_copies_wait<STAGES - 2>();
            __syncthreads();
        }
        if (step + STAGES - 1 < steps) {
            bring_inputs<R>(c, b, in, zero, next);
            bring_weights<BN, R>(weights, next + BM * CHUNKS);
            next = next == room + (STAGES - 1) * (Room<BN>::STAGE / CHUNK) ? room
                                                                           : next + Room<BN>::STAGE / CHUNK;
        }
        hp_copies_commit();
        if (step < 0) continue;
        multiply<BN>(warps, now, now + BM * CHUNKS);
        now = now == room + (STAGES - 1) * (Room<BN>::STAGE / CHUNK) ? room : now + Room<BN>::STAGE / CHUNK;
    }
    __syncthreads();
    if (c.finish.units && (BN == 64 || !c.share))
        finish_bytes<BN>(c, b, warps, mine, room);
    else
        finish_numbers<BN>(c, b, warps, zero, room);
}

/* --- launchers --- */

template <int BN, Reading R> static cudaError_t start(const hp_cuda_bytes *c, cudaStream_t s) {
    static_assert(Slab<BN>::ROWS * Slab<BN>::PITCH * 4 <= Room<BN>::ALL, "sums lie where operands were");
    const int64_t down = (pixels_of(c->taps) + BM - 1) / BM, across = (c->taps.outs + BN - 1) / BN;
    const dim3 grid((unsigned)(down * across), (unsigned)c->taps.groups);
    return HP_LAUNCH((conv_bytes<BN, R>), grid, TEAM, s, *c);
}

template <Reading R> static cudaError_t start_width(const hp_cuda_bytes *c, cudaStream_t s) {
    return c->taps.outs > 64 && !c->share ? start<128, R>(c, s) : start<64, R>(c, s);
}

static bool in_words_of(const hp_cuda_taps *t, int bytes) {
    return t->ins % bytes == 0 && t->shape.ic % bytes == 0 && (uintptr_t)t->x % bytes == 0;
}

/* Are the inputs of a row of taps contiguous, as the weights are? */
static bool is_sequence(const hp_cuda_taps *t) {
    const hp_shape *const s = &t->shape;
    return !t->transposed && t->groups == 1 && s->dw == 1 && t->tap == t->ins && s->ic == t->ins &&
           (uintptr_t)t->x % 4 == 0 && s->n * s->ih * s->iw * s->ic >= 8; /* two words */
}

cudaError_t hp_cuda_conv_bytes(const hp_cuda_bytes *c, cudaStream_t s) {
    const hp_cuda_taps *const t = &c->taps;
    if (in_words_of(t, 16) && !t->transposed) return start_width<COPIED>(c, s);
    if (in_words_of(t, 16)) return start_width<CHUNKED>(c, s);
    if (in_words_of(t, 4)) return start_width<WORDS>(c, s);
    return is_sequence(t) ? start_width<SEQUENCE>(c, s) : start_width<SINGLE>(c, s);
}
