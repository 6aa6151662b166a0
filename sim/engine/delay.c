/* delay.c - the delay of the last rank of a folded class.
 *
 * Replicas run independently until a task waits for all of them. Between two such tasks, a replica's
 * computing is a sum of draws (hp_jitter_of_sum; for independent tasks, cv sqrt(sum t^2) / sum t), which is
 * nearly log-normal itself (Fenton 1960). The class continues with the last of its members, so its tasks take
 * the expected maximum of as many sums as it has members. */
#include "sim/engine/state.h"

/* Delays tasks first .. end - 1, which run without waiting for other replicas. */
static void delay_run(const sim *s, const rank_state *r, int n, int first, int end) {
    const hp_role *role = &s->program->role[r->role];
    double sum = 0, squares = 0;
    for (int t = first; t < end; t++) {
        if (role->task[t].queue != 0) continue;
        const double x = s->costs->seconds(s->costs->self, s->program, s->graph, r->world, t);
        sum += x;
        squares += x * x;
    }
    const double factor = hp_jitter_max(hp_jitter_of_sum(&s->options->jitter, sum, squares), n);
    for (int t = first; t < end; t++) r->late[t] = factor;
}

static bool waits_for_replicas(const sim *s, const hp_role *r, int task) {
    if (r->task[task].queue != 0) return false;
    for (int d = r->dep_first[task]; d < r->dep_first[task + 1]; d++) {
        const hp_queue *q = &r->queue[r->task[r->dep[d]].queue];
        if (q->kind == HP_QUEUE_COLL && s->program->group[q->peer].all_replicas) return true;
    }
    return false;
}

void sim_delay_last(sim *s, int rank) {
    rank_state *r = &s->rank[rank];
    const hp_role *role = &s->program->role[r->role];
    const int n = s->classes->size[rank];
    if (!hp_jitters(&s->options->jitter) || n == 1) return;
    r->late = HP_NEW(s->arena, double, role->n_task);
    int first = 0;
    for (int t = 1; t <= role->n_task; t++) {
        if (t < role->n_task && !waits_for_replicas(s, role, t)) continue;
        delay_run(s, r, n, first, t);
        first = t;
    }
}
