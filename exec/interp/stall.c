/* stall.c - nothing moves: what this rank waits for, and who is to blame. */
#include "exec/interp/inside.h"
#include "plan/program/print.h"

/* What the rank waits for: the oldest operation under way, else the head of the compute queue. */
static int32_t awaited(const hp_interp *in) {
    int32_t task = in->n_flight ? in->flight[0].task : hp_ready_head(&in->ready, 0);
    for (int f = 1; f < in->n_flight; f++)
        if (in->flight[f].task < task) task = in->flight[f].task;
    return task;
}

const char *interp_when(int32_t iter, char out[40]) {
    if (iter >= 0)
        snprintf(out, 40, "step %d", iter + 1);
    else
        snprintf(out, 40, "evaluation batch %d", -iter);
    return out;
}

hp_status interp_stalled(hp_interp *in, hp_error *err) {
    int32_t its_task = -1, its_iter = 0;
    const int blame = hp_watch_silent(in->c.watch, &its_task, &its_iter);
    const int n_role = in->c.program->n_role, rank = in->c.comm->rank;
    const int32_t task = awaited(in);
    const hp_queue *q = &in->c.role->queue[in->c.role->task[task].queue];
    char label[128], theirs[128] = "its start", peer[64] = "its group", when[40], its_when[40];
    hp_task_label(in->c.program, in->c.graph, in->c.role, task, label, sizeof label);
    if (q->kind == HP_QUEUE_SEND || q->kind == HP_QUEUE_RECV)
        snprintf(peer, sizeof peer, "rank %d", interp_rank_of(in, q->peer));
    if (blame < 0)
        return hp_fail(err, HP_ESTALL, "stalled: rank %d waited %.0f s in %s for `%s` with %s", rank,
                       in->limit_s, interp_when(in->iter, when), label, peer);
    const hp_role *role = &in->c.program->role[blame % n_role];
    if (its_task >= 0 && its_task < role->n_task)
        hp_task_label(in->c.program, in->c.graph, role, its_task, theirs, sizeof theirs);
    return hp_fail(err, HP_ESTALL,
                   "stalled: rank %d gives no sign of life in `%s` of %s; rank %d waited %.0f s in %s for "
                   "`%s` with %s; is "
                   "the process of rank %d stopped?",
                   blame, theirs, interp_when(its_iter, its_when), rank, in->limit_s,
                   interp_when(in->iter, when), label, peer, blame);
}
