/* tiles.h - how well a matrix product fills a GPU: libraries cut its result into tiles of fixed size, each the work of one
 * thread block, and a device computes as many at a time as it has multiprocessors. What hangs over the edge of the result
 * and what is missing from the last wave is computed for nothing (tile and wave quantisation: NVIDIA, Matrix Multiplication
 * Background). */
#ifndef HP_TILES_H
#define HP_TILES_H

typedef struct hp_tiling {
    double rows, cols; /* of the largest tile */
    double least;      /* of the smallest, of each side */
    double penalty;    /* rate of a tile of half the size */
    double fill;       /* terms of a sum that could be added up while its first ones are loaded */
    double units;      /* multiprocessors */
    double depth;      /* least terms of a part of a sum that is split among several blocks; 0: 512 */
    double split_s;    /* what adding up the parts of split sums takes, beside moving them */
    double flops_per_s,
        bytes_per_s; /* of the device; 0: fractions alone are asked for, and parts move for nothing */
} hp_tiling;

/* Useful part of the device's rate for a result of rows x cols, each a sum of `depth` products, with the tile that suits
 * it best; 0 < result <= 1. Where tiles are fewer than multiprocessors, long sums are split among several. */
double hp_tiling_fraction(const hp_tiling *t, double rows, double cols, double depth);
/* Seconds of its arithmetic, at the tiling's rates. */
double hp_tiling_seconds(const hp_tiling *t, double rows, double cols, double depth);
/* Part of the multiprocessors that have work then, in the mean over the waves: what is left may be another process's. */
double hp_tiling_busy(const hp_tiling *t, double rows, double cols, double depth);

/* Of a side, until it would be shorter than the least. */
int hp_halvings(double side, double least);

#endif
