/* constants_fold.c - folds batch norms into the weights of a network's own parameters, in float64, and
 * derives 8-bit weights; see constants.h. Handles one output channel at a time, so little memory is needed
 * beyond the result. */
#include "exec/data/weights/constants_state.h"

#include "exec/data/weights/weights_stored.h"
#include "exec/data/weights/weight_walk.h"

#include <math.h>
#include <string.h>

/* Smaller weights become 0 in 8 bits: biases are divided by the scales, and must stay
 * representable as floats. */
static const float tiny_weight = 0x1p-64f;

typedef struct folding {
    const hp_constants *c;
    const hp_layer *l;
    const constants_change *change;
    int64_t first;               /* channel */
    constants_shape whole, part; /* shape of all weights; of those in this range of channels */
    hp_weight_walk walk;         /* set if inputs have factors */
    const double *pixel_scale;   /* for 8-bit weights that read the image, else NULL */
    double *factor, *shift;      /* per channel of the range: factor of the weights; bias */
    double *value;               /* weights of one channel, (rows, per) */
    float *row;                  /* the same, folded */
    bool finite;
} folding;

/* --- parameters of the source --- */

static void draw_param(const hp_constants *c, int param, int64_t first, int64_t count, double *out) {
    enum { CHUNK = 1024 };
    float drawn[CHUNK];
    for (int64_t e = 0, n; e < count; e += n) {
        n = count - e < CHUNK ? count - e : CHUNK;
        hp_param_draw(c->graph, param, c->o.seed, first + e, n, drawn);
        for (int64_t k = 0; k < n; k++) out[e + k] = (double)drawn[k];
    }
}

static bool is_drawn(const hp_constants *c, int param) {
    return !c->st || c->foreign[param];
}

void constants_read_param(const hp_constants *c, int param, int64_t first, int64_t count, double *out) {
    if (is_drawn(c, param))
        draw_param(c, param, first, count, out);
    else
        hp_stored_read(c->st, c->graph, param, first, count, HP_F64, out);
}

/* Reads `count` elements that are `step` apart. */
static void read_apart(const hp_constants *c, int param, int64_t first, int64_t count, int64_t step,
                       double *out) {
    if (!is_drawn(c, param)) {
        hp_stored_read_apart(c->st, c->graph, param, first, count, step, out);
        return;
    }
    for (int64_t i = 0; i < count; i++) draw_param(c, param, first + i * step, 1, &out[i]);
}

static double read_one(const folding *d, int param, int64_t channel) {
    double v;
    constants_read_param(d->c, param, channel, 1, &v);
    return v;
}

/* --- factor and bias per output channel --- */

static void fold_norm(const folding *d, const int32_t *norm, int64_t o) {
    const int64_t at = d->first + o;
    d->factor[o] = read_one(d, norm[0], at) / sqrt(read_one(d, norm[3], at) + d->l->eps);
    d->shift[o] = read_one(d, norm[1], at) + (d->shift[o] - read_one(d, norm[2], at)) * d->factor[o];
}

static void apply_change(const folding *d, int64_t o) {
    if (d->change->out) {
        d->factor[o] *= (double)d->change->out[d->first + o];
        d->shift[o] *= (double)d->change->out[d->first + o];
    }
    if (d->change->delta) d->shift[o] += (double)d->change->delta[d->first + o];
}

/* Sets factor and shift of `outs` channels; returns whether there is a bias. */
static bool set_terms(const folding *d, int64_t outs) {
    const int32_t *norm = hp_layer_is_norm(d->l)  ? d->l->param
                          : d->l->deployed.n_norm ? d->l->deployed.norm
                                                  : NULL;
    const bool own = !hp_layer_is_norm(d->l) && d->l->n_param > 1;
    for (int64_t o = 0; o < outs; o++) {
        d->factor[o] = 1.0;
        d->shift[o] = own ? read_one(d, d->l->param[1], d->first + o) : 0.0;
        if (norm) fold_norm(d, norm, o);
        apply_change(d, o);
    }
    return own || norm || d->change->delta;
}

/* --- weights of one output channel --- */

/* Applies the factors of input channels to weights [first, first + per) of the layer. */
static void scale_inputs(const folding *d, int64_t first, double *w) {
    for (int64_t e = 0; e < d->whole.per; e++) {
        const int64_t in = hp_weight_ends_of(&d->walk, (first + e) / d->walk.length).in;
        if (d->change->in) w[e] *= (double)d->change->in[in];
        if (d->pixel_scale) w[e] *= d->pixel_scale[in];
    }
}

/* First weight of row `i` of the leading axis of an output channel. */
static int64_t first_of(const folding *d, const constants_channel *at, int64_t i) {
    return (i * d->whole.outs + at->out) * d->whole.per;
}

/* All rows of an output channel. */
static void read_channel(const folding *d, const constants_channel *at) {
    const int64_t rows = at->end - at->first, per = d->whole.per, first = first_of(d, at, at->first);
    const int32_t param = d->l->param[0];
    if (hp_layer_is_norm(d->l))
        d->value[0] = 1.0;
    else if (per == 1)
        read_apart(d->c, param, first, rows, d->whole.outs, d->value);
    else
        for (int64_t i = 0; i < rows; i++)
            constants_read_param(d->c, param, first_of(d, at, at->first + i), per, d->value + i * per);
    for (int64_t i = 0; i < rows && (d->change->in || d->pixel_scale); i++)
        scale_inputs(d, first_of(d, at, at->first + i), d->value + i * per);
}

/* Folds the weights of channel `o` of the range into d->row; returns how many. */
static int64_t fold_channel(folding *d, const constants_channel *at, int64_t o) {
    const int64_t n = (at->end - at->first) * d->whole.per;
    read_channel(d, at);
    for (int64_t e = 0; e < n; e++) {
        d->row[e] = (float)(d->value[e] * d->factor[o]);
        d->finite = d->finite && isfinite(d->row[e]);
    }
    return n;
}

static void store(const folding *d, const constants_channel *at, float *out) {
    const int64_t per = d->part.per;
    for (int64_t i = at->first; i < at->end; i++)
        memcpy(out + constants_place(&d->part, at, i, d->first), d->row + (i - at->first) * per,
               (size_t)per * sizeof *out);
}

/* Symmetric: max|w| maps to 127. */
static float scale_of(const float *w, int64_t n) {
    float most = 0.0f;
    for (int64_t e = 0; e < n; e++) most = fabsf(w[e]) > most ? fabsf(w[e]) : most;
    return most >= tiny_weight ? most / 127.0f : 1.0f;
}

/* Nearest integer, ties to even, like rintf, which is a function call on old processors. */
static int8_t level(float v) {
    static const float shift = 0x1.8p23f; /* floats from here on are integers */
    const float whole = (v + shift) - shift;
    return (int8_t)(whole > -127.0f ? whole < 127.0f ? whole : 127.0f : -127.0f);
}

static void store8(const folding *d, const constants_channel *at, float scale, int8_t *out) {
    const int64_t per = d->part.per;
    for (int64_t i = at->first; i < at->end; i++) {
        const float *w = d->row + (i - at->first) * per;
        int8_t *to = out + constants_place(&d->part, at, i, d->first);
        for (int64_t e = 0; e < per; e++) to[e] = level(w[e] / scale);
    }
}

/* --- a range of channels --- */

static folding start(hp_constants *c, int layer, int64_t first, int64_t outs, bool quantised) {
    const hp_graph *g = c->graph;
    folding d = {.c = c,
                 .l = &g->layer[layer],
                 .change = &c->change[layer],
                 .first = first,
                 .whole = constants_shape_of(g, layer),
                 .finite = true};
    d.part = constants_slice_shape(&d.whole, first, outs);
    const hp_tensor *x = &g->tensor[d.l->in[0]];
    if (quantised && g->layer[x->producer].op == HP_INPUT && x->store == HP_STORE_U8)
        d.pixel_scale = c->pixel_scale;
    if (d.change->in || d.pixel_scale) d.walk = hp_weight_walk_of(g, layer);
    const int64_t row = d.whole.lead / d.whole.groups * d.whole.per;
    d.factor = constants_reserve(&c->row, (size_t)(2 * outs + 2 * row) * sizeof(double));
    d.shift = d.factor + outs;
    d.value = d.shift + outs;
    d.row = (float *)(d.value + row);
    return d;
}

static bool narrow(const double *from, int64_t n, float *to) {
    bool finite = true;
    for (int64_t i = 0; i < n; i++) {
        to[i] = (float)from[i];
        finite = finite && isfinite(to[i]);
    }
    return finite;
}

static void fold_weights(hp_constants *c, folding *d, int64_t outs, hp_filter *f) {
    const size_t n = (size_t)(d->part.lead * d->part.outs * d->part.per);
    float *weight = constants_reserve(&c->weight, n * sizeof *weight);
    for (int64_t o = 0; o < outs; o++) {
        const constants_channel at = constants_channel_at(&d->whole, d->first + o);
        fold_channel(d, &at, o);
        store(d, &at, weight);
    }
    f->weight = weight;
}

static void fold_weights8(hp_constants *c, folding *d, int64_t outs, hp_filter *f) {
    int8_t *weight = constants_reserve(&c->weight8, (size_t)(d->part.lead * d->part.outs * d->part.per));
    float *scale = constants_reserve(&c->scale, (size_t)outs * sizeof *scale);
    for (int64_t o = 0; o < outs; o++) {
        const constants_channel at = constants_channel_at(&d->whole, d->first + o);
        scale[o] = scale_of(d->row, fold_channel(d, &at, o));
        store8(d, &at, scale[o], weight);
    }
    f->weight8 = weight;
    f->weight_scale = scale;
}

hp_status constants_fold(hp_constants *c, int layer, int64_t first, int64_t outs, bool quantised,
                         hp_filter *f, hp_error *err) {
    folding d = start(c, layer, first, outs, quantised);
    *f = (hp_filter){0};
    float *bias = constants_reserve(&c->bias, (size_t)outs * sizeof *bias);
    if (set_terms(&d, outs)) f->bias = bias;
    d.finite = narrow(d.shift, outs, bias);
    (quantised ? fold_weights8 : fold_weights)(c, &d, outs, f);
    if (d.finite) return HP_OK;
    return hp_fail(err, HP_EDATA,
                   "%s: the weights of layer %s with its batch norm are not all finite numbers; give weights "
                   "of a run that did not diverge",
                   c->o.path ? c->o.path : "drawn weights", d.l->name);
}
