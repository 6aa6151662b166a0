/* share.h - max-min fair sharing: activities with a demand on resources, with rates of at most 1.
 *
 * A link used by two flows, a NIC shared by a node's devices, four ranks on two cores, kernels that compete
 * for memory bandwidth: all are the same problem (as in SimGrid: Casanova et al., JPDC 2014). */
#ifndef HP_SHARE_H
#define HP_SHARE_H

#include <stdint.h>

typedef struct hp_share_use {
    int32_t resource;
    double demand; /* capacity taken at rate 1, > 0 */
} hp_share_use;

typedef struct hp_share_problem {
    int n_activity, n_resource;
    const int32_t *use_first; /* n_activity + 1: CSR into use */
    const hp_share_use *use;
    const double *capacity; /* per resource, > 0 */
} hp_share_problem;

/* Size of the scratch for a solution: doubles and indices. */
static inline int hp_share_doubles(const hp_share_problem *p) {
    return 2 * p->n_resource;
}
static inline int hp_share_indices(const hp_share_problem *p) {
    return 2 * p->n_resource + 1 + p->use_first[p->n_activity];
}

/* Solves the rates: all grow together until each is 1 or meets a full resource. work, index: scratch, see
 * above. Cost: O(uses + resources * different rates). */
void hp_share_solve(const hp_share_problem *p, double *work, int32_t *index, double *rate);

#endif
