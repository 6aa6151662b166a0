/* device_ref_train.c - softmax cross-entropy, gradient sums and stochastic gradient descent, float64. */
#include "exec/device_ref.h"

#include <math.h>

/* Loss of one row; writes (softmax - onehot) / batch when `dlogits` is given. */
static double row_loss(const double *logits, int classes, int label, double batch, double *dlogits) {
    double top = logits[0], sum = 0;
    for (int c = 1; c < classes; c++) top = logits[c] > top ? logits[c] : top;
    for (int c = 0; c < classes; c++) sum += exp(logits[c] - top);
    for (int c = 0; dlogits && c < classes; c++)
        dlogits[c] = (exp(logits[c] - top) / sum - (c == label ? 1 : 0)) / batch;
    return log(sum) + top - logits[label];
}

static int first_maximum(const double *v, int n) {
    int best = 0;
    for (int i = 1; i < n; i++)
        if (v[i] > v[best]) best = i;
    return best;
}

void hp_ref_loss(const hp_bound *b, const hp_step *s) {
    (void)s;
    const int classes = b->in_c[0];
    for (int64_t i = 0; i < b->count; i++) {
        const double *logits = (const double *)b->x[0] + i * classes;
        double *dlogits = b->y ? (double *)b->y + i * classes : NULL;
        const int label = b->labels[i];
        if (label < 0) {
            for (int c = 0; dlogits && c < classes; c++) dlogits[c] = 0;
            continue;
        }
        b->metric[0] += row_loss(logits, classes, label, (double)b->batch, dlogits);
        b->metric[1] += 1;
        b->metric[2] += first_maximum(logits, classes) == label;
    }
}

void hp_ref_accum(const hp_bound *b, const hp_step *s) {
    (void)s;
    double *dst = b->y;
    const double *src = b->x[0];
    for (int64_t i = 0; i < b->count; i++) dst[i] += src[i];
}

void hp_ref_sgd(const hp_bound *b, const hp_step *s) {
    double *w = b->sgd_w, *m = b->sgd_m;
    const double *g = b->sgd_g;
    for (int64_t i = 0; i < b->count; i++) {
        m[i] = s->momentum * m[i] + g[i] + s->weight_decay * w[i];
        w[i] -= s->lr * m[i];
    }
}
