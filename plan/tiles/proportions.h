/* proportions.h - an extent split over parts in given proportions: rows of a map over tiles, samples over replicas. */
#ifndef HP_PROPORTIONS_H
#define HP_PROPORTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum { HP_MAX_PROPORTIONS = 64 };

/* Each weight is that of as many parts in a row, which share it evenly. Parts that are no multiple of n are all equal;
 * plan/strategy refuses them. */
typedef struct hp_proportions {
    int32_t n;                       /* 0: all parts are equal */
    uint16_t of[HP_MAX_PROPORTIONS]; /* each at least 1 */
} hp_proportions;

int64_t hp_proportions_sum(const hp_proportions *w);
bool hp_proportions_equal(const hp_proportions *a, const hp_proportions *b);
/* In lowest terms; no weights where all are equal. */
hp_proportions hp_proportions_reduced(const hp_proportions *w);

/* Start of part `k` of `parts` when `n` items are split so; its end is the start of part k + 1. Rounded down, so that
 * equal weights split as no weights do. n < 2^31, parts <= 2^16: products fit 63 bits. */
int32_t hp_proportions_at(const hp_proportions *w, int64_t n, int parts, int k);

/* The first part of the heaviest weight, or the lightest: no part gets more (less) than it, but for rounding. */
int hp_proportions_heaviest(const hp_proportions *w, int parts);
int hp_proportions_lightest(const hp_proportions *w, int parts);

#endif
