/* metric.h - what a row of logits adds to the step's metric buffer, the same on every device. */
#ifndef HP_METRIC_H
#define HP_METRIC_H

#include "exec/device/device_bind.h"

#include <math.h>

/* Does this row have a label? Negative labels mean none, as does 255 in masks with fewer classes. */
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

/* The softmax of a row, combined from the ranks that share its classes (plan/program/program.h). */
typedef struct hp_softmax_row {
    double max, sum, label; /* sum: of exponentials relative to the maximum; label: its logit */
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
/* Is the label's class on this rank? Its row counts here, and nowhere else. */
static inline bool hp_metric_is_here(const hp_bound *b, int label) {
    return label >= b->loss.first_class && label < b->loss.first_class + b->map.in_c[0];
}

/* Loss tasks divide the gradient by all rows of the batch, because no rank knows how many have a label. When
 * the optimiser runs, the all-reduced metric tells: this factor makes the mean one over rows with a label. A
 * classifier's samples always count, even without a label. */
static inline double hp_metric_gradient_factor(const hp_bound *b) {
    const double counted = b->step.metric[HP_METRIC_COUNTED];
    return b->step.pixels > 1 && counted > 0 ? (double)b->step.batch * (double)b->step.pixels / counted : 1;
}

/* Factor that the optimiser applies to gradients. 0: a gradient overflowed somewhere, so
 * nothing may change. */
static inline double hp_metric_descent_factor(const hp_bound *b, const hp_step *s) {
    if (b->step.metric[HP_METRIC_OVERFLOW] > 0) return 0;
    const double factor = hp_metric_gradient_factor(b) / hp_step_loss_scale(s);
    if (!b->update.clips) return factor;
    return factor * hp_update_clip_factor(factor * sqrt(b->step.metric[HP_METRIC_SQUARES]), s->clip_norm);
}

#endif
