/* odd_net.c - random chains of windows that no sensible network has. */
#include "tests/support/plan/odd_net.h"

#include "networks/graph/acts.h"

enum { ODD_MOST = 16 };

static void odd_param(hp_graph *g, hp_layer *l, int o, int i) {
    l->param[l->n_param++] = g->n_param;
    hp_param *p = &g->param[g->n_param++];
    *p = (hp_param){.name = l->name,
                    .kind = HP_PARAM_CONV_W,
                    .layer = g->n_layer,
                    .n_dim = 4,
                    .dim = {o, i, l->window.kh, l->window.kw},
                    .count = (int64_t)o * i * l->window.kh * l->window.kw,
                    .fan_in = (int64_t)i * l->window.kh * l->window.kw};
}

static hp_layer odd_window(dice *d, int x) {
    static const int ops[] = {HP_CONV, HP_CONV, HP_CONVT, HP_MAXPOOL, HP_AVGPOOL, HP_PAD, HP_ACT};
    hp_layer l = {.name = "odd", .op = ops[roll(d, 0, 6)], .n_in = 1, .in = {x}, .groups = 1};
    const bool pool = l.op == HP_MAXPOOL || l.op == HP_AVGPOOL;
    l.window.kh = roll(d, 1, 4);
    l.window.kw = roll(d, 1, 3);
    l.window.stride_h = roll(d, 1, 3);
    l.window.stride_w = roll(d, 1, 2);
    l.window.pad_h = roll(d, 0, pool ? l.window.kh / 2 : l.window.kh);
    l.window.pad_w = roll(d, 0, l.window.kw / 2);
    l.window.dil_h = l.op == HP_CONV ? roll(d, 1, 2) : 1;
    l.window.dil_w = l.op == HP_CONV ? roll(d, 1, 2) : 1;
    if (l.op == HP_CONV && coin(d)) { /* keeps the size, so that a sum is possible */
        l.window.kh = l.window.kw = 2 * roll(d, 0, 1) + 1;
        l.window.stride_h = l.window.stride_w = 1;
        l.window.pad_h = l.window.dil_h * (l.window.kh - 1) / 2;
        l.window.pad_w = l.window.dil_w * (l.window.kw - 1) / 2;
    }
    l.window.ceil_mode = pool && coin(d);
    l.act = l.op == HP_ACT ? HP_ACT_RELU : HP_ACT_NONE;
    return l;
}

static void odd_place(hp_graph *g, hp_layer l, hp_tensor y) {
    l.out = g->n_tensor;
    y.producer = g->n_layer;
    g->tensor[g->n_tensor++] = y;
    g->layer[g->n_layer++] = l;
}

/* False if the window does not fit, or the map grows too large. */
static bool odd_append(hp_graph *g, dice *d, int unit) {
    hp_layer l = odd_window(d, g->n_tensor - 1);
    const hp_tensor *x = &g->tensor[g->n_tensor - 1];
    hp_tensor y;
    const int groups[] = {1, x->c};
    const bool conv = l.op == HP_CONV;
    if (conv) l.groups = groups[roll(d, 0, 1)];
    const int channels = conv               ? (coin(d) ? x->c : l.groups * roll(d, 1, 3))
                         : l.op == HP_CONVT ? roll(d, 1, 4)
                                            : x->c;
    if (l.op == HP_PAD) {
        l.out_h = x->h + l.window.pad_h + roll(d, 0, 3);
        l.out_w = x->w + l.window.pad_w + roll(d, 0, 3);
    }
    l.unit = unit;
    if (hp_layer_shape(g, &l, channels, &y, NULL) != HP_OK || y.h > 30 || y.w > 30 || channels > 12)
        return false;
    if (conv) odd_param(g, &l, channels, x->c / l.groups);
    if (l.op == HP_CONVT) odd_param(g, &l, x->c, channels);
    odd_place(g, l, y);
    return true;
}

/* Adds the last tensor to an earlier one of its shape, or to itself. */
static void odd_sum(hp_graph *g, dice *d, int unit) {
    const int y = g->n_tensor - 1;
    for (int x = roll(d, 0, 4) ? y - 1 : y; x >= 0; x--) {
        const hp_tensor *a = &g->tensor[x], *b = &g->tensor[y];
        if (a->h != b->h || a->w != b->w || a->c != b->c) continue;
        const bool turn = coin(d);
        odd_place(
            g,
            (hp_layer){
                .name = "sum", .op = HP_ADD, .n_in = 2, .in = {turn ? x : y, turn ? y : x}, .unit = unit},
            *b);
        return;
    }
}

hp_graph *odd_net(hp_arena *arena, uint64_t seed) {
    dice d = {seed, 500};
    hp_graph *g = HP_NEW(arena, hp_graph, 1);
    *g = (hp_graph){.net = "odd",
                    .image_h = roll(&d, 1, 17),
                    .image_w = roll(&d, 1, 17),
                    .image_c = 3,
                    .layer = HP_NEW(arena, hp_layer, ODD_MOST),
                    .tensor = HP_NEW(arena, hp_tensor, ODD_MOST),
                    .param = HP_NEW(arena, hp_param, ODD_MOST)};
    odd_place(g, (hp_layer){.name = "image", .op = HP_INPUT}, (hp_tensor){g->image_h, g->image_w, 3, 0});
    const int n = roll(&d, 2, 6);
    for (int unit = 0, made = 0; made < n; made++) {
        while (!odd_append(g, &d, unit)) continue;
        if (coin(&d)) odd_sum(g, &d, unit);
        unit = g->layer[g->n_layer - 1].unit + coin(&d);
    }
    hp_layer head = {.name = "head",
                     .op = HP_CONV,
                     .n_in = 1,
                     .in = {g->n_tensor - 1},
                     .groups = 1,
                     .window.kh = 1,
                     .window.kw = 1,
                     .window.stride_h = 1,
                     .window.stride_w = 1,
                     .window.dil_h = 1,
                     .window.dil_w = 1,
                     .unit = g->layer[g->n_layer - 1].unit};
    const hp_tensor x = g->tensor[g->n_tensor - 1];
    g->classes = 3;
    odd_param(g, &head, 3, x.c);
    odd_place(g, head, (hp_tensor){x.h, x.w, 3, 0});
    hp_graph_index_units(arena, g);
    return g;
}

hp_graph *any_net(hp_arena *arena, uint64_t seed, int n_block) {
    return seed % 3 ? random_net(arena, seed, n_block) : odd_net(arena, seed);
}
