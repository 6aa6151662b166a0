/* int8.c - which layers of a quantised model stay real in an int8 program; see int8/int8.h. Deploys
 * repeatedly, because keeping one layer real can change its readers' input. */
#include "networks/onnx/int8/int8.h"

#include "networks/deploy/deploy.h"
#include "networks/graph/fuse.h"
#include "networks/onnx/onnx_names.h"

#include <math.h>
#include <string.h>

bool hp_onnx_weights8(const hp_graph *g, int layer) {
    const hp_layer *l = &g->layer[layer];
    return (l->op == HP_CONV || l->op == HP_CONVT || l->op == HP_LINEAR) &&
           g->tensor[l->in[0]].store == HP_STORE_U8;
}

/* Symmetric 8-bit weights with a scale per output channel? */
static bool has_weights8(const hp_onnx_model *m, const hp_graph *g, const hp_layer *l) {
    const hp_onnx_param *p = &m->param[l->param[0]];
    const hp_param *w = &g->param[l->param[0]];
    if (l->op == HP_CONVT || !p->data8) return false;
    for (int64_t e = 0; e < w->count; e++)
        if (p->data8[e] == INT8_MIN) return false;
    for (int32_t o = 0; o < w->dim[0]; o++)
        if (!isfinite(p->data8_scale[o])) return false;
    return true;
}

/* --- the list --- */

typedef struct float_list {
    hp_arena *arena;
    const hp_onnx_model *m;
    const hp_graph *g; /* deployed with the current list */
    const hp_onnx_qparam **q;
    onnx_names real;
    bool grew;
} float_list;

static void keep_real(float_list *s, const hp_layer *l) {
    bool added;
    onnx_names_add(&s->real, hp_arena_strdup(s->arena, l->name), &added);
    s->grew |= added;
}

static bool is_kept(const float_list *s, const hp_layer *l) {
    return onnx_names_find(&s->real, l->name) >= 0;
}

/* A conversion's output has no scale: the layers that read it stay real. */
static void keep_readers(float_list *s, int32_t tensor) {
    for (int l = 0; l < s->g->n_layer; l++)
        for (int k = 0; k < s->g->layer[l].n_in; k++)
            if (s->g->layer[l].in[k] == tensor) keep_real(s, &s->g->layer[l]);
}

/* The model has no integers for raw pixels: keeps the image real, or otherwise the layer that reads it. */
static void keep_image(float_list *s, const hp_layer *reader) {
    const hp_layer *image = &s->g->layer[0];
    keep_real(s, is_kept(s, image) ? reader : image);
}

static void check_layer(float_list *s, int layer) {
    const hp_graph *g = s->g;
    const hp_layer *l = &g->layer[layer];
    if (layer > 0 && g->tensor[l->out].store == HP_STORE_U8 && !s->q[layer]) {
        if (l->op == HP_QUANT)
            keep_readers(s, l->out);
        else
            keep_real(s, l);
    }
    if (!hp_onnx_weights8(g, layer)) return;
    if (g->tensor[l->in[0]].producer == 0)
        keep_image(s, l);
    else if (!has_weights8(s->m, g, l))
        keep_real(s, l);
}

static const char *join_names(hp_arena *arena, const onnx_names *names) {
    size_t bytes = 1;
    for (int i = 0; i < names->n; i++) bytes += strlen(names->name[i]) + 1;
    char *list = hp_arena_alloc(arena, bytes), *to = list;
    for (int i = 0; i < names->n; i++) {
        if (i) *to++ = ',';
        to = stpcpy(to, names->name[i]);
    }
    return list;
}

static hp_status fail_not_quantised(const hp_onnx_model *m, hp_error *err) {
    return hp_fail(
        err, HP_EDATA,
        "%s is not a quantised model: none of its layers has 8-bit weights and scales of input and "
        "output; hplan quantize --onnx computes them from images",
        m->graph->net);
}

static void count_layers(const float_list *s, hp_onnx_int8 *out) {
    for (int l = 0; l < s->g->n_layer; l++) out->n_weights8 += hp_onnx_weights8(s->g, l);
    out->n_float = s->real.n;
}

hp_status hp_onnx_deploy_int8(hp_arena *arena, const hp_onnx_model *m, hp_onnx_int8 *out, hp_error *err) {
    const hp_graph *network = hp_graph_fuse(arena, m->graph);
    float_list s = {.arena = arena, .m = m, .real = {.arena = arena}, .grew = true};
    HP_ASSERT(m->param);
    *out = (hp_onnx_int8){.float_layers = ""};
    while (s.grew) { /* at most once per layer */
        hp_graph *g;
        const hp_deploy_options o = {.prec = HP_PREC_INT8, .float_layers = out->float_layers};
        HP_TRY(hp_graph_deploy(arena, network, &o, &g, err));
        s.g = g;
        s.q = hp_onnx_deployed_qparams(arena, m, g);
        s.grew = false;
        for (int l = 0; l < g->n_layer; l++) check_layer(&s, l);
        out->float_layers = join_names(arena, &s.real);
    }
    out->graph = s.g;
    count_layers(&s, out);
    return out->n_weights8 ? HP_OK : fail_not_quantised(m, err);
}
