/* alike.c - compares layers by everything except names and ids. */
#include "networks/graph/alike.h"

#include <string.h>

static bool same_tensor(const hp_graph *g, int32_t a, int32_t b) {
    const hp_tensor *x = &g->tensor[a], *y = &g->tensor[b];
    return x->h == y->h && x->w == y->w && x->c == y->c && x->store == y->store && x->tp_unit == y->tp_unit &&
           (x->producer == 0) == (y->producer == 0);
}

static bool same_param(const hp_param *a, const hp_param *b) {
    return a->kind == b->kind && a->n_dim == b->n_dim && memcmp(a->dim, b->dim, sizeof a->dim) == 0 &&
           a->count == b->count && a->fan_in == b->fan_in;
}

/* A copy of the layer without its name and without the ids of other layers. */
static hp_layer nameless(const hp_layer *l) {
    hp_layer n;
    memcpy(&n, l, sizeof n); /* copies padding too: a difference in padding alone makes layers unequal */
    n.name = NULL;
    n.out = n.unit = 0;
    memset(n.in, 0, sizeof n.in);
    memset(n.param, 0, sizeof n.param);
    memset(n.deployed.norm, 0, sizeof n.deployed.norm);
    return n;
}

static bool is_like(const hp_graph *g, const hp_layer *a, const hp_layer *b) {
    const hp_layer x = nameless(a), y = nameless(b);
    if (memcmp(&x, &y, sizeof x) != 0 || !same_tensor(g, a->out, b->out)) return false;
    for (int k = 0; k < a->n_in; k++)
        if (!same_tensor(g, a->in[k], b->in[k])) return false;
    for (int i = 0; i < a->n_param; i++)
        if (!same_param(&g->param[a->param[i]], &g->param[b->param[i]])) return false;
    return true;
}

int32_t *hp_graph_alike(hp_arena *arena, const hp_graph *g) {
    int32_t *alike = HP_NEW(arena, int32_t, g->n_layer), n = 0;
    int32_t *first = HP_NEW(arena, int32_t, g->n_layer);
    for (int32_t l = 0; l < g->n_layer; l++) {
        int32_t k = 0;
        while (k < n && !is_like(g, &g->layer[first[k]], &g->layer[l])) k++;
        if (k == n) first[n++] = l;
        alike[l] = first[k];
    }
    return alike;
}
