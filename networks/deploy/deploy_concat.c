/* deploy_concat.c - removes concatenations whose readers can read the inputs directly, so that every map is
 * stored once.
 *
 * DenseNet concatenates earlier concatenations, and each batch norm reads the growing map again. A
 * concatenation is removed if each of its readers can read the inputs instead: another concatenation, which
 * then has more inputs, or an elementwise batch norm, scale or activation. Such an elementwise reader becomes
 * a concatenation with its parameters, activation and name. (Pleiss et al. 2017, "Memory-Efficient
 * Implementation of DenseNets", share the memory of joined maps; here the joined maps do not exist.) */
#include "networks/deploy/deploy_inside.h"

#include <string.h>

typedef struct joining {
    hp_graph *g;
    int32_t *last; /* per tensor: the last layer that reads it; -1: none */
    bool *removed; /* per layer */
} joining;

/* Does the layer only join its inputs, without parameters or activation? */
static bool is_plain_concat(const hp_layer *l) {
    return l->op == HP_CONCAT && l->n_param == 0 && !hp_layer_has_act(l);
}

static int times_read(const hp_layer *l, int32_t tensor) {
    int n = 0;
    for (int k = 0; k < l->n_in; k++) n += l->in[k] == tensor;
    return n;
}

static bool reads_pieces(const hp_layer *l, int32_t tensor, int pieces) {
    const bool point = l->op == HP_BN || l->op == HP_SCALE || l->op == HP_ACT;
    if (!is_plain_concat(l)) return point && l->n_in == 1;
    return l->n_in + times_read(l, tensor) * (pieces - 1) <= HP_MAX_IN;
}

/* Can the concatenation be removed? Not if its output is the network's. */
static bool may_remove(const joining *j, int layer) {
    const hp_layer *cat = &j->g->layer[layer];
    if (!is_plain_concat(cat) || j->last[cat->out] < 0 || layer == j->g->n_layer - 1) return false;
    for (int l = layer + 1; l <= j->last[cat->out]; l++) {
        const hp_layer *reader = &j->g->layer[l];
        if (times_read(reader, cat->out) && !reads_pieces(reader, cat->out, cat->n_in)) return false;
    }
    return true;
}

/* Replaces the output of `cat` by its inputs in the reader. */
static void read_pieces(hp_layer *reader, const hp_layer *cat) {
    const hp_layer before = *reader;
    reader->n_in = 0;
    for (int k = 0; k < before.n_in; k++) {
        const bool replaced = before.in[k] == cat->out;
        const int n = replaced ? cat->n_in : 1;
        memcpy(reader->in + reader->n_in, replaced ? cat->in : &before.in[k], sizeof *cat->in * (size_t)n);
        reader->n_in += n;
    }
    if (reader->n_in > 1) reader->op = HP_CONCAT;
}

static void note_readers(joining *j) {
    memset(j->last, -1, sizeof *j->last * (size_t)j->g->n_tensor);
    for (int l = 0; l < j->g->n_layer; l++)
        for (int k = 0; k < j->g->layer[l].n_in; k++) j->last[j->g->layer[l].in[k]] = l;
}

static void drop_removed(joining *j) {
    int n = 0;
    for (int l = 0; l < j->g->n_layer; l++)
        if (!j->removed[l]) j->g->layer[n++] = j->g->layer[l];
    j->g->n_layer = n;
}

void hp_deploy_concats(hp_graph *g) {
    hp_arena *scratch = hp_arena_new();
    joining j = {g, HP_NEW(scratch, int32_t, g->n_tensor), HP_NEW(scratch, bool, g->n_layer)};
    note_readers(&j);
    for (int l = 1; l < g->n_layer; l++) {
        j.removed[l] = may_remove(&j, l);
        const int32_t out = g->layer[l].out;
        for (int r = l + 1; j.removed[l] && r <= j.last[out]; r++)
            if (times_read(&g->layer[r], out)) read_pieces(&g->layer[r], &g->layer[l]);
    }
    drop_removed(&j);
    hp_arena_free(scratch);
}
