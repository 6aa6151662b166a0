/* exec_stall.c - nothing moves: what this rank waits for, and who is to blame. */
#include "exec/interp/exec_inside.h"
#include "plan/program/print.h"

/* The task that the rank waits for: the oldest operation under way, else the head of the compute queue. */
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

/* Names the ranks on other nodes, whose progress is not seen: every rank of the group on this node moves. */
static void name_elsewhere(const hp_interp *in, int group, char *out, size_t n) {
    enum { NAMED = 8 };
    const hp_program *p = in->c.program;
    const int replica = in->c.comm->rank / p->n_role;
    int elsewhere = 0;
    size_t used = (size_t)snprintf(out, n, "its group");
    for (int k = 0; k < hp_group_size(p, group); k++) {
        const int rank = hp_group_rank(p, group, replica, k);
        if (hp_watch_sees(in->c.watch, rank) || elsewhere++ >= NAMED) continue;
        used += (size_t)snprintf(out + used, n - used,
                                 elsewhere == 1 ? ": those on this node move; ranks elsewhere: %d" : ", %d",
                                 rank);
    }
    if (elsewhere > NAMED) snprintf(out + used, n - used, " and %d more", elsewhere - NAMED);
}

hp_status interp_stalled(const hp_interp *in, const hp_suspect *suspect, hp_error *err) {
    const int n_role = in->c.program->n_role, rank = in->c.comm->rank;
    const int32_t task = awaited(in);
    const hp_queue *q = &in->c.role->queue[in->c.role->task[task].queue];
    char label[128], theirs[128] = "its start", peer[192] = "its group", when[40], its_when[40];
    hp_task_label(in->c.program, in->c.graph, in->c.role, task, label, sizeof label);
    if (q->kind == HP_QUEUE_SEND || q->kind == HP_QUEUE_RECV)
        snprintf(peer, sizeof peer, "rank %d", interp_rank_of(in, q->peer));
    else if (q->kind == HP_QUEUE_COLL && suspect->rank < 0)
        name_elsewhere(in, q->peer, peer, sizeof peer);
    if (suspect->rank < 0)
        return hp_fail(err, HP_ESTALL, "stalled: rank %d waited %.0f s in %s for `%s` with %s", rank,
                       in->limit_s, interp_when(in->iter, when), label, peer);
    const hp_role *role = &in->c.program->role[suspect->rank % n_role];
    if (suspect->task >= 0 && suspect->task < role->n_task)
        hp_task_label(in->c.program, in->c.graph, role, suspect->task, theirs, sizeof theirs);
    return hp_fail(err, HP_ESTALL,
                   "stalled: rank %d gives no sign of life in `%s` of %s: %s; rank %d waited %.0f s in %s "
                   "for `%s` with %s",
                   suspect->rank, theirs, interp_when(suspect->iter, its_when), hp_suspect_words(suspect),
                   rank, in->limit_s, interp_when(in->iter, when), label, peer);
}
