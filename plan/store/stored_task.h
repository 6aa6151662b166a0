/* stored_task.h - a task in plan.db: one record for all kinds, whose fields mean what the kind says. */
#ifndef HP_STORED_TASK_H
#define HP_STORED_TASK_H

#include "plan/program/program.h"

typedef struct hp_stored_task {
    uint8_t op, flags, dtype, algorithm;
    int16_t queue, chunk;
    int32_t layer, micro;
    int32_t tag; /* position of a message; bucket; else -1 */
    int32_t operand, n_operand;
    int32_t row_lo, row_hi;
    int32_t call;
    int64_t offset; /* first element; of forward tasks skipped << 32 | following */
    int64_t count;  /* elements, values, pixels, nanoseconds */
} hp_stored_task;

hp_stored_task hp_task_to_stored(const hp_task *t);
/* Fields that the task's kind does not have are left out. */
hp_task hp_task_from_stored(const hp_stored_task *s);

#endif
