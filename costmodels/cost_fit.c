/* cost_fit.c - robust least squares on relative errors: a task of 10 us counts as much as one of 10 ms, and a
 * sample interrupted by the operating system counts little (bisquare weights, Holland & Welsch 1977, as in
 * gsl_multifit_robust). */
#include "costmodels/cost_fit.h"
#include "base/alloc.h"

#include "traces/query.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_fit.h>
#include <gsl/gsl_multifit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TERMS = 3 };

static double term(const hp_fit_sample *s, int k) {
    return (k == 0 ? 1 : k == 1 ? s->flops : s->bytes) / s->seconds;
}

/* Solves for the terms in `use`; every equation is divided by its time. Returns false if the terms are
 * linearly dependent. */
static bool solve(const hp_fit_sample *sample, int n, const bool *use, double *coefficient) {
    int column[TERMS], n_column = 0;
    for (int k = 0; k < TERMS; k++) {
        if (use[k]) column[n_column++] = k;
    }
    memset(coefficient, 0, TERMS * sizeof *coefficient);
    if (n_column == 0 || n <= n_column) return false;
    gsl_matrix *a = gsl_matrix_alloc((size_t)n, (size_t)n_column),
               *cov = gsl_matrix_alloc((size_t)n_column, (size_t)n_column);
    gsl_vector *one = gsl_vector_alloc((size_t)n), *c = gsl_vector_alloc((size_t)n_column);
    /* scales columns to similar size, because otherwise the rates' units would decide the rank */
    double scale[TERMS];
    for (int k = 0; k < n_column; k++) {
        scale[k] = 0;
        for (int i = 0; i < n; i++) scale[k] = fmax(scale[k], fabs(term(&sample[i], column[k])));
        if (scale[k] <= 0) scale[k] = 1;
        for (int i = 0; i < n; i++)
            gsl_matrix_set(a, (size_t)i, (size_t)k, term(&sample[i], column[k]) / scale[k]);
    }
    gsl_vector_set_all(one, 1);
    gsl_multifit_robust_workspace *w =
        gsl_multifit_robust_alloc(gsl_multifit_robust_bisquare, (size_t)n, (size_t)n_column);
    gsl_multifit_robust_maxiter(200, w);
    const int status = gsl_multifit_robust(a, one, c, cov, w);
    for (int k = 0; k < n_column; k++) coefficient[column[k]] = gsl_vector_get(c, (size_t)k) / scale[k];
    gsl_multifit_robust_free(w);
    gsl_matrix_free(a);
    gsl_matrix_free(cov);
    gsl_vector_free(one);
    gsl_vector_free(c);
    return status == GSL_SUCCESS || status == GSL_EMAXITER;
}

static double predicted(const hp_fit *f, const hp_fit_sample *s) {
    return f->launch_s + (f->flops_per_s > 0 ? s->flops / f->flops_per_s : 0) +
           (f->bytes_per_s > 0 ? s->bytes / f->bytes_per_s : 0);
}

static double median_error(const hp_fit *f, const hp_fit_sample *sample, int n) {
    double *error = hp_alloc(sizeof(double) * (size_t)n);
    for (int i = 0; i < n; i++) error[i] = fabs(predicted(f, &sample[i]) / sample[i].seconds - 1);
    const double m = hp_median(error, n);
    free(error);
    return m;
}

static int by_size(const void *a, const void *b) {
    const hp_fit_sample *x = a, *y = b;
    if (x->bytes < y->bytes || x->bytes > y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return (x->flops > y->flops) - (x->flops < y->flops);
}

/* Counts distinct sizes: samples of one size repeat the same information. */
static int count_sizes(const hp_fit_sample *sample, int n) {
    hp_fit_sample *sorted = hp_alloc(sizeof *sorted * (size_t)n);
    memcpy(sorted, sample, sizeof *sorted * (size_t)n);
    qsort(sorted, (size_t)n, sizeof *sorted, by_size);
    int sizes = 1;
    for (int i = 1; i < n; i++) sizes += by_size(&sorted[i - 1], &sorted[i]) != 0;
    free(sorted);
    return sizes;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void set_ranges(const hp_fit_sample *sample, int n, hp_fit *f) {
    double *rate = hp_alloc(sizeof *rate * (size_t)n);
    f->bytes_least = f->intensity_least = INFINITY;
    f->bytes_most = f->intensity_most = 0;
    for (int i = 0; i < n; i++) {
        const hp_fit_sample *s = &sample[i];
        const double intensity = s->bytes > 0 ? s->flops / s->bytes : 0;
        f->bytes_least = fmin(f->bytes_least, s->bytes);
        f->bytes_most = fmax(f->bytes_most, s->bytes);
        f->intensity_least = fmin(f->intensity_least, intensity);
        f->intensity_most = fmax(f->intensity_most, intensity);
        rate[i] = s->flops / fmax(s->seconds, s->clock_s);
    }
    qsort(rate, (size_t)n, sizeof *rate, ascending);
    f->fastest = rate[(n - 1) - (n - 1) / 20];
    free(rate);
}

/* The 90 % half-width of errors with median `m` (normal: 1.645 / 0.674), corrected for the `terms` spent on
 * the fit. */
static double half_width(double m, int sizes, int terms) {
    return sizes > terms ? 2.44 * m * sqrt(sizes / (double)(sizes - terms)) : INFINITY;
}

bool hp_fit_work(const hp_fit_sample *sample, int n, hp_fit *fit) {
    if (n < 3) return false;
    const int sizes = count_sizes(sample, n);
    gsl_error_handler_t *old = gsl_set_error_handler_off();
    bool found = false;
    fit->residual = INFINITY;
    /* every subset of terms: the best one without a negative term (three terms: eight subsets) */
    for (int subset = 1; subset < 1 << TERMS; subset++) {
        const bool use[TERMS] = {subset & 1, subset >> 1 & 1, subset >> 2 & 1};
        double c[TERMS];
        if (!solve(sample, n, use, c) || c[0] < 0 || c[1] < 0 || c[2] < 0) continue;
        hp_fit f = {
            .launch_s = c[0], .flops_per_s = c[1] > 0 ? 1 / c[1] : 0, .bytes_per_s = c[2] > 0 ? 1 / c[2] : 0};
        f.residual = half_width(median_error(&f, sample, n), sizes, use[0] + use[1] + use[2]);
        if (f.residual >= fit->residual) continue;
        *fit = f;
        found = true;
    }
    gsl_set_error_handler(old);
    if (found) set_ranges(sample, n, fit);
    return found;
}

bool hp_fit_alpha_beta(const double *bytes, const double *seconds, int n, double *alpha_s,
                       double *beta_s_per_byte) {
    if (n < 2) return false;
    double *weight = hp_alloc(sizeof(double) * (size_t)n);
    for (int i = 0; i < n; i++) weight[i] = 1 / (seconds[i] * seconds[i]);
    double c00, c01, c11, chi2;
    gsl_fit_wlinear(bytes, 1, weight, 1, seconds, 1, (size_t)n, alpha_s, beta_s_per_byte, &c00, &c01, &c11,
                    &chi2);
    if (*alpha_s < 0) { /* fit through the origin */
        *alpha_s = 0;
        gsl_fit_wmul(bytes, 1, weight, 1, seconds, 1, (size_t)n, beta_s_per_byte, &c11, &chi2);
    }
    if (*beta_s_per_byte < 0) *beta_s_per_byte = 0;
    free(weight);
    return true;
}
