/* tiles.c - tries all halvings of a tile and takes the fastest. */
#include "costmodels/gpu/tiles.h"

#include <math.h>

static const double LEAST_DEPTH = 512; /* least depth of a partial sum; shorter ones do not repay adding up */

typedef struct cut {
    double rate;    /* useful part of the device's */
    double busy;    /* multiprocessors with work */
    double seconds; /* seconds; without device rates, in units of its arithmetic */
} cut;

typedef struct tile {
    double rows, cols, rate; /* rate: relative to the largest tile */
} tile;

/* Time to write and read partial sums of 4 bytes. */
static double seconds_of_parts(const hp_tiling *t, double splits, double rows, double cols) {
    if (splits <= 1) return 0;
    return t->split_s + (t->bytes_per_s > 0 ? 2 * 4 * splits * rows * cols / t->bytes_per_s : 0);
}

static cut cut_into(const hp_tiling *t, const tile *x, double splits, double rows, double cols,
                    double depth) {
    const double tiles = ceil(rows / x->rows) * ceil(cols / x->cols);
    const double waves = ceil(tiles * splits / t->units), busy = tiles * splits / (waves * t->units);
    const double part = fmax(1, depth / splits), going = part / (part + t->fill);
    const double rate = x->rate * going * busy * rows * cols / (tiles * x->rows * x->cols),
                 flops_per_s = t->flops_per_s > 0 ? t->flops_per_s : 1;
    return (cut){rate, busy,
                 2 * rows * cols * depth / (rate * flops_per_s) + seconds_of_parts(t, splits, rows, cols)};
}

/* Chooses whole sums, or as many partial sums as there is room for. */
static cut best_split(const hp_tiling *t, const tile *x, double rows, double cols, double depth) {
    const double tiles = ceil(rows / x->rows) * ceil(cols / x->cols),
                 least = t->depth > 0 ? t->depth : LEAST_DEPTH,
                 splits = fmin(floor(t->units / tiles), floor(depth / least));
    const cut whole = cut_into(t, x, 1, rows, cols, depth);
    if (splits <= 1) return whole;
    const cut parts = cut_into(t, x, splits, rows, cols, depth);
    return parts.seconds < whole.seconds ? parts : whole;
}

int hp_halvings(double side, double least) {
    enum { MOST = 16 }; /* limit for values from a table */
    int n = 0;
    while (n < MOST && ldexp(side, -(n + 1)) >= least) n++;
    return n;
}

static cut best_cut(const hp_tiling *t, double rows, double cols, double depth) {
    cut best = {0, 0, INFINITY};
    const int halvings_r = hp_halvings(t->rows, t->least), halvings_c = hp_halvings(t->cols, t->least);
    for (int r = 0; r <= halvings_r; r++)
        for (int c = 0; c <= halvings_c; c++) {
            const tile x = {ldexp(t->rows, -r), ldexp(t->cols, -c), pow(t->penalty, r + c)};
            const cut y = best_split(t, &x, rows, cols, depth);
            if (y.seconds < best.seconds) best = y;
        }
    return best;
}

double hp_tiling_fraction(const hp_tiling *t, double rows, double cols, double depth) {
    return best_cut(t, rows, cols, depth).rate;
}

double hp_tiling_seconds(const hp_tiling *t, double rows, double cols, double depth) {
    return best_cut(t, rows, cols, depth).seconds;
}

double hp_tiling_busy(const hp_tiling *t, double rows, double cols, double depth) {
    return best_cut(t, rows, cols, depth).busy;
}
