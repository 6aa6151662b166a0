/* votes.h - a slide's class from its patches: by the mean of their probabilities, and by the majority of
 * their classes. Sums are plain numbers, so those of several ranks can be added element by element. */
#ifndef HP_VOTES_H
#define HP_VOTES_H

#include "base/arena.h"

#include <stdint.h>

typedef struct hp_votes {
    int32_t classes;
    int32_t n_sum; /* 2 * classes + 1 */
    double *sum;   /* per class: sum of probabilities; per class: number of patches; number of patches.
                      All-reduce these. */
} hp_votes;

typedef struct hp_vote {
    int64_t patches;
    int32_t mean_class, majority_class; /* the lowest on a tie; -1 without patches */
    double mean_share, majority_share;  /* the class's mean probability; its fraction of the patches */
} hp_vote;

/* Makes zero sums for that many classes; they live in `a`. */
hp_votes hp_votes_new(hp_arena *a, int32_t classes);
void hp_votes_add(hp_votes *v, const float *logits); /* logits (classes) of one patch */
hp_vote hp_votes_verdict(const hp_votes *v);
/* Mean probability of a class; 0 without patches. */
double hp_votes_mean(const hp_votes *v, int32_t class);

/* Computes probabilities in float64; `share` may be NULL. Returns the class of the largest logit,
 * the lowest on a tie. */
int32_t hp_softmax(const float *logits, int32_t classes, float *share);

#endif
