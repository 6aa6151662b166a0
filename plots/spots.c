/* spots.c - tries places around each point, near ones first, and takes the first that is free. */
#include "plots/spots.h"

#include <math.h>

enum { TURNS = 16, RINGS = 3 };

/* How far two boxes with these centres are apart, in sizes of the box; below 1 they overlap. */
static double apart(hp_spot a, hp_spot b, double width, double height) {
    return fmax(fabs(a.x - b.x) / width, fabs(a.y - b.y) / height);
}

/* How free a place is: the least distance from points and the labels so far. */
static double freedom(hp_spot at, const hp_spot *point, int n_point, const hp_spot *label, int n_label,
                      double width, double height) {
    double least = at.x < width / 2 || at.y < height / 2 ? 0 : INFINITY; /* on the axes */
    for (int i = 0; i < n_point; i++) least = fmin(least, apart(at, point[i], width, height));
    for (int i = 0; i < n_label; i++) least = fmin(least, apart(at, label[i], width, height));
    return least;
}

void hp_spot_labels(const hp_spot *point, int n_point, int n_label, double width, double height,
                    hp_spot *label) {
    for (int k = 0; k < n_label; k++) {
        double best = -1;
        for (int t = 0; t < TURNS * RINGS && best < 1; t++) {
            const int turn = t % TURNS, ring = t / TURNS;
            const double angle = M_PI * (0.75 + 2.0 * turn / TURNS);
            const double c = cos(angle), s = sin(angle), edge = (1.05 + 0.5 * ring) / fmax(fabs(c), fabs(s));
            const hp_spot at = {point[k].x + edge * c * width, point[k].y + edge * s * height};
            const double is = freedom(at, point, n_point, label, k, width, height);
            if (is <= best) continue;
            best = is;
            label[k] = at;
        }
    }
}
