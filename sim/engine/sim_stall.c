/* sim_stall.c - reports a deadlock: which ranks stopped, and at which task. */
#include "plan/program/print.h"
#include "sim/engine/state.h"

/* The task that a rank waits for: a posted receive whose message never came, otherwise the head of the
 * compute queue, otherwise of any queue. */
static int awaited(const sim *s, int rank) {
    const hp_wired_role *w = sim_role(s, rank);
    const rank_state *r = &s->rank[rank];
    for (int q = 1; q < w->role->n_queue; q++) {
        const hp_queue_kind kind = w->role->queue[q].kind;
        if (kind == HP_QUEUE_RECV && r->ready.head[q] > 0) {
            const int partner = w->queue[q].partner;
            const int done = partner < 0 ? 0 : s->rank[r->peer[q]].channel[partner].next;
            if (done < r->ready.head[q]) return w->queue[q].task[done];
        }
    }
    for (int q = 0; q < w->role->n_queue; q++) {
        const int task = hp_ready_head(&r->ready, q);
        if (task >= 0) return task;
    }
    return -1;
}

hp_status sim_stalled(const sim *s, hp_error *err) {
    char text[600] = "";
    size_t used = 0;
    int named = 0;
    for (int i = 0; i < s->n_rank && named < 6; i++) {
        const int task = awaited(s, i);
        if (task < 0) continue;
        char label[80];
        hp_task_label(s->program, s->graph, sim_role(s, i)->role, task, label, sizeof label);
        used += (size_t)snprintf(text + used, sizeof text - used, "%srank %d at '%s'", named ? ", " : "",
                                 s->rank[i].world, label);
        named++;
    }
    return hp_fail(
        err, HP_EPLAN,
        "E-DEADLOCK: the program stops with %lld tasks left: %s; the order of the sends and receives "
        "has to change",
        (long long)s->left, text);
}
