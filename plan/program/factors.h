/* factors.h - gradients as products of two thin matrices (PowerSGD: Vogels, Karimireddy & Jaggi, NeurIPS
 * 2019): which gradients of a range are matrices, and where their factors lie.
 *
 * A parameter is a matrix: its first dimension, as much as this rank has, by all other dimensions. Its
 * factors are P (rows, rank) and Q (rank, cols) where they are smaller; else its gradient lies among the P
 * unchanged. The P of all parameters are contiguous, and so are the Q; gaps between parameters are left
 * out. */
#ifndef HP_FACTORS_H
#define HP_FACTORS_H

#include "plan/program/program.h"

typedef struct hp_factor {
    int32_t param;      /* -1: before the first */
    int64_t at;         /* first element of its gradient, within the range */
    int64_t rows, cols; /* cols 0: `rows` elements, as they are */
    int64_t p, q;       /* first elements of its factors; after the last parameter: how many there are */
} hp_factor;

static inline hp_factor hp_factor_first(void) {
    return (hp_factor){.param = -1};
}
/* The next parameter of a range of the gradients. false: there is none. */
bool hp_factor_next(const hp_graph *g, const hp_role *r, hp_elements range, int rank, hp_factor *f);

/* Elements of all P, of all Q; and multiply-adds of one pass over all matrices. */
typedef struct hp_factor_sizes {
    int64_t p, q, macs;
} hp_factor_sizes;
hp_factor_sizes hp_factor_sizes_of(const hp_graph *g, const hp_role *r, hp_elements range, int rank);

/* Is it one of the three tasks that work on factors? */
static inline bool hp_task_factors(const hp_task *t) {
    return t->op == HP_TASK_PROJECT || t->op == HP_TASK_FACTOR || t->op == HP_TASK_EXPAND;
}

#endif
