/* large_sums.h - sums over large maps on a device: their error must not grow with the number of terms. A float32 sum of n terms one
 * after another may be off by n units in the last place of the terms' absolute sum (Higham, "Accuracy and Stability of Numerical
 * Algorithms", section 4.2); here n is what a block has. Oracle: the definition in float64, each check its own loops. */
#ifndef HP_TESTS_LARGE_SUMS_H
#define HP_TESTS_LARGE_SUMS_H

#include "tests/support/exec/draw_layer.h"

/* What a map has: one number; numbers that nearly cancel; numbers of [0, 1). */
typedef enum sums_pattern { SUMS_CONSTANT, SUMS_CANCELLING, SUMS_DRAWN, SUMS_PATTERNS } sums_pattern;

/* The most terms that the device adds in float32 one after another. */
typedef struct sums_blocks {
    double rows;    /* of a channel: pooling, biases, norms */
    double weights; /* of a weight's gradient */
} sums_blocks;

/* A device, the blocks that it sums by, and maps of side by side pixels. */
typedef struct sums_law {
    const hp_device_ops *ops;
    sums_blocks blocks;
    int side;
    sums_pattern pattern;
} sums_law;

/* Means of the whole map, of a few parts, of wide windows that overlap; and their gradients. */
void sums_of_pools(const sums_law *l);
/* Gradients of a vector that interpolation, or a gather, spreads over the map. */
void sums_of_spread(const sums_law *l);
/* Weights' and biases' gradients of a convolution of that many channels. */
void sums_of_conv(const sums_law *l, int ins, int outs, int kernel, int stride, int groups);
void sums_of_transposed(const sums_law *l, int ins, int outs);
/* Statistics of batch norm and the gradients of its parameters. */
void sums_of_norm(const sums_law *l);
/* A fully connected layer that reads the whole map. */
void sums_of_linear(const sums_law *l);
/* The loss of every pixel. */
void sums_of_loss(const sums_law *l);

#endif
