/* point.h - inside of exec/device/infer/point.c and exec/device/infer/affine.c: a prepared task. */
#ifndef HP_INFER_POINT_H
#define HP_INFER_POINT_H

#include "exec/device/infer/infer.h"
#include "exec/device/kernels/infer_loops.h"

/* `self` of the kernel. */
typedef struct hp_infer_task {
    hp_infer_op op;
    hp_infer_loop *loop;
    const hp_infer_loops *loops;
} hp_infer_task;

/* Operands, activation, loop; constants are left to the caller. Errors: HP_EUNAVAIL. */
hp_status hp_infer_task_new(hp_infer *in, const hp_bound *b, hp_infer_task **task, hp_infer_kernel *k,
                            hp_error *err);

#endif
