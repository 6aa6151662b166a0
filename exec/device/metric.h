/* metric.h - what a row of logits adds to the step's metric buffer, the same on every device. */
#ifndef HP_METRIC_H
#define HP_METRIC_H

#include "exec/device/device_bind.h"

#include <math.h>

/* Has this row a label? Negative ones say that it has none, and so does 255 in masks of fewer classes. */
static inline bool hp_metric_counts(int label, int classes) {
    return label >= 0 && label < classes;
}

static inline void hp_metric_add(double *metric, double loss, int label, int predicted) {
    metric[HP_METRIC_LOSS] += loss;
    metric[HP_METRIC_COUNTED] += 1;
    metric[HP_METRIC_CORRECT] += predicted == label;
    metric[HP_METRIC_HIT] += predicted == label && label != 0;
    metric[HP_METRIC_PREDICTED] += predicted != 0;
    metric[HP_METRIC_LABELLED] += label != 0;
}

/* The softmax of a row out of what the ranks that have its classes say of theirs (plan/program/program.h). */
typedef struct hp_softmax_row {
    double max, sum, label; /* sum: of exponentials beside the maximum; label: its logit */
    int top;                /* class of the first maximum */
} hp_softmax_row;
static inline hp_softmax_row hp_softmax_of(const hp_bound *b, int64_t row) {
    hp_softmax_row r = {.top = -1};
    for (int m = 0; m < b->loss.members; m++) {
        const double *s = b->sums + ((int64_t)m * b->count + row) * HP_MAXSUMS;
        if (r.top < 0 || s[HP_MAXSUM_MAX] > r.max) {
            r.max = s[HP_MAXSUM_MAX];
            r.top = (int)s[HP_MAXSUM_AT];
        }
        r.label += s[HP_MAXSUM_LABEL];
    }
    for (int m = 0; m < b->loss.members; m++) {
        const double *s = b->sums + ((int64_t)m * b->count + row) * HP_MAXSUMS;
        r.sum += s[HP_MAXSUM_SUM] * exp(s[HP_MAXSUM_MAX] - r.max);
    }
    return r;
}
/* Is the label's class among those that are here? Its row counts here, and nowhere else. */
static inline bool hp_metric_is_here(const hp_bound *b, int label) {
    return label >= b->loss.first_class && label < b->loss.first_class + b->map.in_c[0];
}

/* Loss tasks divide the gradient by all rows of the batch, since no rank knows how many of them have a label.
 * By the time of the optimiser the all-reduced metric says so: this factor makes the mean one over those that
 * have. A classifier's samples always count, also those without a label. */
static inline double hp_metric_gradient_factor(const hp_bound *b) {
    const double counted = b->step.metric[HP_METRIC_COUNTED];
    return b->step.pixels > 1 && counted > 0 ? (double)b->step.batch * (double)b->step.pixels / counted : 1;
}

/* What the optimiser multiplies gradients with. 0: somewhere one has overflowed, nothing is to change. */
static inline double hp_metric_descent_factor(const hp_bound *b, const hp_step *s) {
    if (b->step.metric[HP_METRIC_OVERFLOW] > 0) return 0;
    const double factor = hp_metric_gradient_factor(b) / hp_step_loss_scale(s);
    if (!b->update.clips) return factor;
    return factor * hp_update_clip_factor(factor * sqrt(b->step.metric[HP_METRIC_SQUARES]), s->clip_norm);
}

#endif
