/* onnx_odd.c - a small model with some of everything. */
#include "tests/support/onnx/onnx_odd.h"

const float *drawn(hp_arena *a, uint64_t stream, int64_t n) {
    float *f = HP_NEW(a, float, n);
    for (int64_t i = 0; i < n; i++) f[i] = (float)hp_rng_uniform(7, stream, (uint64_t)i) - 0.5f;
    return f;
}

static void write_drawn(onnx_writer *w, const char *name, uint64_t stream, size_t n_dim, const int64_t *dim) {
    onnx_write_floats(w, name, n_dim, dim, drawn(w->arena, stream, (int64_t)onnx_write_count(n_dim, dim)));
}

void write_number(onnx_writer *w, const char *name, float v) {
    onnx_write_floats(w, name, 0, NULL, &v);
}

static void write_conv(onnx_writer *w, const char *x, const char *y, const char *weight, int64_t outs,
                       int64_t ins, int64_t k, uint64_t stream) {
    char inputs[80];
    const int64_t dim[4] = {outs, ins, k, k}, pads[4] = {k / 2, k / 2, k / 2, k / 2};
    snprintf(inputs, sizeof inputs, "%s %s", x, weight);
    write_drawn(w, weight, stream, 4, dim);
    onnx_write_ints(w, onnx_write_node(w, "Conv", inputs, y), "pads", 4, pads);
}

static void write_hard_swish(onnx_writer *w, const char *x, const char *y) {
    char text[4][80];
    snprintf(text[0], 80, "%s three", x);
    snprintf(text[1], 80, "%s.3", x);
    snprintf(text[2], 80, "%s.clip", x);
    snprintf(text[3], 80, "%s %s.clip", x, x);
    onnx_write_node(w, "Add", text[0], text[1]);
    strcat(text[1], " zero six");
    onnx_write_node(w, "Clip", text[1], text[2]);
    snprintf(text[0], 80, "%s.mul", x);
    onnx_write_node(w, "Mul", text[3], text[0]);
    snprintf(text[1], 80, "%s.mul six", x);
    onnx_write_node(w, "Div", text[1], y);
}

static void write_scale(onnx_writer *w, const char *x, const char *y, const char *factor, const char *bias) {
    char text[3][80];
    snprintf(text[0], 80, "%s %s", factor, x);
    snprintf(text[1], 80, "%s.scaled", y);
    snprintf(text[2], 80, "%s.scaled %s", y, bias);
    onnx_write_node(w, "Mul", text[0], text[1]);
    onnx_write_node(w, "Add", text[2], y);
}

onnx_writer odd_model(hp_arena *a) {
    const int64_t open[4] = {0, 3, 0, 0}, channels[4] = {1, ODD_C, 1, 1};
    const float scales[4] = {1, 1, 2, 2};
    onnx_writer w = onnx_writer_start(a, 11);
    write_number(&w, "zero", 0);
    write_number(&w, "three", 3);
    write_number(&w, "six", 6);
    write_number(&w, "s.one", 1.7f);
    write_number(&w, "b.one", -0.3f);
    write_drawn(&w, "s.many", 40, 4, channels);
    write_drawn(&w, "b.many", 41, 4, channels);
    onnx_write_floats(&w, "twice", 1, (const int64_t[]){4}, scales);
    onnx_write_input(&w, "pixels", 4, open);
    write_conv(&w, "pixels", "c1", "stem.weight", ODD_C, 3, 3, 1);
    write_scale(&w, "c1", "c1.s", "s.many", "b.many"); /* folded into the convolution before it */
    write_hard_swish(&w, "c1.s", "h1");
    write_scale(&w, "h1", "h1.s", "s.one", "b.one"); /* folded into the 1x1 convolution after it */
    write_conv(&w, "h1.s", "c2", "point.weight", ODD_C, ODD_C, 1, 2);
    onnx_write_node(&w, "GlobalAveragePool", "c2", "pool");
    onnx_write_node(&w, "HardSigmoid", "pool", "gate");
    onnx_write_node(&w, "Mul", "c2 gate", "gated");
    onnx_write_node(&w, "Add", "c2 gated", "sum"); /* c2 (1 + gate) */
    onnx_write_node(&w, "Relu", "sum", "r");
    onnx_write_node(&w, "Resize", "r - twice", "up");
    Onnx__NodeProto *up = w.graph.node[w.graph.n_node - 1];
    onnx_write_text(&w, up, "coordinate_transformation_mode", "asymmetric");
    onnx_write_text(&w, up, "nearest_mode", "floor");
    write_conv(&w, "up", "last", "head.weight", 2, ODD_C, 3, 3);
    up->name = hp_arena_strdup(a, "an upsampling");
    onnx_write_output(&w, "last");
    return w;
}

hp_status odd_parse(onnx_writer *w, int h, int width, hp_onnx_model *m, hp_error *err) {
    size_t size;
    const void *data = onnx_writer_pack(w, &size);
    return hp_onnx_parse(w->arena, "dir/a model.onnx", data, size, false, h, width, true, m, err);
}
