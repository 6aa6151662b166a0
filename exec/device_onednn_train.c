/* device_onednn_train.c - loss, gradient sums and optimiser tasks. */
#include "exec/device_onednn.h"

#include <math.h>
#include <string.h>

/* Softmax cross-entropy of one row, inside in float64: it is short, and the loss is what users compare. */
static double row_loss(const float *logits, int classes, int label, double batch, float *dlogits) {
    double top = (double)logits[0], sum = 0;
    for (int c = 1; c < classes; c++) top = (double)logits[c] > top ? (double)logits[c] : top;
    for (int c = 0; c < classes; c++) sum += exp((double)logits[c] - top);
    for (int c = 0; dlogits && c < classes; c++)
        dlogits[c] = (float)((exp((double)logits[c] - top) / sum - (c == label ? 1 : 0)) / batch);
    return log(sum) + top - (double)logits[label];
}

static int first_maximum(const float *v, int n) {
    int best = 0;
    for (int i = 1; i < n; i++)
        if (v[i] > v[best]) best = i;
    return best;
}

hp_status hp_cpu_loss(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)d;
    (void)s;
    (void)err;
    const int classes = b->in_c[0];
    for (int64_t i = 0; i < b->count; i++) {
        const float *logits = (const float *)b->x[0] + i * classes;
        float *dlogits = b->y ? (float *)b->y + i * classes : NULL;
        const int label = b->labels[i];
        if (label < 0) {
            if (dlogits) memset(dlogits, 0, (size_t)classes * sizeof *dlogits);
            continue;
        }
        b->metric[0] += row_loss(logits, classes, label, (double)b->batch, dlogits);
        b->metric[1] += 1;
        b->metric[2] += first_maximum(logits, classes) == label;
    }
    return HP_OK;
}

hp_status hp_cpu_accum(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    (void)err;
    d->kernels->point.accum(b->y, b->x[0], b->count);
    return HP_OK;
}

hp_status hp_cpu_sgd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)err;
    d->kernels->point.sgd(b->sgd_w, b->sgd_g, b->sgd_m, b->count, (float)s->lr, (float)s->momentum,
                          (float)s->weight_decay);
    return HP_OK;
}
