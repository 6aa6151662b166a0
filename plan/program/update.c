/* update.c - see update.h. */
#include "plan/program/update.h"

#include "networks/graph/optimizer.h"

int64_t hp_state_elems(const hp_program *p, const hp_graph *g, const hp_role *r) {
    return r->buffer[HP_BUF_OPTIMIZER].bytes / hp_dtype_bytes((hp_dtype)p->dtype) /
           hp_optimizer_of(g)->states;
}

/* Where the last matrix of a bucket ends. */
static int64_t matrices_end(const hp_graph *g, const hp_role *r, const hp_bucket *b) {
    int64_t end = b->first;
    for (int i = 0; i < g->n_param; i++) {
        const hp_param_place *at = &r->place[i];
        if (!at->here || !hp_param_trained(&g->param[i]) || !hp_param_is_matrix(&g->param[i])) continue;
        if (at->offset >= b->first && at->offset < b->first + b->count && at->offset + at->count > end)
            end = at->offset + at->count;
    }
    return end;
}

int64_t hp_decayed_elems(const hp_graph *g, const hp_role *r, const hp_task *t, int member) {
    const hp_bucket *b = &r->bucket[t->update.bucket];
    const int64_t part = hp_bucket_part(b), first = b->first + (b->parts > 1 ? member * part : 0);
    if (!hp_optimizer_of(g)->matrices) return part;
    const int64_t left = matrices_end(g, r, b) - first;
    return left < 0 ? 0 : left < part ? left : part;
}

hp_norm_share hp_norm_share_of(const hp_program *p, const hp_role *r, const hp_task *t, int member) {
    const hp_bucket *b = &r->bucket[t->update.bucket];
    const int64_t from = hp_part_at(p, r, HP_BUF_GRADS, t->update.bucket, member), part = hp_bucket_part(b);
    if (t->update.call) return (hp_norm_share){from, member == hp_task_call(p, t).root ? part : 0};
    if (b->parts > 1 || b->group < 0) return (hp_norm_share){from, part};
    const int64_t size = hp_group_size(p, b->group), first = part * member / size;
    return (hp_norm_share){from + first, part * (member + 1) / size - first};
}

/* Reads parameters, gradients and the optimiser's states, writes parameters and states. */
static hp_work descent_work(const hp_program *p, const hp_graph *g, const hp_role *r, const hp_task *t) {
    const hp_optimizer_info *o = hp_optimizer_of(g);
    hp_work w = {.size = (double)hp_updated_elems(r, t)};
    w.bytes = (3 + 2 * o->states) * hp_dtype_bytes((hp_dtype)p->dtype) * w.size;
    w.flops = o->operations * w.size;
    snprintf(w.key, sizeof w.key, "%s %s", o->name, hp_dtype_names[p->dtype]);
    return w;
}

/* Work of the last member, which has the largest share. */
static hp_work norm_work(const hp_program *p, const hp_role *r, const hp_task *t) {
    const int group = r->bucket[t->update.bucket].group, last = group < 0 ? 0 : hp_group_size(p, group) - 1;
    hp_work w = {.size = t->update.call ? (double)hp_updated_elems(r, t)
                                        : (double)hp_norm_share_of(p, r, t, last).count};
    w.bytes = hp_dtype_bytes((hp_dtype)p->dtype) * w.size;
    w.flops = 2 * w.size;
    snprintf(w.key, sizeof w.key, "%s %s", hp_task_infos[t->op].name, hp_dtype_names[p->dtype]);
    return w;
}

hp_work hp_update_work(const hp_program *p, const hp_graph *g, const hp_role *r, const hp_task *t) {
    return t->op == HP_TASK_NORM ? norm_work(p, r, t) : descent_work(p, g, r, t);
}
