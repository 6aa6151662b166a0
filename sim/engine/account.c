/* account.c - where a rank's time goes: computing, and waiting for each kind of communication. */
#include "plan/program/factors.h"
#include "sim/engine/state.h"

/* Time in which a rank computes nothing while one of its transfers moves is exposed. If several kinds move at
 * once, it counts for the first kind, because gradients move in the background. */
void sim_account_idle(sim *s, int rank) {
    rank_state *r = &s->rank[rank];
    int kind = 0;
    while (kind < HP_SIM_WAITS && r->spent.moving[kind] == 0) kind++;
    if (kind < HP_SIM_WAITS && r->running < 0) r->spent.wait_ns[kind] += s->now_ns - r->spent.idle_since_ns;
    r->spent.idle_since_ns = s->now_ns;
}

void sim_account_transfer(sim *s, int rank, int task, int change) {
    sim_account_idle(s, rank);
    s->rank[rank].spent.moving[s->wait[s->rank[rank].role][task]] += change;
}

/* Does the other end work on the same stage? Then the message stays within the stage. */
static bool same_stage(const hp_program *p, const hp_role *from, int chunk, int peer) {
    const hp_role *to = &p->role[peer];
    for (int i = 0; i < to->n_slot; i++)
        if (to->slot[i].stage == from->slot[chunk].stage && to->slot[i].flip == from->slot[chunk].flip)
            return true;
    return false;
}

hp_sim_wait hp_sim_wait_of(const hp_program *p, const hp_role *r, int task) {
    const hp_task *t = &r->task[task];
    if (!hp_task_is_collective(t))
        return same_stage(p, r, t->chunk, r->queue[t->queue].peer) ? HP_SIM_HALO : HP_SIM_STAGE;
    if (t->flags & HP_FLAG_METRIC) return HP_SIM_END;
    const int kind = r->buffer[r->operand[t->operand]].kind;
    return kind == HP_BUF_SUMS || kind == HP_BUF_STATE                               ? HP_SIM_NORM
           : kind <= HP_BUF_OPTIMIZER || kind == HP_BUF_BLOCK || kind == HP_BUF_CODE ? HP_SIM_GRADIENT
                                                                                     : HP_SIM_HALO;
}

void sim_list_waits(sim *s) {
    s->wait = HP_NEW(s->arena, uint8_t *, s->program->n_role);
    for (int i = 0; i < s->program->n_role; i++) {
        const hp_role *r = &s->program->role[i];
        s->wait[i] = HP_NEW(s->arena, uint8_t, r->n_task);
        for (int t = 0; t < r->n_task; t++)
            if (r->task[t].queue != 0) s->wait[i][t] = (uint8_t)hp_sim_wait_of(s->program, r, t);
    }
}

void sim_account_compute(rank_state *r, const hp_task *t, int64_t ns) {
    r->spent.compute_ns += ns;
    if (t->flags & HP_FLAG_RECOMPUTE) r->spent.recompute_ns += ns;
    if (t->op == HP_TASK_COPY || (t->op == HP_TASK_ZERO && t->layer >= 0)) r->spent.packing_ns += ns;
    if (t->op == HP_TASK_ENCODE || t->op == HP_TASK_DECODE || hp_task_factors(t)) r->spent.coding_ns += ns;
}
