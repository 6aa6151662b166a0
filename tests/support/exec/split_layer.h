/* split_layer.h - a drawn layer cut into parts: random boxes of its output, the input that each part needs;
 * data copied from the whole to the parts and back, element by element. */
#ifndef HP_TESTS_SPLIT_LAYER_H
#define HP_TESTS_SPLIT_LAYER_H

#include "tests/support/exec/draw_layer.h"

enum { SPLIT_CUTS = 3, SPLIT_PARTS = SPLIT_CUTS * SPLIT_CUTS * SPLIT_CUTS * SPLIT_CUTS };

typedef struct split {
    int n;
    rig_boxes part[SPLIT_PARTS];
} split;

void draw_parts(const rig *whole, const draw *d, uint64_t round, bool channels, split *s);
int64_t whole_of(const rig *part, int32_t b, const rig *whole, int32_t in, int64_t i);
void take(rig *part, int32_t b, const rig *whole, int32_t from);

/* Builds the part with the whole's inputs, output gradient and parameters; parameter
 * gradients start at zero. */
rig *build_part(const hp_device_ops *ops, const draw *d, const rig_boxes *boxes, const rig *whole);

/* Sums of the parts' results for buffers of the whole: the gradients of its inputs and parameters. */
typedef struct gathered {
    double *dx[HP_MAX_IN], *grads;
} gathered;

gathered gathered_new(rig *whole);
void gather_part(gathered *g, const rig *part, const rig *whole);

#endif
