/* plain_graph.h - a network computed from the operators' definitions, one sample, in double: the oracle for
 * graphs without a built-in network. Slow. Tensors are (H, W, C); parameters as graph.h lays them out. */
#ifndef HP_TESTS_PLAIN_GRAPH_H
#define HP_TESTS_PLAIN_GRAPH_H

#include "base/arena.h"
#include "networks/graph/graph.h"
#include "networks/graph/resample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct plain {
    const hp_graph *g;
    const float *const *param; /* data of each parameter */
    double **tensor;
    const double *scale,
        *zero; /* per tensor: values are rounded to scale (q - zero), q in 0 .. 255; scale 0: not
                * rounded. May be NULL */
} plain;

/* The output of the last layer for an image (H, W, C); lives in the arena. */
const double *plain_run(hp_arena *a, plain *p, const double *image);

#endif
