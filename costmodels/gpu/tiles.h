/* tiles.h - how well a matrix product fills a GPU. Libraries cut its result into fixed-size tiles, one per
 * thread block; a device computes as many at a time as it has multiprocessors. Parts beyond the result's edge
 * and gaps in the last wave waste time (tile and wave quantisation: NVIDIA, Matrix Multiplication
 * Background). */
#ifndef HP_TILES_H
#define HP_TILES_H

typedef struct hp_tiling {
    double rows, cols; /* size of the largest tile */
    double least;      /* shortest side of a tile */
    double penalty;    /* relative rate of a tile half as large */
    double fill;       /* terms of a sum that could be added while its first ones are loaded */
    double units;      /* multiprocessors */
    double depth;      /* fewest terms of a partial sum if a sum is split over several blocks; 0: 512 */
    double split_s;    /* seconds to add partial sums, in addition to moving them */
    /* rates of the device; 0: only fractions are wanted, and moving partial sums is free */
    double flops_per_s, bytes_per_s;
} hp_tiling;

/* Useful fraction of the device's rate for a rows x cols result, each a sum of `depth` products, with the
 * best tile; 0 < result <= 1. If there are fewer tiles than multiprocessors, long sums are split over
 * several. */
double hp_tiling_fraction(const hp_tiling *t, double rows, double cols, double depth);
/* Seconds of its arithmetic at the tiling's rates. */
double hp_tiling_seconds(const hp_tiling *t, double rows, double cols, double depth);
/* Mean fraction of busy multiprocessors over the waves; another process may use the rest. */
double hp_tiling_busy(const hp_tiling *t, double rows, double cols, double depth);

/* Number of halvings of a side before it would be shorter than the least. */
int hp_halvings(double side, double least);

#endif
