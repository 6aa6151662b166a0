/* brute_tiles.h - which inputs every output of a layer reads, one output item and one tap at a time: the
 * oracle of all interval arithmetic. Definitions are those of PyTorch (torch.nn: Conv2d, ConvTranspose2d,
 * MaxPool2d, AvgPool2d, AdaptiveAvgPool2d, Linear; functional.pad) and ONNX (Resize).
 *
 * All layers are products over the axes: an output element reads the input element that all four of
 * its coordinates read. */
#ifndef HP_TESTS_BRUTE_TILES_H
#define HP_TESTS_BRUTE_TILES_H

#include "plan/tiles/tile.h"

/* Called for every tap of an output item with the input item, which may lie in the padding, and
 * the weight's index. */
typedef void tap_fn(void *state, int in, int weight);

int axis_of(const hp_tensor *t, int axis);

/* Visits all taps of output item `o` along an axis, in the order of the window. */
void brute_taps(const hp_graph *g, int layer, int k, int axis, int o, tap_fn *visit, void *state);

typedef struct hull {
    int lo, hi;     /* range of all taps; lo == hi: none */
    int first, end; /* range of the taps inside the input */
    int n;          /* items of the input */
} hull;

/* What a box of the output reads along an axis. */
hull brute_hull(const hp_graph *g, int layer, int k, int axis, const hp_box *out);

/* What a part must hold of input k for a box of the output: the smallest box around the taps, without
 * padding. If all taps lie in the padding, or no transposed window reaches the box: one item, the nearest. If
 * the part has none of the channels: nothing. */
hp_box brute_need(const hp_graph *g, int layer, int k, const hp_box *out);

/* Per tensor: is its gradient useful? The loss must depend on the tensor, and the tensor on a
 * trained parameter. */
bool *wanted_gradients(hp_arena *arena, const hp_graph *g);

#endif
