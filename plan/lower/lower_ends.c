/* lower_ends.c - the ends of a network: the image and its labels enter, the loss or a deployed network's
 * output leaves. */
#include "plan/lower/lower_inside.h"

/* Samples (and for maps rows and columns) whose labels the loss of this part needs; empty: no loss here. */
static hp_box label_box(const hp_role_builder *c, const hp_pass *a) {
    const hp_tensor *logits = &c->facts->g->tensor[c->facts->g->layer[c->facts->g->n_layer - 1].out];
    const bool map = (int64_t)logits->h * logits->w > 1;
    if (a->stage != c->facts->n_vstage - 1 || (c->facts->g->deployed && map)) return (hp_box){{0}, {0}};
    hp_box b = *hp_geometry_need(a->v->geo, a->part, c->facts->g->n_layer, 0);
    b.lo[HP_AXIS_C] = 0;
    b.hi[HP_AXIS_C] = b.hi[HP_AXIS_C] > 0;
    return b;
}

int32_t lower_load(hp_role_builder *c, const hp_pass *a) {
    int32_t operand[2] = {-1, -1};
    const int x = c->facts->g->layer[0].out;
    const hp_box labels = label_box(c, a);
    if (a->stage == 0 && !a->v->deep && !hp_box_empty(lower_have(c->facts, a, x)))
        operand[0] = a->f->act[x] = lower_box(c, HP_BUF_TENSOR, x, a->micro, lower_have(c->facts, a, x));
    if (!hp_box_empty(&labels)) {
        operand[1] = lower_buffer(c, HP_BUF_LABELS, HP_I32, hp_box_elems(&labels), -1, a->micro);
        c->r->buffer[operand[1]].box = labels;
    }
    if (operand[0] >= 0 || operand[1] >= 0) lower_task(c, lower_layer_task(a, HP_TASK_LOAD, -1, 0), operand);
    return operand[1];
}

void lower_store(hp_role_builder *c, const hp_pass *a) {
    const int32_t x = a->f->act[c->facts->g->layer[c->facts->g->n_layer - 1].out];
    if (x >= 0) c->metric_writer = lower_task(c, lower_layer_task(a, HP_TASK_STORE, -1, 0), &x);
}

/* Emits the sums from which a softmax over classes split among ranks follows, added up over these ranks. -1:
 * one rank has all classes. */
static int32_t class_sums(hp_role_builder *c, const hp_pass *a, int32_t logits, int32_t labels) {
    const int32_t *groups = c->shared->groups[a->stage].classes;
    if (!groups) return -1;
    const hp_box *x = lower_box_of(c, logits);
    const int64_t block = hp_box_elems(x) / hp_box_len(x, HP_AXIS_C) * HP_MAXSUMS;
    const int32_t sums = lower_buffer(c, HP_BUF_SUMS, HP_F64, c->facts->s->tp * block, -1, a->micro);
    hp_task t = lower_layer_task(a, HP_TASK_MAXSUM, -1, 0);
    t.maxsum.first = a->part / c->facts->s->bp % c->facts->s->tp * block;
    lower_task(c, t, (int32_t[3]){sums, logits, labels});
    t = lower_layer_task(a, HP_TASK_ALLREDUCE, -1, 0);
    t.dtype = HP_F64;
    t.collective.bucket = -1;
    t.collective.elems = c->facts->s->tp * block;
    lower_collective(c, groups[a->flip * a->v->geo->n_part + a->part], &t);
    lower_task(c, t, (int32_t[2]){sums, -1});
    return sums;
}

void lower_loss(hp_role_builder *c, const hp_pass *a, int32_t labels) {
    const int logits = c->facts->g->layer[c->facts->g->n_layer - 1].out, end = c->facts->g->n_layer;
    lower_metric_scratch(c);
    int32_t operand[4] = {-1, lower_input(c, a, end, 0, logits), labels, -1};
    operand[3] = class_sums(c, a, operand[1], labels);
    if (lower_train(c->facts))
        operand[0] = lower_box(c, HP_BUF_GRADIENT, logits, a->micro, lower_box_of(c, operand[1]));
    c->metric_writer = lower_task(
        c, lower_layer_task(a, HP_TASK_LOSS, -1, lower_train(c->facts) ? 0 : HP_FLAG_EVAL), operand);
    if (lower_train(c->facts)) lower_contribute(c, a, end, 0, logits, operand[0]);
}
