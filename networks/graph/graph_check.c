/* graph_check.c - validates a graph read from a file; see graph/graph_check.h. Ids must already be within the
 * arrays; layers and tensors have the same numbers, as graph/graph_json.c assigns them. */
#include "networks/graph/graph_check.h"

#include "networks/graph/acts.h"
#include "networks/graph/graph_gather.h"
#include "networks/graph/shape.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MOST_SIZE = 1 << 24, MOST_NAME = 255 };

static hp_status fail(hp_error *err, int layer, const char *what) {
    return hp_fail(err, HP_EDATA, "graph: layer %d: %s", layer, what);
}

/* --- names --- */

static bool is_name(const char *s) {
    const size_t n = strlen(s);
    for (const char *at = s; *at; at++)
        if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7f) return false;
    return n > 0 && n <= MOST_NAME;
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool all_different(const char **name, int n) {
    qsort(name, (size_t)n, sizeof *name, by_text);
    for (int i = 1; i < n; i++)
        if (strcmp(name[i - 1], name[i]) == 0) return false;
    return true;
}

static hp_status check_names(const hp_graph *g, hp_error *err) {
    hp_arena *scratch = hp_arena_new();
    const char **name = HP_NEW(scratch, const char *, g->n_layer + g->n_param);
    bool good = is_name(g->net) && strlen(g->net) < 64;
    for (int l = 0; l < g->n_layer; l++) good &= is_name(name[l] = g->layer[l].name);
    good = good && all_different(name, g->n_layer);
    for (int p = 0; p < g->n_param; p++) good &= is_name(name[p] = g->param[p].name);
    good = good && all_different(name, g->n_param);
    hp_arena_free(scratch);
    return good ? HP_OK : hp_fail(err, HP_EDATA, "graph: names must be printable, not empty and different");
}

/* --- numbers --- */

typedef struct op_rule {
    int least_in, most_in;
    bool window, groups, act;
    int least_param, most_param;
} op_rule;

static const op_rule rules[HP_LAYER_OPS] = {
    [HP_INPUT] = {0, 0},
    [HP_CONV] = {1, 1, true, true, false, 1, 2},
    [HP_CONVT] = {1, 1, true, true, false, 1, 2},
    [HP_LINEAR] = {1, 1, false, false, false, 1, 2},
    [HP_BN] = {1, 2, false, false, true, 4, 4},
    [HP_ACT] = {1, 1, .act = true},
    [HP_ADD] = {2, 2, .act = true},
    [HP_MAXPOOL] = {1, 1, true},
    [HP_AVGPOOL] = {1, 1, true},
    [HP_ADAPTPOOL] = {1, 1},
    [HP_PAD] = {1, 1},
    [HP_CONCAT] = {1, HP_MAX_IN},
    [HP_DROPOUT] = {1, 1},
    [HP_MUL] = {2, 2, .act = true},
    [HP_SCALE] = {1, 1, false, false, true, 1, 2},
    [HP_RESIZE] = {1, 1},
    [HP_PRELU] = {1, 1, .least_param = 1, .most_param = 1},
    [HP_SOFTMAX] = {1, 1},
    [HP_LAYERNORM] = {1, 1, .least_param = 1, .most_param = 2},
    [HP_RMSNORM] = {1, 1, .least_param = 1, .most_param = 1},
    [HP_ATTENTION] = {3, 3, .groups = true, .most_param = 1},
    [HP_EMBEDDING] = {1, 1, .least_param = 1, .most_param = 1},
    [HP_POSITION] = {1, 1, .least_param = 1, .most_param = 1},
    [HP_CLASSTOKEN] = {1, 1, .least_param = 1, .most_param = 1},
    [HP_CROP] = {1, 1},
    [HP_SUM] = {1, 1, .most_param = 1},
    [HP_MERGE] = {1, 1},
    [HP_GATHER] = {1, 1, .groups = true},
    [HP_REDUCE] = {1, 1},
    [HP_GROUPNORM] = {1, 1, .groups = true, .least_param = 1, .most_param = 2},
};

static bool between(int32_t v, int32_t low, int32_t high) {
    return v >= low && v <= high;
}

static bool window_in_range(const hp_layer *l) {
    return between(l->window.kh, 1, MOST_SIZE) && between(l->window.kw, 1, MOST_SIZE) &&
           between(l->window.stride_h, 1, MOST_SIZE) && between(l->window.stride_w, 1, MOST_SIZE) &&
           between(l->window.dil_h, 1, MOST_SIZE) && between(l->window.dil_w, 1, MOST_SIZE);
}

/* Is it a matrix product per pixel? Ranks can split it. */
static bool one_pixel(const hp_layer *l) {
    return l->op == HP_CONV && l->window.kh == 1 && l->window.kw == 1 && l->window.stride_h == 1 &&
           l->window.stride_w == 1 && l->groups == 1;
}

static bool shares_in_range(const hp_layer *l) {
    const bool row = l->op == HP_EMBEDDING && l->tp == (int32_t)HP_TP_ROW;
    return row || between(l->tp, 0, one_pixel(l) ? HP_TP_ROW : 0);
}

/* Keeps the product of coordinates and scale within the integers that a double represents exactly. */
static bool scales_in_range(const hp_layer *l) {
    const double least = 0x1p-24, most = 0x1p24;
    const bool none = l->resize.scale_h == 0 && l->resize.scale_w == 0;
    return none || (l->resize.scale_h >= least && l->resize.scale_h <= most && l->resize.scale_w >= least &&
                    l->resize.scale_w <= most);
}

static bool places_in_range(const hp_layer *l) {
    return between(l->gather.first, 0, MOST_SIZE) && between(l->gather.step, 0, MOST_SIZE) &&
           between(l->gather.step_outer, 0, MOST_SIZE) && between(l->gather.out_c, 0, MOST_SIZE) &&
           between(l->gather.border, 0, HP_BORDERS - 1) &&
           between(l->reduction, 0, HP_CHANNEL_REDUCTIONS - 1);
}

static bool numbers_in_range(const hp_layer *l) {
    const op_rule *r = &rules[l->op];
    return places_in_range(l) && (!r->window || window_in_range(l)) &&
           between(l->groups, r->groups ? 1 : 0, MOST_SIZE) && between(l->window.pad_h, 0, MOST_SIZE) &&
           between(l->window.pad_w, 0, MOST_SIZE) && between(l->out_h, 0, MOST_SIZE) &&
           between(l->out_w, 0, MOST_SIZE) && shares_in_range(l) && between(l->summands, 0, 0) &&
           between(l->window.ceil_mode, 0, 1) && between(l->window.count_include_pad, 0, 1) &&
           between(l->resize.interpolation, 0, HP_INTERPOLATIONS - 1) &&
           between(l->resize.corners, 0, HP_CORNERS - 1) && between(l->resize.inside, 0, 1) &&
           isfinite(l->resize.cubic) && scales_in_range(l) && between(l->act, 0, r->act ? HP_ACTS - 1 : 0) &&
           isfinite(l->act_arg.a) && isfinite(l->act_arg.b) && between(l->attention.kv_heads, 0, MOST_SIZE) &&
           between(l->attention.causal, 0, 1) && between(l->window.kh, 0, MOST_SIZE) &&
           between(l->window.kw, 0, MOST_SIZE) && l->attention.rotary >= 0 && isfinite(l->attention.rotary) &&
           l->p >= 0 && l->p < 1 && l->eps >= 0 && isfinite(l->eps) && l->momentum >= 0 && l->momentum <= 1;
}

static hp_status check_layer(const hp_graph *g, int at, hp_error *err) {
    const hp_layer *l = &g->layer[at];
    if (!between(l->op, 0, HP_LAYER_OPS - 1) || (l->op == HP_INPUT) != (at == 0) || l->op == HP_QUANT ||
        l->op == HP_DEQUANT)
        return fail(err, at, "an operator that cannot be there");
    const op_rule *r = &rules[l->op];
    if (!between(l->n_in, r->least_in, r->most_in)) return fail(err, at, "the wrong number of inputs");
    for (int k = 0; k < l->n_in; k++)
        if (!between(l->in[k], 0, at - 1)) return fail(err, at, "an input that is not computed before it");
    if (!between(l->n_param, r->least_param, r->most_param))
        return fail(err, at, "the wrong number of parameters");
    if (!numbers_in_range(l)) return fail(err, at, "a number out of range");
    if (l->unit < 0 || l->unit != (at ? g->layer[at - 1].unit : 0) + (at && l->unit != g->layer[at - 1].unit))
        return fail(err, at, "units have a gap");
    return HP_OK;
}

/* --- shapes --- */

static hp_status check_shape(const hp_graph *g, int at, hp_error *err) {
    const hp_tensor *t = &g->tensor[at];
    hp_tensor made = {0};
    hp_error why;
    if (!between(t->h, 1, MOST_SIZE) || !between(t->w, 1, MOST_SIZE) || !between(t->c, 1, MOST_SIZE) ||
        (int64_t)t->h * t->w > (INT64_C(1) << 48) / t->c)
        return fail(err, at, "an output that is empty or too large");
    if (hp_layer_shape(g, &g->layer[at], t->c, &made, &why) != HP_OK)
        return hp_fail(err, HP_EDATA, "graph: %.300s", why.text);
    if (made.h != t->h || made.w != t->w || made.c != t->c)
        return fail(err, at, "an output of another shape than it makes");
    return HP_OK;
}

/* --- parameters --- */

/* The shape that parameter `i` of the layer must have; ends at the first 0. */
typedef struct expected_shape {
    hp_param_kind kind;
    int64_t dim[4], fan_in;
} expected_shape;

static expected_shape expected_weight(const hp_graph *g, const hp_layer *l) {
    const hp_tensor *x = &g->tensor[l->in[0]], *y = &g->tensor[l->out];
    const int64_t window = (int64_t)l->window.kh * l->window.kw;
    if (l->tp == (int32_t)HP_TP_ROW) return (expected_shape){HP_PARAM_LINEAR_W, {x->c, y->c}, x->c};
    if (l->op == HP_SUM) return (expected_shape){HP_PARAM_BIAS, {y->c}, 0};
    if (l->op == HP_CONV)
        return (expected_shape){
            HP_PARAM_CONV_W, {y->c, x->c / l->groups, l->window.kh, l->window.kw}, x->c / l->groups * window};
    if (l->op == HP_CONVT)
        return (expected_shape){
            HP_PARAM_CONV_W, {x->c, y->c / l->groups, l->window.kh, l->window.kw}, y->c / l->groups * window};
    if (l->op == HP_LINEAR) {
        const int64_t in = hp_tensor_elems(g, l->in[0]);
        return (expected_shape){HP_PARAM_LINEAR_W, {y->c, in}, in};
    }
    if (l->op == HP_ATTENTION)
        return (expected_shape){
            HP_PARAM_TABLE,
            {l->groups, (2 * (int64_t)l->window.kh - 1) * (2 * (int64_t)l->window.kw - 1)},
            0};
    if (l->op == HP_POSITION) return (expected_shape){HP_PARAM_TABLE, {(int64_t)y->h * y->w, y->c}, 0};
    if (l->op == HP_CLASSTOKEN) return (expected_shape){HP_PARAM_TOKEN, {y->c}, 0};
    if (l->op == HP_LAYERNORM || l->op == HP_RMSNORM || l->op == HP_GROUPNORM)
        return (expected_shape){HP_PARAM_BN_GAMMA, {y->c}, 0};
    if (l->op == HP_PRELU && l->groups == 1) return (expected_shape){HP_PARAM_FACTOR, {1}, 0};
    return (expected_shape){l->op == HP_BN ? HP_PARAM_BN_GAMMA : HP_PARAM_FACTOR, {y->c}, 0};
}

static expected_shape expected_vector(const hp_graph *g, const hp_layer *l, int i) {
    static const hp_param_kind norm[HP_NORM_PARAMS] = {HP_PARAM_BN_GAMMA, HP_PARAM_BN_BETA, HP_PARAM_BN_MEAN,
                                                       HP_PARAM_BN_VAR};
    const bool normalises = l->op == HP_BN || l->op == HP_LAYERNORM || l->op == HP_GROUPNORM;
    return (expected_shape){normalises ? norm[i] : HP_PARAM_BIAS, {g->tensor[l->out].c}, 0};
}

static bool param_fits(const hp_param *p, const expected_shape *w) {
    int64_t count = 1;
    for (int d = 0; d < 4; d++) {
        if (w->dim[d] == 0) {
            if (p->n_dim != d) return false;
            break;
        }
        if (d >= p->n_dim || p->dim[d] != w->dim[d] || __builtin_mul_overflow(count, w->dim[d], &count))
            return false;
    }
    return p->kind == (int32_t)w->kind && p->count == count && between(p->init, 0, HP_INIT_CONSTANT) &&
           isfinite(p->init_scale) && (w->fan_in ? p->fan_in == w->fan_in : p->fan_in >= 0);
}

/* Products with one pixel's channels: the weights may be those of a linear layer, or tied to a table. */
static expected_shape expected_of(const hp_graph *g, const hp_layer *l, int i, const hp_param *p) {
    const bool flat = l->op == HP_CONV && i == 0 && p->n_dim == 2 && l->window.kh == 1 && l->window.kw == 1 &&
                      l->groups == 1 && l->tp != (int32_t)HP_TP_ROW;
    const int64_t in = g->tensor[l->in[0]].c;
    if (flat)
        return (expected_shape){
            p->kind == HP_PARAM_TABLE ? HP_PARAM_TABLE : HP_PARAM_LINEAR_W, {g->tensor[l->out].c, in}, in};
    if (l->op == HP_EMBEDDING) return (expected_shape){HP_PARAM_TABLE, {p->dim[0], g->tensor[l->out].c}, 0};
    return i == 0 ? expected_weight(g, l) : expected_vector(g, l, i);
}

static hp_status check_params(const hp_graph *g, int at, hp_error *err) {
    const hp_layer *l = &g->layer[at];
    for (int i = 0; i < l->n_param; i++) {
        const hp_param *p = &g->param[l->param[i]];
        const expected_shape w = expected_of(g, l, i, p);
        const bool tied = p->layer < at && l->op == HP_CONV && p->kind == HP_PARAM_TABLE && l->n_param == 1;
        if ((p->layer != at && !tied) || !param_fits(p, &w))
            return fail(err, at, "a parameter of another shape than it needs");
    }
    return HP_OK;
}

static hp_status check_work(const hp_graph *g, int at, int64_t *total, hp_error *err) {
    const hp_layer *l = &g->layer[at];
    const bool matrix = l->op == HP_CONV || l->op == HP_CONVT || l->op == HP_LINEAR;
    const hp_tensor *y = &g->tensor[l->out];
    int64_t macs = 0;
    if (l->op == HP_ATTENTION && (double)hp_tensor_elems(g, l->in[1]) * (double)y->h * (double)y->w > 0x1p58)
        return fail(err, at, "too many multiply-adds");
    if (matrix && __builtin_mul_overflow(hp_tensor_elems(g, l->op == HP_CONVT ? l->in[0] : l->out),
                                         g->param[l->param[0]].fan_in, &macs))
        return fail(err, at, "too many multiply-adds");
    if (__builtin_add_overflow(*total, macs, total) || *total > INT64_C(1) << 60)
        return fail(err, at, "too many multiply-adds");
    return HP_OK;
}

/* A row layer under tensor parallelism outputs summands (networks/graph/summands.h), which only sums may
 * read. */
static hp_status check_summands(const hp_graph *g, int at, hp_error *err) {
    const hp_layer *l = &g->layer[at];
    for (int k = 0; k < l->n_in; k++) {
        const bool summands = g->layer[l->in[k]].tp == (int32_t)HP_TP_ROW;
        if (summands && l->op != HP_SUM)
            return fail(err, at, "a row layer's output, which a sum has to read");
        if (!summands && l->op == HP_SUM) return fail(err, at, "a sum of what is no row layer's output");
    }
    if (at + 1 == g->n_layer && l->tp == (int32_t)HP_TP_ROW)
        return fail(err, at, "a row layer at the end, whose output no sum reads");
    return HP_OK;
}

hp_status hp_graph_check(const hp_graph *g, hp_error *err) {
    int64_t macs = 0;
    if (g->deployed || g->n_layer < 2 || g->n_tensor != g->n_layer || !between(g->image_h, 1, MOST_SIZE) ||
        !between(g->image_w, 1, MOST_SIZE) || !between(g->image_c, 1, MOST_SIZE))
        return hp_fail(err, HP_EDATA, "graph: an image and at least one layer are needed");
    HP_TRY(check_names(g, err));
    for (int l = 0; l < g->n_layer; l++) {
        HP_TRY(check_layer(g, l, err));
        HP_TRY(check_shape(g, l, err));
        HP_TRY(check_params(g, l, err));
        HP_TRY(check_summands(g, l, err));
        HP_TRY(check_work(g, l, &macs, err));
    }
    if (g->classes != g->tensor[g->n_tensor - 1].c)
        return hp_fail(err, HP_EDATA, "graph: %d classes, and the last layer has %d channels", g->classes,
                       g->tensor[g->n_tensor - 1].c);
    return HP_OK;
}
