/* sharing.c - union-find over layers that pass bytes on unchanged; see sharing.h. */
#include "exec/quant/sharing.h"

#include "exec/quant/clip.h"

#include <stdlib.h>
#include <string.h>

static int32_t root_of(int32_t *up, int32_t t) {
    while (up[t] != t) t = up[t] = up[up[t]];
    return t;
}

static void join(int32_t *up, int32_t a, int32_t b) {
    a = root_of(up, a);
    b = root_of(up, b);
    if (a < b)
        up[b] = a;
    else
        up[a] = b;
}

/* Does the layer only pass on elements of its inputs? Then the range of its output is not measured. */
static bool passes_on(const hp_layer *l) {
    const bool joins = l->op == HP_CONCAT && l->n_param == 0 && !hp_layer_has_act(l);
    return joins || l->op == HP_MAXPOOL || l->op == HP_PAD ||
           (l->op == HP_RESIZE && l->resize.interpolation == HP_NEAREST);
}

int32_t *hp_qparam_groups(hp_arena *arena, const hp_graph *g) {
    int32_t *up = HP_NEW(arena, int32_t, g->n_tensor);
    for (int t = 0; t < g->n_tensor; t++) up[t] = t;
    for (int i = 0; i < g->n_layer; i++) {
        const hp_layer *l = &g->layer[i];
        if (!passes_on(l) || !hp_tensor_wants_qparam(g, l->out)) continue;
        for (int k = 0; k < l->n_in; k++)
            if (hp_tensor_wants_qparam(g, l->in[k])) join(up, l->in[k], l->out);
    }
    for (int t = 0; t < g->n_tensor; t++) up[t] = root_of(up, t);
    return up;
}

/* --- the same tensor in the float graph --- */

typedef struct named {
    const char *name;
    int32_t tensor;
} named;

static int by_name(const void *a, const void *b) {
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

static int32_t origin(const hp_graph *g, int32_t tensor) {
    for (;;) {
        const hp_layer *l = &g->layer[g->tensor[tensor].producer];
        if (l->op != HP_QUANT && l->op != HP_DEQUANT) return tensor;
        tensor = l->in[0];
    }
}

hp_status hp_float_counterparts(hp_arena *arena, const hp_graph *quantised, const hp_graph *real,
                                int32_t **of, hp_error *err) {
    named *names = HP_NEW(arena, named, real->n_tensor);
    for (int t = 0; t < real->n_tensor; t++)
        names[t] = (named){real->layer[real->tensor[t].producer].name, t};
    qsort(names, (size_t)real->n_tensor, sizeof *names, by_name);
    *of = HP_NEW(arena, int32_t, quantised->n_tensor);
    for (int t = 0; t < quantised->n_tensor; t++) {
        const hp_layer *l = &quantised->layer[quantised->tensor[origin(quantised, t)].producer];
        const named key = {l->name, 0};
        const named *found = bsearch(&key, names, (size_t)real->n_tensor, sizeof *names, by_name);
        if (!found)
            return hp_fail(err, HP_EINTERNAL, "layer %s of the int8 program is not in the float program",
                           l->name);
        (*of)[t] = found->tensor;
    }
    return HP_OK;
}

/* --- shared ranges --- */

void hp_qparams_unify(hp_constants *c, const hp_range *range) {
    const hp_graph *g = hp_constants_graph(c);
    hp_arena *a = hp_arena_new();
    const int32_t *root = hp_qparam_groups(a, g);
    hp_range *all = HP_NEW(a, hp_range, g->n_tensor);
    for (int t = 0; t < g->n_tensor; t++) all[t] = hp_range_none();
    for (int t = 0; t < g->n_tensor; t++)
        if (hp_tensor_wants_qparam(g, t) && !passes_on(&g->layer[g->tensor[t].producer]))
            all[root[t]] = hp_range_around(&all[root[t]], &range[t]);
    for (int t = 0; t < g->n_tensor; t++)
        if (hp_tensor_wants_qparam(g, t)) hp_constants_set_qparam(c, t, hp_qparam_of(all[root[t]]));
    hp_arena_free(a);
}
