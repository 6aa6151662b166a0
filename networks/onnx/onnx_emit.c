/* onnx_emit.c - appends layers, tensors and parameters to the graph being built. */
#include "networks/onnx/onnx_inside.h"

#include "networks/graph/shape.h"

#include <inttypes.h>
#include <string.h>

const char *onnx_clean(hp_arena *arena, const char *name) {
    enum { MOST = 200 };
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:+@#()[]";
    char *clean = hp_arena_printf(arena, "%.*s", MOST, name);
    for (char *at = clean; *at; at++)
        if (!strchr(allowed, *at)) *at = '_';
    return clean;
}

const char *onnx_unique(hp_arena *arena, onnx_names *names, const char *name) {
    bool added;
    const char *unique = onnx_clean(arena, *name ? name : "unnamed");
    for (int n = names->n; onnx_names_add(names, unique, &added) >= 0 && !added; n += names->n)
        unique = hp_arena_printf(arena, "%s_%d", onnx_clean(arena, name), n);
    return unique;
}

static const char *layer_name(const onnx_call *c) {
    const Onnx__NodeProto *node = c->node;
    if (!node) return "image";
    if (node->name && *node->name) return node->name;
    return node->n_output && node->output[0] ? node->output[0] : "";
}

/* Limits elements and multiply-adds to 63 bits, so that sums of them cannot overflow. */
static hp_status check_size(const onnx_call *c, const hp_tensor *t) {
    const int64_t most = INT64_C(1) << 48;
    int64_t elems = (int64_t)t->h * t->w;
    if (t->h <= ONNX_MOST_SIZE && t->w <= ONNX_MOST_SIZE && t->c <= ONNX_MOST_SIZE && elems <= most &&
        !__builtin_mul_overflow(elems, (int64_t)t->c, &elems) && elems <= most)
        return HP_OK;
    return onnx_fail(c, "makes a map of %dx%dx%d, which is too large: give a smaller --image", t->h, t->w,
                     t->c);
}

static hp_status check_work(const onnx_call *c, const hp_layer *l, int64_t fan_in) {
    onnx_reader *r = c->r;
    const int64_t elems = hp_tensor_elems(r->graph, l->op == HP_CONVT ? l->in[0] : l->out);
    int64_t macs;
    if (__builtin_mul_overflow(elems, fan_in, &macs) || __builtin_add_overflow(r->macs, macs, &r->macs) ||
        r->macs > INT64_C(1) << 60)
        return onnx_fail(c, "has more multiply-adds than can be counted: give a smaller --image");
    return HP_OK;
}

/* Is the layer's output >= 0 for any weights? */
static bool never_negative(const onnx_reader *r, const hp_layer *l) {
    static const bool keeps_sign[HP_LAYER_OPS] = {
        [HP_MAXPOOL] = true, [HP_AVGPOOL] = true, [HP_ADAPTPOOL] = true,
        [HP_PAD] = true,     [HP_RESIZE] = true,  [HP_CONCAT] = true,
        [HP_ADD] = true,     [HP_MUL] = true,     [HP_GATHER] = true,
    };
    bool all = keeps_sign[l->op] && l->resize.interpolation != HP_CUBIC; /* which overshoots */
    for (int i = 0; i < l->n_in; i++) all &= r->note[l->in[i]].never_negative;
    return all || l->op == HP_SOFTMAX || (hp_layer_has_act(l) && hp_act_bounds_of(l).least >= 0);
}

hp_status onnx_emit(const onnx_call *c, hp_layer l, int64_t out_c, int32_t *tensor) {
    onnx_reader *r = c->r;
    hp_graph *g = r->graph;
    hp_tensor t = {0};
    if (g->n_layer >= ONNX_MOST_ITEMS) return onnx_fail(c, "there are more than %d layers", ONNX_MOST_ITEMS);
    if (out_c < 0 || out_c > ONNX_MOST_SIZE) return onnx_fail(c, "%" PRId64 " channels are too many", out_c);
    l.name = onnx_unique(r->arena, &r->layer_names, layer_name(c));
    hp_error why;
    const hp_status status = hp_layer_shape(g, &l, (int)out_c, &t, &why);
    if (status == HP_EPLAN) /* the image is too small */
        return hp_fail(r->err, HP_EPLAN, "%s: %.300s; give a larger --image", r->file, why.text);
    if (status != HP_OK) return onnx_fail(c, "%.300s", why.text);
    HP_TRY(check_size(c, &t));
    HP_ROOM(r->arena, g->tensor, g->n_tensor, r->cap_tensor);
    HP_ROOM(r->arena, g->layer, g->n_layer, r->cap_layer);
    HP_ROOM(r->scratch, r->note, g->n_tensor, r->cap_note);
    t.producer = g->n_layer;
    l.out = g->n_tensor;
    r->note[g->n_tensor] = (onnx_note){.never_negative = never_negative(r, &l)};
    g->tensor[g->n_tensor++] = t;
    g->layer[g->n_layer++] = l;
    *tensor = l.out;
    return HP_OK;
}

hp_status onnx_emit_param(const onnx_call *c, hp_param_kind kind, const char *name, const char *suffix,
                          int n_dim, const int64_t *dim, int64_t fan_in, hp_onnx_param data) {
    onnx_reader *r = c->r;
    hp_graph *g = r->graph;
    hp_layer *l = &g->layer[g->n_layer - 1];
    hp_param p = {.kind = kind, .layer = g->n_layer - 1, .n_dim = n_dim, .count = 1, .fan_in = fan_in};
    HP_ASSERT(l->n_param < HP_MAX_LAYER_PARAMS && n_dim <= 4);
    for (int i = 0; i < n_dim; i++) {
        if (dim[i] < 1 || dim[i] > INT32_MAX || __builtin_mul_overflow(p.count, dim[i], &p.count))
            return onnx_fail(c, "its %s is empty or too large", suffix);
        p.dim[i] = (int32_t)dim[i];
    }
    if (kind == HP_PARAM_CONV_W || kind == HP_PARAM_LINEAR_W) HP_TRY(check_work(c, l, fan_in));
    if (!*name) name = hp_arena_printf(r->scratch, "%s.%s", l->name, suffix);
    p.name = onnx_unique(r->arena, &r->param_names, name);
    HP_ROOM(r->arena, g->param, g->n_param, r->cap_param);
    HP_ROOM(r->arena, r->data, g->n_param, r->cap_data);
    r->data[g->n_param] = data;
    l->param[l->n_param++] = g->n_param;
    g->param[g->n_param++] = p;
    return HP_OK;
}

hp_status onnx_emit_tied(const onnx_call *c, int32_t param) {
    hp_graph *g = c->r->graph;
    hp_layer *l = &g->layer[g->n_layer - 1];
    l->param[l->n_param++] = param;
    return check_work(c, l, g->param[param].fan_in);
}

const float *onnx_floats(const onnx_call *c, const onnx_const *k) {
    if (!k->data || (!c->r->weights && k->count > INT64_C(1) << 16)) return NULL;
    if (k->type == ONNX_FLOAT) return k->data;
    float *f = HP_NEW(c->r->arena, float, k->count);
    for (int64_t i = 0; i < k->count; i++) f[i] = (float)onnx_real(k, i);
    return f;
}

hp_status onnx_emit_scale(const onnx_call *c, int32_t x, const float *factor, const float *bias,
                          int32_t *tensor) {
    const hp_layer l = {.op = HP_SCALE, .n_in = 1, .in = {x}};
    const int64_t channels = c->r->graph->tensor[x].c;
    HP_TRY(onnx_emit(c, l, channels, tensor));
    HP_TRY(onnx_emit_param(c, HP_PARAM_FACTOR, "", "factor", 1, &channels, 1, (hp_onnx_param){factor}));
    if (!bias) return HP_OK;
    return onnx_emit_param(c, HP_PARAM_BIAS, "", "bias", 1, &channels, 1, (hp_onnx_param){bias});
}

hp_status onnx_emit_bias(const onnx_call *c, const onnx_const *bias, int64_t outs) {
    const hp_graph *g = c->r->graph;
    const int64_t fan_in = g->param[g->n_param - 1].fan_in;
    if (!bias) return HP_OK;
    if (bias->count != outs || bias->n_dim != 1)
        return onnx_fail(c, "its bias has %" PRId64 " numbers for %" PRId64 " outputs", bias->count, outs);
    return onnx_emit_param(c, HP_PARAM_BIAS, bias->name, "bias", 1, &outs, fan_in,
                           (hp_onnx_param){onnx_floats(c, bias)});
}

void onnx_note_as(onnx_reader *r, int32_t y, int32_t x) {
    const bool never_negative = r->note[y].never_negative;
    r->note[y] = r->note[x];
    r->note[y].never_negative = never_negative;
}
