/* source_weights.h - a network's weights with true batch-norm statistics, in memory and in a file: the input
 * of folding and quantisation. */
#ifndef HP_TESTS_SOURCE_WEIGHTS_H
#define HP_TESTS_SOURCE_WEIGHTS_H

#include "exec/data/weights/weights.h"
#include "base/rng.h"
#include "networks/deploy/deploy.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>

typedef struct source_weights {
    const hp_graph *g;
    double **value; /* per parameter */
    float *narrow;  /* memory for one parameter */
    hp_dtype dtype;
} source_weights;

/* Random numbers; representable in float32 if dtype is HP_F32. */
source_weights source_draw(hp_arena *a, const hp_graph *g, hp_dtype dtype);
void source_save(const char *path, source_weights *s);
hp_graph *source_graph(hp_arena *a, const char *net, int image, int prec);

#endif
