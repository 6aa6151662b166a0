/* graph_json.c - graphs as JSON: one object per layer in order, with its output's shape and its parameters;
 * members equal to 0 are omitted. Ids follow from the order. */
#include "networks/graph/graph_json.h"

#include "networks/graph/acts.h"
#include "networks/graph/graph_check.h"
#include "networks/graph/shape.h"

#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

enum { MOST_LAYERS = 1 << 20 };

typedef struct number {
    const char *key;
    size_t offset;
    bool real;
} number;

#define WHOLE(key, member)                                                                                   \
    { key, offsetof(hp_layer, member), false }
#define REAL(key, member)                                                                                    \
    { key, offsetof(hp_layer, member), true }
static const number numbers[] = {
    WHOLE("unit", unit),
    WHOLE("kh", window.kh),
    WHOLE("kw", window.kw),
    WHOLE("stride_h", window.stride_h),
    WHOLE("stride_w", window.stride_w),
    WHOLE("pad_h", window.pad_h),
    WHOLE("pad_w", window.pad_w),
    WHOLE("dil_h", window.dil_h),
    WHOLE("dil_w", window.dil_w),
    WHOLE("groups", groups),
    WHOLE("tp", tp),
    WHOLE("ceil_mode", window.ceil_mode),
    WHOLE("out_h", out_h),
    WHOLE("out_w", out_w),
    WHOLE("count_include_pad", window.count_include_pad),
    WHOLE("interpolation", resize.interpolation),
    WHOLE("corners", resize.corners),
    WHOLE("kv_heads", attention.kv_heads),
    WHOLE("first", gather.first),
    WHOLE("step", gather.step),
    WHOLE("step_outer", gather.step_outer),
    WHOLE("out_c", gather.out_c),
    WHOLE("border", gather.border),
    WHOLE("reduction", reduction),
    WHOLE("causal", attention.causal),
    REAL("rotary", attention.rotary),
    REAL("act_a", act_arg.a),
    REAL("act_b", act_arg.b),
    REAL("p", p),
    REAL("eps", eps),
    REAL("momentum", momentum),
    WHOLE("inside", resize.inside),
    REAL("cubic", resize.cubic),
    REAL("scale_h", resize.scale_h),
    REAL("scale_w", resize.scale_w),
};
#undef WHOLE
#undef REAL
enum { N_NUMBERS = sizeof numbers / sizeof numbers[0] };

static const char *const kind_names[] = {"conv_weight", "linear_weight", "bias",   "bn_weight", "bn_bias",
                                         "bn_mean",     "bn_var",        "factor", "table",     "token"};
static const char *const init_names[] = {"zero",  "one",    "kaiming_fan_out", "kaiming_fan_in", "normal_001",
                                         "torch", "normal", "uniform",         "constant"};
enum {
    N_KINDS = sizeof kind_names / sizeof kind_names[0],
    N_INITS = sizeof init_names / sizeof init_names[0]
};

/* --- writing --- */

static void set_member(json_t *object, const char *key, json_t *value) {
    HP_ASSERT(value && json_object_set_new(object, key, value) == 0);
}

static json_t *dims_of(const int32_t *dim, int n) {
    json_t *array = json_array();
    for (int i = 0; i < n; i++) HP_ASSERT(json_array_append_new(array, json_integer(dim[i])) == 0);
    return array;
}

/* Writes how files store the parameter, if differently. */
static void set_stored(json_t *o, const hp_stored *s) {
    if (!s->name && !s->n_dim) return;
    if (s->name) set_member(o, "file", json_string(s->name));
    set_member(o, "file_dim", dims_of(s->dim, s->n_dim));
    if (s->first) set_member(o, "file_first", json_integer(s->first));
    if (s->turned) set_member(o, "file_turned", json_integer(1));
}

/* A tied parameter is stored with the first of its layers; the others refer to it by name. */
static json_t *param_object(const hp_param *p, bool tied) {
    json_t *o = json_object();
    set_member(o, tied ? "tied" : "name", json_string(p->name));
    if (tied) return o;
    set_member(o, "kind", json_string(kind_names[p->kind]));
    set_member(o, "init", json_string(init_names[p->init]));
    set_member(o, "dim", dims_of(p->dim, p->n_dim));
    set_member(o, "fan_in", json_integer(p->fan_in));
    if (p->init_scale != 0) set_member(o, "init_scale", json_real(p->init_scale));
    set_stored(o, &p->stored);
    return o;
}

static bool is_tied(const hp_graph *g, const hp_layer *l, int i) {
    return g->param[l->param[i]].layer != l - g->layer;
}

static json_t *layer_object(const hp_graph *g, const hp_layer *l) {
    const hp_tensor *t = &g->tensor[l->out];
    json_t *o = json_object(), *params = json_array();
    set_member(o, "name", json_string(l->name));
    set_member(o, "op", json_string(hp_layer_infos[l->op].name));
    set_member(o, "in", dims_of(l->in, l->n_in));
    set_member(o, "shape", dims_of((const int32_t[3]){t->h, t->w, t->c}, 3));
    if (hp_layer_has_act(l)) set_member(o, "act", json_string(hp_act_names[l->act]));
    for (int i = 0; i < N_NUMBERS; i++) {
        const void *at = (const char *)l + numbers[i].offset;
        const double real = numbers[i].real ? *(const double *)at : 0;
        const int32_t whole = numbers[i].real ? 0 : *(const int32_t *)at;
        if (real != 0 || signbit(real) || whole != 0) /* -0 differs from 0 */
            set_member(o, numbers[i].key, numbers[i].real ? json_real(real) : json_integer(whole));
    }
    for (int i = 0; i < l->n_param; i++)
        HP_ASSERT(json_array_append_new(params, param_object(&g->param[l->param[i]], is_tied(g, l, i))) == 0);
    if (l->n_param)
        set_member(o, "params", params);
    else
        json_decref(params);
    return o;
}

const char *hp_graph_json(hp_arena *arena, const hp_graph *g) {
    json_t *root = json_object(), *layers = json_array();
    set_member(root, "net", json_string(g->net));
    set_member(root, "image", dims_of((const int32_t[3]){g->image_h, g->image_w, g->image_c}, 3));
    set_member(root, "classes", json_integer(g->classes));
    for (int l = 0; l < g->n_layer; l++)
        HP_ASSERT(json_array_append_new(layers, layer_object(g, &g->layer[l])) == 0);
    set_member(root, "layers", layers);
    char *text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17));
    HP_ASSERT(text);
    const char *copy = hp_arena_strdup(arena, text);
    free(text);
    json_decref(root);
    return copy;
}

/* --- reading --- */

typedef struct reading {
    hp_arena *arena;
    hp_graph *g;
    hp_error *err;
    int at; /* layer, -1: the graph itself */
    int cap_param;
} reading;

static hp_status bad(const reading *r, const char *key, const char *expected) {
    if (r->at < 0) return hp_fail(r->err, HP_EDATA, "graph: \"%s\" must be %s", key, expected);
    return hp_fail(r->err, HP_EDATA, "graph: layer %d: \"%s\" must be %s", r->at, key, expected);
}

static hp_status read_text(const reading *r, const json_t *o, const char *key, const char **text) {
    const char *s = json_string_value(json_object_get(o, key));
    if (!s) return bad(r, key, "a string");
    *text = hp_arena_strdup(r->arena, s);
    return HP_OK;
}

static hp_status read_whole(const reading *r, const json_t *value, const char *key, int32_t *out) {
    const json_int_t v = json_integer_value(value);
    if (!json_is_integer(value) || v < INT32_MIN || v > INT32_MAX)
        return bad(r, key, "a whole number of 32 bits");
    *out = (int32_t)v;
    return HP_OK;
}

/* Reads an array of at most `most` integers. */
static hp_status read_wholes(const reading *r, const json_t *o, const char *key, int most, int32_t *out,
                             int *n) {
    const json_t *array = json_object_get(o, key);
    if (!json_is_array(array) || json_array_size(array) > (size_t)most) return bad(r, key, "a short array");
    *n = (int)json_array_size(array);
    for (int i = 0; i < *n; i++) HP_TRY(read_whole(r, json_array_get(array, (size_t)i), key, &out[i]));
    return HP_OK;
}

/* Reads one of the names; `out` is its index. */
static hp_status read_choice(const reading *r, const json_t *o, const char *key, const char *const *names,
                             int n, int32_t *out) {
    const char *text = "";
    HP_TRY(read_text(r, o, key, &text));
    for (int i = 0; i < n; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        *out = i;
        return HP_OK;
    }
    return bad(r, key, "one of its known words");
}

static hp_status read_op(const reading *r, const json_t *o, int32_t *op) {
    const char *names[HP_LAYER_OPS];
    for (int i = 0; i < HP_LAYER_OPS; i++) names[i] = hp_layer_infos[i].name;
    return read_choice(r, o, "op", names, HP_LAYER_OPS, op);
}

static hp_status read_number(const reading *r, const json_t *o, const number *f, hp_layer *l) {
    const json_t *value = json_object_get(o, f->key);
    void *at = (char *)l + f->offset;
    if (!value) return HP_OK;
    if (!f->real) return read_whole(r, value, f->key, at);
    if (!json_is_number(value) || !isfinite(json_number_value(value))) return bad(r, f->key, "a number");
    *(double *)at = json_number_value(value);
    return HP_OK;
}

static hp_status read_stored(const reading *r, const json_t *o, hp_stored *s) {
    const json_t *first = json_object_get(o, "file_first");
    if (!json_object_get(o, "file_dim")) return HP_OK;
    HP_TRY(read_wholes(r, o, "file_dim", 4, s->dim, &s->n_dim));
    if (json_object_get(o, "file")) HP_TRY(read_text(r, o, "file", &s->name));
    if (first && !json_is_integer(first)) return bad(r, "file_first", "a whole number");
    s->first = json_integer_value(first);
    s->turned = json_integer_value(json_object_get(o, "file_turned")) == 1;
    return HP_OK;
}

static hp_status read_tied(const reading *r, const json_t *o, hp_layer *l) {
    const char *name = "";
    HP_TRY(read_text(r, o, "tied", &name));
    for (int i = 0; i < r->g->n_param; i++) {
        if (strcmp(r->g->param[i].name, name) != 0) continue;
        l->param[l->n_param++] = i;
        return HP_OK;
    }
    return bad(r, "tied", "a parameter of an earlier layer");
}

static hp_status read_param(reading *r, const json_t *o, hp_layer *l) {
    hp_graph *g = r->g;
    hp_param p = {.layer = r->at, .count = 1};
    const json_t *fan_in = json_object_get(o, "fan_in");
    if (!json_is_object(o)) return bad(r, "params", "objects");
    if (json_object_get(o, "tied")) return read_tied(r, o, l);
    HP_TRY(read_text(r, o, "name", &p.name));
    HP_TRY(read_choice(r, o, "kind", kind_names, N_KINDS, &p.kind));
    HP_TRY(read_choice(r, o, "init", init_names, N_INITS, &p.init));
    HP_TRY(read_wholes(r, o, "dim", 4, p.dim, &p.n_dim));
    if (!json_is_integer(fan_in)) return bad(r, "fan_in", "a whole number");
    p.fan_in = json_integer_value(fan_in);
    p.init_scale = json_number_value(json_object_get(o, "init_scale"));
    HP_TRY(read_stored(r, o, &p.stored));
    for (int d = 0; d < p.n_dim; d++)
        if (p.dim[d] < 1 || __builtin_mul_overflow(p.count, (int64_t)p.dim[d], &p.count))
            return bad(r, "dim", "positive, and not too large");
    HP_ROOM(r->arena, g->param, g->n_param, r->cap_param);
    l->param[l->n_param++] = g->n_param;
    g->param[g->n_param++] = p;
    return HP_OK;
}

static hp_status read_params(reading *r, const json_t *o, hp_layer *l) {
    const json_t *params = json_object_get(o, "params");
    if (!params) return HP_OK;
    if (!json_is_array(params) || json_array_size(params) > HP_MAX_LAYER_PARAMS)
        return bad(r, "params", "an array of at most 4");
    for (size_t i = 0; i < json_array_size(params); i++) HP_TRY(read_param(r, json_array_get(params, i), l));
    return HP_OK;
}

static bool is_known(const char *key) {
    static const char *const others[] = {"name", "op", "in", "shape", "act", "params"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(key, others[i]) == 0) return true;
    for (int i = 0; i < N_NUMBERS; i++)
        if (strcmp(key, numbers[i].key) == 0) return true;
    return false;
}

static hp_status read_layer(reading *r, json_t *o) {
    hp_graph *g = r->g;
    hp_layer *l = &g->layer[r->at];
    hp_tensor *t = &g->tensor[r->at];
    int32_t shape[3];
    int n = 0;
    const char *key;
    json_t *value;
    if (!json_is_object(o)) return bad(r, "layers", "objects");
    json_object_foreach(o, key, value) if (!is_known(key)) return bad(r, "a member", "a known one");
    l->out = r->at;
    HP_TRY(read_text(r, o, "name", &l->name));
    HP_TRY(read_op(r, o, &l->op));
    if (json_object_get(o, "act")) HP_TRY(read_choice(r, o, "act", hp_act_names, HP_ACTS, &l->act));
    HP_TRY(read_wholes(r, o, "in", HP_MAX_IN, l->in, &l->n_in));
    HP_TRY(read_wholes(r, o, "shape", 3, shape, &n));
    if (n != 3) return bad(r, "shape", "three numbers");
    *t = (hp_tensor){.h = shape[0], .w = shape[1], .c = shape[2], .producer = r->at};
    for (int i = 0; i < N_NUMBERS; i++) HP_TRY(read_number(r, o, &numbers[i], l));
    return read_params(r, o, l);
}

static hp_status read_graph(reading *r, const json_t *root) {
    hp_graph *g = r->g;
    const json_t *layers = json_object_get(root, "layers");
    int32_t image[3];
    int n = 0;
    HP_TRY(read_text(r, root, "net", &g->net));
    HP_TRY(read_wholes(r, root, "image", 3, image, &n));
    if (n != 3) return bad(r, "image", "three numbers");
    g->image_h = image[0];
    g->image_w = image[1];
    g->image_c = image[2];
    HP_TRY(read_whole(r, json_object_get(root, "classes"), "classes", &g->classes));
    if (!json_is_array(layers) || json_array_size(layers) < 2 || json_array_size(layers) > MOST_LAYERS)
        return bad(r, "layers", "an array of 2 to a million");
    g->n_layer = g->n_tensor = (int32_t)json_array_size(layers);
    g->layer = HP_NEW(r->arena, hp_layer, g->n_layer);
    g->tensor = HP_NEW(r->arena, hp_tensor, g->n_tensor);
    for (r->at = 0; r->at < g->n_layer; r->at++) HP_TRY(read_layer(r, json_array_get(layers, (size_t)r->at)));
    return hp_graph_check(g, r->err);
}

hp_status hp_graph_from_json(hp_arena *arena, const char *text, hp_graph **graph, hp_error *err) {
    json_error_t where;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    if (!root) return hp_fail(err, HP_EDATA, "graph: line %d: not JSON: %.200s", where.line, where.text);
    reading r = {arena, HP_NEW(arena, hp_graph, 1), err, -1, 0};
    const hp_status s = read_graph(&r, root);
    json_decref(root);
    if (s != HP_OK) return s;
    hp_graph_index_units(arena, r.g);
    *graph = r.g;
    return HP_OK;
}
