/* runs.h - a box of elements that two buffers hold, as runs: what devices copy by. */
#ifndef HP_RUNS_H
#define HP_RUNS_H

#include "plan/program/program.h"

/* n[0] x n[1] x n[2] runs of `run` elements that lie side by side in both buffers, the first of them at
 * elements `to` and `from`. Strides in elements. */
typedef struct hp_runs {
    int64_t to, from, n[HP_AXES - 1], to_stride[HP_AXES - 1], from_stride[HP_AXES - 1], run;
} hp_runs;

/* `part` lies in both boxes, which are the buffers'; not empty. */
hp_runs hp_runs_between(const hp_box *to, const hp_box *from, const hp_box *part);

#endif
