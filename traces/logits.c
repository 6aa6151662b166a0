/* logits.c - classes, agreement and SQNR of arrays of logits. */
#include "traces/logits.h"

#include <math.h>

int32_t hp_logits_argmax(const float *row, int64_t classes) {
    int32_t best = 0;
    for (int64_t c = 0; c < classes; c++) {
        if (isnan(row[c])) return -1;
        if (row[c] > row[best]) best = (int32_t)c;
    }
    return best;
}

double hp_logits_top1(const float *x, const float *label, int64_t rows, int64_t classes) {
    int64_t right = 0, counted = 0;
    for (int64_t r = 0; r < rows; r++) {
        if (!(label[r] >= 0)) continue;
        counted++;
        right += (float)hp_logits_argmax(x + r * classes, classes) == label[r];
    }
    return (double)right / (double)counted;
}

double hp_logits_agreement(const float *x, const float *y, int64_t rows, int64_t classes) {
    int64_t same = 0;
    for (int64_t r = 0; r < rows; r++) {
        const int32_t a = hp_logits_argmax(x + r * classes, classes);
        same += a >= 0 && a == hp_logits_argmax(y + r * classes, classes);
    }
    return (double)same / (double)rows;
}

double hp_logits_sqnr_db(const float *x, const float *y, int64_t n) {
    double signal = 0, noise = 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = (double)x[i] - (double)y[i];
        signal += (double)x[i] * (double)x[i];
        noise += d * d;
    }
    return noise == 0 ? INFINITY : 10 * log10(signal / noise);
}
