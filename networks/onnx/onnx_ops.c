/* onnx_ops.c - the supported operators by name, and errors for models that need others. */
#include "networks/onnx/onnx_inside.h"

#include <string.h>

#define ROW(d, n, from, min_in, max_in, known, integers, ...)                                                \
    {.domain = d,                                                                                            \
     .name = n,                                                                                              \
     .since = from,                                                                                          \
     .least = min_in,                                                                                        \
     .most = max_in,                                                                                         \
     .attributes = " " known " ",                                                                            \
     .quantised = integers,                                                                                  \
     __VA_ARGS__},
#define READ(domain, name, id, since, least, most, attributes, integers)                                     \
    ROW(domain, name, since, least, most, attributes, integers, .read = onnx_read_##id)
#define BOTH(domain, name, id, since, least, most, attributes, integers)                                     \
    ROW(domain, name, since, least, most, attributes, integers, .read = onnx_read_##id,                      \
        .fold = onnx_fold_##id)
#define FOLD(domain, name, id, since, least, most, attributes)                                               \
    ROW(domain, name, since, least, most, attributes, false, .fold = onnx_fold_##id)
static const onnx_op ops[] = {
#include "networks/onnx/onnx_ops.def"
};
#undef READ
#undef BOTH
#undef FOLD
#undef ROW

static const onnx_op *find_op(const char *domain, const char *name) {
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (strcmp(ops[i].name, name) == 0 && strcmp(ops[i].domain, domain) == 0) return &ops[i];
    return NULL;
}

const onnx_op *onnx_op_of(const Onnx__NodeProto *n) {
    const bool standard = !n->domain || strcmp(n->domain, "ai.onnx") == 0;
    return find_op(standard ? "" : n->domain, n->op_type ? n->op_type : "");
}

static const char *full_name(hp_arena *a, const char *domain, const char *name) {
    const bool standard = !domain || strcmp(domain, "ai.onnx") == 0;
    return hp_arena_printf(a, "%s\n%s", standard ? "" : domain, name ? name : "");
}

static onnx_names functions_of(const onnx_reader *r) {
    onnx_names names = {.arena = r->scratch};
    bool added;
    for (size_t i = 0; i < r->model->n_functions; i++) {
        const Onnx__FunctionProto *f = r->model->functions[i];
        onnx_names_add(&names, full_name(r->scratch, f->domain, f->name), &added);
    }
    return names;
}

/* A model's own functions take precedence over operators of the same name. */
static bool is_function(const onnx_reader *r, const onnx_names *functions, const Onnx__NodeProto *n) {
    return functions->n > 0 && onnx_names_find(functions, full_name(r->scratch, n->domain, n->op_type)) >= 0;
}

/* Lists the other unsupported operators, so that one message names them all: ", nor are Tile, TopK". */
static const char *others_unknown(const onnx_reader *r, const Onnx__GraphProto *g, const bool *needed,
                                  size_t from) {
    enum { MOST = 8 };
    onnx_names seen = {.arena = r->scratch};
    const char *text = "";
    bool added;
    onnx_names_add(&seen, g->node[from]->op_type, &added);
    for (size_t n = from + 1; n < g->n_node && seen.n <= MOST; n++) {
        if (!needed[n] || onnx_op_of(g->node[n])) continue;
        onnx_names_add(&seen, g->node[n]->op_type ? g->node[n]->op_type : "?", &added);
        if (added)
            text = hp_arena_printf(r->scratch, "%s%s%s", text, seen.n > 2 ? ", " : "; nor does hplan read ",
                                   onnx_clean(r->scratch, seen.name[seen.n - 1]));
    }
    return text;
}

hp_status onnx_check_operators(onnx_reader *r, const bool *needed) {
    const Onnx__GraphProto *g = r->model->graph;
    const onnx_names functions = functions_of(r);
    for (size_t n = 0; n < g->n_node; n++) {
        const onnx_call c = {.r = r, .node = g->node[n]};
        if (needed[n] && is_function(r, &functions, g->node[n]))
            return onnx_fail(&c, "is a function of the model, which is not supported: inline it "
                                 "(onnx.inliner.inline_local_functions)");
        if (!needed[n] || onnx_op_of(g->node[n])) continue;
        const char *domain = g->node[n]->domain ? g->node[n]->domain : "";
        if (!g->node[n]->op_type || !*g->node[n]->op_type) return onnx_fail(&c, "it has no operator");
        return onnx_fail(&c, "this operator%s%s is not supported%s", *domain ? " of domain " : "",
                         onnx_clean(r->scratch, domain), others_unknown(r, g, needed, n));
    }
    return HP_OK;
}
