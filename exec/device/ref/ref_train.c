/* ref_train.c - softmax cross-entropy, gradient sums and the optimisers, float64. */
#include "exec/device/ref/ref.h"
#include "exec/device/metric.h"

#include <math.h>
#include <string.h>

/* Loss of one row; `top`: its first maximum. Writes (softmax - onehot) / rows when `dlogits` is given. */
static double row_loss(const double *logits, int classes, int top, int label, double rows, double *dlogits) {
    double sum = 0;
    for (int c = 0; c < classes; c++) sum += exp(logits[c] - logits[top]);
    for (int c = 0; dlogits && c < classes; c++)
        dlogits[c] = (exp(logits[c] - logits[top]) / sum - (c == label ? 1 : 0)) / rows;
    return log(sum) + logits[top] - logits[label];
}

static int first_maximum(const double *v, int n) {
    int best = 0;
    for (int i = 1; i < n; i++)
        if (v[i] > v[best]) best = i;
    return best;
}

/* Sums over the classes that this rank has. */
void hp_ref_maxsum(const hp_bound *b, const hp_step *s) {
    (void)s;
    const int classes = b->map.in_c[0];
    memset(b->sums, 0, (size_t)(b->loss.members * b->count * HP_MAXSUMS) * sizeof(double));
    for (int64_t i = 0; i < b->count; i++) {
        const double *logits = (const double *)b->x[0] + i * classes;
        const int label = b->step.labels[i], top = first_maximum(logits, classes);
        double *sums = b->sums + b->loss.first_sum + i * HP_MAXSUMS;
        for (int c = 0; c < classes; c++) sums[HP_MAXSUM_SUM] += exp(logits[c] - logits[top]);
        sums[HP_MAXSUM_MAX] = logits[top];
        sums[HP_MAXSUM_AT] = b->loss.first_class + top;
        if (hp_metric_is_here(b, label)) sums[HP_MAXSUM_LABEL] = logits[label - b->loss.first_class];
    }
}

/* Rows of the whole batch on all ranks: the step's gradients are means over them. */
static double all_rows(const hp_bound *b) {
    return (double)b->step.batch * (double)b->step.pixels;
}

static void loss_of_shared(const hp_bound *b, double rows) {
    for (int64_t i = 0; i < b->count; i++) {
        const double *logits = (const double *)b->x[0] + i * b->map.in_c[0];
        double *dlogits = b->y ? (double *)b->y + i * b->map.in_c[0] : NULL;
        const int label = b->step.labels[i];
        const hp_softmax_row r = hp_softmax_of(b, i);
        const bool counts = hp_metric_counts(label, b->loss.classes);
        for (int c = 0; dlogits && c < b->map.in_c[0]; c++)
            dlogits[c] =
                counts ? (exp(logits[c] - r.max) / r.sum - (b->loss.first_class + c == label ? 1 : 0)) / rows
                       : 0;
        if (hp_metric_is_here(b, label))
            hp_metric_add(b->step.metric, log(r.sum) + r.max - r.label, label, r.top);
    }
}

void hp_ref_loss(const hp_bound *b, const hp_step *s) {
    const double rows = all_rows(b) / hp_step_loss_scale(s);
    if (b->sums) {
        loss_of_shared(b, rows);
        return;
    }
    const int classes = b->map.in_c[0];
    for (int64_t i = 0; i < b->count; i++) {
        const double *logits = (const double *)b->x[0] + i * classes;
        double *dlogits = b->y ? (double *)b->y + i * classes : NULL;
        const int label = b->step.labels[i], top = first_maximum(logits, classes);
        if (hp_metric_counts(label, classes)) {
            const double loss = row_loss(logits, classes, top, label, rows, dlogits);
            hp_metric_add(b->step.metric, loss, label, top);
        } else {
            for (int c = 0; dlogits && c < classes; c++) dlogits[c] = 0;
        }
    }
}

void hp_ref_accum(const hp_bound *b, const hp_step *s) {
    (void)s;
    double *dst = b->y;
    const double *src = b->x[0];
    for (int64_t i = 0; i < b->count; i++) dst[i] += src[i];
}

void hp_ref_part(const hp_bound *b, const hp_step *s) {
    if (b->task->flags & HP_FLAG_ADD)
        hp_ref_accum(b, s);
    else
        memcpy(b->y, b->x[0], (size_t)b->count * sizeof(double));
}

typedef double update_fn(double w, double g, double *m, double *v, double decay,
                         const hp_update_rates_f64 *rates);
static update_fn *const updates[HP_OPTIMIZERS] = {
#define STATE(...)
#define OPTIMIZER(id, name, function, ...) [HP_##id] = hp_update_##function##_f64,
#include "networks/graph/optimizers.def"
};

void hp_ref_update(const hp_bound *b, const hp_step *s) {
    double *w = b->update.weight, *m = b->update.state[0], *v = b->update.state[1];
    const double *g = b->update.gradient, factor = hp_metric_descent_factor(b, s);
    const hp_update_rates_f64 rates = hp_step_rates(s);
    if (factor == 0) return;
    for (int64_t i = 0; i < b->count; i++)
        w[i] = updates[b->update.optimizer](w[i], factor * g[i], &m[i], &v[i],
                                            i < b->update.decayed ? rates.decay : 0, &rates);
}

void hp_ref_finite(const hp_bound *b, const hp_step *s) {
    (void)s;
    const double *g = b->update.gradient;
    for (int64_t i = 0; i < b->count; i++)
        if (!isfinite(g[i])) b->step.metric[HP_METRIC_OVERFLOW] = 1;
}

void hp_ref_norm(const hp_bound *b, const hp_step *s) {
    (void)s;
    const double *g = b->update.gradient;
    for (int64_t i = 0; i < b->count; i++) b->step.metric[HP_METRIC_SQUARES] += g[i] * g[i];
}
