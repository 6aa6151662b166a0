/* op_window.c - the arithmetic of ONNX's Conv, ConvTranspose and pools: auto_pad, asymmetric pads, ceil_mode,
 * output_shape. Source: onnx/docs/Operators.md. */
#include "networks/onnx/ops/op_window.h"

#include <inttypes.h>
#include <string.h>

typedef enum padding { PAD_NOTSET, PAD_VALID, PAD_SAME_UPPER, PAD_SAME_LOWER } padding;

static hp_status read_auto_pad(const onnx_call *c, padding *p) {
    static const char *const names[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
    const char *text = "NOTSET";
    HP_TRY(onnx_attr_text(c, "auto_pad", &text));
    for (int i = 0; i < 4; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        *p = (padding)i;
        return HP_OK;
    }
    return onnx_fail(c, "auto_pad '%s' is not supported", onnx_clean(c->r->scratch, text));
}

/* Reads `n` numbers of an attribute in low .. ONNX_MOST_SIZE; without it, the values keep their defaults. */
static hp_status read_sizes(const onnx_call *c, const char *name, int n, int64_t low, int64_t *value) {
    int64_t given[4];
    int n_given;
    HP_TRY(onnx_attr_ints(c, name, 4, given, &n_given));
    if (!n_given) return HP_OK;
    if (n_given != n) return onnx_fail(c, "its %s has %d numbers, not %d", name, n_given, n);
    for (int i = 0; i < n; i++) {
        if (given[i] < low || given[i] > ONNX_MOST_SIZE)
            return onnx_fail(c, "%s of %" PRId64 " is not supported", name, given[i]);
        value[i] = given[i];
    }
    return HP_OK;
}

hp_status onnx_window_read(const onnx_call *c, const onnx_value *x, const int64_t *kernel, onnx_window *w) {
    *w = (onnx_window){.n = x->n_dim - 2, .k = {1, 1}, .stride = {1, 1}, .dil = {1, 1}};
    w->in[0] = onnx_extent(c->r, x, HP_AXIS_H);
    w->in[1] = onnx_extent(c->r, x, HP_AXIS_W);
    if (kernel) memcpy(w->k, kernel, sizeof *kernel * (size_t)w->n);
    if (!kernel && !onnx_attr(c, "kernel_shape")) return onnx_fail(c, "its kernel_shape is missing");
    HP_TRY(read_sizes(c, "kernel_shape", w->n, 1, w->k));
    if (kernel && memcmp(w->k, kernel, sizeof *kernel * (size_t)w->n) != 0)
        return onnx_fail(c, "its kernel_shape is not that of its weights");
    HP_TRY(read_sizes(c, "strides", w->n, 1, w->stride));
    HP_TRY(read_sizes(c, "dilations", w->n, 1, w->dil));
    for (int i = 0; i < 2; i++)
        if (w->k[i] < 1 || w->k[i] * w->dil[i] > ONNX_MOST_SIZE)
            return onnx_fail(c, "its window is too large");
    return HP_OK;
}

static int64_t span(const onnx_window *w, int i) {
    return (w->k[i] - 1) * w->dil[i] + 1;
}

/* pads: all beginnings, then all ends. */
static hp_status read_pads(const onnx_call *c, onnx_window *w) {
    int64_t pads[4] = {0};
    HP_TRY(read_sizes(c, "pads", 2 * w->n, 0, pads));
    for (int i = 0; i < w->n; i++) {
        w->begin[i] = pads[i];
        w->end[i] = pads[w->n + i];
    }
    return HP_OK;
}

static void split_padding(onnx_window *w, int i, int64_t total, bool more_behind) {
    total = total > 0 ? total : 0;
    w->begin[i] = more_behind ? total / 2 : total - total / 2;
    w->end[i] = total - w->begin[i];
}

/* Number of windows along one axis. With ceil_mode, the last one must begin inside the map or its leading
 * padding, as in PyTorch and ONNX Runtime. */
static int64_t count_windows(const onnx_window *w, int i, bool ceil_mode) {
    const int64_t room = w->in[i] + w->begin[i] + w->end[i] - span(w, i) + (ceil_mode ? w->stride[i] - 1 : 0);
    if (room < 0) return 0;
    const int64_t n = room / w->stride[i] + 1;
    return ceil_mode && (n - 1) * w->stride[i] >= w->in[i] + w->begin[i] ? n - 1 : n;
}

static hp_status check_out(const onnx_call *c, const onnx_window *w) {
    for (int i = 0; i < 2; i++) {
        if (w->out[i] > ONNX_MOST_SIZE)
            return onnx_fail(c, "makes a map of more than %d rows", ONNX_MOST_SIZE);
        if (w->out[i] < 1)
            return hp_fail(c->r->err, HP_EPLAN,
                           "%s: node '%s': a window of %" PRId64 " does not fit into %" PRId64
                           " pixels; give a larger --image",
                           c->r->file, onnx_clean(c->r->scratch, c->node->name ? c->node->name : ""),
                           span(w, i), w->in[i]);
    }
    return HP_OK;
}

hp_status onnx_window_pads(const onnx_call *c, bool ceil_mode, onnx_window *w) {
    padding p = PAD_NOTSET;
    HP_TRY(read_auto_pad(c, &p));
    if (p == PAD_NOTSET) HP_TRY(read_pads(c, w));
    for (int i = 0; i < w->n && p >= PAD_SAME_UPPER; i++) {
        const int64_t out = (w->in[i] + w->stride[i] - 1) / w->stride[i];
        split_padding(w, i, (out - 1) * w->stride[i] + span(w, i) - w->in[i], p == PAD_SAME_UPPER);
    }
    for (int i = 0; i < 2; i++) w->out[i] = count_windows(w, i, ceil_mode);
    return check_out(c, w);
}

/* output = stride (in - 1) + output_padding + span - pads; given output_shape, the pads follow from it. */
hp_status onnx_window_transposed(const onnx_call *c, onnx_window *w) {
    padding p = PAD_NOTSET;
    int64_t more[2] = {0, 0}, shape[2] = {0, 0};
    HP_TRY(read_auto_pad(c, &p));
    HP_TRY(read_sizes(c, "output_padding", w->n, 0, more));
    HP_TRY(read_sizes(c, "output_shape", w->n, 1, shape));
    if (p == PAD_NOTSET) HP_TRY(read_pads(c, w));
    for (int i = 0; i < w->n; i++) {
        const int64_t whole = w->stride[i] * (w->in[i] - 1) + more[i] + span(w, i);
        if (!shape[i] && p >= PAD_SAME_UPPER) shape[i] = w->in[i] * w->stride[i];
        if (shape[i] > whole) more[i] += shape[i] - whole; /* rows that no window covers */
        if (shape[i]) split_padding(w, i, whole - shape[i], p == PAD_SAME_UPPER);
    }
    for (int i = 0; i < 2; i++)
        w->out[i] = w->stride[i] * (w->in[i] - 1) + more[i] + span(w, i) - w->begin[i] - w->end[i];
    return check_out(c, w);
}

hp_layer onnx_window_layer(hp_layer_op op, int32_t x, const onnx_window *w) {
    const bool transposed = op == HP_CONVT;
    int32_t out[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        onnx_window plain = *w;
        plain.end[i] = w->begin[i];
        const int64_t natural = transposed ? w->stride[i] * (w->in[i] - 1) + span(w, i) - 2 * w->begin[i]
                                           : count_windows(&plain, i, false);
        if (natural != w->out[i]) out[i] = (int32_t)w->out[i];
    }
    return (hp_layer){.op = op,
                      .n_in = 1,
                      .in = {x},
                      .window.kh = (int32_t)w->k[0],
                      .window.kw = (int32_t)w->k[1],
                      .window.stride_h = (int32_t)w->stride[0],
                      .window.stride_w = (int32_t)w->stride[1],
                      .window.pad_h = (int32_t)w->begin[0],
                      .window.pad_w = (int32_t)w->begin[1],
                      .window.dil_h = (int32_t)w->dil[0],
                      .window.dil_w = (int32_t)w->dil[1],
                      .groups = 1,
                      .out_h = out[0],
                      .out_w = out[1]};
}
