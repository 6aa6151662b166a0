/* onnx_int8_model.c - drawn quantised networks. */
#include "tests/support/onnx/onnx_int8_model.h"

#include <stdio.h>

/* --- a model --- */

static int draw(world *s, int low, int high) {
    return low + (int)(hp_rng_uniform(s->seed, 17, s->drawn++) * (high - low + 1));
}

static float draw_scale(world *s, double about) {
    return (float)(about * (0.6 + hp_rng_uniform(s->seed, 18, s->drawn++)));
}

static int low_of(int type) {
    return type == INT8 ? -128 : 0;
}

/* By definition: saturate(round(v) + zero). */
static int level(world *s, double v, const map *y) {
    const double whole = nearbyint(v), q = whole + y->zero, low = low_of(y->type);
    if (fabs(fabs(v - whole) - 0.5) < 1e-4) s->near_half = true;
    return (int)(q < low ? low : q > low + 255 ? low + 255 : q);
}

/* --- the definitions --- */

static double conv_at(const conv *c, const map *x, int o, int row, int col) {
    const int ins = c->in / c->groups, first = o / (c->out / c->groups) * ins, pad = c->k / 2;
    int64_t sum = c->bias[o];
    for (int i = 0; i < ins; i++)
        for (int ky = 0; ky < c->k; ky++)
            for (int kx = 0; kx < c->k; kx++) {
                const int y = row + ky - pad, z = col + kx - pad;
                if (y < 0 || z < 0 || y >= H || z >= W) continue;
                sum += (int64_t)c->w[((o * ins + i) * c->k + ky) * c->k + kx] *
                       (x->q[((first + i) * H + y) * W + z] - x->zero);
            }
    return (double)sum;
}

static void apply_conv(world *s, const conv *c, const map *x, map *y) {
    for (int o = 0; o < c->out; o++)
        for (int p = 0; p < H * W; p++) {
            const double scale = (double)x->scale * (double)c->w_scale[o] / (double)y->scale;
            y->q[o * H * W + p] = level(s, scale * conv_at(c, x, o, p / W, p % W), y);
        }
}

static void apply_add(world *s, const map *a, const map *b, map *y) {
    for (int e = 0; e < y->c * H * W; e++)
        y->q[e] = level(s,
                        ((double)a->scale * (a->q[e] - a->zero) + (double)b->scale * (b->q[e] - b->zero)) /
                            (double)y->scale,
                        y);
}

static void apply_pool(const map *x, map *y) {
    for (int e = 0; e < y->c * H * W; e++) {
        const int c = e / (H * W), row = e / W % H, col = e % W;
        y->q[e] = -200;
        for (int k = 0; k < 9; k++) {
            const int at_y = row + k / 3 - 1, at_x = col + k % 3 - 1;
            if (at_y < 0 || at_x < 0 || at_y >= H || at_x >= W) continue;
            const int v = x->q[(c * H + at_y) * W + at_x];
            if (v > y->q[e]) y->q[e] = v;
        }
    }
}

/* --- the same in ONNX --- */

const char *text(world *s, const char *fmt, int n) {
    char room[64];
    snprintf(room, sizeof room, fmt, n);
    return hp_arena_strdup(s->w.arena, room);
}

static const char *join(world *s, const char *a, const char *b) {
    return hp_arena_printf(s->w.arena, "%s %s", a, b);
}

/* "scale zero" of a map, as constants. */
static const char *quant(world *s, const map *m, int number) {
    const uint8_t zero = (uint8_t)m->zero;
    const char *scale = text(s, "s%d", number), *z = text(s, "z%d", number);
    onnx_write_floats(&s->w, scale, 0, NULL, &m->scale);
    onnx_write_bytes(&s->w, z, m->type, 0, NULL, &zero, 1);
    return join(s, scale, z);
}

void name_value(world *s, value *v, int zero, float scale) {
    const int number = s->n_map++;
    v->m.type = draw(s, 0, 1) ? UINT8 : INT8;
    v->m.zero = zero + low_of(v->m.type);
    v->m.scale = scale;
    v->name = text(s, "v%d", number);
    v->quant = quant(s, &v->m, number);
}

/* QDQ: writes the real tensor `from` as v, reals on v's levels; otherwise v is integers already. */
static void write_pair(world *s, const char *from, const value *v) {
    const char *q = hp_arena_printf(s->w.arena, "%s.q", v->name);
    onnx_write_node(&s->w, "QuantizeLinear", join(s, from, v->quant), q);
    onnx_write_node(&s->w, "DequantizeLinear", join(s, q, v->quant), v->name);
}

/* "w scale zero" */
static const char *write_weights(world *s, const conv *c, int number) {
    const int64_t dim[4] = {c->out, c->in / c->groups, c->k, c->k},
                  scales = c->weights == BY_TENSOR ? 1 : c->out;
    uint8_t stored[MOST], zero[8];
    const int n = c->out * (int)dim[1] * c->k * c->k;
    for (int e = 0; e < n; e++) stored[e] = (uint8_t)(c->w[e] + c->w_zero);
    memset(zero, c->w_zero, sizeof zero);
    const char *w = text(s, "w%d", number), *scale = text(s, "ws%d", number), *z = text(s, "wz%d", number);
    onnx_write_bytes(&s->w, w, c->type, 4, dim, stored, (size_t)n);
    onnx_write_floats(&s->w, scale, scales > 1, &scales, c->w_scale);
    onnx_write_bytes(&s->w, z, c->type, scales > 1, &scales, zero, (size_t)scales);
    return join(s, join(s, w, scale), z);
}

static const char *write_bias(world *s, const conv *c, int number) {
    const int64_t n = c->out;
    const char *name = text(s, "b%d", number);
    onnx_write_bytes(&s->w, name, INT32, 1, &n, c->bias, (size_t)n * sizeof *c->bias);
    return name;
}

static void set_window(world *s, Onnx__NodeProto *n, int k, int groups) {
    const int64_t kernel[2] = {k, k}, pads[4] = {k / 2, k / 2, k / 2, k / 2};
    onnx_write_ints(&s->w, n, "kernel_shape", 2, kernel);
    onnx_write_ints(&s->w, n, "pads", 4, pads);
    if (groups > 1) onnx_write_int(&s->w, n, "group", groups);
}

/* The bias as reals: its scale is x's times the weights'. */
static const char *write_real_bias(world *s, const conv *c, const map *x, const char *b) {
    const int64_t n = c->out;
    float scale[8];
    for (int o = 0; o < c->out; o++) scale[o] = x->scale * c->w_scale[o];
    onnx_write_floats(&s->w, hp_arena_printf(s->w.arena, "%s.scale", b), 1, &n, scale);
    const char *real = hp_arena_printf(s->w.arena, "%s.real", b);
    onnx_write_int(
        &s->w,
        onnx_write_node(&s->w, "DequantizeLinear", hp_arena_printf(s->w.arena, "%s %s.scale", b, b), real),
        "axis", 0);
    return real;
}

void write_conv(world *s, const conv *c, const value *x, const value *y) {
    const int number = s->n_conv++;
    const char *w = write_weights(s, c, number), *b = write_bias(s, c, number);
    if (!s->qdq) {
        const char *in = join(s, join(s, x->name, x->quant), join(s, w, join(s, y->quant, b)));
        set_window(s, onnx_write_node(&s->w, "QLinearConv", in, y->name), c->k, c->groups);
        return;
    }
    const char *real = text(s, "wr%d", number), *sum = text(s, "sum%d", number);
    onnx_write_int(&s->w, onnx_write_node(&s->w, "DequantizeLinear", w, real), "axis", 0);
    b = write_real_bias(s, c, &x->m, b);
    set_window(s, onnx_write_node(&s->w, "Conv", join(s, x->name, join(s, real, b)), sum), c->k, c->groups);
    write_pair(s, sum, y);
}

static void write_add(world *s, const value *a, const value *b, const value *y) {
    if (s->qdq) {
        onnx_write_node(&s->w, "Add", join(s, a->name, b->name), "added");
        write_pair(s, "added", y);
        return;
    }
    const char *in = join(s, join(s, a->name, a->quant), join(s, b->name, join(s, b->quant, y->quant)));
    onnx_write_node(&s->w, "QLinearAdd", in, y->name)->domain = hp_arena_strdup(s->w.arena, "com.microsoft");
}

/* --- steps: extend the model and compute its integers --- */

conv draw_int8_conv(world *s, int in, int out, int k, int groups) {
    conv c = {.in = in,
              .out = out,
              .k = k,
              .groups = groups,
              .weights = draw(s, 0, 1),
              .type = draw(s, INT8, INT8)};
    if (draw(s, 0, 2) == 0) c.type = UINT8;
    c.w_zero = c.type == UINT8 ? 128 : 0;
    for (int e = 0; e < out * in / groups * k * k; e++) c.w[e] = (int8_t)draw(s, -127, 127);
    for (int o = 0; o < out; o++) {
        c.w_scale[o] = c.weights == BY_TENSOR && o ? c.w_scale[0] : draw_scale(s, 0.01);
        c.bias[o] = draw(s, -3000, 3000);
    }
    return c;
}

void step_conv(world *s, const value *x, int out, int k, int groups, value *y) {
    const conv c = draw_int8_conv(s, x->m.c, out, k, groups);
    const int ins = x->m.c / groups;
    y->m.c = out;
    name_value(s, y, draw(s, 0, 1) ? 0 : draw(s, 90, 160), draw_scale(s, 0.02 * k * sqrt(ins)));
    write_conv(s, &c, x, y);
    apply_conv(s, &c, &x->m, &y->m);
}

static void step_add(world *s, const value *a, const value *b, value *y) {
    y->m.c = a->m.c;
    name_value(s, y, draw(s, 0, 255), draw_scale(s, (double)(a->m.scale + b->m.scale)));
    write_add(s, a, b, y);
    apply_add(s, &a->m, &b->m, &y->m);
}

static void step_pool(world *s, const value *x, value *y) {
    *y = *x;
    y->name = text(s, "p%d", s->n_map++);
    const char *to = s->qdq ? hp_arena_printf(s->w.arena, "%s.real", y->name) : y->name;
    set_window(s, onnx_write_node(&s->w, "MaxPool", x->name, to), 3, 1);
    if (s->qdq) write_pair(s, to, y);
    apply_pool(&x->m, &y->m);
}

/* An identity that turns the last integers into reals, because an int8 program's last layer is real. */
static void step_out(world *s, const value *x) {
    value y = {.m = {.c = x->m.c}};
    conv c = {.in = x->m.c, .out = x->m.c, .k = 1, .groups = x->m.c, .type = INT8, .weights = BY_TENSOR};
    for (int o = 0; o < c.out; o++) c.w[o] = 1;
    for (int o = 0; o < c.out; o++) c.w_scale[o] = 1;
    name_value(s, &y, x->m.zero - low_of(x->m.type), x->m.scale);
    write_conv(s, &c, x, &y);
    if (!s->qdq) onnx_write_node(&s->w, "DequantizeLinear", join(s, y.name, y.quant), "out");
    onnx_write_output(&s->w, s->qdq ? y.name : "out");
}

void step_image(world *s, value *x, double *image) {
    static const int64_t dim[4] = {1, IMAGE_C, H, W};
    x->m.c = IMAGE_C;
    name_value(s, x, draw(s, 0, 255), draw_scale(s, 0.02));
    onnx_write_input(&s->w, "image", 4, dim);
    for (int e = 0; e < IMAGE_C * H * W; e++) {
        const float real = (float)(4 * hp_rng_uniform(s->seed, 19, (uint64_t)e) - 2);
        x->m.q[e] = level(s, (double)real / (double)x->m.scale, &x->m);
        image[e % (H * W) * IMAGE_C + e / (H * W)] = (double)real;
    }
    if (s->qdq)
        write_pair(s, "image", x);
    else
        onnx_write_node(&s->w, "QuantizeLinear", join(s, "image", x->quant), x->name);
}

value draw_model(world *s, double *image) {
    value x = {0}, a = {0}, b = {0}, c = {0}, d = {0}, e = {0};
    step_image(s, &x, image);
    step_conv(s, &x, 4, 3, 1, &a);
    step_pool(s, &a, &b);
    step_conv(s, &b, 4, 3, 4, &c);
    step_conv(s, &c, 4, 1, 2, &d);
    step_add(s, &d, &b, &e);
    step_out(s, &e);
    return e;
}
