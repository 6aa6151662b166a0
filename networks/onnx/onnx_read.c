/* onnx_read.c - reads a model: registers its values by name, finds those that the first output needs, then
 * folds constants and appends layers node by node. */
#include "networks/onnx/onnx_inside.h"

#include "networks/onnx/onnx_file.h"

#include <inttypes.h>
#include <string.h>

/* --- values by name --- */

static onnx_value *value_of(const onnx_reader *r, const char *name) {
    const int32_t i = onnx_names_find(&r->names, name);
    return i < 0 ? NULL : &r->value[i];
}

onnx_value *onnx_out(const onnx_call *c, size_t k) {
    return k < c->node->n_output && *c->node->output[k] ? value_of(c->r, c->node->output[k]) : NULL;
}

static hp_status add_value(onnx_reader *r, const char *name, int32_t producer, onnx_value **value) {
    bool added;
    if (!name || !*name)
        return hp_fail(r->err, HP_EDATA, "%s: a value has no name; export it again", r->file);
    const int32_t i = onnx_names_add(&r->names, name, &added);
    if (!added)
        return hp_fail(r->err, HP_EDATA, "%s: two things make '%s'; export the model again", r->file,
                       onnx_clean(r->scratch, name));
    *value = &r->value[i];
    **value = (onnx_value){.name = name, .producer = producer};
    return HP_OK;
}

static hp_status name_initializers(onnx_reader *r, const Onnx__GraphProto *g) {
    onnx_value *v;
    for (size_t i = 0; i < g->n_initializer; i++) {
        HP_TRY(add_value(r, g->initializer[i]->name, -1, &v));
        HP_TRY(onnx_const_read(r, g->initializer[i], &v->c));
        v->kind = ONNX_CONST;
    }
    return HP_OK;
}

/* Inputs with an initializer are constants (files before IR version 4 list them). */
static hp_status name_inputs(onnx_reader *r, const Onnx__GraphProto *g) {
    onnx_value *v;
    for (size_t i = 0; i < g->n_input; i++)
        if (!g->input[i]->name || !value_of(r, g->input[i]->name))
            HP_TRY(add_value(r, g->input[i]->name, -1, &v));
    return HP_OK;
}

static hp_status name_outputs(onnx_reader *r, const Onnx__GraphProto *g) {
    onnx_value *v;
    for (size_t n = 0; n < g->n_node; n++)
        for (size_t k = 0; k < g->node[n]->n_output; k++)
            if (*g->node[n]->output[k]) HP_TRY(add_value(r, g->node[n]->output[k], (int32_t)n, &v));
    return HP_OK;
}

static hp_status name_values(onnx_reader *r, const Onnx__GraphProto *g) {
    int64_t most = (int64_t)(g->n_initializer + g->n_input);
    for (size_t n = 0; n < g->n_node; n++) most += (int64_t)g->node[n]->n_output;
    if (g->n_node > ONNX_MOST_ITEMS || g->n_initializer > ONNX_MOST_ITEMS || most > 4 * ONNX_MOST_ITEMS)
        return hp_fail(r->err, HP_EDATA, "%s: more than %d nodes or constants", r->file, ONNX_MOST_ITEMS);
    if (g->n_sparse_initializer)
        return hp_fail(r->err, HP_EDATA, "%s: sparse constants are not supported; make them dense", r->file);
    r->value = HP_NEW(r->scratch, onnx_value, most + 1);
    HP_TRY(name_initializers(r, g));
    HP_TRY(name_inputs(r, g));
    return name_outputs(r, g);
}

/* --- what the output needs --- */

/* reader: NULL for the model's output. */
static hp_status push_needed(onnx_reader *r, const Onnx__NodeProto *reader, const char *name, int32_t *stack,
                             int *n) {
    onnx_value *v = value_of(r, name);
    const onnx_call c = {.r = r, .node = reader};
    if (!v)
        return onnx_fail(&c, "nothing makes '%s', which %s; export the model again",
                         onnx_clean(r->scratch, name), reader ? "it reads" : "is the model's output");
    if (!v->needed && v->producer >= 0) stack[(*n)++] = v->producer;
    v->needed = true;
    return HP_OK;
}

/* Sets needed[node]; every value is pushed on the stack at most once. */
static hp_status mark_needed(onnx_reader *r, const Onnx__GraphProto *g, bool *needed) {
    int32_t *stack = HP_NEW(r->scratch, int32_t, r->names.n + 1);
    int n = 0;
    if (g->n_output == 0 || !g->output[0]->name || !*g->output[0]->name)
        return hp_fail(r->err, HP_EDATA, "%s: the model has no output", r->file);
    HP_TRY(push_needed(r, NULL, g->output[0]->name, stack, &n));
    while (n > 0) {
        const int32_t k = stack[--n];
        if (needed[k]) continue;
        needed[k] = true;
        for (size_t i = 0; i < g->node[k]->n_input; i++)
            if (*g->node[k]->input[i]) HP_TRY(push_needed(r, g->node[k], g->node[k]->input[i], stack, &n));
    }
    return HP_OK;
}

/* --- nodes --- */

/* Sets the call's inputs; *constant: none of them is a tensor. */
static hp_status collect_inputs(onnx_call *c, bool *constant) {
    onnx_reader *r = c->r;
    *constant = true;
    for (int i = 0; i < c->n_in; i++) {
        const char *name = c->node->input[i];
        c->in[i] = *name ? value_of(r, name) : NULL;
        if (!c->in[i]) continue;
        if (c->in[i]->kind == ONNX_NOTHING) return onnx_fail_unmade(c, c->in[i]);
        if (c->in[i]->kind != ONNX_CONST) *constant = false;
        if (c->in[i]->quant && !c->op->quantised)
            return onnx_fail(c, "does not take quantised inputs here: put DequantizeLinear before it");
    }
    return HP_OK;
}

static hp_status fold_node(onnx_call *c) {
    onnx_const out = {.name = "", .type = ONNX_FLOAT};
    if (!c->op->fold) return onnx_fail(c, "constant inputs are not supported here");
    HP_TRY(c->op->fold(c, &out));
    c->out->kind = ONNX_CONST;
    c->out->c = out;
    return HP_OK;
}

static hp_status check_node(const onnx_call *c) {
    if (c->node->n_input > ONNX_MOST_IN)
        return onnx_fail(c, "has %zu inputs; %d are supported", c->node->n_input, ONNX_MOST_IN);
    if (c->n_in < c->op->least || c->n_in > c->op->most)
        return onnx_fail(c, "has %d inputs; %d to %d are expected", c->n_in, c->op->least, c->op->most);
    if (c->r->opset < c->op->since)
        return onnx_fail(c,
                         "is read from opset %d on, the model is of %" PRId64 ": export it with a newer one",
                         c->op->since, c->r->opset);
    if (c->node->n_output < 1 || !*c->node->output[0]) return onnx_fail(c, "its first output has no name");
    return onnx_check_attributes(c);
}

static hp_status read_node(onnx_reader *r, const Onnx__NodeProto *node) {
    onnx_call c = {.r = r, .node = node, .op = onnx_op_of(node), .n_in = (int)node->n_input};
    bool constant;
    HP_TRY(check_node(&c));
    HP_TRY(collect_inputs(&c, &constant));
    c.out = value_of(r, node->output[0]);
    if (constant) return fold_node(&c);
    bool done;
    HP_TRY(onnx_read_term(&c, &done));
    if (done) return HP_OK;
    if (!c.op->read) return onnx_fail(&c, "of a tensor is not supported: only of constants and sizes");
    return c.op->read(&c);
}

/* --- the model --- */

static int64_t opset_of(const Onnx__ModelProto *m) {
    for (size_t i = 0; i < m->n_opset_import; i++) {
        const char *domain = m->opset_import[i]->domain;
        if (!domain || !*domain || strcmp(domain, "ai.onnx") == 0) return m->opset_import[i]->version;
    }
    return 1;
}

static hp_status read_output(onnx_reader *r, const char *name, hp_onnx_model *m) {
    onnx_value *v = value_of(r, name);
    hp_onnx_layout *o = &m->output;
    const onnx_call c = {.r = r, .node = onnx_maker_of(r, v)};
    if (v->kind == ONNX_NOTHING && v->producer >= 0) return onnx_fail_unmade(&c, v);
    if (v->kind == ONNX_CONST || v->kind == ONNX_NOTHING)
        return hp_fail(r->err, HP_EDATA, "%s: its output '%s' does not depend on an image", r->file,
                       onnx_clean(r->scratch, name));
    HP_TRY(onnx_settle(&c, v));
    *o = (hp_onnx_layout){.n_dim = v->n_dim, .quantised = v->quant != NULL};
    memcpy(o->dim, v->dim, sizeof o->dim);
    for (int i = 0; i < HP_AXES; i++) o->order[i] = v->order[i];
    if (v->quant) {
        o->n_scale = v->quant->n;
        o->low = v->quant->low;
        o->high = v->quant->high;
        o->scale = v->quant->scale;
        o->zero = v->quant->zero;
    }
    m->output_name = onnx_clean(r->arena, name);
    return HP_OK;
}

static hp_status read_graph(onnx_reader *r, const Onnx__GraphProto *g, int image_h, int image_w,
                            hp_onnx_model *m) {
    bool *needed = HP_NEW(r->scratch, bool, g->n_node + 1);
    HP_TRY(name_values(r, g));
    HP_TRY(mark_needed(r, g, needed));
    HP_TRY(onnx_check_operators(r, needed));
    HP_TRY(onnx_read_image(r, g, needed, image_h, image_w, m));
    for (size_t n = 0; n < g->n_node; n++)
        if (needed[n]) HP_TRY(read_node(r, g->node[n]));
    HP_TRY(read_output(r, g->output[0]->name, m));
    HP_TRY(onnx_finish(r, value_of(r, g->output[0]->name)->tensor, m));
    m->n_node = (int64_t)g->n_node;
    m->n_output = (int32_t)g->n_output;
    return HP_OK;
}

static hp_status check_model(const onnx_reader *r) {
    enum { NEWEST = 24 };
    if (r->opset < 1 || r->opset > NEWEST)
        return hp_fail(r->err, HP_EDATA, "%s: opset %" PRId64 " is not supported: export with opset 13 to %d",
                       r->file, r->opset, NEWEST);
    if (r->model->n_functions > ONNX_MOST_ITEMS)
        return hp_fail(r->err, HP_EDATA, "%s: more than %d functions", r->file, ONNX_MOST_ITEMS);
    return HP_OK;
}

/* Inputs of one and three dimensions are read as (N) and (N, C, L); if that fails, as (C) and (N, L, C). */
static hp_status read_either_way(onnx_reader *start, const Onnx__GraphProto *g, int image_h, int image_w,
                                 hp_onnx_model *m) {
    onnx_reader r = *start;
    hp_error other = {0};
    const hp_onnx_model empty = *m;
    const hp_status s = read_graph(&r, g, image_h, image_w, m);
    if (s != HP_EDATA || (m->input.n_dim != 1 && m->input.n_dim != 3)) return s;
    r = *start;
    r.err = &other;
    r.channels_last = true;
    *m = empty;
    return read_graph(&r, g, image_h, image_w, m) == HP_OK ? HP_OK : s;
}

hp_status hp_onnx_parse(hp_arena *arena, const char *name, const void *data, size_t size, bool structure,
                        int image_h, int image_w, bool weights, hp_onnx_model *model, hp_error *err) {
    hp_arena *scratch = hp_arena_new();
    const char *file = onnx_clean(arena, name);
    /* parameters may point into the file's bytes, which must then outlive them */
    onnx_reader r = {.arena = arena,
                     .scratch = weights ? arena : scratch,
                     .file = file,
                     .err = err,
                     .file_bytes = (int64_t)size,
                     .structure = structure,
                     .weights = weights};
    Onnx__ModelProto *m;
    *model = (hp_onnx_model){0};
    r.names.arena = r.scratch;
    r.layer_names.arena = r.param_names.arena = scratch;
    hp_status s = onnx_file_parse(r.scratch, file, data, size, &m, err);
    if (s == HP_OK) {
        r.model = m;
        r.opset = model->opset = opset_of(m);
        s = check_model(&r);
    }
    if (s == HP_OK) s = read_either_way(&r, m->graph, image_h, image_w, model);
    hp_arena_free(scratch);
    return s;
}

/* "a/b/model.onnx": "model.onnx" */
static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

hp_status hp_onnx_read(hp_arena *arena, const char *path, int image_h, int image_w, bool weights,
                       hp_onnx_model *model, hp_error *err) {
    const void *data = NULL;
    size_t size = 0;
    HP_TRY(onnx_file_open(path, &data, &size, err));
    const hp_status s =
        hp_onnx_parse(arena, base_name(path), data, size, false, image_h, image_w, weights, model, err);
    onnx_file_close(data, size);
    return s;
}
