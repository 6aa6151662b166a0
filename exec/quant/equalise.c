/* equalise.c - rescales the channels between pairs of layers; see equalise.h. */
#include "exec/quant/equalise.h"

#include "exec/data/weights/weight_walk.h"
#include "networks/graph/acts.h"
#include "networks/graph/layer.h"

#include <math.h>
#include <string.h>

typedef struct pair {
    int first, second; /* layers */
    int channels;
    double bound; /* bound of the activation between the layers; infinite: none */
} pair;

typedef struct equalising {
    hp_constants *c;
    const hp_graph *g;
    double *row;    /* largest weight per output channel of the second layer */
    double *column; /* per channel in between: its largest weight relative to the row's largest */
    double *factor;
} equalising;

/* Leaves margin for images beyond the calibration set, whose values may be larger. */
static const double headroom = 0.75;

/* --- selection of pairs of layers --- */

/* Bound below which the activation is homogeneous; NaN: it is not homogeneous. */
static double bound_of(const hp_layer *l) {
    switch (l->act) {
    case HP_ACT_NONE:
    case HP_ACT_RELU:
    case HP_ACT_LEAKY:
        return INFINITY;
    case HP_ACT_RELU6:
        return 6;
    case HP_ACT_CLIP:
        return l->act_arg.a == 0 && l->act_arg.b > 0 ? l->act_arg.b : (double)NAN;
    default:
        return NAN;
    }
}

/* The only layer that reads this layer's output, or -1. */
static int sole_reader(const hp_graph *g, int layer) {
    int reader = -1, reads = g->layer[layer].out == g->layer[g->n_layer - 1].out;
    for (int l = 0; l < g->n_layer; l++)
        for (int k = 0; k < g->layer[l].n_in; k++)
            if (g->layer[l].in[k] == g->layer[layer].out) reader = l, reads++;
    return reads == 1 ? reader : -1;
}

static bool find_pair(const hp_graph *g, int first, pair *p) {
    const hp_layer *l = &g->layer[first];
    if (!hp_layer_is_matrix(l) || l->n_in > 1) return false;
    const int second = sole_reader(g, first);
    if (second < 0 || !hp_layer_is_matrix(&g->layer[second]) || g->layer[second].in[0] != l->out)
        return false;
    *p = (pair){first, second, g->tensor[l->out].c, bound_of(l)};
    return !isnan(p->bound);
}

static bool is_depthwise(const hp_graph *g, int layer) {
    const hp_layer *l = &g->layer[layer];
    return l->op == HP_CONV && l->groups > 1 && l->groups == g->tensor[l->in[0]].c;
}

/* --- one pair --- */

static double largest_weight(const hp_filter *f, const hp_weight_walk *walk, int64_t run) {
    double most = 0;
    for (int64_t e = run * walk->length; e < (run + 1) * walk->length; e++)
        most = fmax(most, fabs((double)f->weight[e]));
    return most;
}

/* For each channel: how close the weights that read it come to those that determine their row's scale. */
static hp_status measure_columns(equalising *e, const pair *p, hp_error *err) {
    hp_filter f;
    const int64_t outs = e->g->tensor[e->g->layer[p->second].out].c;
    const hp_weight_walk walk = hp_weight_walk_of(e->g, p->second);
    HP_TRY(hp_constants_filter(e->c, p->second, 0, outs, false, &f, err));
    memset(e->row, 0, sizeof *e->row * (size_t)outs);
    memset(e->column, 0, sizeof *e->column * (size_t)p->channels);
    for (int64_t run = 0; run < walk.runs; run++) {
        double *row = &e->row[hp_weight_ends_of(&walk, run).out];
        *row = fmax(*row, largest_weight(&f, &walk, run));
    }
    for (int64_t run = 0; run < walk.runs; run++) {
        const hp_weight_ends at = hp_weight_ends_of(&walk, run);
        if (e->row[at.out] > 0)
            e->column[at.in] = fmax(e->column[at.in], largest_weight(&f, &walk, run) / e->row[at.out]);
    }
    return HP_OK;
}

/* May the channel be scaled: observed, read, and far enough from the bound? */
static bool is_free(const equalising *e, const pair *p, const double *most, int i) {
    return most[i] > 0 && e->column[i] > 0 && most[i] < headroom * p->bound;
}

/* Finds factors up to a constant, which is chosen to keep the tensor's range, within the
 * bound if there is one. */
static void find_factors(equalising *e, const pair *p, const double *most) {
    const double limit = 64; /* limits the factors of channels that are almost never active */
    const bool alone = is_depthwise(e->g, p->second);
    double range = 0, scaled = 0;
    for (int i = 0; i < p->channels; i++) {
        e->factor[i] = is_free(e, p, most, i) ? alone ? 1 / most[i] : sqrt(e->column[i] / most[i]) : 0;
        range = fmax(range, most[i]);
        scaled = fmax(scaled, most[i] * e->factor[i]);
    }
    for (int i = 0; i < p->channels; i++) {
        const double wanted = scaled > 0 ? fmin(e->factor[i] * range / scaled, limit) : 0;
        const double allowed = is_free(e, p, most, i) ? headroom * p->bound / most[i] : 1;
        e->factor[i] = e->factor[i] > 0 ? fmax(fmin(wanted, allowed), 1 / limit) : 1;
    }
}

static float *new_factors(hp_arena *a, float **of, int n) {
    *of = HP_NEW(a, float, n);
    for (int i = 0; i < n; i++) (*of)[i] = 1;
    return *of;
}

static hp_status equalise_pair(equalising *e, hp_arena *a, const pair *p, const double *most, hp_factors *f,
                               hp_error *err) {
    HP_TRY(measure_columns(e, p, err));
    find_factors(e, p, most);
    float *out = new_factors(a, &f->out[p->first], p->channels);
    float *in = new_factors(a, &f->in[p->second], p->channels);
    for (int i = 0; i < p->channels; i++) {
        out[i] = (float)e->factor[i];
        in[i] = 1 / out[i];
    }
    return HP_OK;
}

/* --- the network --- */

static int most_channels(const hp_graph *g) {
    int most = 1;
    for (int t = 0; t < g->n_tensor; t++) most = g->tensor[t].c > most ? g->tensor[t].c : most;
    return most;
}

static void set_factors(hp_constants *c, const hp_factors *f) {
    for (int l = 0; l < f->n_layer; l++)
        if (hp_layer_is_matrix(&hp_constants_graph(c)->layer[l]))
            hp_constants_set_factors(c, l, f->in[l], f->out[l]);
}

/* Pairs share no layer. Columns are measured relative to their rows' largest weights, which row factors leave
 * unchanged, and ranges are those of the network without factors. */
hp_status hp_equalise(hp_arena *a, hp_constants *c, const double *const *most, hp_factors *f, hp_error *err) {
    const hp_graph *g = hp_constants_graph(c);
    const int n = most_channels(g);
    *f = (hp_factors){g->n_layer, HP_NEW(a, float *, g->n_layer), HP_NEW(a, float *, g->n_layer)};
    equalising e = {c, g, HP_NEW(a, double, n), HP_NEW(a, double, n), HP_NEW(a, double, n)};
    set_factors(c, f);
    for (int l = 0; l < g->n_layer; l++) {
        pair p;
        if (!find_pair(g, l, &p) || !most[g->layer[l].out]) continue;
        HP_TRY(equalise_pair(&e, a, &p, most[g->layer[l].out], f, err));
    }
    set_factors(c, f);
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
