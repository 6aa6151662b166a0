/* tiles.c - the best of all halvings of a tile. */
#include "costmodels/gpu/tiles.h"

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

/* Of a side, until it would be shorter than the least. */
static int halvings(double side, double least) {
    int n = 0;
    while (ldexp(side, -(n + 1)) >= least) n++;
    return n;
}

static cut best_cut(const hp_tiling *t, double rows, double cols, double depth) {
    cut best = {0, 0};
    const int halvings_r = halvings(t->rows, t->least), halvings_c = halvings(t->cols, t->least);
    for (int r = 0; r <= halvings_r; r++)
        for (int c = 0; c <= halvings_c; c++) {
            cut x = cut_into(t, ldexp(t->rows, -r), ldexp(t->cols, -c), rows, cols, depth);
            x.rate *= pow(t->penalty, r + c);
            if (x.rate > best.rate) best = x;
        }
    return best;
}

double hp_tiling_fraction(const hp_tiling *t, double rows, double cols, double depth) {
    return best_cut(t, rows, cols, depth).rate;
}

double hp_tiling_busy(const hp_tiling *t, double rows, double cols, double depth) {
    return best_cut(t, rows, cols, depth).busy;
}
