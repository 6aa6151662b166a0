/* operands.h - the operands of plan/program/program_ops.def as data: what each is, how many there are, and
 * how a task accesses it. */
#ifndef HP_OPERANDS_H
#define HP_OPERANDS_H

#include "plan/program/program.h"

typedef enum hp_operand_kind {
    HP_OPERAND_NONE, /* ends a row */
    HP_OPERAND_Y,
    HP_OPERAND_DY,
    HP_OPERAND_X,
    HP_OPERAND_DX,
    HP_OPERAND_SAVE,
    HP_OPERAND_SUMS,
    HP_OPERAND_LABELS,
    HP_OPERAND_PACK_FORWARD,
    HP_OPERAND_PACK_BACKWARD,
    HP_OPERAND_DST,
    HP_OPERAND_SRC,
    HP_OPERAND_BUFFER,
    HP_OPERAND_PARAMS,
    HP_OPERAND_GRADS,
    HP_OPERAND_RESIDUAL,
    HP_OPERAND_P,
    HP_OPERAND_Q,
    HP_OPERAND_KINDS
} hp_operand_kind;
extern const char *const hp_operand_names[HP_OPERAND_KINDS];

typedef enum hp_operand_count {
    HP_OPERAND_ONE,
    HP_OPERAND_MAYBE,
    HP_OPERAND_EACH,
    HP_OPERAND_EXTRA
} hp_operand_count;

typedef struct hp_operand_info {
    uint8_t kind;  /* hp_operand_kind */
    uint8_t count; /* hp_operand_count */
    char access;   /* 'r'eads, 'w'rites, 'm'odifies, or '.' uses its box alone */
} hp_operand_info;

/* Operands of an opcode in order, ended by HP_OPERAND_NONE. */
enum { HP_OPERAND_ROW = 11 };
extern const hp_operand_info hp_task_operands[HP_TASK_OPS][HP_OPERAND_ROW];

/* What the task's operand `i` is; *k: of several of the kind, which. NONE: it has no such operand. */
const hp_operand_info *hp_operand_at(const hp_graph *g, const hp_task *t, int i, int *k);
/* What a task does with its operand `i`. */
char hp_operand_access(const hp_graph *g, const hp_task *t, int i);
/* "dy", "x1": the operand's name; `out` holds n bytes. */
const char *hp_operand_label(const hp_graph *g, const hp_task *t, int i, char *out, size_t n);
/* The buffer of a task's k-th operand of that kind; -1: absent. */
int32_t hp_operand_buffer(const hp_graph *g, const hp_role *r, const hp_task *t, hp_operand_kind kind, int k);

/* Are there as many as the row allows, EXTRA ones included? */
bool hp_operand_count_fits(const hp_graph *g, const hp_task *t);

/* A task's buffers by what they are; -1: absent. x and dx have n_in entries. */
typedef struct hp_operands {
    int32_t y, dy, save, sums, labels, pack_forward, pack_backward, dst, src, buffer, params, grads, residual,
        p, q;
    int32_t n_in, x[HP_MAX_IN], dx[HP_MAX_IN];
} hp_operands;
hp_operands hp_operands_of(const hp_graph *g, const hp_role *r, const hp_task *t);

/* --- tasks of layers --- */

static inline bool hp_task_is_layer(const hp_task *t) {
    return t->op == HP_TASK_FWD || t->op == HP_TASK_BWD || t->op == HP_TASK_BWDW || t->op == HP_TASK_STATS ||
           t->op == HP_TASK_BSTATS;
}
/* Does the task compute the gradients of its layer's parameters? */
bool hp_task_gradient(const hp_graph *g, const hp_role *r, const hp_task *t);
/* Work in place. The input that a layer's output may overwrite; -1: none. A layer that adds computes into its
 * last input, an elementwise one may into its first. */
int hp_forward_in_place(const hp_layer *l);
/* The input whose gradient may take the place of the output's; -1: none. */
int hp_backward_in_place(const hp_layer *l);

#endif
