/* quantised_write.c - the list of a quantised file's tensors, and writing them layer by layer; see
 * quantised.h. */
#include "exec/data/weights/quantised.h"
#include "networks/deploy/deploy.h"

#include <inttypes.h>
#include <string.h>

/* What a tensor of the file contains. */
typedef enum written_kind {
    WEIGHT,
    WEIGHT_SCALE,
    BIAS,
    OUTPUT_SCALE,
    OUTPUT_ZERO,
    KINDS,
    PARAM
} written_kind;
static const char *const suffixes[KINDS] = {"weight", "weight_scale", "bias", "output_scale", "output_zero"};

typedef struct listing {
    hp_arena *arena;
    const hp_graph *g;
    int n, room, at_room;
    hp_st_expected *want;
    struct written {
        written_kind kind;
        int of; /* layer; PARAM: parameter */
    } * at;
} listing;

static void add_named(listing *s, const char *name, struct written at, int dtype, int n_dim,
                      const int32_t *dim) {
    HP_ROOM(s->arena, s->want, s->n, s->room);
    HP_ROOM(s->arena, s->at, s->n, s->at_room);
    hp_st_expected *e = &s->want[s->n];
    *e = (hp_st_expected){.name = name, .dtype = dtype, .n_dim = n_dim};
    memcpy(e->dim, dim, (size_t)n_dim * sizeof *dim);
    s->at[s->n++] = at;
}

static void add_tensor(listing *s, int layer, written_kind kind, int dtype, int n_dim, const int32_t *dim) {
    const char *name = hp_arena_printf(s->arena, "%s.%s", s->g->layer[layer].name, suffixes[kind]);
    add_named(s, name, (struct written){kind, layer}, dtype, n_dim, dim);
}

static bool has_bias(const hp_layer *l) {
    return l->op == HP_BN || l->deployed.n_norm > 0 || l->n_param > 1;
}

static void add_floats(listing *s, int layer) {
    const hp_layer *l = &s->g->layer[layer];
    const hp_param *w = &s->g->param[l->param[0]];
    const int32_t channels = s->g->tensor[l->out].c;
    const bool eight = hp_layer_weights8(s->g, layer);
    if (eight)
        add_tensor(s, layer, WEIGHT_SCALE, HP_ST_F32, 1, &channels);
    else
        add_tensor(s, layer, WEIGHT, HP_ST_F32, w->n_dim, w->dim);
    if (eight || has_bias(l)) add_tensor(s, layer, BIAS, HP_ST_F32, 1, &channels);
}

/* Does a layer that runs as trained read the parameter? */
static bool is_read_whole(const hp_graph *g, int param) {
    for (int l = 0; l < g->n_layer; l++)
        for (int i = 0; i < g->layer[l].n_param && hp_layer_as_trained(&g->layer[l]); i++)
            if (g->layer[l].param[i] == param) return true;
    return false;
}

/* Bytes come last, so that all floats are aligned. */
static listing list_tensors(hp_arena *arena, const hp_graph *g) {
    static const int32_t one = 1;
    listing s = {.arena = arena, .g = g};
    for (int l = 0; l < g->n_layer; l++) {
        if (g->layer[l].n_param > 0 && !hp_layer_as_trained(&g->layer[l])) add_floats(&s, l);
        if (!hp_tensor_wants_qparam(g, g->layer[l].out)) continue;
        add_tensor(&s, l, OUTPUT_SCALE, HP_ST_F32, 1, &one);
        add_tensor(&s, l, OUTPUT_ZERO, HP_ST_I32, 1, &one);
    }
    for (int i = 0; i < g->n_param; i++) {
        const hp_param *p = &g->param[i];
        if (is_read_whole(g, i))
            add_named(&s, p->name, (struct written){PARAM, i}, HP_ST_F32, p->n_dim, p->dim);
    }
    for (int l = 0; l < g->n_layer; l++) {
        if (g->layer[l].n_param == 0 || !hp_layer_weights8(g, l)) continue;
        const hp_param *w = &g->param[g->layer[l].param[0]];
        add_tensor(&s, l, WEIGHT, HP_ST_I8, w->n_dim, w->dim);
    }
    return s;
}

int hp_quantised_expected(hp_arena *arena, const hp_graph *g, hp_st_expected **want) {
    const listing s = list_tensors(arena, g);
    *want = s.want;
    return s.n;
}

/* --- writing --- */

typedef struct quantised_writer {
    const listing *list;
    hp_constants *c;
    int layer; /* layer of the filter, -1: none yet */
    hp_filter filter;
    hp_qparam q;
    float *zeros; /* bias of a layer without one */
    float *param; /* a parameter that is written whole */
} quantised_writer;

static const void *bytes_of(const quantised_writer *w, written_kind kind) {
    const hp_filter *f = &w->filter;
    const void *const of[KINDS] = {[WEIGHT] = f->weight8 ? (const void *)f->weight8 : f->weight,
                                   [WEIGHT_SCALE] = f->weight_scale,
                                   [BIAS] = f->bias ? f->bias : w->zeros,
                                   [OUTPUT_SCALE] = &w->q.scale,
                                   [OUTPUT_ZERO] = &w->q.zero};
    return of[kind];
}

/* A layer's filter stays valid until another one is read. */
static const void *data_of(void *self, int i, hp_error *err) {
    quantised_writer *w = self;
    const struct written *at = &w->list->at[i];
    if (at->kind == PARAM)
        return hp_constants_param(w->c, at->of, HP_F32, w->param, err) == HP_OK ? w->param : NULL;
    const hp_layer *l = &w->list->g->layer[at->of];
    if (at->kind == OUTPUT_SCALE) w->q = hp_constants_qparam(w->c, l->out);
    if (at->kind < OUTPUT_SCALE && at->of != w->layer) {
        w->layer = -1;
        if (hp_constants_filter(w->c, at->of, 0, w->list->g->tensor[l->out].c,
                                hp_layer_weights8(w->list->g, at->of), &w->filter, err) != HP_OK)
            return NULL;
        w->layer = at->of;
    }
    return bytes_of(w, at->kind);
}

static const char *numbers(hp_arena *a, const double *value, int n) {
    const char *text = "";
    for (int i = 0; i < n; i++) text = hp_arena_printf(a, "%s%s%.17g", text, i ? "," : "", value[i]);
    return text;
}

hp_status hp_quantised_write(const char *path, hp_constants *c, const hp_quantised_info *info,
                             hp_error *err) {
    HP_ASSERT(hp_constants_calibrated(c) && info->n_mean >= 1 && info->n_mean <= 4);
    hp_arena *a = hp_arena_new();
    const hp_graph *g = hp_constants_graph(c);
    const listing l = list_tensors(a, g);
    int widest = 1;
    int64_t most = 1;
    for (int t = 0; t < g->n_tensor; t++) widest = g->tensor[t].c > widest ? g->tensor[t].c : widest;
    for (int i = 0; i < g->n_param; i++)
        if (is_read_whole(g, i) && g->param[i].count > most) most = g->param[i].count;
    quantised_writer w = {
        .list = &l, .c = c, .layer = -1, .zeros = HP_NEW(a, float, widest), .param = HP_NEW(a, float, most)};
    const hp_st_note note[] = {{"format", "hplan-quantised 1"},
                               {"net", info->net},
                               {"observer", info->observer},
                               {"images", hp_arena_printf(a, "%" PRId64, info->images)},
                               {"mean", numbers(a, info->mean, info->n_mean)},
                               {"std", numbers(a, info->std, info->n_mean)},
                               {"float_layers", info->float_layers},
                               {"source", info->source}};
    hp_st_tensor *tensor = HP_NEW(a, hp_st_tensor, l.n + 1);
    for (int i = 0; i < l.n; i++) {
        const hp_st_expected *e = &l.want[i];
        tensor[i] = (hp_st_tensor){.name = e->name, .dtype = e->dtype, .n_dim = e->n_dim};
        for (int k = 0; k < e->n_dim; k++) tensor[i].dim[k] = e->dim[k];
    }
    const hp_st_source source = {.data = data_of, .self = &w};
    const hp_status s =
        hp_safetensors_write_noted(path, note, (int)(sizeof note / sizeof *note), tensor, l.n, &source, err);
    hp_arena_free(a);
    return s;
}
