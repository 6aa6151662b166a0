/* live.c - walks the layers once: a tensor comes with its producer and goes with the last layer that reads it
 * here. */
#include "sim/search/live.h"
#include "base/alloc.h"
#include "networks/graph/reads.h"

#include <stdlib.h>

typedef struct live_tensor {
    int32_t last; /* last layer that reads any of it on this part, -1: none */
    double held;  /* bytes that are here until then: owned, and read by that layer */
} live_tensor;

typedef struct live_walk {
    const hp_graph *g;
    const hp_live_part *p;
    live_tensor *t;
} live_walk;

static hp_box own(const live_walk *w, int tensor) {
    return hp_layout_own(w->p->layout, w->g, tensor, w->p->samples, w->p->part);
}

static double bytes_of(const live_walk *w, int tensor, const hp_box *b) {
    return (double)hp_box_elems(b) * hp_dtype_bytes(hp_tensor_dtype(&w->g->tensor[tensor], w->p->real));
}

static void note_reader(live_walk *w, int layer, int k) {
    const int x = w->g->layer[layer].in[k];
    const hp_box out = own(w, w->g->layer[layer].out), has = own(w, x),
                 need = hp_layer_need(w->g, layer, k, &out), both = hp_box_and(&has, &need);
    if (hp_box_empty(&need)) return;
    if (w->t[x].last < layer) w->t[x] = (live_tensor){layer, 0};
    const double bytes = bytes_of(w, x, &both);
    if (bytes > w->t[x].held) w->t[x].held = bytes;
}

static void find_readers(live_walk *w) {
    for (int t = 0; t < w->g->n_tensor; t++) w->t[t] = (live_tensor){-1, 0};
    for (int l = 1; l < w->g->n_layer; l++)
        for (int k = 0; k < w->g->layer[l].n_in; k++) note_reader(w, l, k);
}

/* May a layer write over its input `k` while it reads it? Windows read earlier rows again; what is added does
 * not. */
static bool may_overwrite(const hp_graph *g, int layer, int k) {
    const hp_layer *l = &g->layer[layer];
    if (hp_layer_adds(l)) return k == l->n_in - 1;
    return l->op != HP_LINEAR && l->op != HP_CONV && l->op != HP_CONVT && !hp_layer_has_halo(g, layer);
}

/* Bytes of an input that the layer's output may take the place of. */
static double replaced(const live_walk *w, int layer) {
    const hp_layer *l = &w->g->layer[layer];
    const hp_tensor *y = &w->g->tensor[l->out];
    double most = 0;
    for (int k = 0; k < l->n_in; k++) {
        const hp_tensor *x = &w->g->tensor[l->in[k]];
        const bool alike = x->h == y->h && x->w == y->w && x->c == y->c && x->store == y->store;
        const live_tensor *t = &w->t[l->in[k]];
        if (alike && may_overwrite(w->g, layer, k) && t->last == layer && t->held > most) most = t->held;
    }
    return most;
}

static double given_back(const live_walk *w, int layer) {
    const hp_layer *l = &w->g->layer[layer];
    double bytes = 0;
    for (int k = 0; k < l->n_in; k++) {
        bool before = false; /* the same tensor twice counts once */
        for (int i = 0; i < k; i++) before |= l->in[i] == l->in[k];
        if (!before && w->t[l->in[k]].last == layer) bytes += w->t[l->in[k]].held;
    }
    return bytes;
}

static void raise_to(double *most, double bytes) {
    if (bytes > *most) *most = bytes;
}

void hp_live_peaks(const hp_graph *g, const hp_live_part *p, double *peak, double *whole) {
    live_walk w = {g, p, hp_zeroed((size_t)g->n_tensor, sizeof *w.t)};
    double live = 0;
    bool streamed_over = false;
    find_readers(&w);
    for (int u = 0; u < g->n_unit; u++) peak[u] = whole[u] = 0;
    for (int l = 0; l < g->n_layer; l++) {
        const hp_layer *layer = &g->layer[l];
        const hp_box out = own(&w, layer->out);
        const double made = bytes_of(&w, layer->out, &out), here = live + made - replaced(&w, l);
        streamed_over |= l > 0 && hp_layer_reads_all_rows(g, l);
        raise_to(&peak[layer->unit], here);
        if (streamed_over) raise_to(&whole[layer->unit], here);
        live -= given_back(&w, l);
        if (w.t[layer->out].last > l) live += w.t[layer->out].held;
    }
    free(w.t);
}
