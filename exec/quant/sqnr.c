/* sqnr.c - signal-to-quantisation-noise ratio, and the fewest layers that must stay real to reach one; see
 * sqnr.h. */
#include "exec/quant/sqnr.h"

#include <math.h>
#include <stdlib.h>

void hp_sqnr_add(hp_sqnr *s, const float *real, const float *quantised, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const double r = (double)real[i], d = r - (double)quantised[i];
        s->signal += r * r;
        s->noise += d * d;
    }
}

double hp_sqnr_db(const hp_sqnr *s) {
    return s->noise > 0 ? 10 * log10(s->signal / s->noise) : (double)INFINITY;
}

static double noise_of(double db) {
    return pow(10, -db / 10); /* relative to signal 1 */
}

typedef struct loud {
    double db;
    int32_t layer;
} loud;

static int loudest_first(const void *x, const void *y) {
    const loud *a = x, *b = y;
    if (a->db != b->db) return a->db < b->db ? -1 : 1;
    return (a->layer > b->layer) - (a->layer < b->layer);
}

int hp_sensitive_layers(const double *db, int n, double target_db, int32_t *layer) {
    loud *all = malloc(sizeof *all * (size_t)(n + 1));
    double *rest = malloc(sizeof *rest * (size_t)(n + 1)); /* noise of all[i] and those after it */
    int kept = 0;
    if (!all || !rest) abort();
    for (int i = 0; i < n; i++) all[i] = (loud){db[i], i};
    qsort(all, (size_t)n, sizeof *all, loudest_first);
    rest[n] = 0;
    for (int i = n - 1; i >= 0; i--) rest[i] = rest[i + 1] + noise_of(all[i].db);
    while (kept < n && rest[kept] > noise_of(target_db)) {
        layer[kept] = all[kept].layer;
        kept++;
    }
    free(all);
    free(rest);
    return kept;
}
