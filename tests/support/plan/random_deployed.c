/* random_deployed.c - random networks for inference; see random_deployed.h. */
#include "tests/support/plan/random_deployed.h"
#include "tests/support/plan/built/append_layers.h"

#include "networks/nets/net_act.h"

typedef int block_fn(hp_builder *b, dice *d, int x);

static const hp_tensor *tensor_of(const hp_builder *b, int x) {
    return &b->g->tensor[x];
}

static int maybe_act(hp_builder *b, dice *d, int x, const char *name) {
    return roll(d, 0, 9) ? random_act(b, d, x, name) : x;
}

/* A gate per channel, from the whole map. */
static int block_squeeze(hp_builder *b, dice *d, int x) {
    const int c = tensor_of(b, x)->c;
    int y = hp_build_adaptpool(b, x, "squeeze", 1, 1);
    y = hp_build_act(b, hp_build_conv(b, y, "reduce", 1 + c / 2, (hp_window){1, 1, 0, 1, true}), "r",
                     HP_ACT_RELU);
    y = hp_build_conv(b, y, "expand", c, (hp_window){1, 1, 0, 1, true});
    y = hp_build_act_with(b, y, "gate", HP_ACT_HSIGMOID, 1.0 / 6, 0.5);
    return maybe_act(b, d, hp_build_mul(b, x, y, "mul"), "act");
}

/* A gate per element. */
static int block_gate(hp_builder *b, dice *d, int x) {
    const int k = coin(d) ? 3 : 1;
    const int y = hp_build_conv(b, x, "attention", tensor_of(b, x)->c, (hp_window){k, 1, k / 2, 1, true});
    return hp_build_mul(b, x, hp_build_act(b, y, "gate", HP_ACT_SIGMOID), "mul");
}

static int block_scale(hp_builder *b, dice *d, int x) {
    return maybe_act(b, d, append_scale(b, x, "scale", coin(d)), "act");
}

/* An inverted residual. */
static int block_inverted(hp_builder *b, dice *d, int x) {
    const int c = tensor_of(b, x)->c, wide = c + roll(d, 1, 4);
    int y = hp_build_bn(b, hp_build_conv(b, x, "expand", wide, (hp_window){1, 1, 0, 1, false}), "n0");
    y = hp_build_act(b, y, "a0", HP_ACT_HSWISH);
    y = hp_build_bn(b, hp_build_conv(b, y, "dw", wide, (hp_window){3, 1, 1, wide, false}), "n1");
    y = hp_build_act(b, y, "a1", HP_ACT_RELU6);
    y = hp_build_bn(b, hp_build_conv(b, y, "project", c, (hp_window){1, 1, 0, 1, false}), "n2");
    return coin(d) ? hp_build_add(b, x, y, "add") : hp_build_add(b, y, x, "add");
}

static int block_transposed(hp_builder *b, dice *d, int x) {
    const int c = tensor_of(b, x)->c, groups = c % 2 ? coin(d) ? c : 1 : roll(d, 1, 2), k = roll(d, 2, 4);
    if (tensor_of(b, x)->h > 9 || tensor_of(b, x)->w > 9 || tensor_of(b, x)->h < 2 || tensor_of(b, x)->w < 2)
        return x;
    const int stride = roll(d, 1, 3), dilation = roll(d, 1, 3), pad = roll(d, 0, (k - 1) * dilation / 2);
    const hp_layer like = {.op = HP_CONVT,
                           .window.kh = k,
                           .window.kw = k,
                           .window.stride_h = stride,
                           .window.stride_w = stride,
                           .window.pad_h = pad,
                           .window.pad_w = pad,
                           .window.dil_h = dilation,
                           .window.dil_w = dilation,
                           .groups = groups,
                           .n_param = roll(d, 1, 2)};
    return append_conv_as(b, x, "up", groups * roll(d, 1, 3), &like);
}

/* Sums that cannot be fused into a convolution, of maps with and without a halo after them. */
static int block_pools(hp_builder *b, dice *d, int x) {
    const hp_window w = {3, 1, 1, 0, false};
    const int y = hp_build_maxpool(b, x, "max", w), z = hp_build_avgpool(b, coin(d) ? x : y, "avg", w);
    const int sum = coin(d) ? hp_build_add(b, y, z, "add") : hp_build_add(b, z, y, "add");
    return coin(d) ? maybe_act(b, d, sum, "act") : hp_build_add(b, sum, x, "again");
}

/* Reads the same tensor twice. */
static int block_twice(hp_builder *b, dice *d, int x) {
    const int y = coin(d) ? hp_build_conv(b, x, "a", roll(d, 1, 5), (hp_window){3, 1, 1, 1, true}) : x;
    if (tensor_of(b, y)->c > 12 || coin(d)) return hp_build_add(b, y, y, "double");
    return coin(d) ? hp_build_concat(b, y, y, "pair") : hp_build_mul(b, y, y, "square");
}

/* The addend is read again later. */
static int block_again(hp_builder *b, dice *d, int x) {
    const int c = tensor_of(b, x)->c, k = coin(d) ? 3 : 1;
    int y = hp_build_add(b, hp_build_conv(b, x, "a", c, (hp_window){k, 1, k / 2, 1, true}), x, "first");
    if (coin(d)) y = hp_build_add(b, hp_build_conv(b, y, "b", c, (hp_window){3, 1, 1, 1, true}), y, "second");
    const int z = hp_build_conv(b, y, "c", c, (hp_window){k, 1, k / 2, 1, false});
    return coin(d) ? hp_build_add(b, z, x, "again") : hp_build_concat(b, z, c < 8 ? x : y, "again");
}

/* Concatenations of concatenations, scaled; some are also read by layers that cannot read their parts. */
static int block_dense(hp_builder *b, dice *d, int x) {
    static const char *const names[][4] = {{"n0", "r0", "c0", "cat0"},
                                           {"n1", "r1", "c1", "cat1"},
                                           {"n2", "r2", "c2", "cat2"},
                                           {"n3", "r3", "c3", "cat3"}};
    const int layers = roll(d, 1, 4);
    for (int i = 0; i < layers; i++) {
        int y = roll(d, 0, 3) ? hp_build_bn(b, x, names[i][0]) : x;
        if (roll(d, 0, 3)) y = hp_build_act(b, y, names[i][1], HP_ACT_RELU);
        y = hp_build_conv(b, y, names[i][2], roll(d, 1, 3), (hp_window){3, 1, 1, 1, false});
        x = coin(d) ? hp_build_concat(b, x, y, names[i][3]) : hp_build_concat(b, y, x, names[i][3]);
    }
    return coin(d) ? hp_build_act(b, hp_build_bn(b, x, "norm"), "relu", HP_ACT_RELU6) : x;
}

/* Reads the image once more. */
static int block_image(hp_builder *b, dice *d, int x) {
    const int h = tensor_of(b, x)->h, w = tensor_of(b, x)->w;
    int y = coin(d) ? hp_build_conv(b, 0, "image", roll(d, 1, 3), (hp_window){5, 1, 2, 1, true}) : 0;
    if (tensor_of(b, y)->h != h || tensor_of(b, y)->w != w)
        y = hp_build_resize(b, y, "fit", h, w, coin(d) ? HP_NEAREST : HP_BILINEAR, HP_CORNERS_HALF_PIXEL);
    return hp_build_concat(b, x, y, "both");
}

static int block_softmax(hp_builder *b, dice *d, int x) {
    (void)d;
    return hp_build_mul(b, x, append_softmax(b, x, "softmax"), "mul");
}

static int block_down(hp_builder *b, dice *d, int x) {
    const hp_tensor *t = tensor_of(b, x);
    if (t->h < 4 || t->w < 4) return x;
    return maybe_act(b, d, hp_build_conv(b, x, "down", roll(d, 2, 7), (hp_window){3, 2, 1, 1, true}), "act");
}

static int random_infer_block(hp_builder *b, dice *d, int x) {
    static block_fn *const blocks[] = {
        block_squeeze,    block_gate,    random_resize, block_scale,  block_inverted,
        block_transposed, block_pools,   block_twice,   block_again,  block_image,
        block_down,       block_softmax, block_dense,   random_block, random_window,
    };
    const int n = (int)(sizeof blocks / sizeof *blocks);
    return blocks[roll(d, 0, n - 1)](b, d, x);
}

/* The end: a pooled vector and classes, or a map: of logits, resized, of probabilities, or
 * whatever came last. */
static void random_end(hp_builder *b, dice *d, int x) {
    const int end = roll(d, 0, 5);
    hp_build_unit(b);
    hp_build_scope(b, "head.");
    if (end < 2) {
        x = hp_build_adaptpool(b, x, "gap", end ? 1 : roll(d, 1, 2), 1);
        hp_build_linear(b, x, "fc", b->g->classes);
        return;
    }
    const int k = coin(d) ? 3 : 1;
    if (end < 5) x = hp_build_conv(b, x, "map", b->g->classes, (hp_window){k, 1, k / 2, 1, true});
    if (end == 3)
        x = hp_build_resize(b, x, "full", b->g->image_h, b->g->image_w, HP_BILINEAR, HP_CORNERS_HALF_PIXEL);
    if (end == 4) x = append_softmax(b, x, "softmax");
    if (end == 5 && tensor_of(b, x)->c != b->g->classes)
        hp_build_conv(b, x, "map", b->g->classes, (hp_window){1, 1, 0, 1, true});
    else if (end == 5)
        hp_build_act(b, x, "last", HP_ACT_RELU);
}

hp_graph *random_dense_net(hp_arena *arena, uint64_t seed, int n_block) {
    dice d = {seed, 1 << 21};
    hp_error err;
    hp_graph *g = NULL;
    hp_builder b = hp_builder_start(arena, "dense", roll(&d, 3, 13), roll(&d, 3, 13), roll(&d, 2, 5), &err);
    int x = coin(&d) ? hp_build_conv(&b, 0, "stem", roll(&d, 2, 5), (hp_window){3, 1, 1, 1, false}) : 0;
    for (int i = 0; i < n_block; i++) {
        if (coin(&d)) hp_build_unit(&b);
        hp_build_scope(&b, "b%d.", i);
        x = block_dense(&b, &d, x);
    }
    hp_build_unit(&b);
    hp_build_scope(&b, "head.");
    hp_build_linear(&b, hp_build_adaptpool(&b, x, "gap", 1, 1), "fc", b.g->classes);
    return hp_builder_finish(&b, &g) == HP_OK ? hp_graph_fuse(arena, g) : NULL;
}

hp_graph *random_infer_net(hp_arena *arena, uint64_t seed, int n_block) {
    dice d = {seed, 1 << 20};
    hp_error err;
    hp_builder b = hp_builder_start(arena, "random", roll(&d, 1, 13), roll(&d, 3, 13), roll(&d, 2, 5), &err);
    int x = 0, skip = -1;
    if (coin(&d)) x = hp_build_conv(&b, x, "stem", roll(&d, 2, 8), (hp_window){3, 1, 1, 1, false});
    for (int i = 0; i < n_block; i++) {
        if (coin(&d)) hp_build_unit(&b);
        hp_build_scope(&b, "b%d.", i);
        x = random_infer_block(&b, &d, x);
        const hp_tensor *s = skip < 0 ? NULL : tensor_of(&b, skip), *t = tensor_of(&b, x);
        if (s && s->h == t->h && s->w == t->w && coin(&d)) {
            x = s->c == t->c ? hp_build_add(&b, x, skip, "long") : hp_build_concat(&b, x, skip, "long");
            skip = -1;
        } else if (skip < 0 || coin(&d)) {
            skip = x;
        }
    }
    random_end(&b, &d, x);
    hp_graph *g = NULL;
    if (hp_builder_finish(&b, &g) != HP_OK) {
        fprintf(stderr, "random_infer_net %llu: %s\n", (unsigned long long)seed, err.text);
        return NULL;
    }
    return hp_graph_fuse(arena, g);
}

hp_strategy random_infer_strategy(dice *d, const hp_graph *g, int max_ranks, int64_t *batch) {
    const int axes = DRAW_TILES | DRAW_LDP | DRAW_SHARED | DRAW_HALO | DRAW_BRANCHES | DRAW_OVERLAP |
                     DRAW_CLIENTS | DRAW_PROPORTIONS | DRAW_SHARES | DRAW_BN;
    for (;;) {
        hp_strategy s = hp_strategy_default();
        s.prec = g->prec;
        const int groups = roll(d, 1, 3);
        if (!draw_groups(d, axes, groups, &s)) continue;
        s.stages = roll(d, 1, 4);
        draw_schedule(d, axes, &s);
        s.recompute = HP_RECOMPUTE_NONE;
        if (coin(d)) draw_cut(d, g, &s);
        draw_tiles(d, axes, &s);
        draw_proportions(d, axes, &s);
        s.bn = HP_BN_SYNC;
        if (coin(d)) s.strips.n = roll(d, 2, 9);
        if (s.strips.n > 1 && coin(d)) s.strips.deep = roll(d, 1, g->n_unit);
        *batch = hp_strategy_divisor(&s) * (s.strips.n > 1 ? 1 : roll(d, 1, 2));
        if (hp_strategy_ranks(&s) <= max_ranks && hp_strategy_legal(&s, g, *batch, 0, NULL)) return s;
    }
}

hp_graph *random_deployed(hp_arena *arena, const hp_graph *g, int prec) {
    const hp_deploy_options o = {.prec = prec};
    hp_graph *deployed = NULL;
    hp_error err = {HP_OK, ""};
    if (hp_graph_deploy(arena, g, &o, &deployed, &err) != HP_OK)
        fprintf(stderr, "random_deployed: %s\n", err.text);
    return deployed;
}
