/* branch.c - list scheduling of a stage's layers onto a few ranks. */
#include "networks/graph/branch.h"

#include <math.h>

/* Cost of moving a byte between ranks, in multiply-adds: both 10 TMAC/s with 100 GB/s links and a processor's
 * 50 GMAC/s with copies at 0.5 GB/s give 100. The second constant is the cost of a byte read or written in a
 * rank's own memory. */
static const double macs_per_byte_moved = 100.0, macs_per_byte_touched = 10.0;

static double bytes_of(const hp_graph *g, int tensor) {
    return 4.0 * (double)hp_tensor_elems(g, tensor);
}

typedef struct planner {
    const hp_graph *g;
    int first;
    int32_t *branch_of;
    double *done; /* per tensor: time at which its rank has it */
} planner;

/* Earliest time at which the layer can start on a rank that is idle from `free` on. */
static double start_on(const planner *p, const hp_layer *l, int branch, double free) {
    for (int k = 0; k < l->n_in; k++) {
        const int x = l->in[k];
        const int producer = p->g->tensor[x].producer;
        /* also for the image: each rank that reads such a tensor receives it */
        if (producer < p->first || producer == 0) continue;
        const double moved = p->branch_of[x] == branch ? 0 : macs_per_byte_moved * bytes_of(p->g, x);
        if (p->done[x] + moved > free) free = p->done[x] + moved;
    }
    return free;
}

int32_t *hp_branches(hp_arena *arena, const hp_graph *g, int branches, int first, int end) {
    planner p = {g, first, HP_NEW(arena, int32_t, g->n_tensor), HP_NEW(arena, double, g->n_tensor)};
    double *free = HP_NEW(arena, double, branches);
    for (int layer = first ? first : 1; branches > 1 && layer < end; layer++) {
        const hp_layer *l = &g->layer[layer];
        int best = 0;
        for (int b = 1; b < branches; b++)
            if (start_on(&p, l, b, free[b]) < start_on(&p, l, best, free[best])) best = b;
        p.branch_of[l->out] = best;
        free[best] = p.done[l->out] = start_on(&p, l, best, free[best]) + (double)hp_layer_macs(g, layer) +
                                      macs_per_byte_touched * bytes_of(g, l->out);
    }
    return p.branch_of;
}

/* --- what each of them holds --- */

/* A map that layers on two branches read is on both. */
static hp_branch_load load_of(hp_arena *scratch, const hp_graph *g, const int32_t *branch_of, int branch,
                              int first, int end) {
    bool *here = HP_NEW(scratch, bool, g->n_tensor);
    hp_branch_load load = {0, 0};
    for (int layer = first; layer < end; layer++) {
        const hp_layer *l = &g->layer[layer];
        if (branch_of[l->out] != branch) continue;
        here[l->out] = true;
        for (int k = 0; k < l->n_in; k++) here[l->in[k]] = true;
        for (int i = 0; i < l->n_param; i++) load.params += (double)g->param[l->param[i]].count;
    }
    for (int t = 0; t < g->n_tensor; t++)
        if (here[t]) load.maps += (double)hp_tensor_elems(g, t);
    return load;
}

static double over_mean(double part, double all, int branches) {
    return all > 0 ? branches * part / all : 1;
}

hp_branch_load hp_branch_fullest(const hp_graph *g, int branches, int first, int end) {
    hp_branch_load most = {1, 1};
    if (branches == 1) return most;
    hp_arena *scratch = hp_arena_new();
    const int32_t *branch_of = hp_branches(scratch, g, branches, first, end),
                  *one = HP_NEW(scratch, int32_t, g->n_tensor);
    const hp_branch_load all = load_of(scratch, g, one, 0, first, end);
    for (int b = 0; b < branches; b++) {
        const hp_branch_load load = load_of(scratch, g, branch_of, b, first, end);
        most.maps = fmax(most.maps, over_mean(load.maps, all.maps, branches));
        most.params = fmax(most.params, over_mean(load.params, all.params, branches));
    }
    hp_arena_free(scratch);
    return most;
}
