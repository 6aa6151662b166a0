/* work.c - what a task's duration may depend on: its shape class, its size, its arithmetic and its memory
 * traffic. */
#include "plan/program.h"

#include <string.h>

static double elems(const hp_program *p, const hp_graph *g, int tensor) {
    return (double)hp_tensor_elems(g, tensor) * (double)p->micro_batch;
}

static double param_elems(const hp_graph *g, const hp_layer *l) {
    double n = 0;
    for (int i = 0; i < l->n_param; i++) n += (double)g->param[l->param[i]].count;
    return n;
}

/* Shape class of a layer without its size: what selects the kernel. */
static void layer_class(const hp_graph *g, const hp_layer *l, char *out, size_t n) {
    static const char *const acts[] = {"", " relu", " relu6"};
    const hp_tensor *x = l->n_in ? &g->tensor[l->in[0]] : NULL, *y = &g->tensor[l->out];
    switch (l->op) {
    case HP_CONV:
        snprintf(out, n, "k%dx%d s%d d%d g%d i%d o%d", l->kh, l->kw, l->stride_h, l->dil_h, l->groups, x->c,
                 y->c);
        break;
    case HP_LINEAR:
        snprintf(out, n, "o%d", y->c);
        break;
    case HP_MAXPOOL:
    case HP_AVGPOOL:
        snprintf(out, n, "k%dx%d s%d c%d", l->kh, l->kw, l->stride_h, y->c);
        break;
    default:
        snprintf(out, n, "n%d c%d%s", l->n_in, y->c, acts[l->act]);
        break;
    }
}

/* The tensor whose pixels are the size axis: the output, or the input of a pooling to one pixel. */
static const hp_tensor *size_tensor(const hp_graph *g, const hp_layer *l) {
    return &g->tensor[l->op == HP_ADAPTPOOL ? l->in[0] : l->out];
}

static hp_work layer_work(const hp_program *p, const hp_graph *g, const hp_task *t) {
    const hp_layer *l = &g->layer[t->layer];
    const bool matrix = l->op == HP_CONV || l->op == HP_LINEAR;
    char shape[48];
    layer_class(g, l, shape, sizeof shape);
    const hp_tensor *map = size_tensor(g, l), *in = &g->tensor[l->in[0]];
    const int row = l->op == HP_LINEAR ? in->h * in->w * in->c : map->w;
    hp_work w = {.size = (double)p->micro_batch * map->h * map->w};
    const char *eval = t->op == HP_TASK_FWD && (t->flags & HP_FLAG_EVAL) && !matrix ? "eval " : "";
    snprintf(w.key, sizeof w.key, "%s.%s %s%s%s w%d", hp_task_infos[t->op].name, hp_layer_infos[l->op].name,
             eval, shape, p->dtype == HP_F64 ? " f64" : " f32", row);
    const double y = elems(p, g, l->out), element = hp_dtype_bytes((hp_dtype)p->dtype);
    double x = 0;
    for (int i = 0; i < l->n_in; i++) x += elems(p, g, l->in[i]);
    w.flops = matrix ? 2.0 * (double)hp_layer_macs(g, t->layer) * (double)p->micro_batch : 4.0 * (x + y);
    w.bytes = element * (x + y + (matrix ? param_elems(g, l) : 0));
    /* bn: the forward pass reads x twice, the backward pass reads x, y, dy twice and writes dx */
    if (l->op == HP_BN) w.bytes = element * (t->op == HP_TASK_FWD ? 2 * x + y : 2 * (x + 2 * y) + x);
    return w;
}

static double operand_bytes(const hp_role *r, const hp_task *t) {
    double bytes = 0;
    for (int i = 0; i < t->n_operand; i++) {
        const int32_t b = r->operand[t->operand + i];
        if (b >= 0) bytes += (double)r->buffer[b].bytes;
    }
    return bytes;
}

hp_work hp_task_work(const hp_program *p, const hp_graph *g, const hp_role *r, int task) {
    const hp_task *t = &r->task[task];
    const double element = hp_dtype_bytes((hp_dtype)p->dtype);
    if (t->op == HP_TASK_FWD || t->op == HP_TASK_BWD || t->op == HP_TASK_BWDW) return layer_work(p, g, t);
    hp_work w = {.size = operand_bytes(r, t)};
    const char *dtype = hp_dtype_names[p->dtype];
    w.bytes = w.size;
    switch (t->op) {
    case HP_TASK_PACK:
        w.size = (double)g->param[g->layer[t->layer].param[0]].count;
        w.bytes += w.size * element;
        snprintf(w.key, sizeof w.key, "pack.%s k%d n%d %s", hp_layer_infos[g->layer[t->layer].op].name,
                 g->layer[t->layer].kh, (r->operand[t->operand] >= 0) + (r->operand[t->operand + 1] >= 0),
                 dtype);
        return w;
    case HP_TASK_SGD:
        w.size = (double)t->count;
        w.bytes = 5 * element * w.size; /* reads w, g, m; writes w, m */
        w.flops = 6 * w.size;
        break;
    case HP_TASK_SEND:
    case HP_TASK_RECV:
    case HP_TASK_ALLREDUCE:
        w.size = w.bytes = (double)t->count * hp_dtype_bytes((hp_dtype)t->dtype);
        break;
    case HP_TASK_LOAD: {
        const bool image = r->operand[t->operand] >= 0;
        snprintf(w.key, sizeof w.key, "load %s %s", image ? "image" : "labels", dtype);
        return w;
    }
    default:
        break;
    }
    snprintf(w.key, sizeof w.key, "%s %s%s", hp_task_infos[t->op].name,
             t->op == HP_TASK_LOSS && (t->flags & HP_FLAG_EVAL) ? "eval " : "", dtype);
    return w;
}
