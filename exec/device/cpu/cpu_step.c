/* cpu_step.c - loss, gradient sums and optimiser tasks. */
#include "exec/device/cpu/cpu_train.h"
#include "exec/device/metric.h"

#include <math.h>
#include <string.h>

/* Softmax cross-entropy of one row, internally in float64: rows are short, and users compare the loss. The
 * exponentials are kept in `dlogits` as float32. That of the first maximum, `top`, is exactly 1, so that the
 * gradient of a certain row keeps its digits. */
static double row_loss(const float *logits, int classes, int top, int label, double scale, float *dlogits) {
    double sum = 1;
    for (int c = 0; c < classes; c++) {
        const double e = c == top ? 1 : exp((double)logits[c] - (double)logits[top]);
        if (c != top) sum += e;
        if (dlogits) dlogits[c] = (float)e;
    }
    for (int c = 0; dlogits && c < classes; c++)
        dlogits[c] = (float)(((double)dlogits[c] / sum - (c == label ? 1 : 0)) * scale);
    return log(sum) + (double)logits[top] - (double)logits[label];
}

static int first_maximum(const float *v, int n) {
    int best = 0;
    for (int i = 1; i < n; i++)
        if (v[i] > v[best]) best = i;
    return best;
}

/* Over the classes of this rank. */
hp_status hp_cpu_maxsum(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)d;
    (void)s;
    (void)err;
    const int classes = b->map.in_c[0];
    memset(b->sums, 0, (size_t)(b->loss.members * b->count * HP_MAXSUMS) * sizeof(double));
    for (int64_t i = 0; i < b->count; i++) {
        const float *logits = (const float *)b->x[0] + i * classes;
        const int label = b->step.labels[i], top = first_maximum(logits, classes);
        double *sums = b->sums + b->loss.first_sum + i * HP_MAXSUMS;
        sums[HP_MAXSUM_MAX] = (double)logits[top];
        sums[HP_MAXSUM_AT] = b->loss.first_class + top;
        for (int c = 0; c < classes; c++)
            sums[HP_MAXSUM_SUM] += c == top ? 1 : exp((double)logits[c] - (double)logits[top]);
        if (hp_metric_is_here(b, label)) sums[HP_MAXSUM_LABEL] = (double)logits[label - b->loss.first_class];
    }
    return HP_OK;
}

static void loss_of_shared(const hp_bound *b, double scale) {
    for (int64_t i = 0; i < b->count; i++) {
        const float *logits = (const float *)b->x[0] + i * b->map.in_c[0];
        float *dlogits = b->y ? (float *)b->y + i * b->map.in_c[0] : NULL;
        const int label = b->step.labels[i];
        const hp_softmax_row r = hp_softmax_of(b, i);
        const bool counts = hp_metric_counts(label, b->loss.classes);
        for (int c = 0; dlogits && c < b->map.in_c[0]; c++) {
            const double p = exp((double)logits[c] - r.max) / r.sum;
            dlogits[c] = counts ? (float)((p - (b->loss.first_class + c == label ? 1 : 0)) * scale) : 0;
        }
        if (hp_metric_is_here(b, label))
            hp_metric_add(b->step.metric, log(r.sum) + r.max - r.label, label, r.top);
    }
}

hp_status hp_cpu_loss(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)d;
    (void)s;
    (void)err;
    const int classes = b->map.in_c[0];
    const double scale =
        1 / ((double)b->step.batch * (double)b->step.pixels); /* means over the rows of all ranks */
    if (b->sums) {
        loss_of_shared(b, scale);
        return HP_OK;
    }
    for (int64_t i = 0; i < b->count; i++) {
        const float *logits = (const float *)b->x[0] + i * classes;
        float *dlogits = b->y ? (float *)b->y + i * classes : NULL;
        const int label = b->step.labels[i], top = first_maximum(logits, classes);
        if (hp_metric_counts(label, classes))
            hp_metric_add(b->step.metric, row_loss(logits, classes, top, label, scale, dlogits), label, top);
        else if (dlogits)
            memset(dlogits, 0, (size_t)classes * sizeof *dlogits);
    }
    return HP_OK;
}

hp_status hp_cpu_accum(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    (void)err;
    d->kernels->point.accum(b->y, b->x[0], b->count);
    return HP_OK;
}

hp_status hp_cpu_part(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    if (b->task->flags & HP_FLAG_ADD) return hp_cpu_accum(d, b, s, err);
    memcpy(b->y, b->x[0], (size_t)b->count * sizeof(float));
    return HP_OK;
}

/* NULL for a state that the optimiser does not have. */
static float *state_from(float *state, int64_t element) {
    return state ? state + element : NULL;
}

hp_status hp_cpu_update(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)err;
    const float factor = (float)hp_metric_descent_factor(b, s);
    const hp_update_rates_f64 exact = hp_step_rates(s);
    const hp_update_rates_f32 rates = hp_update_rates_as_f32(&exact);
    float *w = b->update.weight, *m = b->update.state[0], *v = b->update.state[1];
    const float *g = b->update.gradient;
    if (factor == 0 || b->count == 0) return HP_OK; /* 0 times a non-finite gradient would not be 0 */
    const int64_t n = b->update.decayed;            /* elements before it decay, the others do not */
    d->kernels->point.update[b->update.optimizer](w, g, m, v, n, factor, rates.decay, &rates);
    d->kernels->point.update[b->update.optimizer](w + n, g + n, state_from(m, n), state_from(v, n),
                                                  b->count - n, factor, 0, &rates);
    return HP_OK;
}

/* An infinity or a NaN has all bits of the exponent set. */
hp_status hp_cpu_finite(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    const uint32_t exponent = 0x7f800000;
    const float *g = b->update.gradient;
    uint32_t most = 0;
    (void)d, (void)s, (void)err;
    for (int64_t i = 0; i < b->count; i++) {
        uint32_t bits;
        memcpy(&bits, &g[i], sizeof bits);
        bits &= exponent;
        most = bits > most ? bits : most;
    }
    if (most == exponent) b->step.metric[HP_METRIC_OVERFLOW] = 1;
    return HP_OK;
}

hp_status hp_cpu_norm(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    (void)err;
    b->step.metric[HP_METRIC_SQUARES] += d->kernels->point.squares(b->update.gradient, b->count);
    return HP_OK;
}
