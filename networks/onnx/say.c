/* say.c - messages name the node at fault. For a value that was never computed, or is only part of a layer,
 * that is its maker, not the node that stumbled on it. */
#include "networks/onnx/onnx_inside.h"

#include <stdarg.h>
#include <string.h>

const char *onnx_title(hp_arena *arena, const Onnx__NodeProto *n) {
    const char *name = n->name && *n->name ? n->name : n->n_output ? n->output[0] : "";
    return hp_arena_printf(arena, "node '%s' (%s)", onnx_clean(arena, name),
                           onnx_clean(arena, n->op_type && *n->op_type ? n->op_type : "?"));
}

hp_status onnx_fail(const onnx_call *c, const char *fmt, ...) {
    char what[900];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    if (!c->node) return hp_fail(c->r->err, HP_EDATA, "%s: %s", c->r->file, what);
    return hp_fail(c->r->err, HP_EDATA, "%s: %s: %s", c->r->file, onnx_title(c->r->scratch, c->node), what);
}

const Onnx__NodeProto *onnx_maker_of(const onnx_reader *r, const onnx_value *v) {
    return v->producer < 0 ? NULL : r->model->graph->node[v->producer];
}

onnx_call onnx_as_maker(const onnx_call *c, const onnx_value *v) {
    onnx_call maker = *c;
    if (v->producer >= 0) maker.node = onnx_maker_of(c->r, v);
    return maker;
}

/* The node's first input that is also lazy: a view or a term. */
static const onnx_value *lazy_input(const onnx_reader *r, const Onnx__NodeProto *n) {
    for (size_t k = 0; n && k < n->n_input; k++) {
        const int32_t i = onnx_names_find(&r->names, n->input[k]);
        if (i >= 0 && r->value[i].producer >= 0 && r->value[i].kind > ONNX_TENSOR) return &r->value[i];
    }
    return NULL;
}

const char *onnx_chain_to(const onnx_reader *r, const onnx_value *v) {
    enum { MOST = 4 };
    const char *text = "";
    for (int i = 0; i < MOST && (v = lazy_input(r, onnx_maker_of(r, v))); i++)
        text = hp_arena_printf(r->scratch, "%s%s%s", text, i ? ", " : " after ",
                               onnx_title(r->scratch, onnx_maker_of(r, v)));
    return text;
}

const char *onnx_dims(const onnx_reader *r, const onnx_value *v) {
    const char *text = "(";
    for (int d = 0; d < v->n_dim; d++)
        text = hp_arena_printf(r->scratch, "%s%s%lld", text, d ? ", " : "", (long long)v->dim[d]);
    return hp_arena_printf(r->scratch, "%s)", text);
}

hp_status onnx_fail_unmade(const onnx_call *c, const onnx_value *v) {
    const onnx_call maker = onnx_as_maker(c, v);
    if (v->producer < 0)
        return onnx_fail(c, "reads '%s', an input of the model beside the image: make it a constant",
                         onnx_clean(c->r->scratch, v->name));
    size_t k = 0;
    while (k + 1 < maker.node->n_output && strcmp(maker.node->output[k], v->name) != 0) k++;
    return onnx_fail(&maker, "its output %zu, '%s', is not supported, and the model's output needs it", k + 1,
                     onnx_clean(c->r->scratch, v->name));
}
