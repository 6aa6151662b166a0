/* program.c - the tables of the task program's names. */
#include "plan/program/program.h"

#include <string.h>

_Static_assert(HP_TASK_BARRIER - HP_TASK_ALLREDUCE == HP_COLLECTIVE_BARRIER,
               "program_ops.def has them in one block");
_Static_assert(sizeof(hp_task) == 48, "programs of many ranks are large");

const char *const hp_phase_names[HP_PHASES] = {"load",      "pack",     "forward", "backward",
                                               "optimizer", "transfer", "reduce"};

const hp_task_info hp_task_infos[HP_TASK_OPS] = {
#define TASK(id, name, queue, phase, family, ...)                                                            \
    {name, HP_QUEUE_##queue, HP_PHASE_##phase, HP_FAMILY_##family},
#include "plan/program/program_ops.def"
#undef TASK
};

int32_t hp_task_bucket(const hp_task *t) {
    switch (hp_task_family_of(t)) {
    case HP_FAMILY_CODE:
        return t->code.bucket;
    case HP_FAMILY_UPDATE:
        return t->update.bucket;
    case HP_FAMILY_COLLECTIVE:
        return t->collective.bucket;
    default:
        return -1;
    }
}

hp_elements hp_task_range(const hp_task *t) {
    switch (hp_task_family_of(t)) {
    case HP_FAMILY_ZERO:
        return (hp_elements){t->zero.first, t->zero.elems};
    case HP_FAMILY_CODE:
        return (hp_elements){t->code.first, t->code.values};
    case HP_FAMILY_UPDATE:
        return (hp_elements){t->update.first, t->update.elems};
    case HP_FAMILY_MESSAGE:
        return (hp_elements){0, t->message.elems};
    case HP_FAMILY_COLLECTIVE:
        return (hp_elements){t->collective.first, t->collective.elems};
    default:
        return (hp_elements){0, 0};
    }
}

hp_rows hp_task_rows(const hp_task *t) {
    const hp_task_family family = hp_task_family_of(t);
    return family == HP_FAMILY_ROWS      ? t->rows
           : family == HP_FAMILY_FORWARD ? t->forward.rows
                                         : (hp_rows){0, 0};
}

int32_t hp_task_call_index(const hp_task *t) {
    const hp_task_family family = hp_task_family_of(t);
    return family == HP_FAMILY_COLLECTIVE ? t->collective.call
           : family == HP_FAMILY_UPDATE   ? t->update.call
                                          : 0;
}

bool hp_group_has_role(const hp_program *p, int group, int role) {
    const hp_group *g = &p->group[group];
    const int32_t *member = p->member + g->first; /* ascending */
    int low = 0, high = g->n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (member[middle] < role)
            low = middle + 1;
        else
            high = middle;
    }
    return low < g->n && member[low] == role;
}

int hp_group_member(const hp_program *p, int group, int role, int replica) {
    const hp_group *g = &p->group[group];
    int k = 0;
    while (p->member[g->first + k] != role) k++;
    return g->all_replicas ? replica * g->n + k : k;
}

bool hp_task_works(const hp_program *p, const hp_role *r, const hp_task *t, int replica) {
    if (hp_task_family_of(t) != HP_FAMILY_UPDATE || !t->update.call) return true;
    const int group = r->bucket[t->update.bucket].group;
    return group < 0 || hp_group_member(p, group, (int)(r - p->role), replica) == hp_task_call(p, t).root;
}

int64_t hp_part_elems(const hp_role *r) {
    const hp_bucket *last = r->n_bucket ? &r->bucket[r->n_bucket - 1] : NULL;
    return last ? last->shard + hp_bucket_part(last) : 0;
}

int64_t hp_part_at(const hp_program *p, const hp_role *r, int buffer, int bucket, int member) {
    const hp_bucket *b = &r->bucket[bucket];
    const int64_t within = b->parts > 1 ? member * hp_bucket_part(b) : 0;
    if (buffer >= HP_BUF_FIXED) return within;
    return hp_keeps_parts(p, buffer) ? b->shard : b->first + within;
}

int64_t hp_updated_elems(const hp_role *r, const hp_task *t) {
    return hp_bucket_part(&r->bucket[t->update.bucket]);
}

bool hp_group_equal(const hp_program *p, int a, int b) {
    if (a < 0 || b < 0 || a == b) return a == b;
    const hp_group *x = &p->group[a], *y = &p->group[b];
    return x->n == y->n && x->all_replicas == y->all_replicas &&
           memcmp(p->member + x->first, p->member + y->first, sizeof *p->member * (size_t)x->n) == 0;
}

hp_dtype hp_tensor_dtype(const hp_tensor *t, hp_dtype real) {
    const hp_dtype dtypes[HP_STORES] = {real, HP_U8, HP_BF16, HP_F16};
    return dtypes[t->store];
}

int hp_task_uses(const hp_role *r, int task, int32_t buffer[HP_MAX_USES]) {
    const hp_task *t = &r->task[task];
    int n = 0;
    for (int i = 0; i < t->n_operand && n < HP_MAX_USES - 1; i++)
        if (r->operand[t->operand + i] >= 0) buffer[n++] = r->operand[t->operand + i];
    const int32_t *pack = t->op == HP_TASK_FWD   ? r->pack_forward
                          : t->op == HP_TASK_BWD ? r->pack_backward
                                                 : NULL;
    if (pack && pack[t->layer] >= 0) buffer[n++] = pack[t->layer];
    return n;
}

hp_call hp_task_call(const hp_program *p, const hp_task *t) {
    const int32_t call = hp_task_call_index(t);
    return call ? p->call[call - 1] : (hp_call){.reduction = HP_REDUCE_SUM};
}

hp_collective_case hp_task_case(const hp_program *p, const hp_role *r, const hp_task *t) {
    const hp_call call = hp_task_call(p, t);
    const int32_t size = hp_group_size(p, r->queue[t->queue].peer);
    return (hp_collective_case){.what = hp_task_collective(t),
                                .size = size,
                                .root = call.root,
                                .per_node = call.per_node ? call.per_node : size};
}

hp_collective_data hp_task_data(const hp_program *p, const hp_task *t) {
    const hp_call call = hp_task_call(p, t);
    return (hp_collective_data){.count = t->collective.elems,
                                .part = call.n ? p->part + call.first : NULL,
                                .elem_bytes = hp_dtype_bytes((hp_dtype)t->dtype)};
}

int64_t hp_norm_samples(const hp_program *p, int role) {
    if (p->bn == (int)HP_BN_ALL) return p->micro_batch * p->dp;
    return p->n_share ? p->share[role / (p->n_role / p->n_share)] : p->micro_batch;
}

hp_algorithm hp_task_algorithm(const hp_program *p, const hp_role *r, const hp_task *t) {
    if (!hp_task_is_collective(t) || !hp_backend_steps(r->queue[t->queue].backend))
        return HP_ALGORITHM_LIBRARY;
    const hp_collective_case c = hp_task_case(p, r, t);
    const hp_collective_data data = hp_task_data(p, t);
    return hp_algorithm_choose(&c, data.count * data.elem_bytes, data.part == NULL);
}

/* NCCL's sends and receives of one group must not overlap, and its kernels call fminf and fmaxf
 * (read in its sources, later than 2.28). */
const char *hp_backend_lacks(int32_t backend, hp_collective what, hp_reduction reduction, hp_dtype dtype,
                             bool in_place) {
    const bool integers = dtype == HP_I32 || dtype == HP_U8 || dtype == HP_I8,
               least = reduction == HP_REDUCE_MIN || reduction == HP_REDUCE_MAX;
    if (backend != (int32_t)HP_BACKEND_NCCL) return NULL;
    if (what == HP_COLLECTIVE_ALL_TO_ALL && in_place)
        return "NCCL has no all-to-all in place; give it a source apart from its data, or choose comm=mpi";
    if (hp_collective_infos[what].adds && what != HP_COLLECTIVE_BARRIER && least && !integers)
        return "NCCL's minima and maxima of floats skip NaNs; choose comm=mpi";
    return NULL;
}
