/* op_gather.c - nodes that only move elements (DepthToSpace, SpaceToDepth), and layers that pick, spread and
 * repeat elements. */
#include "networks/graph/graph_gather.h"
#include "networks/onnx/onnx_inside.h"

#include <inttypes.h>
#include <string.h>

/* --- layers --- */

hp_status onnx_emit_gather(const onnx_call *c, hp_layer l, int32_t *tensor) {
    const hp_tensor t = c->r->graph->tensor[*tensor];
    const int64_t h = (int64_t)t.h * (l.window.kh > 0 ? l.window.kh : 1),
                  w = (int64_t)t.w * (l.window.kw > 0 ? l.window.kw : 1);
    if (h > ONNX_MOST_SIZE || w > ONNX_MOST_SIZE)
        return onnx_fail(c, "makes a map of %" PRId64 "x%" PRId64 " pixels, which is too large", h, w);
    l.op = HP_GATHER;
    l.n_in = 1;
    l.in[0] = *tensor;
    l.window.kh = l.window.kh > 0 ? l.window.kh : 1;
    l.window.kw = l.window.kw > 0 ? l.window.kw : 1;
    l.gather.out_c = l.gather.out_c > 0 ? l.gather.out_c : t.c / (l.window.kh * l.window.kw);
    l.groups = l.groups > 0 ? l.groups : l.window.kh * l.window.kw * l.gather.out_c;
    l.out_h = l.out_h > 0 ? l.out_h : (int32_t)h;
    l.out_w = l.out_w > 0 ? l.out_w : (int32_t)w;
    return onnx_emit(c, l, 0, tensor);
}

/* The single element of an axis is repeated. */
hp_status onnx_emit_repeated(const onnx_call *c, int32_t h, int32_t w, int32_t channels, int32_t *tensor) {
    const hp_tensor t = c->r->graph->tensor[*tensor];
    if (t.h == h && t.w == w && t.c == channels) return HP_OK;
    return onnx_emit_gather(
        c,
        (hp_layer){.gather.border = t.h == h && t.w == w ? HP_BORDER_NONE : HP_BORDER_EDGE,
                   .out_h = h,
                   .out_w = w,
                   .gather.out_c = channels,
                   .gather.step = t.c == 1 ? 0 : 1},
        tensor);
}

static hp_status crop(const onnx_call *c, const int64_t first[2], const int64_t size[2], int32_t *tensor) {
    const hp_tensor *t = &c->r->graph->tensor[*tensor];
    if (size[0] == t->h && size[1] == t->w) return HP_OK;
    const hp_layer l = {.op = HP_CROP,
                        .n_in = 1,
                        .in = {*tensor},
                        .window.pad_h = (int32_t)first[0],
                        .window.pad_w = (int32_t)first[1],
                        .out_h = (int32_t)size[0],
                        .out_w = (int32_t)size[1]};
    return onnx_emit(c, l, 0, tensor);
}

hp_status onnx_emit_strided(const onnx_call *c, const int64_t first[2], const int64_t count[2],
                            const int64_t step[2], int32_t *tensor) {
    const int64_t size[2] = {(count[0] - 1) * step[0] + 1, (count[1] - 1) * step[1] + 1};
    HP_TRY(crop(c, first, size, tensor));
    if (size[0] == count[0] && size[1] == count[1]) return HP_OK;
    const hp_layer l = {.op = HP_MAXPOOL, /* max pooling with 1x1 windows */
                        .n_in = 1,
                        .in = {*tensor},
                        .window.kh = 1,
                        .window.kw = 1,
                        .window.stride_h = (int32_t)step[0],
                        .window.stride_w = (int32_t)step[1],
                        .window.dil_h = 1,
                        .window.dil_w = 1,
                        .groups = 1};
    return onnx_emit(c, l, 0, tensor);
}

hp_status onnx_emit_space_to_depth(const onnx_call *c, int64_t rows, int64_t cols, int32_t *tensor) {
    const hp_tensor t = c->r->graph->tensor[*tensor];
    const int64_t step[2] = {rows, cols}, count[2] = {t.h / rows, t.w / cols};
    if (rows * cols > ONNX_MOST_ITEMS)
        return onnx_fail(c, "takes apart blocks of %" PRId64 "x%" PRId64 " pixels, which are too large", rows,
                         cols);
    int32_t *part = HP_NEW(c->r->scratch, int32_t, rows * cols);
    for (int64_t k = 0; k < rows * cols; k++) {
        part[k] = *tensor;
        HP_TRY(onnx_emit_strided(c, (const int64_t[2]){k / cols, k % cols}, count, step, &part[k]));
    }
    return onnx_join((onnx_call *)(uintptr_t)c, part, (int)(rows * cols), tensor);
}

/* --- nodes --- */

static hp_status read_block(onnx_call *c, onnx_value **x, int64_t *block) {
    *block = 0;
    HP_TRY(onnx_need_map(c, 0, x));
    HP_TRY(onnx_attr_int(c, "blocksize", 1, 1 << 10, block));
    if (*block >= 1 && (*x)->n_dim == 4) return HP_OK;
    return onnx_fail(c, "needs a blocksize and an input of (N, C, H, W)");
}

hp_status onnx_read_depthtospace(onnx_call *c) {
    onnx_value *x;
    int64_t block;
    const char *mode = "DCR";
    HP_TRY(read_block(c, &x, &block));
    HP_TRY(onnx_attr_text(c, "mode", &mode));
    const int64_t channels = onnx_extent(c->r, x, HP_AXIS_C), deep = channels / (block * block);
    const bool crd = strcmp(mode, "CRD") == 0;
    if (!crd && strcmp(mode, "DCR") != 0)
        return onnx_fail(c, "mode '%s' is not supported: DCR and CRD are", onnx_clean(c->r->scratch, mode));
    if (deep * block * block != channels)
        return onnx_fail(c, "spreads %" PRId64 " channels over blocks of %" PRId64 "x%" PRId64, channels,
                         block, block);
    int32_t y = x->tensor;
    HP_TRY(onnx_emit_gather(c,
                            (hp_layer){.window.kh = (int32_t)block,
                                       .window.kw = (int32_t)block,
                                       .groups = crd ? (int32_t)deep : 0,
                                       .gather.step = crd ? (int32_t)(block * block) : 1,
                                       .gather.step_outer = crd},
                            &y));
    onnx_result(c, y, x->n_dim);
    return HP_OK;
}

hp_status onnx_read_spacetodepth(onnx_call *c) {
    onnx_value *x;
    int64_t block;
    HP_TRY(read_block(c, &x, &block));
    const int64_t h = onnx_extent(c->r, x, HP_AXIS_H), w = onnx_extent(c->r, x, HP_AXIS_W);
    if (h % block || w % block)
        return hp_fail(c->r->err, HP_EPLAN,
                       "%s: node '%s': blocks of %" PRId64 "x%" PRId64 " do not divide %" PRId64 "x%" PRId64
                       " pixels; give an --image of a multiple",
                       c->r->file, onnx_clean(c->r->scratch, c->node->name ? c->node->name : ""), block,
                       block, h, w);
    int32_t y = x->tensor;
    HP_TRY(onnx_emit_space_to_depth(c, block, block, &y));
    onnx_result(c, y, x->n_dim);
    return HP_OK;
}
