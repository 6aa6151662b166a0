/* logits.h - how the outputs of two networks for the same images differ: by class, and by signal-to-noise
 * ratio. A row is the logits of one image or one pixel; its class is the first of the largest. */
#ifndef HP_LOGITS_H
#define HP_LOGITS_H

#include <stdint.h>

/* Class of one row (classes >= 1); -1 for a row that contains NaN. */
int32_t hp_logits_argmax(const float *row, int64_t classes);

/* Fraction of rows of x, (rows, classes), whose class equals the label, among those with a label (>= 0); NaN
 * if none has one. Rows without a class count as wrong. */
double hp_logits_top1(const float *x, const float *label, int64_t rows, int64_t classes);

/* Fraction of rows in which x and y have the same class. rows >= 1. */
double hp_logits_agreement(const float *x, const float *y, int64_t rows, int64_t classes);

/* 10 log10(sum x^2 / sum (x - y)^2): decibels of the reference x over the error of y; infinite for equal
 * values. Summed in float64. */
double hp_logits_sqnr_db(const float *x, const float *y, int64_t n);

#endif
