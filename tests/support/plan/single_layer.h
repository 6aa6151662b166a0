/* single_layer.h - a network of one random layer: every operator, windows of all shapes, images down to one
 * pixel; and layouts to split it by. */
#ifndef HP_TESTS_SINGLE_LAYER_H
#define HP_TESTS_SINGLE_LAYER_H

#include "base/rng.h"
#include "networks/graph/shape.h"
#include "tests/support/plan/brute_tiles.h"

typedef struct throws {
    uint64_t seed, n;
} throws;

int draw(throws *d, int low, int high);
int draw_of(throws *d, const int *list, int n);

/* One layer: tensors 0 .. n_in-1 are its inputs, tensor n_in is its output. */
enum { MOST_IN = 3 };

typedef struct single {
    hp_graph g;
    hp_layer layer[2];
    hp_tensor tensor[MOST_IN + 1];
    int samples;
} single;

/* False if no window fits into the image. */
bool try_layer(throws *d, int op, single *s);
single draw_layer(throws *d);
void point_at_own(single *s);

/* Strips, prime counts, more tiles than rows. */
hp_layout draw_layout(throws *d); /* even */
void draw_weights(throws *d, hp_layout *l);

/* A box of the layer's output that a part may have: what it owns, or some of its pixels. */
hp_box draw_output(throws *d, const single *s);
const char *said(const single *s, uint64_t seed);

#endif
