/* bench_figures.h - statistics over many samples. Pure. */
#ifndef HP_BENCH_FIGURES_H
#define HP_BENCH_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hp_bench_figures {
    double time_s; /* median over samples: each the mean over ranks, or the last rank's time */
    double min_s, median_s, p99_s,
        max_s; /* over all samples of all ranks; p99: the smallest value that 99% do not exceed */
} hp_bench_figures;

/* sample[rank * n + i], n > 0. last: time_s takes the last rank's time. */
hp_bench_figures hp_bench_figures_of(const double *sample, int ranks, int64_t n, bool last);
/* time_s of samples [first, first + some). */
double hp_bench_time(const double *sample, int ranks, int64_t n, int64_t first, int64_t some, bool last);

#endif
