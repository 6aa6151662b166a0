/* random_tokens.c - random small transformers, and networks of gathers, reductions and group norms;
 * see random_tokens.h. */
#include "tests/support/plan/random_tokens.h"
#include "tests/support/plan/built/append_layers.h"

#include "networks/graph/graph_gather.h"
#include "networks/nets/net_act.h"

static int normed(hp_builder *b, dice *d, int x) {
    return coin(d) ? hp_build_layernorm(b, x, "norm") : append_rmsnorm(b, x, "norm");
}

static hp_heads draw_heads(dice *d, const hp_tensor *t) {
    hp_heads h = {.kv_heads = roll(d, 1, 2)};
    h.heads = h.kv_heads * roll(d, 1, 2);
    switch (roll(d, 0, 3)) {
    case 0:
        h.causal = true;
        break;
    case 1:
        h.window_h = roll(d, 1, 5);
        h.window_w = roll(d, 1, 5);
        h.shift_h = roll(d, 0, h.window_h - 1);
        h.shift_w = roll(d, 0, h.window_w - 1);
        h.bias = coin(d);
        break;
    case 2: /* one window is the whole map */
        h.window_h = t->h;
        h.window_w = t->w;
        h.bias = (int64_t)t->h * t->w < 200;
        break;
    default:
        break;
    }
    h.rotary = coin(d) ? 0 : 50;
    return h;
}

/* A projection that ranks may share, or not. */
typedef int project_fn(hp_builder *b, int x, const char *name, int out_c, bool bias);

static int attended(hp_builder *b, dice *d, int x) {
    const hp_tensor t = b->g->tensor[x];
    const hp_heads h = draw_heads(d, &t);
    const int head = 2 * roll(d, 1, 3), from = normed(b, d, x);
    const bool shared = coin(d);
    project_fn *const first = shared ? hp_build_column : hp_build_project, *const second =
                                                                               shared ? hp_build_row
                                                                                      : hp_build_project;
    const int q = first(b, from, "q", head * h.heads, coin(d)),
              k = first(b, from, "k", head * h.kv_heads, coin(d)),
              v = roll(d, 0, 3) ? first(b, from, "v", head * h.kv_heads, coin(d)) : k;
    return hp_build_add(b, x, second(b, hp_build_attention(b, q, k, v, "attend", h), "out", t.c, coin(d)),
                        "add");
}

static int perceptron(hp_builder *b, dice *d, int x) {
    const int c = b->g->tensor[x].c;
    const bool shared = coin(d);
    int y =
        (shared ? hp_build_column : hp_build_project)(b, normed(b, d, x), "up", roll(d, 1, 3) * c, coin(d));
    y = hp_build_act(b, y, "act", coin(d) ? HP_ACT_GELU : HP_ACT_SILU);
    y = (shared ? hp_build_row : hp_build_project)(b, y, "down", c, coin(d));
    return hp_build_add(b, x, coin(d) ? hp_build_dropout(b, y, "drop", 0.25) : y, "sum");
}

static int cropped(hp_builder *b, dice *d, int x) {
    const hp_tensor t = b->g->tensor[x];
    const int y0 = roll(d, 0, t.h - 1), x0 = roll(d, 0, t.w - 1);
    return hp_build_crop(b, x, "crop", y0, x0, roll(d, 1, t.h - y0), roll(d, 1, t.w - x0));
}

int random_token_block(hp_builder *b, dice *d, int x) {
    const hp_tensor t = b->g->tensor[x];
    switch (roll(d, 0, 9)) {
    case 0:
        return hp_build_position(b, x, "places", NULL);
    case 1:
        return t.h > 1 && t.w > 1 && t.c < 12 ? hp_build_merge(b, x, "merge") : x;
    case 2:
        return t.h > 4 ? cropped(b, d, x) : x;
    case 3:
        return (int64_t)t.h * t.w < 120 ? hp_build_classtoken(b, x, "class") : x;
    case 4:
    case 5:
        return perceptron(b, d, x);
    default:
        return attended(b, d, x);
    }
}

static int stem(hp_builder *b, dice *d, bool text) {
    if (!text)
        return hp_build_conv(b, 0, "patch", 2 * roll(d, 2, 4),
                             (hp_window){.k = 2, .stride = 2, .bias = true});
    b->g->image_c = b->g->tensor[0].c = 1;
    if (coin(d)) b->g->image_w = b->g->tensor[0].w = 1;
    return hp_build_embedding(b, 0, "ids", roll(d, 2, 20), 2 * roll(d, 2, 4));
}

static void head(hp_builder *b, dice *d, int x, int embedded) {
    hp_build_scope(b, "head.");
    x = normed(b, d, x);
    if (embedded && b->g->tensor[x].c == b->g->tensor[embedded].c && coin(d)) {
        hp_build_project_tied(b, x, "tied", embedded);
        b->g->classes = b->g->tensor[b->g->n_tensor - 1].c;
    } else if (coin(d)) {
        (coin(d) ? hp_build_column : hp_build_project)(b, x, "map", b->g->classes, true);
    } else {
        hp_build_linear(b, hp_build_crop(b, x, "first", 0, 0, 1, 1), "fc", b->g->classes);
    }
}

hp_graph *random_tokens(hp_arena *arena, uint64_t seed, int n_block) {
    dice d = {seed, 5000};
    hp_error err;
    const bool text = coin(&d);
    hp_builder b = hp_builder_start(arena, "random", roll(&d, 7, 13), roll(&d, 7, 13), roll(&d, 2, 5), &err);
    int x = stem(&b, &d, text);
    const int embedded = text ? x : 0;
    for (int i = 0; i < n_block; i++) {
        hp_build_unit(&b);
        hp_build_scope(&b, "t%d.", i);
        x = random_token_block(&b, &d, x);
        if (!text && roll(&d, 0, 4) == 0) x = random_block(&b, &d, x);
    }
    hp_build_unit(&b);
    head(&b, &d, x, embedded);
    hp_graph *g = NULL;
    if (hp_builder_finish(&b, &g) != HP_OK) {
        fprintf(stderr, "random_tokens %llu: %s\n", (unsigned long long)seed, err.text);
        return NULL;
    }
    return hp_graph_fuse(arena, g);
}

hp_graph *random_trained(hp_arena *arena, uint64_t seed, int n_block) {
    return seed % 3 == 0 ? random_tokens(arena, seed, n_block) : random_net(arena, seed, n_block);
}

/* --- maps --- */

static int divisor(dice *d, int n) {
    int k = roll(d, 1, n);
    while (n % k) k--;
    return k;
}

static int gathered(hp_builder *b, dice *d, int x) {
    const int c = b->g->tensor[x].c, h = b->g->tensor[x].h, w = b->g->tensor[x].w;
    const hp_layer repeated = {.gather.first = roll(d, 0, c - 1), .gather.out_c = roll(d, 1, 5)};
    switch (roll(d, 0, 3)) {
    case 0: { /* channel shuffle (Zhang et al. 2018) */
        const int groups = divisor(d, c);
        return hp_build_gather(
            b, x, "shuffle",
            &(hp_layer){.groups = groups, .gather.step = c / groups, .gather.step_outer = 1});
    }
    case 1: { /* pixel shuffle (Shi et al. 2016), in either of ONNX's modes, then smaller again */
        const int deep = roll(d, 1, 3), r = h * w < 60 ? 2 : 1;
        const bool crd = coin(d);
        const hp_layer like = {.window.kh = r,
                               .window.kw = r,
                               .groups = crd ? deep : deep * r * r,
                               .gather.step = crd ? r * r : 1,
                               .gather.step_outer = 1};
        x = hp_build_conv(b, x, "many", deep * r * r, (hp_window){.k = 1, .bias = true});
        return hp_build_gather(b, x, "pixels", &like);
    }
    case 2: { /* edges */
        const int border = roll(d, HP_BORDER_EDGE, HP_BORDERS - 1), most = h > 2 && w > 2 ? 2 : 0,
                  top = roll(d, 0, most), left = roll(d, 0, most);
        return hp_build_gather(b, x, "edges",
                               &(hp_layer){.gather.border = border,
                                           .gather.step = 1,
                                           .window.pad_h = top,
                                           .window.pad_w = left,
                                           .out_h = h + top + roll(d, 0, most),
                                           .out_w = w + left + roll(d, 0, most)});
    }
    default:
        return hp_build_gather(b, x, "repeated", &repeated);
    }
}

/* Statistics of channels, and of the whole map. */
static int measured(hp_builder *b, dice *d, int x) {
    if (roll(d, 0, 2)) return append_groupnorm(b, x, "gn", divisor(d, b->g->tensor[x].c));
    const int mean = append_reduce(b, x, "mean", HP_CHANNELS_MEAN),
              most = append_reduce(b, x, "most", HP_CHANNELS_MAX);
    return hp_build_concat_all(b, (const int[3]){x, mean, most}, 3, "cbam");
}

static int random_map_block(hp_builder *b, dice *d, int x) {
    const int kind = roll(d, 0, 6);
    return kind < 2   ? gathered(b, d, x)
           : kind < 4 ? measured(b, d, x)
           : kind < 6 ? random_block(b, d, x)
                      : random_window(b, d, x);
}

hp_graph *random_maps(hp_arena *arena, uint64_t seed, int n_block) {
    dice d = {seed, 6000};
    hp_error err;
    hp_builder b = hp_builder_start(arena, "random", roll(&d, 7, 13), roll(&d, 7, 13), roll(&d, 2, 5), &err);
    int x = hp_build_conv(&b, 0, "stem", roll(&d, 2, 8), (hp_window){3, 1, 1, 1, coin(&d)});
    for (int i = 0; i < n_block; i++) {
        hp_build_unit(&b);
        hp_build_scope(&b, "m%d.", i);
        x = random_map_block(&b, &d, x);
    }
    hp_build_unit(&b);
    hp_build_scope(&b, "head.");
    if (coin(&d))
        hp_build_conv(&b, x, "map", b.g->classes, (hp_window){1, 1, 0, 1, true});
    else
        hp_build_linear(&b, hp_build_adaptpool(&b, x, "gap", 1, 1), "fc", b.g->classes);
    hp_graph *g = NULL;
    if (hp_builder_finish(&b, &g) != HP_OK) {
        fprintf(stderr, "random_maps %llu: %s\n", (unsigned long long)seed, err.text);
        return NULL;
    }
    return hp_graph_fuse(arena, g);
}

hp_graph *random_layers(hp_arena *arena, uint64_t seed, int n_block) {
    return (seed % 2 ? random_tokens : random_maps)(arena, seed, n_block);
}
