/* operands.h - plan/program/ops.def as tables: which operand plays which part, and what a task does with it. */
#ifndef HP_OPERANDS_H
#define HP_OPERANDS_H

#include "plan/program/program.h"

/* Buffers of a layer's task by what they are; -1: absent. x and dx have n_in entries (stats, bstats, bwdw:
 * one). */
typedef struct hp_operands {
    int32_t y, dy, save, sums, n_in, x[HP_MAX_IN], dx[HP_MAX_IN];
} hp_operands;
hp_operands hp_operands_of(const hp_graph *g, const hp_role *r, const hp_task *t);
/* What a task does with its operand `i`: 'r'eads, 'w'rites, 'm'odifies, or '.' takes its box alone. */
char hp_operand_access(const hp_graph *g, const hp_task *t, int i);
static inline bool hp_task_is_layer(const hp_task *t) {
    return t->op == HP_TASK_FWD || t->op == HP_TASK_BWD || t->op == HP_TASK_BWDW || t->op == HP_TASK_STATS ||
           t->op == HP_TASK_BSTATS;
}
/* Does the task compute the gradients of its layer's parameters? */
bool hp_task_gradient(const hp_graph *g, const hp_task *t);
/* Are there as many operands as plan/program/ops.def says? A layer's task must name a layer. */
bool hp_operand_count_fits(const hp_graph *g, const hp_task *t);

#endif
