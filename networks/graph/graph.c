/* graph.c - properties of a network graph: sizes, multiply-adds, lifetimes, and its text. */
#include "networks/graph/graph.h"

#include "networks/graph/acts.h"
#include "networks/graph/attention.h"
#include "networks/graph/optimizer.h"
#include "networks/graph/summands.h"

#include <inttypes.h>
#include <math.h>

const hp_layer_info hp_layer_infos[HP_LAYER_OPS] = {
#define LAYER(id, name, inputs, x, y, gradients, meaning)                                                    \
    {name, inputs, HP_X_##x, HP_Y_##y, HP_GRADIENTS_##gradients, meaning},
#include "networks/graph/layers.def"
#undef LAYER
};

_Static_assert(HP_ACT_NONE == 0, "a layer of zeros has no activation: hp_layer_has_act");

#define ACT(id, name, function, kind, least, greatest, backward, meaning) name,
const char *const hp_act_names[HP_ACTS] = {
#include "networks/graph/acts.def"
};
#undef ACT

#define ACT(id, name, function, kind, least, greatest, backward, meaning)                                    \
    {HP_ACT_IS_##kind, HP_ACT_READS_##backward},
const hp_act_info hp_act_infos[HP_ACTS] = {
#include "networks/graph/acts.def"
};
#undef ACT

static const char *const store_names[HP_STORES] = {"", "u8", "bf16", "f16"};

hp_act_bounds hp_act_bounds_of(const hp_layer *l) {
    const double a = l->act_arg.a, b = l->act_arg.b;
    const hp_act_bounds ranges[HP_ACTS] = {
#define ACT(id, name, function, kind, least, greatest, backward, meaning) {least, greatest},
#include "networks/graph/acts.def"
#undef ACT
    };
    return ranges[l->act];
}

bool hp_layer_backward_reads_x(const hp_layer *l) {
    return hp_layer_infos[l->op].x != HP_X_NOTHING || hp_act_reads_x(l);
}

bool hp_layer_backward_reads_y(const hp_layer *l) {
    const hp_reads_y y = hp_layer_infos[l->op].y;
    return y == HP_Y_ALWAYS || (y == HP_Y_MASK && hp_layer_has_act(l) && !hp_act_reads_x(l));
}

bool hp_layer_data_reads_x(const hp_layer *l, int k) {
    if (hp_layer_infos[l->op].x == HP_X_DATA) return l->op != HP_BN || k == 0;
    return k == 0 && hp_act_reads_x(l);
}

int64_t hp_graph_param_count(const hp_graph *g) {
    int64_t count = 0;
    for (int p = 0; p < g->n_param; p++)
        if (hp_param_trained(&g->param[p])) count += g->param[p].count;
    return count;
}

int64_t hp_tensor_elems(const hp_graph *g, int tensor) {
    const hp_tensor *t = &g->tensor[tensor];
    return (int64_t)t->h * t->w * t->c;
}

/* Multiply-adds. Every output element of a convolution needs one per weight of its output channel: I/groups *
 * kh * kw, the fan-in. A linear layer is the same with one output pixel. A transposed convolution needs
 * O/groups * kh * kw per input element. Attention multiplies each query with each key and sums their
 * values. */
int64_t hp_layer_macs(const hp_graph *g, int layer) {
    const hp_layer *l = &g->layer[layer];
    const hp_tensor *y = &g->tensor[l->out];
    if (l->op == HP_ATTENTION)
        return 2 * hp_attention_pairs(g, l, (hp_extent){0, y->h}, (hp_extent){0, y->w}) * y->c;
    if (l->op == HP_CONVT)
        return hp_tensor_elems(g, l->in[0]) * l->window.kh * l->window.kw * y->c /
               (l->groups > 1 ? l->groups : 1);
    if (l->op != HP_CONV && l->op != HP_LINEAR) return 0;
    return hp_tensor_elems(g, l->out) * g->param[l->param[0]].fan_in / hp_summands(l);
}

static bool layer_reads(const hp_layer *l, int tensor) {
    for (int i = 0; i < l->n_in; i++)
        if (l->in[i] == tensor) return true;
    return false;
}

bool hp_graph_reads_ids(const hp_graph *g) {
    for (int l = 0; l < g->n_layer; l++)
        if (g->layer[l].op == HP_EMBEDDING && g->layer[l].in[0] == g->layer[0].out) return true;
    return false;
}

int hp_graph_last_use(const hp_graph *g, int tensor) {
    if (tensor == g->layer[g->n_layer - 1].out) return g->n_layer;
    const int producer = g->tensor[tensor].producer;
    for (int l = g->n_layer - 1; l > producer; l--)
        if (layer_reads(&g->layer[l], tensor)) return l;
    return producer;
}

static void print_window(FILE *f, const hp_layer *l) {
    fprintf(f, " k%dx%d s%dx%d p%dx%d d%dx%d", l->window.kh, l->window.kw, l->window.stride_h,
            l->window.stride_w, l->window.pad_h, l->window.pad_w, l->window.dil_h, l->window.dil_w);
}

/* Which inputs an output pixel is made of. */
static void print_places(FILE *f, const hp_layer *l) {
    switch ((hp_layer_op)l->op) {
    case HP_CONV:
    case HP_CONVT:
    case HP_MAXPOOL:
    case HP_AVGPOOL:
        print_window(f, l);
        break;
    case HP_PAD:
        fprintf(f, " at %d,%d to %dx%d", l->window.pad_h, l->window.pad_w, l->out_h, l->out_w);
        break;
    case HP_ADAPTPOOL:
    case HP_RESIZE:
        fprintf(f, " to %dx%d", l->out_h, l->out_w);
        break;
    case HP_CROP:
        fprintf(f, " %dx%d at %d,%d", l->out_h, l->out_w, l->window.pad_h, l->window.pad_w);
        break;
    case HP_GATHER:
        fprintf(f, " %dx%d at %d,%d border%d blocks%dx%d from %d by %d,%d of %d", l->out_h, l->out_w,
                l->window.pad_h, l->window.pad_w, l->gather.border, l->window.kh, l->window.kw,
                l->gather.first, l->gather.step, l->gather.step_outer, l->groups);
        break;
    case HP_ATTENTION:
        fprintf(f, " heads%d,%d window%dx%d at%d,%d causal%d", l->groups, l->attention.kv_heads, l->window.kh,
                l->window.kw, l->window.pad_h, l->window.pad_w, l->attention.causal);
        break;
    default:
        break;
    }
}

/* What is done with them. */
static void print_attributes(FILE *f, const hp_layer *l) {
    switch ((hp_layer_op)l->op) {
    case HP_CONV:
        fprintf(f, " g%d", l->groups);
        break;
    case HP_MAXPOOL:
    case HP_AVGPOOL:
        fprintf(f, " ceil%d countpad%d", l->window.ceil_mode, l->window.count_include_pad);
        break;
    case HP_RESIZE:
        fprintf(f, " mode%d corners%d", l->resize.interpolation, l->resize.corners);
        if (l->resize.interpolation == HP_CUBIC)
            fprintf(f, " cubic%.9g inside%d", l->resize.cubic, l->resize.inside);
        if (l->resize.scale_h > 0) fprintf(f, " by %.9gx%.9g", l->resize.scale_h, l->resize.scale_w);
        break;
    case HP_DROPOUT:
        fprintf(f, " p%.9g", l->p);
        break;
    case HP_LAYERNORM:
    case HP_RMSNORM:
        fprintf(f, " eps%.9g", l->eps);
        break;
    case HP_ATTENTION:
        fprintf(f, " rotary%.9g", l->attention.rotary);
        break;
    case HP_REDUCE:
        fprintf(f, " kind%d", l->reduction);
        break;
    case HP_GROUPNORM:
        fprintf(f, " groups%d eps%.9g", l->groups, l->eps);
        break;
    case HP_BN:
        fprintf(f, " eps%.9g momentum%.9g", l->eps, l->momentum);
        break;
    default:
        break;
    }
}

static void print_activation(FILE *f, const hp_layer *l) {
    if (hp_layer_has_act(l)) fprintf(f, " %s", hp_act_names[l->act]);
    if (l->act_arg.a != 0 || l->act_arg.b != 0) fprintf(f, "(%.9g,%.9g)", l->act_arg.a, l->act_arg.b);
}

static void print_param(FILE *f, const hp_param *p) {
    fprintf(f, "    %s kind%d init%d", p->name, p->kind, p->init);
    if (p->init_scale != 0) fprintf(f, " scale%.9g", p->init_scale);
    fprintf(f, " (");
    for (int d = 0; d < p->n_dim; d++) fprintf(f, "%s%d", d ? "," : "", p->dim[d]);
    fprintf(f, ")\n");
}

static void print_layer(FILE *f, const hp_graph *g, int layer) {
    const hp_layer *l = &g->layer[layer];
    const hp_tensor *t = &g->tensor[l->out];
    fprintf(f, "%d u%d %s %s", layer, l->unit, hp_layer_infos[l->op].name, l->name);
    for (int i = 0; i < l->n_in; i++) fprintf(f, " t%d", l->in[i]);
    fprintf(f, " -> t%d %dx%dx%d", l->out, t->h, t->w, t->c);
    print_places(f, l);
    print_attributes(f, l);
    print_activation(f, l);
    if (t->store != HP_STORE_REAL) fprintf(f, " %s", store_names[t->store]);
    if (l->deployed.dynamic) fprintf(f, " dynamic");
    fputc('\n', f);
    for (int i = 0; i < l->n_param; i++) print_param(f, &g->param[l->param[i]]);
    for (int i = 0; i < l->deployed.n_norm; i++) print_param(f, &g->param[l->deployed.norm[i]]);
}

char *hp_graph_text(hp_arena *arena, const hp_graph *g) {
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    HP_ASSERT(f);
    fprintf(f, "net %s image %dx%dx%d classes %d parameters %" PRId64 "\n", g->net, g->image_h, g->image_w,
            g->image_c, g->classes, hp_graph_param_count(g));
    if (g->optimizer) fprintf(f, "optimizer %s\n", hp_optimizer_infos[g->optimizer].name);
    if (g->clips) fprintf(f, "clips\n");
    for (int l = 0; l < g->n_layer; l++) print_layer(f, g, l);
    HP_ASSERT(fclose(f) == 0);
    char *copy = hp_arena_strdup(arena, text);
    free(text);
    return copy;
}

/* Elements of a row layer's weights, which are stored by input: those of the inputs of the summands that
 * contain channels [lo, hi). */
static hp_elements summed_elements(const hp_graph *g, const hp_layer *l, int32_t lo, int32_t hi) {
    const hp_param *p = &g->param[l->param[0]];
    const int width = g->tensor[l->out].c / hp_summands(l);
    const int64_t row = p->count / p->dim[0], from = hp_summand_at(g, l, lo / width).in_lo,
                  to = hi > lo ? hp_summand_at(g, l, (hi - 1) / width).in_hi : from;
    return (hp_elements){from * row, (to - from) * row};
}

/* Transposed convolutions and tables are not contiguous per output channel. Attention's table has a row per
 * head. */
hp_elements hp_param_elements(const hp_graph *g, const hp_layer *l, int i, int32_t lo, int32_t hi) {
    const hp_param *p = &g->param[l->param[i]];
    const int32_t row = p->dim[0] > 0 ? (int32_t)(g->tensor[l->out].c / p->dim[0]) : 1;
    if (hp_layer_is_whole(l) && i == 0) return (hp_elements){0, p->count};
    if (l->tp == (int32_t)HP_TP_ROW) return summed_elements(g, l, lo, hi);
    const int64_t elems = p->count / p->dim[0], from = lo / row, to = (hi + row - 1) / row;
    return (hp_elements){from * elems, (to - from) * elems};
}

/* Output channels of the summands that these weights belong to. */
static hp_extent summed_channels(const hp_graph *g, const hp_layer *l, int32_t first, int32_t end) {
    hp_extent e = {0, 0};
    for (int k = 0; k < hp_summands(l); k++) {
        const hp_summand s = hp_summand_at(g, l, k);
        if (s.in_lo >= s.in_hi || s.in_lo < first || s.in_hi > end) continue;
        if (e.hi == 0) e.lo = s.out_lo;
        e.hi = s.out_hi;
    }
    return e;
}

hp_extent hp_param_channels(const hp_graph *g, const hp_layer *l, hp_elements e) {
    const hp_param *p = &g->param[l->param[0]];
    const int64_t elems = p->count / p->dim[0];
    if (l->tp == (int32_t)HP_TP_ROW)
        return summed_channels(g, l, (int32_t)(e.first / elems), (int32_t)((e.first + e.count) / elems));
    const int32_t c = g->tensor[l->out].c;
    if (hp_layer_is_whole(l)) return (hp_extent){0, c};
    return (hp_extent){(int32_t)(e.first / elems * (c / p->dim[0])),
                       (int32_t)((e.first + e.count) / elems * (c / p->dim[0]))};
}

int32_t hp_graph_ids(const hp_graph *g) {
    for (int l = 1; l < g->n_layer; l++)
        if (g->layer[l].op == HP_EMBEDDING && g->layer[l].in[0] == 0)
            return g->param[g->layer[l].param[0]].dim[0];
    return 0;
}
