/* sqnr.h - how far quantised results are from real ones, and which layers cause it. */
#ifndef HP_SQNR_H
#define HP_SQNR_H

#include <stdint.h>

/* Sums over elements; add those of other images and ranks. */
typedef struct hp_sqnr {
    double signal, noise; /* sum of squares: of the real results; of the differences */
} hp_sqnr;

/* Adds n elements. */
void hp_sqnr_add(hp_sqnr *s, const float *real, const float *quantised, int64_t n);
/* 10 log10(signal / noise); infinite where nothing differs. */
double hp_sqnr_db(const hp_sqnr *s);

/* Chooses the layers to keep real so that all others may be quantised: db[i] is the SQNR of the output when
 * only layer i is quantised, target_db the wanted one. Noise powers of single layers add up (they are small
 * and independent), so the noisiest are chosen first. Writes their numbers to layer[n], noisiest first; ties
 * by number. Returns how many. */
int hp_sensitive_layers(const double *db, int n, double target_db, int32_t *layer);

#endif
