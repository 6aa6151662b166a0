/* eager_store.c - types by autocast's lists, and the maps written by out-of-place softmax. */
#include "sim/memory/eager_store.h"

#include "networks/graph/layer.h"
#include "networks/graph/precision.h"
#include "plan/program/work.h"

#include <math.h>

enum { FLOAT32 = 4, MASK = 1 };

/* Autocast's lists: 16 bits, float32, or the widest input. */
typedef enum cast_to { WIDEST, LOW, HIGH } cast_to;
static const uint8_t casts_to[HP_LAYER_OPS] = {
    [HP_CONV] = LOW,       [HP_CONVT] = LOW,    [HP_LINEAR] = LOW,     [HP_ATTENTION] = LOW,
    [HP_LAYERNORM] = HIGH, [HP_RMSNORM] = HIGH, [HP_GROUPNORM] = HIGH, [HP_SOFTMAX] = HIGH};
/* Does it add float32 parameters to a map, or read them from a table? */
static bool joins_parameters(const hp_layer *l) {
    return l->op == HP_POSITION || l->op == HP_CLASSTOKEN || l->op == HP_EMBEDDING;
}

static int bytes_of(const hp_graph *g, int tensor, hp_dtype real) {
    return hp_dtype_bytes(hp_tensor_dtype(&g->tensor[tensor], real));
}

static int widest_input(const hp_layer *l, const int8_t *width) {
    int most = 0;
    for (int k = 0; k < l->n_in; k++)
        if (width[l->in[k]] > most) most = width[l->in[k]];
    return most;
}

static int width_of(const hp_eager_store *s, const hp_layer *l, const int8_t *width, hp_dtype real) {
    if (!s->autocast) return bytes_of(s->g, l->out, real);
    if (casts_to[l->op] == LOW) return bytes_of(s->g, l->out, real);
    const bool high = casts_to[l->op] == HIGH || joins_parameters(l) || l->op == HP_INPUT;
    return high ? FLOAT32 : widest_input(l, width);
}

hp_eager_store hp_eager_store_of(hp_arena *arena, const hp_graph *g, const hp_framework *f, hp_dtype real) {
    const hp_store store = hp_prec_store(g->prec);
    hp_eager_store s = {.g = g, .f = f ? f : &hp_frameworks[0]};
    s.casts = store == HP_STORE_F16 || store == HP_STORE_BF16;
    s.autocast =
        s.casts && s.f->kernels.autocast && !g->deployed; /* a deployed graph has such casts itself */
    int8_t *width = HP_NEW(arena, int8_t, g->n_tensor);
    for (int l = 0; l < g->n_layer; l++)
        width[g->layer[l].out] = (int8_t)width_of(&s, &g->layer[l], width, real);
    s.width = width;
    return s;
}

int hp_eager_width(const hp_eager_store *s, int layer, int k) {
    const hp_layer *l = &s->g->layer[layer];
    const int own = s->width[l->in[k]];
    if (!s->autocast || casts_to[l->op] == WIDEST) return own;
    return casts_to[l->op] == HIGH ? FLOAT32 : hp_dtype_bytes(HP_F16);
}

/* --- attention --- */

/* S is a score, P its probability, in bytes. Softmax keeps P. The product with the values keeps its input if
 * that is a separate tensor: a cast, or dropout's output with its mask. Forward, scaled scores and a cast of
 * them coexist with P. Backward, the gradients of P and S coexist with P, after the product's input is
 * freed. */
hp_eager_scores hp_eager_scores_of(const hp_eager_store *s, int layer, const hp_box *out) {
    const hp_layer *l = &s->g->layer[layer];
    const hp_framework *f = s->f;
    if (l->op != HP_ATTENTION || !f->attention.stores_scores || hp_box_empty(out))
        return (hp_eager_scores){0};
    const hp_work_case c = hp_work_case_at(s->g, layer, HP_TASK_FWD, out);
    const double n = hp_framework_scores(s->g, &c), score = hp_eager_width(s, layer, 0),
                 p = f->kernels.autocast ? fmax(score, FLOAT32) : score, mask = f->attention.drops ? MASK : 0;
    const bool another = f->attention.drops || p != score;
    const double all = p + mask + (another ? score : 0), cast = p != score ? p : 0;
    const double forward = fmax(all, score + cast + p), backward = fmax(all + score, 3 * p + mask),
                 kept = f->attention.again ? 0 : all;
    return (hp_eager_scores){n * kept, n * (forward - kept), n * (backward - kept)};
}

double hp_eager_mask(const hp_eager_store *s, int layer, const hp_box *out) {
    const bool drops = s->f->attention.drops && s->g->layer[layer].op == HP_ADD;
    return drops ? (double)hp_box_elems(out) * MASK : 0;
}

double hp_eager_workspace(const hp_eager_store *s, int layer, const hp_box *in, const hp_box *out) {
    const hp_layer *l = &s->g->layer[layer];
    const bool map = (l->op == HP_CONV || l->op == HP_CONVT) && !hp_layer_is_dense(s->g, l);
    if (!map || !s->casts || !s->f->kernels.channels_first) return 0;
    return (double)(hp_box_elems(in) + (out ? hp_box_elems(out) : 0)) * hp_dtype_bytes(HP_F16);
}

/* --- parameters --- */

double hp_eager_casts(const hp_eager_store *s, const hp_param_place *place) {
    double elems = 0;
    int last = -1; /* a tied parameter belongs to its first layer, and is cast once */
    for (int i = 0; s->casts && s->f->memory.half_model && i < s->g->n_param; i++)
        if (place[i].here) elems += (double)place[i].count;
    if (elems > 0) return elems * hp_dtype_bytes(HP_F16);
    for (int l = 0; s->casts && l < s->g->n_layer; l++) {
        const hp_layer *layer = &s->g->layer[l];
        if (!hp_layer_is_matrix(layer) || layer->n_param < 1 || layer->param[0] == last) continue;
        last = layer->param[0];
        if (place[last].here) elems += (double)place[last].count;
    }
    return elems * hp_dtype_bytes(HP_F16);
}
