/* tiles.c - the best of all halvings of a tile. */
#include "costmodels/tiles.h"

#include <math.h>

static const double LEAST_DEPTH = 512; /* of a part of a sum: shorter ones are not worth adding up again */

typedef struct cut {
    double rate; /* useful part of the device's */
    double busy; /* multiprocessors with work */
} cut;

static cut cut_into(const hp_tiling *t, double tile_rows, double tile_cols, double rows, double cols,
                    double depth) {
    const double tiles = ceil(rows / tile_rows) * ceil(cols / tile_cols);
    const double splits = fmax(1, fmin(floor(t->units / tiles), floor(depth / LEAST_DEPTH)));
    const double waves = ceil(tiles * splits / t->units), busy = tiles * splits / (waves * t->units);
    const double part = fmax(1, depth / splits), going = part / (part + t->fill);
    return (cut){going * busy * rows * cols / (tiles * tile_rows * tile_cols), busy};
}

static cut best_cut(const hp_tiling *t, double rows, double cols, double depth) {
    cut best = {0, 0};
    double row_rate = 1;
    for (double r = t->rows; r >= t->least; r /= 2, row_rate *= t->penalty) {
        double rate = row_rate;
        for (double c = t->cols; c >= t->least; c /= 2, rate *= t->penalty) {
            cut x = cut_into(t, r, c, rows, cols, depth);
            x.rate *= rate;
            if (x.rate > best.rate) best = x;
        }
    }
    return best;
}

double hp_tiling_fraction(const hp_tiling *t, double rows, double cols, double depth) {
    return best_cut(t, rows, cols, depth).rate;
}

double hp_tiling_busy(const hp_tiling *t, double rows, double cols, double depth) {
    return best_cut(t, rows, cols, depth).busy;
}
