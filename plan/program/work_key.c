/* work_key.c - the shape class of a layer's task: what selects the kernel, and the row length. */
#include "plan/program/work_inside.h"

#include "networks/graph/precision.h"

static const char *const interpolation_names[HP_INTERPOLATIONS] = {"nearest", "linear", "cubic"};

/* Shape class of a layer without its size: what selects the kernel. */
static void layer_class(const hp_graph *g, const hp_work_case *c, char *text, size_t n) {
    const hp_layer *l = &g->layer[c->layer];
    const int ins = c->in[HP_AXIS_C], outs = c->out[HP_AXIS_C];
    if (c->op == HP_TASK_STATS || c->op == HP_TASK_BSTATS) {
        snprintf(text, n, "c%d", outs);
        return;
    }
    switch (l->op) {
    case HP_CONV:
    case HP_CONVT:
        snprintf(text, n, "k%dx%d s%d d%d g%d i%d o%d%s", l->window.kh, l->window.kw, l->window.stride_h,
                 l->window.dil_h > 1 ? l->window.dil_h : 1, hp_local_groups(g, l, outs), ins, outs,
                 hp_layer_adds(l) ? " add" : "");
        break;
    case HP_RESIZE:
        snprintf(text, n, "%s c%d", interpolation_names[l->resize.interpolation], outs);
        break;
    case HP_LINEAR:
        snprintf(text, n, "o%d", outs);
        break;
    case HP_ATTENTION:
        snprintf(text, n, "d%d c%d%s", hp_head_channels(g, l), outs, l->n_param ? " bias" : "");
        break;
    case HP_MAXPOOL:
    case HP_AVGPOOL:
        snprintf(text, n, "k%dx%d s%d c%d", l->window.kh, l->window.kw, l->window.stride_h, outs);
        break;
    default:
        snprintf(text, n, "%sn%d c%d%s%s", c->sums ? "sums " : "", l->n_in, outs, l->act ? " " : "",
                 hp_act_names[l->act]);
        break;
    }
}

/* Length of a row, as the key has it; for attention, the keys of a pixel. */
static int row_length(const hp_graph *g, const hp_work_case *c) {
    if (g->layer[c->layer].op == HP_ATTENTION)
        return (int)((double)c->pairs / hp_length_product(c->out, HP_AXIS_N, HP_AXIS_W));
    const bool linear = g->layer[c->layer].op == HP_LINEAR;
    return linear ? (int)hp_length_product(c->in, HP_AXIS_H, HP_AXIS_C) : hp_size_map(g, c)[HP_AXIS_W];
}

/* Depthwise and dense convolutions have different bounds, and so have concatenations with a scale and copies.
 * A transposed convolution of one pixel is a convolution. */
static const char *class_name(const hp_graph *g, const hp_work_case *c) {
    const hp_layer *l = &g->layer[c->layer];
    const bool depthwise =
        g->deployed && l->op == HP_CONV && l->groups > 1 && l->groups == g->tensor[l->in[0]].c;
    const bool turned = g->deployed && l->op == HP_CONVT &&
                        l->window.kh * l->window.kw * l->window.stride_h * l->window.stride_w == 1;
    const bool scales = l->op == HP_CONCAT && l->n_param > 0;
    return depthwise ? "depthwise" : scales ? "join" : hp_layer_infos[turned ? HP_CONV : l->op].name;
}

/* The factors of its products are rounded on the way into them. */
static bool rounds(const hp_graph *g, const hp_layer *l) {
    return hp_layer_is_matrix(l) && g->prec == HP_PREC_TF32;
}

/* "f32"; "u8>f32" where a layer turns one into the other; "tf32" where float32 is multiplied so. */
static void dtype_class(const hp_graph *g, const hp_layer *l, hp_dtype dtype, char *text, size_t n) {
    const hp_dtype x = hp_tensor_dtype(&g->tensor[l->in[0]], dtype),
                   y = hp_tensor_dtype(&g->tensor[l->out], dtype);
    snprintf(text, n, "%s%s%s%s", x == HP_F32 && rounds(g, l) ? "t" : "", hp_dtype_names[x],
             x == y ? "" : ">", x == y ? "" : hp_dtype_names[y]);
}

void hp_layer_key(const hp_graph *g, hp_dtype dtype, const hp_work_case *c, hp_text key) {
    const hp_layer *l = &g->layer[c->layer];
    char shape[48], elements[16];
    layer_class(g, c, shape, sizeof shape);
    dtype_class(g, l, dtype, elements, sizeof elements);
    hp_text_add(key, "%s.%s%s ", g->deployed ? HP_WORK_DEPLOYED : hp_task_infos[c->op].name,
                l->deployed.dynamic ? "dynamic-" : "", class_name(g, c));
    hp_text_add(key, "%s%s %s w%d", c->eval ? "eval " : "", shape, elements, row_length(g, c));
}
