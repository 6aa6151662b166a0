/* bench_figures.c - medians and percentiles; see bench_figures.h. */
#include "exec/bench/bench_figures.h"
#include "base/alloc.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double *room(int64_t n) {
    double *v = hp_alloc(sizeof *v * (size_t)n);
    return v;
}

/* Sorts. */
static double median(double *v, int64_t n) {
    qsort(v, (size_t)n, sizeof *v, ascending);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

double hp_bench_time(const double *sample, int ranks, int64_t n, int64_t first, int64_t some, bool last) {
    double *of = room(some);
    for (int64_t i = 0; i < some; i++) {
        of[i] = 0;
        for (int r = 0; r < ranks; r++) {
            const double s = sample[r * n + first + i];
            of[i] = !last ? of[i] + s / ranks : s > of[i] ? s : of[i];
        }
    }
    const double time_s = median(of, some);
    free(of);
    return time_s;
}

hp_bench_figures hp_bench_figures_of(const double *sample, int ranks, int64_t n, bool last) {
    const int64_t all = n * ranks;
    double *v = room(all);
    memcpy(v, sample, sizeof *v * (size_t)all);
    hp_bench_figures f = {.time_s = hp_bench_time(sample, ranks, n, 0, n, last), .median_s = median(v, all)};
    f.min_s = v[0];
    f.p99_s = v[(99 * all + 99) / 100 - 1];
    f.max_s = v[all - 1];
    free(v);
    return f;
}
