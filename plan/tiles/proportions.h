/* proportions.h - splits an extent over parts in given proportions: rows of a map over tiles, samples over
 * replicas. */
#ifndef HP_PROPORTIONS_H
#define HP_PROPORTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum { HP_MAX_PROPORTIONS = 64 };

/* Each weight applies to an equal number of consecutive parts, which share it evenly. If the number of parts
 * is not a multiple of n, all are equal; plan/strategy rejects that. */
typedef struct hp_proportions {
    int32_t n;                       /* 0: all parts are equal */
    uint16_t of[HP_MAX_PROPORTIONS]; /* each at least 1 */
} hp_proportions;

int64_t hp_proportions_sum(const hp_proportions *w);
bool hp_proportions_equal(const hp_proportions *a, const hp_proportions *b);
/* Reduces to lowest terms; no weights if all are equal. */
hp_proportions hp_proportions_reduced(const hp_proportions *w);

/* Start of part `k` of `parts` when `n` items are split in these proportions; it ends where part k + 1
 * starts. Rounds down, so that equal weights split as no weights do. n < 2^31, parts <= 2^16: products fit 63
 * bits. */
int32_t hp_proportions_at(const hp_proportions *w, int64_t n, int parts, int k);

/* The first part with the largest (smallest) weight. Apart from rounding, no part is larger (smaller). */
int hp_proportions_heaviest(const hp_proportions *w, int parts);
int hp_proportions_lightest(const hp_proportions *w, int parts);

#endif
