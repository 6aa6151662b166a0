/* memory_device.c - bytes a device needs beyond the tensors: packs, scratch, saved statistics.
 *
 * For our own kernels these are exact. For oneDNN they bound what version 2.6.3 requests on one thread. Its
 * weight layouts round the channels of a group up to 16 (32 where the vectorised output block is 32). Its
 * scratchpads are a few vectors, or one image for a strided 1x1 kernel (rtus, "reduce to unit stride"). */
#include "plan/memory/memory_device.h"
#include "plan/memory/gradient_bands.h"
#include "base/round.h"

enum {
    LINES = 64,               /* cache line and buffer alignment */
    LIBRARY_SCRATCH = 1 << 17 /* largest small scratchpad observed over random shapes, rounded up */
};

static int64_t taps(const hp_layer *l) {
    return (int64_t)l->window.kh * l->window.kw;
}

bool hp_conv_winograd(const hp_graph *g, int layer) {
    const hp_layer *l = &g->layer[layer];
    if (l->op != HP_CONV || l->groups > 1 || l->window.kh != 3 || l->window.kw != 3 ||
        l->window.stride_h != 1 || l->window.stride_w != 1 || l->window.dil_h > 1 || l->window.dil_w > 1 ||
        l->window.pad_h > 2 || l->window.pad_w > 2)
        return false;
    const hp_tensor *x = &g->tensor[l->in[0]], *y = &g->tensor[l->out];
    if (x->c % 16 || y->c % 16 || x->c < 32 || y->c < 32)
        return false; /* the transforms would cost more than the products */
    const int64_t covered = hp_round_up(y->h, 2) * hp_round_up(y->w, 2);
    return covered * 2 <= (int64_t)y->h * y->w * 3; /* incomplete tiles may add at most half */
}

bool hp_conv_winograd_part(const hp_graph *g, int layer, const hp_shape *s) {
    return hp_conv_winograd(g, layer) && s->ic % 16 == 0 && s->oc % 16 == 0;
}

bool hp_conv_gemm_gradient(const hp_graph *g, int layer) {
    const hp_layer *l = &g->layer[layer];
    if (l->op != HP_CONV || l->groups > 1 || hp_conv_winograd(g, layer)) return false;
    const int64_t ins = g->tensor[l->in[0]].c, outs = g->tensor[l->out].c;
    /* at most an eighth of the products may be padding */
    return ins >= 32 && outs >= 32 &&
           hp_round_up(ins, HP_WINOGRAD_PANEL) * hp_round_up(outs, 16) * 8 <= ins * outs * 9;
}

int64_t hp_winograd_block(int in_channels, int out_channels, int64_t tiles, bool backward_weights) {
    const int64_t cache = 1 << 20; /* bytes of L2 cache: 1 MiB on Zen 4, 1 to 2 on Xeons since Skylake */
    const int64_t tile =
        HP_WINOGRAD_POINTS * 4 * (in_channels + hp_round_up(out_channels, HP_WINOGRAD_PANEL));
    int64_t block = cache / tile / HP_WINOGRAD_ROWS * HP_WINOGRAD_ROWS;
    const int64_t least =
        backward_weights ? 128 : 48; /* limits how often weights, or their sums, stream through the cache;
                                      * measured */
    if (block < least) block = least;
    const int64_t blocks = (tiles + block - 1) / block;
    return hp_round_up((tiles + blocks - 1) / blocks, HP_WINOGRAD_ROWS); /* blocks of nearly equal size */
}

static int64_t winograd_pack(const hp_shape *s, bool backward) {
    const int outs = backward ? s->ic : s->oc, ins = backward ? s->oc : s->ic;
    return HP_WINOGRAD_POINTS * hp_round_up(outs, HP_WINOGRAD_PANEL) * ins;
}

static int64_t winograd_scratch(const hp_shape *s, hp_task_op op) {
    const bool back = op == HP_TASK_BWD;
    const int from_c = back ? s->oc : s->ic, to_c = back ? s->ic : s->oc;
    const int64_t to_h = back ? s->ih : s->oh, to_w = back ? s->iw : s->ow;
    const int64_t tiles = s->n * ((to_h + 1) / 2) * ((to_w + 1) / 2),
                  outs = hp_round_up(to_c, HP_WINOGRAD_PANEL);
    const int64_t block = hp_winograd_block(from_c, to_c, tiles, op == HP_TASK_BWDW),
                  zeros = hp_round_up(s->ic > s->oc ? s->ic : s->oc, 16);
    const int64_t sums = op == HP_TASK_BWDW ? (int64_t)from_c * outs : 0;
    return zeros + HP_WINOGRAD_POINTS * (block * (from_c + outs) + sums);
}

static int64_t gradient_scratch(const hp_layer *l, const hp_shape *s) {
    const int64_t ins = hp_round_up(s->ic, HP_WINOGRAD_PANEL), outs = hp_round_up(s->oc, 16),
                  pixels = s->n * s->oh * s->ow;
    const bool direct = taps(l) == 1 && ins == s->ic && outs == s->oc;
    return (ins + outs) * (pixels < HP_GRADIENT_ROWS ? pixels : HP_GRADIENT_ROWS) +
           (direct ? 0 : taps(l) * ins * outs);
}

/* Scratch of the largest band; only the last one differs. */
static int64_t bands_scratch(const hp_graph *g, int layer, const hp_shape *s) {
    int64_t most = 0;
    for (int64_t k = 0, n = hp_gradient_bands(s); k<n; k += n> 1 ? n - 1 : 1) {
        const hp_shape band = hp_gradient_band_of(s, k).shape;
        const int64_t floats = hp_conv_gemm_gradient(g, layer) ? gradient_scratch(&g->layer[layer], &band)
                                                               : winograd_scratch(&band, HP_TASK_BWDW);
        most = floats > most ? floats : most;
    }
    return most;
}

/* Scratch of a transposed convolution: the weights with the outputs innermost, or their gradient (with
 * float64 sums if there are many pixels), and the patches of a block of input pixels. */
static int64_t convt_scratch(const hp_layer *l, const hp_shape *s, hp_task_op op) {
    const int64_t pixels = s->n * s->ih * s->iw, weights = taps(l) * s->oc * s->ic,
                  sums = op == HP_TASK_BWDW && pixels > HP_GRADIENT_PIXELS ? 2 * weights : 0;
    return weights + sums + taps(l) * s->oc * (pixels < HP_CONVT_PIXELS ? pixels : HP_CONVT_PIXELS);
}

/* Outputs of one group as oneDNN pads them: blocks of 16, or of 32, 48 or 64 for more outputs. */
static int64_t library_outs(int64_t outs) {
    int64_t most = hp_round_up(outs, 16);
    for (int block = 32; outs > 16 && block <= 64; block += 16)
        if (hp_round_up(outs, block) > most) most = hp_round_up(outs, block);
    return most;
}

/* Elements of a weight in the largest layout that oneDNN chooses. */
static int64_t library_weights(const hp_layer *l, const hp_shape *s) {
    const int64_t groups = s->groups, ins = s->ic / groups, outs = s->oc / groups;
    if (ins == 1 && outs == 1) return hp_round_up(groups, 16) * taps(l);
    return groups * library_outs(outs) * hp_round_up(ins, 16) * taps(l);
}

static int64_t library_scratch(const hp_layer *l, const hp_shape *s, hp_task_op op) {
    int64_t bytes = LIBRARY_SCRATCH;
    if (taps(l) == 1 && (l->window.stride_h > 1 || l->window.stride_w > 1))
        bytes += 4 * (int64_t)s->oh * s->ow * hp_round_up(s->ic, 16);
    if (op !=
        HP_TASK_PACK) /* gradients before reordering, or weights in a layout that differs from the pack */
        bytes += 4 * (library_weights(l, s) + hp_round_up(s->oc, 16));
    return bytes;
}

/* The input in (C, H, W) order; with many inputs, also the outputs in float64 and partial outputs of some
 * inputs. */
static int64_t linear_scratch(const hp_shape *s) {
    const int64_t ins = (int64_t)s->ih * s->iw * s->ic;
    const int64_t image = s->ih > 1 || s->iw > 1 ? s->n * ins : 0,
                  sums = ins > HP_LINEAR_INS ? 3 * s->n * s->oc : 0;
    return hp_round_up(4 * image, LINES) + hp_round_up(4 * sums, LINES);
}

int64_t hp_pack_bytes(const hp_graph *g, int layer, bool backward, const hp_shape *s, hp_dtype dtype) {
    const hp_layer *l = &g->layer[layer];
    if (dtype != HP_F32 || l->op != HP_CONV || s->oc < 1 || s->ic < 1) return 0;
    if (backward && g->tensor[l->in[0]].producer == 0) return 0; /* the image needs no gradient */
    return 4 * (hp_conv_winograd_part(g, layer, s) ? winograd_pack(s, backward) : library_weights(l, s));
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* Scratch of an attention block, in floats: two blocks of scores; blocks of pixels by channels. Forward:
 * three of keys, and per block of queries of a pass four (a float64 counts twice) and five numbers per query.
 * Backward: three of queries, and nine per block of keys of a pass. */
int64_t hp_attend_scratch(int head_channels) {
    const int64_t width = hp_round_up(head_channels, HP_WINOGRAD_PANEL), forward = 3 + 4 * HP_ATTEND_PASS,
                  backward = 3 + 9 * HP_ATTEND_KEYS;
    return HP_ATTEND_BLOCK *
           (larger(forward * width + 5 * HP_ATTEND_PASS, backward * width) + 2 * HP_ATTEND_BLOCK);
}

/* Float64 numbers of one head's gradients of queries, which sum over more keys than are added at once; 0:
 * fewer keys. */
static int64_t attend_sums(const hp_graph *g, const hp_layer *l, const hp_shape *s) {
    const hp_tensor *map = &g->tensor[l->in[1]];
    const bool windowed = hp_layer_is_windowed(l);
    const int64_t width = hp_round_up(hp_head_channels(g, l), HP_WINOGRAD_PANEL),
                  keys = windowed ? (int64_t)l->window.kh * l->window.kw : (int64_t)map->h * map->w;
    if (keys <= HP_ATTEND_KEYS * HP_ATTEND_BLOCK) return 0;
    return width * (windowed ? keys : s->oh * s->ow);
}

/* A backward pass adds the gradients of the bias and of the queries, in float64, after the blocks. */
static int64_t attend_bytes(const hp_graph *g, const hp_layer *l, hp_task_op op, const hp_shape *s) {
    const int64_t blocks = hp_round_up(4 * hp_attend_scratch(hp_head_channels(g, l)), LINES),
                  bias = l->n_param ? hp_param_elements(g, l, 0, s->oc0, s->oc0 + s->oc).count : 0;
    if (op != HP_TASK_BWD) return blocks;
    return blocks + hp_round_up(8 * bias, LINES) + hp_round_up(8 * attend_sums(g, l, s), LINES);
}

int64_t hp_turned_bytes(const hp_layer *l, const hp_shape *s) {
    return l->tp == (int32_t)HP_TP_ROW ? hp_round_up(4 * (int64_t)s->ic * s->oc, LINES) : 0;
}

int64_t hp_spread_bytes(const hp_layer *l, hp_task_op op, const hp_shape *s) {
    const int64_t down = l->op == HP_GATHER ? l->window.kh : 1, along = l->op == HP_GATHER ? l->window.kw : 1;
    const bool grows = s->oh > s->ih * down || s->ow > s->iw * along || s->oc > s->ic;
    const bool spreads = (l->op == HP_RESIZE || l->op == HP_GATHER) && op == HP_TASK_BWD && grows;
    return spreads ? hp_round_up(8 * s->n * s->ih * s->iw * s->ic, LINES) : 0;
}

int64_t hp_scratch_bytes(const hp_graph *g, int layer, hp_task_op op, const hp_shape *s, hp_dtype dtype) {
    const hp_layer *l = &g->layer[layer];
    if (dtype != HP_F32) return 0;
    if (l->op == HP_BN) return 8 * hp_round_up(s->oc, 16) * 5; /* float64 sums and float32 factors */
    if (l->op == HP_DROPOUT)
        return hp_round_up(4 * (int64_t)s->oh * s->ow * s->oc, LINES); /* one sample's mask */
    if (l->op == HP_LINEAR) return linear_scratch(s);
    if (l->op == HP_ATTENTION) return attend_bytes(g, l, op, s);
    if (l->op == HP_LAYERNORM || l->op == HP_RMSNORM)
        return hp_round_up(op == HP_TASK_BWD ? 24 * (int64_t)s->oc : 0, LINES); /* float64 and float32 sums */
    if (l->op == HP_EMBEDDING && op == HP_TASK_BWDW) /* lists of each row's pixels */
        return hp_round_up(4 * (s->n * s->oh * s->ow + g->param[l->param[0]].dim[0]), LINES);
    if (l->op == HP_RESIZE || l->op == HP_GATHER) return hp_spread_bytes(l, op, s);
    if (l->op == HP_GROUPNORM) return hp_round_up(8 * HP_GROUPNORM_SUMS * (int64_t)s->ic, LINES);
    const bool compute = op == HP_TASK_FWD || op == HP_TASK_BWD || op == HP_TASK_BWDW;
    if (l->op == HP_CONVT && compute) return hp_round_up(4 * convt_scratch(l, s, op), LINES);
    if (l->op != HP_CONV) return 0;
    const int64_t after = hp_turned_bytes(l, s) + (op == HP_TASK_BWDW ? hp_gradient_bytes(s) : 0);
    const bool winograd = compute && hp_conv_winograd_part(g, layer, s);
    if (op == HP_TASK_BWDW && (winograd || hp_conv_gemm_gradient(g, layer)))
        return hp_round_up(4 * bands_scratch(g, layer, s), LINES) + after;
    if (winograd) return hp_round_up(4 * winograd_scratch(s, op), LINES);
    return hp_round_up(library_scratch(l, s, op), LINES) + after;
}

int64_t hp_attention_heads(const hp_graph *g, int layer, const hp_shape *s) {
    const int head = hp_head_channels(g, &g->layer[layer]);
    return (s->oc0 + s->oc + head - 1) / head - s->oc0 / head;
}

int64_t hp_save_bytes(const hp_graph *g, int layer, const hp_shape *s, hp_dtype dtype) {
    const hp_layer *l = &g->layer[layer];
    if (l->op == HP_BN) return 2 * (int64_t)s->oc * hp_dtype_bytes(dtype);
    if (l->op == HP_MAXPOOL) return s->n * s->oh * s->ow * s->oc;
    if (l->op == HP_ATTENTION)
        return hp_attention_heads(g, layer, s) * s->n * s->oh * s->ow * hp_dtype_bytes(dtype);
    return 0;
}
