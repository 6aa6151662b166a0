/* graph_resize.c - adapts a graph to another image size, layer by layer: first the size-dependent attributes,
 * then the shape. */
#include "networks/graph/graph_resize.h"

#include "networks/graph/shape.h"

#include <math.h>
#include <string.h>

/* The layer's output shape if its output size is unspecified. */
static hp_status natural_shape(const hp_graph *g, const hp_layer *l, hp_tensor *out, hp_error *err) {
    hp_layer open = *l;
    open.out_h = open.out_w = 0;
    return hp_layer_shape(g, &open, g->tensor[l->out].c, out, err);
}

/* Windows that extend further beyond the map's end than beyond its start keep doing so, by the same
 * amount. */
static hp_status resize_windows(const hp_graph *old, hp_graph *g, hp_layer *l, hp_error *err) {
    const bool rows = l->out_h > 0, columns = l->out_w > 0;
    hp_tensor was, is;
    if (!rows && !columns) return HP_OK;
    HP_TRY(natural_shape(old, l, &was, err));
    HP_TRY(natural_shape(g, l, &is, err));
    if (rows) l->out_h += is.h - was.h;
    if (columns) l->out_w += is.w - was.w;
    if ((l->out_h > 0) == rows && (l->out_w > 0) == columns) return HP_OK;
    return hp_fail(err, HP_EPLAN, "layer %s: no window is left of %dx%d", l->name, was.h, was.w);
}

static hp_status resize_pad(const hp_graph *old, hp_graph *g, hp_layer *l, hp_error *err) {
    const hp_tensor *was = &old->tensor[l->in[0]], *is = &g->tensor[l->in[0]];
    (void)err;
    l->out_h += is->h - was->h;
    l->out_w += is->w - was->w;
    return HP_OK;
}

static hp_status in_proportion(const hp_layer *l, int32_t was, int32_t is, int32_t *out, hp_error *err) {
    const int64_t scaled = (int64_t)*out * is;
    if (scaled % was != 0 || scaled / was > INT32_MAX)
        return hp_fail(err, HP_EPLAN, "layer %s: %d becomes %d, which is not a whole number for %d", l->name,
                       was, *out, is);
    *out = (int32_t)(scaled / was);
    return HP_OK;
}

/* Applies the given scale as ONNX does: the integer part of a float32 product. */
static hp_status by_scale(const hp_layer *l, int32_t is, double scale, int32_t *out, hp_error *err) {
    const double scaled = floor((double)((float)is * (float)scale));
    if (!(scaled >= 1 && scaled <= INT32_MAX))
        return hp_fail(err, HP_EPLAN, "layer %s: %d times %g makes no map", l->name, is, scale);
    *out = (int32_t)scaled;
    return HP_OK;
}

static hp_status resize_resize(const hp_graph *old, hp_graph *g, hp_layer *l, hp_error *err) {
    const hp_tensor *was = &old->tensor[l->in[0]], *is = &g->tensor[l->in[0]];
    if (l->resize.scale_h > 0) {
        HP_TRY(by_scale(l, is->h, l->resize.scale_h, &l->out_h, err));
        return by_scale(l, is->w, l->resize.scale_w, &l->out_w, err);
    }
    HP_TRY(in_proportion(l, was->h, is->h, &l->out_h, err));
    return in_proportion(l, was->w, is->w, &l->out_w, err);
}

/* A pool over one axis keeps that axis whole; other pools keep their number of outputs. */
static hp_status resize_pool(const hp_graph *old, hp_graph *g, hp_layer *l, hp_error *err) {
    const hp_tensor *was = &old->tensor[l->in[0]], *is = &g->tensor[l->in[0]];
    (void)err;
    if (l->out_w == 1 && l->out_h == was->h) l->out_h = is->h;
    if (l->out_h == 1 && l->out_w == was->w) l->out_w = is->w;
    return HP_OK;
}

static hp_status resize_linear(const hp_graph *old, hp_graph *g, hp_layer *l, hp_error *err) {
    const int64_t in = hp_tensor_elems(g, l->in[0]);
    (void)old;
    if (in > INT32_MAX)
        return hp_fail(err, HP_EPLAN, "layer %s: %lld inputs are too many", l->name, (long long)in);
    for (int i = 0; i < l->n_param; i++) {
        hp_param *p = &g->param[l->param[i]];
        p->fan_in = in;
        if (p->kind != HP_PARAM_LINEAR_W) continue;
        p->dim[1] = (int32_t)in;
        p->count = p->dim[0] * in;
    }
    return HP_OK;
}

typedef hp_status resize_rule(const hp_graph *old, hp_graph *g, hp_layer *l, hp_error *err);

/* Without a rule, the shape follows from the input's. */
static resize_rule *const rules[HP_LAYER_OPS] = {
    [HP_CONV] = resize_windows,    [HP_CONVT] = resize_windows, [HP_MAXPOOL] = resize_windows,
    [HP_AVGPOOL] = resize_windows, [HP_PAD] = resize_pad,       [HP_RESIZE] = resize_resize,
    [HP_ADAPTPOOL] = resize_pool,  [HP_LINEAR] = resize_linear,
};

static hp_status resize_layer(const hp_graph *old, hp_graph *g, hp_layer *l, hp_error *err) {
    hp_tensor shape = g->tensor[l->out];
    if (rules[l->op]) HP_TRY(rules[l->op](old, g, l, err));
    HP_TRY(hp_layer_shape(g, l, shape.c, &shape, err));
    shape.producer = g->tensor[l->out].producer;
    shape.store = g->tensor[l->out].store;
    g->tensor[l->out] = shape;
    return HP_OK;
}

static void *copy_graph(hp_arena *arena, const void *from, size_t bytes) {
    return bytes ? memcpy(hp_arena_alloc(arena, bytes), from, bytes) : NULL;
}

hp_status hp_graph_resize(hp_arena *arena, const hp_graph *g, int image_h, int image_w, hp_graph **out,
                          hp_error *err) {
    hp_graph *r = HP_NEW(arena, hp_graph, 1);
    *r = *g;
    r->image_h = image_h;
    r->image_w = image_w;
    r->layer = copy_graph(arena, g->layer, sizeof *g->layer * (size_t)g->n_layer);
    r->tensor = copy_graph(arena, g->tensor, sizeof *g->tensor * (size_t)g->n_tensor);
    r->param = copy_graph(arena, g->param, sizeof *g->param * (size_t)g->n_param);
    for (int l = 0; l < g->n_layer; l++) HP_TRY(resize_layer(g, r, &r->layer[l], err));
    *out = r;
    return HP_OK;
}
