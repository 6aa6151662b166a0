/* graph_segments.c - cuts the compute queue where a task waits for others, or for the host. */
#include "exec/interp/graph_segments.h"

enum { COMPUTE = 0 }; /* the queue */

static bool waits_outside(const hp_role *r, int32_t task) {
    for (int d = r->dep_first[task]; d < r->dep_first[task + 1]; d++)
        if (r->task[r->dep[d]].queue != COMPUTE) return true;
    return false;
}

static bool by_host(const hp_task *t) {
    return hp_task_of_executor(t->op);
}

void hp_graph_segments(const hp_role *r, int32_t *length) {
    int32_t first = -1; /* first task of the open segment; -1: none is open */
    for (int32_t t = 0; t < r->n_task; t++) {
        length[t] = 0;
        if (r->task[t].queue != COMPUTE) continue;
        const bool alone = by_host(&r->task[t]);
        if (first < 0 || alone || waits_outside(r, t)) first = t;
        length[first]++;
        if (alone) first = -1;
    }
}
