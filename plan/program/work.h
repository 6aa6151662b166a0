/* work.h - the sizes of a layer's task as its operands' boxes give them: tasks with equal sizes take equally
 * long, wherever their boxes lie, so that tiles, micro-batches and candidates share what was looked up once.
 */
#ifndef HP_WORK_H
#define HP_WORK_H

#include "plan/program/program.h"

typedef struct hp_work_case {
    int32_t layer;
    uint8_t op, eval, sums, spare; /* sums: batch norm with statistics that come from elsewhere */
    int32_t in[HP_AXES];  /* box of the first input that the task reads, or whose gradient it writes */
    int32_t out[HP_AXES]; /* box of the output; stats: of the pixels that are counted */
    int64_t in_elems;     /* of all inputs together */
    int64_t stored_elems, stored_bytes; /* of them, those that are not in the program's dtype */
} hp_work_case;

/* The sizes of a task of a layer: fwd, bwd, bwdw, stats, bstats; false for other tasks. The case is free of
 * padding: it may be compared and hashed as bytes. */
bool hp_work_case_of(const hp_graph *g, const hp_role *r, int task, hp_work_case *c);
/* The sizes of such a task between the output's box and what it needs, without a program. */
hp_work_case hp_work_case_at(const hp_graph *g, int layer, hp_task_op op, const hp_box *out);

hp_work hp_work_of_case(const hp_graph *g, hp_dtype dtype, const hp_work_case *c);

#endif
