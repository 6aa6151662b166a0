/* point.c - prepares the tasks of every layer that is no matrix product: how its operands are stored,
 * its activation, its constants, and the loop that runs it (exec/device/kernels/infer_loops.h). */
#include "exec/device/infer/point.h"

#include <math.h>
#include <string.h>

/* --- operands --- */

static bool is_image(const hp_infer *in, int tensor) {
    return in->config->graph->tensor[tensor].producer == 0;
}

/* Bytes of the image are raw pixels, whose scales differ by channel: a dequant layer's factors take care of
 * it. */
static hp_qparams qparams_of(const hp_infer *in, int tensor, hp_dtype dtype) {
    hp_qparams l = {dtype, 1, 1, 0};
    if (dtype != HP_U8 || is_image(in, tensor)) return l;
    const hp_qparam q = hp_constants_qparam(in->constants, tensor);
    l.scale = q.scale;
    l.inverse = 1.0f / q.scale;
    l.zero = q.zero;
    return l;
}

static bool equal_qparams(const hp_qparams *a, const hp_qparams *b) {
    return a->dtype == b->dtype && a->scale == b->scale && a->zero == b->zero;
}

/* --- activations --- */

typedef struct bounds {
    double lo, hi;
} bounds;

static bounds bounds_of(const hp_layer *l) {
    const bounds all = {-(double)INFINITY, (double)INFINITY};
    const bounds table[HP_ACTS] = {
        [HP_ACT_RELU] = {0, all.hi}, [HP_ACT_RELU6] = {0, 6}, [HP_ACT_CLIP] = {l->act_a, l->act_b}};
    return l->act == HP_ACT_NONE || l->act > HP_ACT_CLIP ? all : table[l->act];
}

static void set_act(hp_infer_op *o, const hp_layer *l) {
    const bounds k = bounds_of(l);
    o->act = l->act;
    o->act_a = l->act_a;
    o->act_b = l->act_b;
    o->clamps = l->act <= HP_ACT_CLIP;
    o->lo = k.lo;
    o->hi = k.hi;
}

/* --- what all tasks have in common --- */

static hp_status run_loop(void *self, const hp_bound *b, hp_error *err) {
    (void)err;
    const hp_infer_task *p = self;
    if (b->out_elems > 0) p->loop(&p->op, b);
    return HP_OK;
}

static bool any_f64(const hp_bound *b) {
    bool any = b->y_dtype == HP_F64;
    for (int k = 0; k < b->n_in; k++) any |= b->x[k] && b->x_dtype[k] == HP_F64;
    return any;
}

static hp_status check_stores(const hp_infer *in, const hp_bound *b, hp_error *err) {
    const hp_layer *l = b->layer;
    for (int k = 0; k < b->n_in; k++)
        if (b->x_dtype[k] == HP_U8 && is_image(in, l->in[k]) && l->op != HP_DEQUANT)
            return hp_fail(err, HP_EUNAVAIL, "layer %s: %s does not read raw pixels", l->name,
                           hp_layer_infos[l->op].name);
    return HP_OK;
}

/* Where a byte of one tensor becomes a byte of another, by itself, a table says which. */
static void set_tables(hp_infer *in, const hp_bound *b, hp_infer_task *p) {
    for (int k = 0; k < b->n_in; k++) {
        hp_infer_op *o = &p->op;
        o->same[k] = equal_qparams(&o->x[k], &o->y) && o->act == HP_ACT_NONE;
        if (o->same[k] || o->x[k].dtype != HP_U8 || o->y.dtype != HP_U8) continue;
        uint8_t *table = hp_arena_alloc(in->arena, 256);
        p->loops->tabulate(o, k, table);
        o->recode[k] = table;
    }
}

hp_status hp_infer_task_new(hp_infer *in, const hp_bound *b, hp_infer_task **task, hp_infer_kernel *k,
                            hp_error *err) {
    hp_infer_task *p = HP_NEW(in->arena, hp_infer_task, 1);
    const hp_layer *l = b->layer;
    HP_TRY(check_stores(in, b, err));
    p->loops = hp_infer_loops_pick(any_f64(b));
    p->loop = p->loops->run[l->op];
    p->op.x = HP_NEW(in->arena, hp_qparams, b->n_in);
    p->op.recode = HP_NEW(in->arena, const uint8_t *, b->n_in);
    p->op.same = HP_NEW(in->arena, bool, b->n_in);
    set_act(&p->op, l);
    p->op.y = qparams_of(in, l->out, b->y_dtype);
    for (int i = 0; i < b->n_in; i++)
        if (b->x[i]) p->op.x[i] = qparams_of(in, l->in[i], b->x_dtype[i]);
    *k = (hp_infer_kernel){run_loop, p,
                           hp_arena_printf(in->arena, "own %s %s %s", hp_layer_infos[l->op].name,
                                           hp_dtype_names[b->y_dtype], p->loops->isa)};
    *task = p;
    return HP_OK;
}

/* --- layers without constants --- */

static hp_status prepare_plain(hp_infer *in, const hp_bound *b, hp_infer_kernel *k, hp_error *err) {
    hp_infer_task *p;
    return hp_infer_task_new(in, b, &p, k, err);
}

/* Bytes to bytes through a table. */
static hp_status prepare_recoded(hp_infer *in, const hp_bound *b, hp_infer_kernel *k, hp_error *err) {
    hp_infer_task *p;
    HP_TRY(hp_infer_task_new(in, b, &p, k, err));
    set_tables(in, b, p);
    return HP_OK;
}

hp_status hp_infer_add(hp_infer *in, const hp_bound *b, hp_infer_kernel *k, hp_error *err) {
    return prepare_plain(in, b, k, err);
}

hp_status hp_infer_quant(hp_infer *in, const hp_bound *b, hp_infer_kernel *k, hp_error *err) {
    return prepare_plain(in, b, k, err);
}

hp_status hp_infer_avgpool(hp_infer *in, const hp_bound *b, hp_infer_kernel *k, hp_error *err) {
    return prepare_plain(in, b, k, err);
}

hp_status hp_infer_adaptpool(hp_infer *in, const hp_bound *b, hp_infer_kernel *k, hp_error *err) {
    return prepare_plain(in, b, k, err);
}

hp_status hp_infer_act(hp_infer *in, const hp_bound *b, hp_infer_kernel *k, hp_error *err) {
    return prepare_recoded(in, b, k, err);
}

hp_status hp_infer_maxpool(hp_infer *in, const hp_bound *b, hp_infer_kernel *k, hp_error *err) {
    return prepare_recoded(in, b, k, err);
}

hp_status hp_infer_resize(hp_infer *in, const hp_bound *b, hp_infer_kernel *k, hp_error *err) {
    return prepare_recoded(in, b, k, err);
}

hp_status hp_infer_concat(hp_infer *in, const hp_bound *b, hp_infer_kernel *k, hp_error *err) {
    return b->layer->n_param ? hp_infer_scale(in, b, k, err) : prepare_recoded(in, b, k, err);
}

hp_status hp_infer_pad(hp_infer *in, const hp_bound *b, hp_infer_kernel *k, hp_error *err) {
    return prepare_recoded(in, b, k, err);
}

hp_status hp_infer_softmax(hp_infer *in, const hp_bound *b, hp_infer_kernel *k, hp_error *err) {
    const bool number = b->x_dtype[0] == HP_F32 || b->x_dtype[0] == HP_F64;
    if (b->shape.ic > HP_INFER_ROW && !number)
        return hp_fail(err, HP_EUNAVAIL,
                       "layer %s: softmax over %d channels stored as %s, at most %d: keep it real",
                       b->layer->name, b->shape.ic, hp_dtype_names[b->x_dtype[0]], HP_INFER_ROW);
    return prepare_plain(in, b, k, err);
}
