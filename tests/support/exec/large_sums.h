/* large_sums.h - sums over large maps on a device: their error must not grow with the number of terms. A
 * float32 sum of n terms in sequence may be off by n units in the last place of the terms' absolute sum
 * (Higham, "Accuracy and Stability of Numerical Algorithms", section 4.2). Here n is the size of a block.
 * Oracle: the definition in float64, with separate loops in each check. */
#ifndef HP_TESTS_LARGE_SUMS_H
#define HP_TESTS_LARGE_SUMS_H

#include "tests/support/exec/draw_layer.h"

/* Contents of a map: one number; numbers that nearly cancel; numbers in [0, 1). */
typedef enum sums_pattern { SUMS_CONSTANT, SUMS_CANCELLING, SUMS_DRAWN, SUMS_PATTERNS } sums_pattern;

/* The most terms that the device adds in sequence in float32. */
typedef struct sums_blocks {
    double rows;    /* for a channel's sums: pooling, biases, norms */
    double weights; /* for a weight's gradient */
} sums_blocks;

/* A device, its block sizes, and maps of side x side pixels. */
typedef struct sums_law {
    const hp_device_ops *ops;
    sums_blocks blocks;
    int side;
    sums_pattern pattern;
} sums_law;

/* Means of the whole map, of a few parts, of wide overlapping windows; and their gradients. */
void sums_of_pools(const sums_law *l);
/* Gradients of a vector that interpolation, or a gather, spreads over the map. */
void sums_of_spread(const sums_law *l);
/* Weights' and biases' gradients of a convolution with that many channels. */
void sums_of_conv(const sums_law *l, int ins, int outs, int kernel, int stride, int groups);
void sums_of_transposed(const sums_law *l, int ins, int outs);
/* Statistics of batch norm and the gradients of its parameters. */
void sums_of_norm(const sums_law *l);
/* A fully connected layer that reads the whole map. */
void sums_of_linear(const sums_law *l);
/* The loss of every pixel. */
void sums_of_loss(const sums_law *l);

#endif
