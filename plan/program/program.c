/* program.c - the tables of the task program's names. */
#include "plan/program/program.h"

const char *const hp_phase_names[HP_PHASES] = {"load",      "pack",     "forward", "backward",
                                               "optimizer", "transfer", "reduce"};

const hp_task_info hp_task_infos[HP_TASK_OPS] = {
#define TASK(id, name, queue, phase, ...) {name, HP_QUEUE_##queue, HP_PHASE_##phase},
#include "plan/program/ops.def"
#undef TASK
};

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

hp_algorithm hp_task_algorithm(const hp_role *r, const hp_task *t) {
    if (hp_task_infos[t->op].queue != HP_QUEUE_COLL || r->queue[t->queue].backend != HP_BACKEND_MPI)
        return HP_ALGORITHM_LIBRARY;
    return hp_allreduce_choose(t->count * hp_dtype_bytes((hp_dtype)t->dtype));
}
