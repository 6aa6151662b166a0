/* random_net.c - random small networks with skips, branches, strides, pools and channel counts of every kind,
 * and random strategies for them. */
#include "tests/support/plan/random_net.h"
#include "tests/support/plan/built/append_layers.h"

#include "plan/codec/codecs.h"
#include "networks/nets/net_act.h"

int roll(dice *d, int low, int high) { /* inclusive */
    return low + (int)hp_rng_below(d->seed, 77, d->n++, (uint64_t)(high - low + 1));
}

bool coin(dice *d) {
    return roll(d, 0, 1) == 1;
}

/* Only continuous ones: at a jump, rounding alone would decide the side. */
static const struct {
    hp_act act;
    double a, b;
} smooth[] = {
    {HP_ACT_GELU, 0, 0},     {HP_ACT_GELU_TANH, 0, 0},    {HP_ACT_SILU, 0, 0},
    {HP_ACT_RELU, 0, 0},     {HP_ACT_CLIP, -0.4, 0.9},    {HP_ACT_HSWISH, 0, 0},
    {HP_ACT_LEAKY, 0.1, 0},  {HP_ACT_HSIGMOID, 0.2, 0.5}, {HP_ACT_SIGMOID, 0, 0},
    {HP_ACT_TANH, 0, 0},     {HP_ACT_ERF, 0, 0},          {HP_ACT_MISH, 0, 0},
    {HP_ACT_ELU, 1, 0},      {HP_ACT_CELU, 0.5, 0},       {HP_ACT_SELU, 1.6733, 1.0507},
    {HP_ACT_SOFTPLUS, 0, 0}, {HP_ACT_SOFTSIGN, 0, 0},
};

int random_act(hp_builder *b, dice *d, int x, const char *name) {
    const int k = roll(d, 0, (int)(sizeof smooth / sizeof *smooth) - 1);
    return hp_build_act_with(b, x, name, smooth[k].act, smooth[k].a, smooth[k].b);
}

int random_block(hp_builder *b, dice *d, int x) {
    const int c = b->g->tensor[x].c;
    const int h = b->g->tensor[x].h < b->g->tensor[x].w ? b->g->tensor[x].h : b->g->tensor[x].w;
    switch (roll(d, 0, 10)) {
    case 8: { /* squeeze and excitation (Hu and others 2018) */
        int y = hp_build_adaptpool(b, x, "squeeze", 1, 1);
        y = random_act(b, d, hp_build_conv(b, y, "reduce", 1 + c / 2, (hp_window){1, 1, 0, 1, true}), "r");
        y = hp_build_conv(b, y, "expand", c, (hp_window){1, 1, 0, 1, true});
        y = hp_build_act_with(b, y, "gate", coin(d) ? HP_ACT_SIGMOID : HP_ACT_HSIGMOID, 1.0 / 6, 0.5);
        return hp_build_mul(b, x, y, "mul");
    }
    case 9: /* a product of maps, or a square */
        return hp_build_mul(b, x, coin(d) ? x : hp_build_conv(b, x, "gate", c, (hp_window){3, 1, 1, 1, true}),
                            "mul");
    case 10:
        return append_prelu(b, x, "prelu", coin(d));
    case 0: { /* residual, batch norm fused with the addition */
        int y = hp_build_conv(b, x, "a", c, (hp_window){3, 1, 1, 1, false});
        y = hp_build_act(b, hp_build_bn(b, y, "na"), "ra", HP_ACT_RELU);
        y = hp_build_bn(b, hp_build_conv(b, y, "b", c, (hp_window){1, 1, 0, 1, false}), "nb");
        return hp_build_act(b, hp_build_add(b, y, x, "add"), "rb", HP_ACT_RELU);
    }
    case 1: { /* pre-activation residual with a strided shortcut */
        const int s = h >= 4 ? 2 : 1, o = roll(d, 2, 9);
        int y = hp_build_act(b, hp_build_bn(b, x, "n"), "r", HP_ACT_RELU6);
        y = hp_build_conv(b, y, "a", o, (hp_window){3, s, 1, 1, true});
        return hp_build_add(b, y, hp_build_conv(b, x, "short", o, (hp_window){1, s, 0, 1, true}), "add");
    }
    case 2:
        return hp_build_act(b, hp_build_conv(b, x, "dw", c, (hp_window){3, 1, 1, c, true}), "r",
                            HP_ACT_RELU6);
    case 3:
        return h >= 3 ? hp_build_maxpool(
                            b, x, "max",
                            (hp_window){coin(d) ? 2 : 3, coin(d) ? 1 : 2, coin(d) ? 1 : 0, 0, false})
                      : x;
    case 4:
        return h >= 3 ? hp_build_avgpool(b, x, "avg", (hp_window){3, coin(d) ? 1 : 2, 1, 0, false}) : x;
    case 5: { /* dense layer */
        int y = hp_build_act(b, hp_build_bn(b, x, "n"), "r", HP_ACT_RELU);
        return hp_build_concat(b, x, hp_build_conv(b, y, "a", roll(d, 1, 5), (hp_window){3, 1, 1, 1, false}),
                               "cat");
    }
    case 6: {
        const int y = hp_build_conv(b, x, "a", c, (hp_window){1, 1, 0, 1, coin(d)});
        return random_act(b, d, hp_build_bn(b, y, "n"), "curve");
    }
    default: {
        const int y = hp_build_conv(b, x, "a", roll(d, 1, 12),
                                    (hp_window){h >= 3 && coin(d) ? 3 : 1, 1, coin(d) ? 1 : 0, 1, coin(d)});
        return hp_build_dropout(b, y, "drop", 0.25f);
    }
    }
}

int random_resize(hp_builder *b, dice *d, int x) {
    const int h = b->g->tensor[x].h, w = b->g->tensor[x].w;
    const bool twice = coin(d) && h < 9 && w < 9;
    const int to_h = twice ? 2 * h : roll(d, 2, 14), to_w = twice ? 2 * w : roll(d, 2, 14);
    x = hp_build_resize(b, x, "resize", to_h, to_w, (hp_interpolation)roll(d, 0, HP_INTERPOLATIONS - 1),
                        (hp_corners)roll(d, 0, HP_CORNERS - 1));
    hp_layer *l = &b->g->layer[b->g->n_layer - 1];
    l->resize.cubic = l->resize.interpolation == HP_CUBIC ? -0.75 : 0;
    l->resize.inside = l->resize.interpolation == HP_CUBIC && coin(d);
    return x;
}

int random_window(hp_builder *b, dice *d, int x) {
    const int c = b->g->tensor[x].c, h = b->g->tensor[x].h, w = b->g->tensor[x].w;
    const int small = h < w ? h : w;
    switch (roll(d, 0, 4)) {
    case 4:
        return random_resize(b, d, x);
    case 0:
        x = hp_build_conv_rect(b, x, "row", roll(d, 2, 6), 1, 7);
        return hp_build_conv_rect(b, x, "col", c, 5, 1);
    case 1:
        return small >= 2 ? hp_build_maxpool_ceil(b, x, "ceil", (hp_window){2, 2, 0, 0, false}) : x;
    case 2:
        return small >= 3
                   ? hp_build_avgpool_inside(b, x, "inside", (hp_window){3, coin(d) ? 1 : 2, 1, 0, false})
                   : x;
    default: { /* a level of a U-Net */
        if (small < 4) return x;
        int y = hp_build_maxpool(b, x, "down", (hp_window){2, 2, 0, 0, false});
        y = hp_build_act(b, hp_build_conv(b, y, "low", c + 1, (hp_window){3, 1, 1, 1, true}), "r",
                         HP_ACT_RELU);
        y = hp_build_convt(b, y, "up", roll(d, 1, 4), (hp_window){2, 2, 0, 1, true});
        return hp_build_concat(b, x, hp_build_pad(b, y, "pad", h, w), "skip");
    }
    }
}

hp_graph *random_net(hp_arena *arena, uint64_t seed, int n_block) {
    dice d = {seed, 0};
    hp_error err;
    hp_builder b = hp_builder_start(arena, "random", roll(&d, 7, 13), roll(&d, 7, 13), roll(&d, 2, 5), &err);
    int x = 0; /* some start with layers that could overwrite the image */
    if (roll(&d, 0, 3) == 0) x = hp_build_bn(&b, x, "first");
    if (roll(&d, 0, 3) == 0) x = hp_build_act(&b, x, "second", HP_ACT_RELU);
    x = hp_build_conv(&b, x, "stem", roll(&d, 2, 8), (hp_window){3, 1, 1, 1, false});
    int skip = -1;
    for (int i = 0; i < n_block; i++) {
        hp_build_unit(&b);
        hp_build_scope(&b, "b%d.", i);
        x = roll(&d, 0, 2) ? random_block(&b, &d, x) : random_window(&b, &d, x);
        if (skip >= 0 && b.g->tensor[skip].h == b.g->tensor[x].h && b.g->tensor[skip].w == b.g->tensor[x].w &&
            coin(&d)) {
            x = hp_build_concat(&b, x, skip, "long");
            skip = -1;
        } else if (skip < 0 || coin(&d)) {
            skip = x;
        }
    }
    hp_build_unit(&b);
    hp_build_scope(&b, "head.");
    if (roll(&d, 0, 2) == 0) {
        hp_build_conv(&b, x, "map", b.g->classes, (hp_window){1, 1, 0, 1, true});
    } else {
        x = hp_build_adaptpool(&b, x, "gap", coin(&d) ? 2 : 1, 1);
        hp_build_linear(&b, x, "fc", b.g->classes);
    }
    hp_graph *g = NULL;
    if (hp_builder_finish(&b, &g) != HP_OK) {
        fprintf(stderr, "random_net %llu: %s\n", (unsigned long long)seed, err.text);
        return NULL;
    }
    return hp_graph_fuse(arena, g);
}

/* --- strategies --- */

/* True in one of `n` draws, and only for a wanted axis. */
static bool draw_one_in(dice *d, int axes, int axis, int n) {
    return (axes & axis) && roll(d, 1, n) == 1;
}

bool draw_groups(dice *d, int axes, int groups, hp_strategy *s) {
    s->dp = roll(d, 1, groups);
    if (groups % s->dp) return false;
    int left = groups / s->dp;
    if (left % 2 == 0 && draw_one_in(d, axes, DRAW_CLIENTS, 4)) left /= s->clients = 2;
    if (left % 2 == 0 && draw_one_in(d, axes, DRAW_GEMS, 3)) s->gems = left % 4 == 0 && coin(d) ? 4 : 2;
    s->micro = left / s->gems;
    return true;
}

void draw_schedule(dice *d, int axes, hp_strategy *s) {
    s->sched = s->micro == 1 ? roll(d, 0, 2) : roll(d, 1, 3);
    if (draw_one_in(d, axes, DRAW_ZB, 4)) s->sched = HP_SCHED_ZB;
    if (s->gems > 1) s->sched = HP_SCHED_GEMS;
    s->chunks = s->sched == HP_SCHED_INTERLEAVED ? 2 : 1;
    s->recompute = s->sched == HP_SCHED_ZB ? 0 : roll(d, 0, 3);
}

void draw_tiles(dice *d, int axes, hp_strategy *s) {
    static const int8_t grids[][2] = {{1, 1}, {2, 1}, {1, 2}, {3, 1}, {1, 3}, {2, 2}, {5, 1}, {2, 3}, {3, 3}};
    if (draw_one_in(d, axes, DRAW_TILES, 2)) s->sp.n = roll(d, 1, s->stages);
    for (int i = 0; i < s->sp.n; i++) {
        const int8_t *grid = grids[roll(d, 0, 8)];
        const bool again = i > 0 && coin(d);
        s->sp.rows[i] = again ? s->sp.rows[i - 1] : grid[0];
        s->sp.cols[i] = again ? s->sp.cols[i - 1] : grid[1];
    }
    if (draw_one_in(d, axes, DRAW_LDP, 4)) s->ldp = roll(d, 2, 3);
    if (s->sp.n && draw_one_in(d, axes, DRAW_SHARED, 3)) s->sp.tail = HP_TAIL_SHARED;
    if (s->sp.n && draw_one_in(d, axes, DRAW_HALO, 2)) s->sp.halo = roll(d, 2, 4);
    if (draw_one_in(d, axes, DRAW_CP, 4)) s->cp = roll(d, 2, 3);
    if (draw_one_in(d, axes, DRAW_BRANCHES, 5)) s->bp = roll(d, 2, 3);
    if (s->sp.n && draw_one_in(d, axes, DRAW_OVERLAP, 3)) s->sp.overlap = HP_OVERLAP_INTERIOR;
    if (axes & DRAW_BN) s->bn = roll(d, 0, 2);
}

/* Strategies are refused if there is nothing to share. */
static void draw_tokens(dice *d, int axes, hp_strategy *s) {
    if (draw_one_in(d, axes, DRAW_TOKENS, 3)) s->tp = roll(d, 2, 4);
    if (!draw_one_in(d, axes, DRAW_TOKENS, 3)) return;
    s->seq.ranks = roll(d, 2, 4);
    s->seq.by = roll(d, HP_SEQ_RING, HP_SEQ_A2A);
}

static hp_proportions draw_weights(dice *d, int n) {
    hp_proportions w = {.n = n};
    for (int i = 0; i < n; i++) w.of[i] = (uint16_t)roll(d, 1, coin(d) ? 3 : 9);
    return hp_proportions_reduced(&w);
}

void draw_proportions(dice *d, int axes, hp_strategy *s) {
    for (int axis = HP_AXIS_H; s->sp.n && axis <= HP_AXIS_W; axis++)
        if (draw_one_in(d, axes, DRAW_PROPORTIONS, 2))
            s->by[axis] =
                draw_weights(d, (axis == HP_AXIS_H ? s->sp.rows : s->sp.cols)[roll(d, 1, s->sp.n) - 1]);
    if (s->dp == 1 || s->clients > 1 || !draw_one_in(d, axes, DRAW_SHARES, 3)) return;
    s->by[HP_AXIS_N] = draw_weights(d, s->dp);
    if (s->by[HP_AXIS_N].n && !(axes & DRAW_BN)) s->bn = HP_BN_ALL;
}

void draw_cut(dice *d, const hp_graph *g, hp_strategy *s) {
    s->cut.n = s->stages * s->chunks;
    int left = g->n_unit;
    for (int i = 0; i < s->cut.n && left > 0; i++) {
        const int most = left - (s->cut.n - 1 - i);
        s->cut.units[i] = i == s->cut.n - 1 ? left : most > 0 ? roll(d, 1, most) : 0;
        left -= s->cut.units[i];
    }
}

static hp_strategy draw_zero(dice *d, const hp_graph *g, int groups, int axes, hp_strategy s) {
    hp_strategy z = s;
    if (!draw_one_in(d, axes, DRAW_ZERO, 2)) return s;
    z.zero.stage = roll(d, 1, 3);
    if (z.zero.stage == 3) z.zero.prefetch = roll(d, 0, 2);
    if (z.zero.stage == 3) z.zero.keep = coin(d);
    return hp_strategy_legal(&z, g, hp_strategy_batch(&s, groups), 0, NULL) ? z : s;
}

static bool has_attention(const hp_graph *g) {
    for (int l = 0; l < g->n_layer; l++)
        if (g->layer[l].op == HP_ATTENTION) return true;
    return false;
}

hp_strategy random_strategy_of(dice *d, const hp_graph *g, int groups, int max_ranks, int axes) {
    for (;;) {
        hp_strategy s = hp_strategy_default();
        if (!draw_groups(d, axes, groups, &s)) continue;
        s.stages = roll(d, 1, 4);
        draw_schedule(d, axes, &s);
        s.fuse_bytes = coin(d) ? 25000000 : roll(d, 64, 4096);
        if (coin(d)) draw_cut(d, g, &s);
        draw_tiles(d, axes, &s);
        draw_proportions(d, axes, &s);
        if (has_attention(g)) draw_tokens(d, axes, &s);
        if (hp_strategy_ranks(&s) <= max_ranks &&
            hp_strategy_legal(&s, g, hp_strategy_batch(&s, groups), 0, NULL))
            return draw_zero(d, g, groups, axes, s);
    }
}

/* `auto`, a back end, or one with an algorithm of its own if that traffic has one. */
static int32_t draw_choice(dice *d, hp_traffic traffic) {
    const int32_t b = roll(d, -1, HP_BACKENDS - 1);
    hp_algorithm a = HP_ALGORITHM_LIBRARY;
    if (b < 0) return HP_COMM_AUTO;
    if (traffic >= HP_TRAFFIC_STATS && hp_backend_steps(b) && coin(d))
        while (a == HP_ALGORITHM_LIBRARY || !(hp_algorithms[a]->does & 1u << HP_COLLECTIVE_ALLREDUCE))
            a = (hp_algorithm)roll(d, HP_ALGORITHM_LIBRARY + 1, HP_ALGORITHMS - 1);
    return hp_comm_choice((hp_backend)b, a);
}

void draw_comm(dice *d, hp_strategy *s) {
    const int32_t all = draw_choice(d, HP_TRAFFIC_HALO);
    const bool mix = coin(d);
    for (int i = 0; i < HP_TRAFFICS && s->clients == 1; i++)
        s->comm[i] = mix && hp_traffic_of_networks((hp_traffic)i) ? draw_choice(d, (hp_traffic)i)
                     : mix                                        ? HP_COMM_AUTO
                                                                  : all;
    hp_comm_settle(s->comm);
}

static hp_codec draw_codec(dice *d) {
    const hp_codec_kind kind = (hp_codec_kind)roll(d, 1, HP_CODEC_KINDS - 1);
    return hp_codec_of(kind, hp_codec_infos[kind].most ? roll(d, 1, hp_codec_infos[kind].most) : 0);
}

void draw_compress(dice *d, hp_strategy *s) {
    static const hp_traffic kinds[] = {HP_TRAFFIC_HALO, HP_TRAFFIC_STAGE, HP_TRAFFIC_ALLREDUCE};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const hp_codec c = draw_codec(d);
        const bool does = kinds[i] == HP_TRAFFIC_ALLREDUCE ? hp_codec_info_of(c)->sum != HP_CODEC_NOT
                                                           : hp_codec_info_of(c)->messages;
        const bool whole = kinds[i] != HP_TRAFFIC_ALLREDUCE || !s->zero.stage;
        s->compress[kinds[i]] = does && whole && coin(d) ? c : 0;
    }
    if (s->zero.stage) s->compress[HP_TRAFFIC_ALLREDUCE] = 0;
}

hp_graph *random_optimizer(dice *d, hp_arena *arena, const hp_graph *g) {
    hp_graph *out = HP_NEW(arena, hp_graph, 1);
    *out = *g;
    out->optimizer = roll(d, 0, HP_OPTIMIZERS - 1);
    out->clips = coin(d);
    return out;
}

hp_graph *random_precision(dice *d, hp_arena *arena, const hp_graph *g, hp_strategy *s) {
    s->prec = roll(d, HP_PREC_FP32, HP_PREC_FP16);
    return hp_graph_train_in(arena, g, s->prec);
}
