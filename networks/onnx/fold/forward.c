/* forward.c - folds a scale whose readers are all convolutions or linear layers into their weights: w' = w f,
 * b' = b + sum of w times the scale's bias. A bias can be folded only if no window reaches into the
 * padding. */
#include "networks/onnx/fold/simplify.h"

#include <string.h>

/* For each tensor, the layers that read it, among those that the output needs. */
typedef struct readers {
    int32_t *first, *layer; /* readers of tensor t: layer[first[t]] .. layer[first[t + 1] - 1] */
} readers;

static readers list_readers(const onnx_passes *p, const bool *live) {
    const hp_graph *g = p->r->graph;
    readers s = {HP_NEW(p->r->scratch, int32_t, g->n_tensor + 2), NULL};
    int32_t n = 0;
    for (int l = 0; l < g->n_layer; l++)
        for (int k = 0; live[l] && k < g->layer[l].n_in; k++) {
            s.first[g->layer[l].in[k] + 2]++;
            n++;
        }
    for (int t = 2; t < g->n_tensor + 2; t++) s.first[t] += s.first[t - 1];
    s.layer = HP_NEW(p->r->scratch, int32_t, n + 1);
    for (int l = 0; l < g->n_layer; l++)
        for (int k = 0; live[l] && k < g->layer[l].n_in; k++) s.layer[s.first[g->layer[l].in[k] + 1]++] = l;
    return s;
}

static bool stays_inside(int out, int in, int k, int stride, int pad, int dil) {
    return pad == 0 && (int64_t)(out - 1) * stride + (int64_t)(k - 1) * dil < in;
}

static bool can_absorb_scale(const onnx_passes *p, const hp_layer *l, bool bias) {
    const hp_graph *g = p->r->graph;
    const hp_tensor *x = &g->tensor[l->in[0]], *y = &g->tensor[l->out];
    if ((l->op != HP_CONV && l->op != HP_LINEAR) || onnx_is_tied(p, l)) return false;
    if (p->r->data[l->param[0]].data8) return false; /* their weight scale is per output channel */
    return l->op == HP_LINEAR || !bias ||
           (stays_inside(y->h, x->h, l->window.kh, l->window.stride_h, l->window.pad_h, l->window.dil_h) &&
            stays_inside(y->w, x->w, l->window.kw, l->window.stride_w, l->window.pad_w, l->window.dil_w));
}

/* Weights as (outs, ins, per): input channel i within the group of output o. */
typedef struct matrix {
    int64_t outs, ins, per, groups;
} matrix;

static matrix matrix_of(const onnx_passes *p, const hp_layer *l) {
    const hp_param *w = &p->r->graph->param[l->param[0]];
    const int64_t channels = p->r->graph->tensor[l->in[0]].c, groups = l->op == HP_CONV ? l->groups : 1;
    const int64_t ins = channels / groups;
    return (matrix){w->dim[0], ins, w->count / w->dim[0] / ins, groups};
}

static void fold_bias(onnx_passes *p, hp_layer *l, const matrix *m, const float *weight, const float *shift) {
    onnx_reader *r = p->r;
    if (l->n_param < 2) onnx_add_bias(p, l, weight && shift, m->outs);
    float *bias = onnx_own(p, l->param[1]);
    if (!weight || !shift) r->data[l->param[1]] = (hp_onnx_param){0};
    for (int64_t o = 0; bias && weight && shift && o < m->outs; o++) {
        const int64_t first = o / (m->outs / m->groups) * m->ins;
        double sum = (double)bias[o];
        for (int64_t e = 0; e < m->ins * m->per; e++)
            sum += (double)weight[o * m->ins * m->per + e] * (double)shift[first + e / m->per];
        bias[o] = (float)sum;
    }
}

static void fold_into(onnx_passes *p, hp_layer *l, const hp_layer *scale) {
    onnx_reader *r = p->r;
    const matrix m = matrix_of(p, l);
    const float *factor = r->data[scale->param[0]].data;
    float *weight = onnx_own(p, l->param[0]);
    if (scale->n_param > 1) fold_bias(p, l, &m, weight, r->data[scale->param[1]].data);
    if (!factor) r->data[l->param[0]] = (hp_onnx_param){0};
    for (int64_t o = 0; weight && factor && o < m.outs; o++) {
        const int64_t first = o / (m.outs / m.groups) * m.ins;
        for (int64_t e = 0; e < m.ins * m.per; e++)
            weight[o * m.ins * m.per + e] *= factor[first + e / m.per];
    }
    l->in[0] = scale->in[0];
}

void onnx_scales_forward(onnx_passes *p, int32_t output) {
    hp_graph *g = p->r->graph;
    const bool *live = onnx_live(p->r, output);
    const readers s = list_readers(p, live);
    for (int l = 0; l < g->n_layer; l++) {
        const hp_layer *scale = &g->layer[l];
        const int32_t y = scale->out;
        bool all = live[l] && scale->op == HP_SCALE && !hp_layer_has_act(scale) && y != output;
        all = all && !p->r->note[y].has_qparam && !p->r->note[scale->in[0]].has_qparam;
        for (int32_t i = s.first[y]; all && i < s.first[y + 1]; i++)
            all = can_absorb_scale(p, &g->layer[s.layer[i]], scale->n_param > 1);
        for (int32_t i = s.first[y]; all && i < s.first[y + 1]; i++)
            fold_into(p, &g->layer[s.layer[i]], scale);
    }
}
