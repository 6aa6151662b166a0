/* drift.c - readings of a run's yardsticks, and the speed of each step. */
#include "costmodels/drift.h"

#include "traces/run_speed.h"

#include <math.h>

enum { FEWEST_STEPS = 8 /* fewest steps from which a correlation is estimated */ };

/* Sums of the readings after each step: (n_iter + 1, n_rank); row 0 precedes the first step. */
typedef struct sums {
    double *sum;
    int *n;
} sums;

static hp_status read_all(hp_arena *arena, hp_db *db, const hp_trace *t, hp_drift *d, hp_error *err) {
    int capacity = 0;
    int64_t t0 = INT64_MAX;
    hp_trace_value *v[HP_SPEED_CLASSES];
    int64_t n[HP_SPEED_CLASSES];
    for (int y = 0; y < HP_SPEED_CLASSES; y++) {
        HP_TRY(hp_yardstick_samples(arena, db, t->run, (hp_yardstick)y, &v[y], &n[y], err));
        for (int64_t i = 0; i < n[y]; i++) t0 = v[y][i].t_ns < t0 ? v[y][i].t_ns : t0;
    }
    const int32_t first = t->iter[0].iter - 1, last = t->iter[t->n_iter - 1].iter;
    for (int y = 0; y < HP_SPEED_CLASSES; y++)
        for (int64_t i = 0; i < n[y]; i++) {
            if (!(v[y][i].value > 0) || v[y][i].iter < first || v[y][i].iter > last) continue;
            HP_ROOM(arena, d->reading, d->n, capacity);
            d->reading[d->n++] = (hp_reading){.yardstick = y,
                                              .rank = v[y][i].rank,
                                              .iter = v[y][i].iter,
                                              .t_s = 1e-9 * (double)(v[y][i].t_ns - t0),
                                              .seconds = v[y][i].value};
        }
    return HP_OK;
}

static void class_means(const hp_drift *d, double mean[HP_SPEED_CLASSES]) {
    int n[HP_SPEED_CLASSES] = {0};
    for (int y = 0; y < HP_SPEED_CLASSES; y++) mean[y] = 0;
    for (int i = 0; i < d->n; i++)
        mean[d->reading[i].yardstick] += d->reading[i].seconds, n[d->reading[i].yardstick]++;
    for (int y = 0; y < HP_SPEED_CLASSES; y++) mean[y] = n[y] ? mean[y] / n[y] : NAN;
}

/* Row of a step; steps of a trace are consecutive except for incomplete ones. */
static int row_of(const hp_trace *t, int32_t iter) {
    int low = 0, high = t->n_iter;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (t->iter[middle].iter < iter)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < t->n_iter && t->iter[low].iter == iter) return low + 1;
    return iter == t->iter[0].iter - 1 ? 0 : -1;
}

static sums sum_readings(hp_arena *arena, const hp_drift *d, const hp_trace *t) {
    const int64_t n = (int64_t)(d->n_iter + 1) * d->n_rank;
    const sums s = {HP_NEW(arena, double, n), HP_NEW(arena, int, n)};
    double mean[HP_SPEED_CLASSES];
    class_means(d, mean);
    for (int i = 0; i < d->n; i++) {
        const hp_reading *r = &d->reading[i];
        const int row = row_of(t, r->iter);
        if (row < 0 || r->rank >= d->n_rank) continue;
        s.sum[row * d->n_rank + r->rank] += r->seconds / mean[r->yardstick];
        s.n[row * d->n_rank + r->rank]++;
    }
    return s;
}

/* Mean relative reading of each rank. */
static double *rank_means(hp_arena *arena, const hp_drift *d, const sums *s) {
    double *mean = HP_NEW(arena, double, d->n_rank);
    for (int r = 0; r < d->n_rank; r++) {
        double sum = 0;
        int n = 0;
        for (int i = 0; i <= d->n_iter; i++) sum += s->sum[i * d->n_rank + r], n += s->n[i * d->n_rank + r];
        mean[r] = n ? sum / n : 1;
    }
    return mean;
}

/* 2r / (1 + r) for the readings before and after steps; 0 if there are too few. */
static double reliability_of(const hp_drift *d, const sums *s, const double *mean) {
    double both = 0, before = 0, after = 0;
    int steps = 0;
    for (int i = 0; i < d->n_iter; i++)
        for (int r = 0; r < d->n_rank; r++) {
            const int a = i * d->n_rank + r, b = a + d->n_rank;
            if (!s->n[a] || !s->n[b]) continue;
            const double x = s->sum[a] / s->n[a] - mean[r], y = s->sum[b] / s->n[b] - mean[r];
            both += x * y, before += x * x, after += y * y;
            steps++;
        }
    if (steps < FEWEST_STEPS || !(before > 0 && after > 0)) return 0;
    const double correlation = fmax(0, fmin(1, both / sqrt(before * after)));
    return 2 * correlation / (1 + correlation);
}

static void set_factors(hp_arena *arena, const hp_trace *t, hp_drift *d) {
    const sums s = sum_readings(arena, d, t);
    const double *mean = rank_means(arena, d, &s);
    d->reliability = reliability_of(d, &s, mean);
    d->factor = HP_NEW(arena, double, (int64_t)d->n_iter * d->n_rank);
    for (int i = 0; i < d->n_iter; i++)
        for (int r = 0; r < d->n_rank; r++) {
            const int a = i * d->n_rank + r, b = a + d->n_rank, n = s.n[a] + s.n[b];
            const double beside = n ? (s.sum[a] + s.sum[b]) / n : mean[r];
            d->factor[a] = mean[r] + d->reliability * (beside - mean[r]);
        }
}

hp_status hp_drift_read(hp_arena *arena, hp_db *db, const hp_trace *t, hp_drift *d, hp_error *err) {
    hp_run_speed speed;
    *d = (hp_drift){.n_rank = t->n_rank, .n_iter = t->n_iter, .availability = 1};
    HP_TRY(read_all(arena, db, t, d, err));
    HP_TRY(hp_run_speed_read(arena, db, t, &speed, err));
    if (!isnan(speed.availability)) d->availability = speed.availability;
    set_factors(arena, t, d);
    return HP_OK;
}
