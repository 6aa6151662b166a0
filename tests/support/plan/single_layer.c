/* single_layer.c - a network of one random layer. */
#include "tests/support/plan/single_layer.h"

#include "networks/graph/graph_gather.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

int draw(throws *d, int low, int high) { /* inclusive */
    return low + (int)hp_rng_below(d->seed, 79, d->n++, (uint64_t)(high - low + 1));
}

int draw_of(throws *d, const int *list, int n) {
    return list[draw(d, 0, n - 1)];
}

static int draw_divisor(throws *d, int n) {
    int k;
    do k = draw(d, 1, n);
    while (n % k);
    return k;
}

/* Windows of all shapes: rectangles, gaps between them, padding wider than they are. */
static void draw_window(throws *d, hp_layer *l, bool dilates, bool pool) {
    l->window.kh = draw(d, 1, 5);
    l->window.kw = draw(d, 1, 5);
    l->window.stride_h = draw(d, 1, 6);
    l->window.stride_w = draw(d, 1, 3);
    l->window.pad_h = draw(d, 0, pool ? l->window.kh / 2 : l->window.kh + 1);
    l->window.pad_w = draw(d, 0, l->window.kw / 2);
    l->window.dil_h = dilates ? draw(d, 1, 3) : 1;
    l->window.dil_w = dilates ? draw(d, 1, 2) : 1;
    l->window.ceil_mode = pool && draw(d, 0, 1);
    l->window.count_include_pad = pool && draw(d, 0, 1);
}

/* Sometimes another number of windows than equal padding gives: less, or more padding after the map. */
static void draw_sizes(throws *d, single *s) {
    hp_layer *l = &s->layer[1];
    hp_tensor y;
    if (draw(d, 0, 3) || hp_layer_shape(&s->g, l, s->tensor[1].c, &y, NULL) != HP_OK) return;
    l->out_h = draw(d, y.h > 1 ? y.h - 1 : 1, y.h + 2);
    l->out_w = draw(d, y.w > 1 ? y.w - 1 : 1, y.w + 2);
}

static void draw_groups(throws *d, single *s) {
    s->layer[1].groups = draw(d, 0, 1) ? draw_divisor(d, s->tensor[0].c) : 1;
    s->tensor[1].c = s->layer[1].groups * draw(d, 1, 4);
    draw_sizes(d, s);
}

static void draw_conv(throws *d, single *s) {
    draw_window(d, &s->layer[1], true, false);
    draw_groups(d, s);
}

static void draw_convt(throws *d, single *s) {
    draw_window(d, &s->layer[1], draw(d, 0, 1), false);
    draw_groups(d, s);
}

static void draw_maxpool(throws *d, single *s) {
    draw_window(d, &s->layer[1], true, true);
    draw_sizes(d, s);
}

static void draw_avgpool(throws *d, single *s) {
    draw_window(d, &s->layer[1], false, true);
    draw_sizes(d, s);
}

static void draw_target(throws *d, single *s) { /* adaptpool; pad puts the image somewhere in it */
    hp_layer *l = &s->layer[1];
    const bool pad = l->op == HP_PAD;
    if (pad) l->window.pad_h = draw(d, 0, 6);
    if (pad) l->window.pad_w = draw(d, 0, 3);
    l->out_h = pad ? s->tensor[0].h + l->window.pad_h + draw(d, 0, 6) : draw(d, 1, 9);
    l->out_w = pad ? s->tensor[0].w + l->window.pad_w + draw(d, 0, 3) : draw(d, 1, 9);
}

/* A scale in sixteenths, and the size to which it brings n pixels. */
static double draw_scale(throws *d, int n, int32_t *out) {
    const int sixteenths = draw(d, 16 / n + 1, 50);
    *out = n * sixteenths / 16;
    return sixteenths / 16.0;
}

static void draw_resize(throws *d, single *s) {
    hp_layer *l = &s->layer[1];
    const bool times = draw(d, 0, 2) == 0;
    l->out_h = times ? s->tensor[0].h * draw(d, 1, 4) : draw(d, 1, 40);
    l->out_w = times ? s->tensor[0].w * draw(d, 1, 3) : draw(d, 1, 30);
    l->resize.interpolation = draw(d, 0, HP_INTERPOLATIONS - 1);
    l->resize.corners = draw(d, 0, HP_CORNERS - 1);
    l->resize.cubic = draw(d, 0, 1) ? -0.75 : -0.5;
    l->resize.inside = draw(d, 0, 1);
    if (draw(d, 0, 3) || l->resize.corners == HP_CORNERS_ALIGN) return;
    l->resize.scale_h = draw_scale(d, s->tensor[0].h, &l->out_h); /* not the ratio of the sizes */
    l->resize.scale_w = draw_scale(d, s->tensor[0].w, &l->out_w);
}

/* Two maps, or a map and a vector. */
static void draw_mul(throws *d, single *s) {
    s->layer[1].n_in = 2;
    s->tensor[1] = s->tensor[0];
    if (draw(d, 0, 1)) s->tensor[1].h = s->tensor[1].w = 1;
}

static void draw_linear(throws *d, single *s) {
    s->tensor[1].c = draw(d, 1, 9);
}

static void draw_inputs(throws *d, single *s) {
    hp_layer *l = &s->layer[1];
    l->n_in = draw(d, 1, l->op == HP_CONCAT ? MOST_IN : hp_layer_infos[l->op].max_in);
    for (int k = 1; k < l->n_in; k++) {
        s->tensor[k] = s->tensor[0];
        if (l->op == HP_CONCAT) s->tensor[k].c = draw(d, 1, 7);
    }
}

static void draw_attention(throws *d, single *s) {
    hp_layer *l = &s->layer[1];
    const int head = draw(d, 1, 4), kind = draw(d, 0, 2);
    l->n_in = 3;
    l->attention.kv_heads = draw(d, 1, 3);
    l->groups = l->attention.kv_heads * draw(d, 1, 3);
    l->attention.causal = kind == 1;
    l->window.kh = kind == 2 ? draw(d, 1, 9) : 0;
    l->window.kw = kind == 2 ? draw(d, 1, 9) : 0;
    l->window.pad_h = kind == 2 ? draw(d, 0, l->window.kh - 1) : 0;
    l->window.pad_w = kind == 2 ? draw(d, 0, l->window.kw - 1) : 0;
    s->tensor[1] = s->tensor[2] = s->tensor[0];
    s->tensor[0].c = head * l->groups;
    s->tensor[1].c = s->tensor[2].c = head * l->attention.kv_heads;
}

static void draw_embedding(throws *d, single *s) {
    s->tensor[0].c = 1;
    s->tensor[1].c = draw(d, 1, 9);
}

static void draw_crop(throws *d, single *s) {
    hp_layer *l = &s->layer[1];
    l->window.pad_h = draw(d, 0, s->tensor[0].h - 1);
    l->window.pad_w = draw(d, 0, s->tensor[0].w - 1);
    l->out_h = draw(d, 1, s->tensor[0].h - l->window.pad_h);
    l->out_w = draw(d, 1, s->tensor[0].w - l->window.pad_w);
}

static void draw_prelu(throws *d, single *s) {
    s->layer[1].groups = draw(d, 0, 1);
}

/* Up to four summands, as if that many ranks shared the layer before it. */
static void draw_sum(throws *d, single *s) {
    s->layer[1].summands = draw(d, 1, 4);
    s->tensor[1].c = s->tensor[0].c;
    s->tensor[0].c *= s->layer[1].summands;
}

/* Blocks, borders, and any two steps over channels, of which there are enough. */
static void draw_gather(throws *d, single *s) {
    hp_layer *l = &s->layer[1];
    const int h = s->tensor[0].h, w = s->tensor[0].w;
    l->window.kh = draw(d, 1, 3);
    l->window.kw = draw(d, 1, 2);
    l->gather.border = draw(d, 0, HP_BORDERS - 1);
    const int most_h = l->gather.border == HP_BORDER_NONE      ? 0
                       : l->gather.border == HP_BORDER_REFLECT ? h * l->window.kh - 1
                                                               : h,
              most_w = l->gather.border == HP_BORDER_NONE      ? 0
                       : l->gather.border == HP_BORDER_REFLECT ? w * l->window.kw - 1
                                                               : w;
    l->window.pad_h = draw(d, 0, most_h);
    l->window.pad_w = draw(d, 0, most_w);
    l->out_h = h * l->window.kh + l->window.pad_h + draw(d, 0, most_h);
    l->out_w = w * l->window.kw + l->window.pad_w + draw(d, 0, most_w);
    l->gather.out_c = draw(d, 1, 6);
    l->groups = draw_divisor(d, l->window.kh * l->window.kw * l->gather.out_c);
    l->gather.first = draw(d, 0, 4);
    l->gather.step = draw(d, 0, 3);
    l->gather.step_outer = draw(d, 0, 4);
    s->tensor[0].c = l->gather.first + (l->groups - 1) * l->gather.step +
                     (l->window.kh * l->window.kw * l->gather.out_c / l->groups - 1) * l->gather.step_outer +
                     draw(d, 1, 3);
}

static void draw_groupnorm(throws *d, single *s) {
    s->layer[1].groups = draw_divisor(d, s->tensor[0].c);
}

typedef void draw_fn(throws *d, single *s);

static draw_fn *const draws[HP_LAYER_OPS] = {[HP_CONV] = draw_conv,
                                             [HP_CONVT] = draw_convt,
                                             [HP_LINEAR] = draw_linear,
                                             [HP_BN] = draw_inputs,
                                             [HP_ACT] = draw_inputs,
                                             [HP_ADD] = draw_inputs,
                                             [HP_MAXPOOL] = draw_maxpool,
                                             [HP_AVGPOOL] = draw_avgpool,
                                             [HP_ADAPTPOOL] = draw_target,
                                             [HP_PAD] = draw_target,
                                             [HP_CONCAT] = draw_inputs,
                                             [HP_DROPOUT] = draw_inputs,
                                             [HP_MUL] = draw_mul,
                                             [HP_SCALE] = draw_inputs,
                                             [HP_RESIZE] = draw_resize,
                                             [HP_PRELU] = draw_prelu,
                                             [HP_SOFTMAX] = draw_inputs,
                                             [HP_QUANT] = draw_inputs,
                                             [HP_DEQUANT] = draw_inputs,
                                             [HP_LAYERNORM] = draw_inputs,
                                             [HP_RMSNORM] = draw_inputs,
                                             [HP_ATTENTION] = draw_attention,
                                             [HP_EMBEDDING] = draw_embedding,
                                             [HP_POSITION] = draw_inputs,
                                             [HP_CLASSTOKEN] = draw_inputs,
                                             [HP_CROP] = draw_crop,
                                             [HP_MERGE] = draw_inputs,
                                             [HP_SUM] = draw_sum,
                                             [HP_GATHER] = draw_gather,
                                             [HP_REDUCE] = draw_inputs,
                                             [HP_GROUPNORM] = draw_groupnorm};

/* A deployed convolution may add a map of its output's shape. */
static void draw_added(throws *d, single *s) {
    hp_layer *l = &s->layer[1];
    if ((l->op != HP_CONV && l->op != HP_CONVT) || draw(d, 0, 4)) return;
    s->tensor[2] = s->tensor[1];
    l->n_in = l->out = 2;
    s->g.n_tensor = 3;
}

bool try_layer(throws *d, int op, single *s) {
    static const int sizes[] = {1, 2, 3, 5, 7, 8, 11, 13, 17, 23};
    *s = (single){.samples = draw(d, 1, 5)};
    s->layer[0] = (hp_layer){.name = "image", .op = HP_INPUT};
    s->layer[1] = (hp_layer){.name = "layer", .op = op, .n_in = 1, .in = {0, 1, 2}, .groups = 1};
    s->tensor[0] = (hp_tensor){.h = draw_of(d, sizes, 10), .w = draw_of(d, sizes, 10), .c = draw(d, 1, 12)};
    s->g = (hp_graph){.n_layer = 2, .layer = s->layer, .tensor = s->tensor};
    draws[op](d, s);
    hp_layer *l = &s->layer[1];
    const int channels = s->tensor[1].c;
    s->g.n_tensor = l->n_in + 1;
    l->out = l->n_in;
    hp_tensor *y = &s->tensor[l->out];
    if (hp_layer_shape(&s->g, l, channels, y, NULL) != HP_OK) return false;
    draw_added(d, s);
    s->tensor[l->out].producer = 1;
    return true;
}

single draw_layer(throws *d) {
    single s;
    const int op = 1 + (int)(d->seed % (HP_LAYER_OPS - 1));
    for (int tries = 0; !try_layer(d, op, &s); tries++)
        if (tries == 10000) fail_msg("no %s layer can be drawn", hp_layer_infos[op].name);
    return s;
}

void point_at_own(single *s) { /* after a copy */
    s->g.layer = s->layer;
    s->g.tensor = s->tensor;
}

hp_layout draw_layout(throws *d) {
    static const int tiles[] = {1, 1, 2, 3, 4, 5, 7, 30}, few[] = {1, 1, 2, 3, 4};
    return (hp_layout){.rows = draw_of(d, tiles, 8),
                       .cols = draw_of(d, tiles, 7),
                       .slices = draw_of(d, few, 5),
                       .channels = draw_of(d, few, 5),
                       .tp = 1,
                       .seq = 1};
}

void draw_weights(throws *d, hp_layout *l) {
    const int parts[HP_AXIS_C] = {l->slices, l->rows, l->cols};
    for (int axis = 0; axis < HP_AXIS_C; axis++) {
        hp_proportions *w = &l->by[axis];
        w->n = draw(d, 0, parts[axis]);
        if (w->n && parts[axis] % w->n) w->n = parts[axis];
        for (int i = 0; i < w->n; i++) w->of[i] = (uint16_t)draw(d, 1, draw(d, 0, 2) ? 5 : UINT16_MAX);
    }
}

hp_box draw_output(throws *d, const single *s) {
    const hp_layout l = draw_layout(d);
    const int part = draw(d, 0, hp_layout_parts(&l) - 1);
    hp_box b = hp_layout_own(&l, &s->g, s->layer[1].out, s->samples, part);
    for (int a = HP_AXIS_H; a <= HP_AXIS_W && draw(d, 0, 2) == 0; a++) {
        const int n = axis_of(&s->tensor[s->layer[1].out], a);
        b.lo[a] = draw(d, 0, n - 1);
        b.hi[a] = draw(d, b.lo[a] + 1, n);
    }
    return b;
}

const char *said(const single *s, uint64_t seed) {
    static char text[200];
    const hp_layer *l = &s->layer[1];
    snprintf(text, sizeof text, "seed %llu: %s %dx%dx%d, k %dx%d s %dx%d p %dx%d d %dx%d g %d",
             (unsigned long long)seed, hp_layer_infos[l->op].name, s->tensor[0].h, s->tensor[0].w,
             s->tensor[0].c, l->window.kh, l->window.kw, l->window.stride_h, l->window.stride_w,
             l->window.pad_h, l->window.pad_w, l->window.dil_h, l->window.dil_w, l->groups);
    return text;
}
