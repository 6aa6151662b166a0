/* equalise.c - pairs of layers whose common channels are rescaled until their weights use their ranges alike;
 * see equalise.h. */
#include "exec/quant/equalise.h"

#include "exec/data/weight_walk.h"

#include <math.h>
#include <string.h>

typedef struct pair {
    int first, second; /* layers */
    int channels;
    double bound; /* of the activation between; infinite: none */
} pair;

typedef struct equalising {
    hp_constants *c;
    const hp_graph *g;
    hp_factors *f;
    double *range1,
        *range2; /* largest weight per channel: of the first layer's outputs, the second's inputs */
} equalising;

/* --- which layers --- */

static bool is_matrix(const hp_layer *l) {
    return l->op == HP_CONV || l->op == HP_CONVT || l->op == HP_LINEAR;
}

/* Upper bound of an activation that is homogeneous below it; NaN: none such. */
static double bound_of(const hp_layer *l) {
    switch (l->act) {
    case HP_ACT_NONE:
    case HP_ACT_RELU:
    case HP_ACT_LEAKY:
        return INFINITY;
    case HP_ACT_RELU6:
        return 6;
    case HP_ACT_CLIP:
        return l->act_a == 0 && l->act_b > 0 ? l->act_b : (double)NAN;
    default:
        return NAN;
    }
}

/* The only reader of the layer's output, or -1. */
static int sole_reader(const hp_graph *g, int layer) {
    int reader = -1, reads = g->layer[layer].out == g->layer[g->n_layer - 1].out;
    for (int l = 0; l < g->n_layer; l++)
        for (int k = 0; k < g->layer[l].n_in; k++)
            if (g->layer[l].in[k] == g->layer[layer].out) reader = l, reads++;
    return reads == 1 ? reader : -1;
}

static bool pair_of(const hp_graph *g, int first, pair *p) {
    const hp_layer *l = &g->layer[first];
    if (!is_matrix(l) || l->n_in > 1) return false;
    const int second = sole_reader(g, first);
    if (second < 0 || !is_matrix(&g->layer[second]) || g->layer[second].in[0] != l->out) return false;
    *p = (pair){first, second, g->tensor[l->out].c, bound_of(l)};
    return !isnan(p->bound);
}

/* --- one pair --- */

static hp_status measure(equalising *e, int layer, bool outputs, double *range, hp_error *err) {
    hp_filter f;
    const int64_t outs = e->g->tensor[e->g->layer[layer].out].c;
    const hp_weight_walk walk = hp_weight_walk_of(e->g, layer);
    HP_TRY(hp_constants_filter(e->c, layer, 0, outs, false, &f, err));
    const int n = outputs ? (int)outs : e->g->tensor[e->g->layer[layer].in[0]].c;
    for (int i = 0; i < n; i++) range[i] = 0;
    for (int64_t run = 0; run < walk.runs; run++) {
        const hp_weight_ends at = hp_weight_ends_of(&walk, run);
        double *most = &range[outputs ? at.out : at.in];
        for (int64_t k = run * walk.length; k < (run + 1) * walk.length; k++)
            *most = fmax(*most, fabs((double)f.weight[k]));
    }
    return HP_OK;
}

/* What the first layer's channel is to be multiplied with, beside `so_far`: both ranges become their
 * geometric mean. */
static double factor(const equalising *e, const pair *p, int i, double so_far, double most) {
    const double limit = 1e4; /* keeps all in the range of floats, whatever the network */
    if (!(e->range1[i] > 0 && e->range2[i] > 0)) return 1;
    const double wanted = fmin(fmax(so_far * sqrt(e->range2[i] / e->range1[i]), 1 / limit), limit);
    if (isinf(p->bound)) return wanted / so_far;
    if (!(most > 0 && most < p->bound)) return 1;
    return fmin(wanted, p->bound / most) / so_far;
}

static float *factors_of(hp_arena *a, float **of, int n) {
    if (*of) return *of;
    *of = HP_NEW(a, float, n);
    for (int i = 0; i < n; i++) (*of)[i] = 1;
    return *of;
}

/* Rescales the channels between the two; *change: the largest factor beyond 1 of any. */
static hp_status equalise_pair(equalising *e, hp_arena *a, const pair *p, const double *most, double *change,
                               hp_error *err) {
    HP_TRY(measure(e, p->first, true, e->range1, err));
    HP_TRY(measure(e, p->second, false, e->range2, err));
    float *out = factors_of(a, &e->f->out[p->first], p->channels);
    float *in = factors_of(a, &e->f->in[p->second], p->channels);
    for (int i = 0; i < p->channels; i++) {
        const double by = factor(e, p, i, (double)out[i], most ? most[i] : INFINITY);
        out[i] = (float)((double)out[i] * by);
        in[i] = 1 / out[i];
        *change = fmax(*change, fmax(by, 1 / by) - 1);
    }
    hp_constants_set_factors(e->c, p->first, e->f->in[p->first], out);
    hp_constants_set_factors(e->c, p->second, in, e->f->out[p->second]);
    return HP_OK;
}

/* --- the network --- */

static hp_status sweep(equalising *e, hp_arena *a, const double *const *most, double *change, hp_error *err) {
    *change = 0;
    for (int l = 0; l < e->g->n_layer; l++) {
        pair p;
        if (!pair_of(e->g, l, &p)) continue;
        const double *seen = most ? most[e->g->layer[l].out] : NULL;
        HP_TRY(equalise_pair(e, a, &p, seen, change, err));
    }
    return HP_OK;
}

hp_status hp_equalise(hp_arena *a, hp_constants *c, const double *const *most, hp_factors *f, hp_error *err) {
    enum { SWEEPS = 20 };
    const double enough = 0.01;
    const hp_graph *g = hp_constants_graph(c);
    int widest = 1;
    for (int t = 0; t < g->n_tensor; t++) widest = g->tensor[t].c > widest ? g->tensor[t].c : widest;
    *f = (hp_factors){g->n_layer, HP_NEW(a, float *, g->n_layer), HP_NEW(a, float *, g->n_layer)};
    equalising e = {c, g, f, HP_NEW(a, double, widest), HP_NEW(a, double, widest)};
    for (int l = 0; l < g->n_layer; l++)
        if (is_matrix(&g->layer[l])) hp_constants_set_factors(c, l, NULL, NULL);
    double change = INFINITY;
    for (int i = 0; i < SWEEPS && change > enough; i++) HP_TRY(sweep(&e, a, most, &change, err));
    return HP_OK;
}

void hp_factors_apply(const hp_factors *f, const hp_graph *from, hp_constants *to) {
    const hp_graph *g = hp_constants_graph(to);
    for (int l = 0; l < f->n_layer; l++) {
        if (!f->in[l] && !f->out[l]) continue;
        for (int k = 0; k < g->n_layer; k++)
            if (strcmp(g->layer[k].name, from->layer[l].name) == 0)
                hp_constants_set_factors(to, k, f->in[l], f->out[l]);
    }
}
