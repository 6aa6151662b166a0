/* pairs.h - races between plans on a machine with varying speed. In each round every remaining plan runs
 * once; plans are compared within rounds, because whatever slows a round slows all of it.
 *
 * The unit is one round of one plan (its typical step). Logarithms are compared, so differences are
 * ratios. In the model log y = round + plan + noise (a randomised block design), rounds cancel in every
 * pair. Races of paired comparisons: Moore and Lee 1994 (BRACE), Birattari et al. 2002 (F-Race, which
 * pools over all remaining plans). */
#ifndef HP_PAIRS_H
#define HP_PAIRS_H

#include <stdbool.h>

#define HP_RACE_ALPHA 0.05 /* the fastest plan is dropped in at most this share of races */
#define HP_RACE_EQUAL                                                                                        \
    0.01 /* plans this close count as equal: choosing between them carefully gains no more */
#define HP_RACE_LEVEL 0.90  /* level of confidence intervals, as for predictions */
enum { HP_RACE_FIRST = 3 }; /* rounds before the first test */

typedef struct hp_pairs {
    int n, n_round;
    const double *step_s; /* (n_round, n), NaN: did not run in that round */
} hp_pairs;

/* The typical step of a round, in seconds: the mean without the fastest and the slowest tenth. On a core
 * that is either fast or slow, a median jumps between the two; a mean tells what many steps take. NaN if
 * n is 0. Sorts `step_s`. */
double hp_pairs_round(double *step_s, int n);

/* log(step of b / step of a), its standard error, and the error's degrees of freedom. n: rounds
 * in which both ran. */
typedef struct hp_pair {
    int n, df;
    double mean, error;
} hp_pair;

/* Compares a and b. pool: plans whose noise counts (n values; a and b always do), in the rounds in which all
 * of them ran; NULL: only a and b. The error is the larger of the pair's own and the pooled one, with its
 * degrees of freedom. So a few rounds that agree by chance do not make a difference, and one plan's larger
 * noise is not hidden by the others'. */
hp_pair hp_pairs_of(const hp_pairs *p, const bool *pool, int a, int b);
/* One-sided p value: could b be as fast as a? 1 with fewer than two rounds. */
double hp_pair_slower(const hp_pair *pair);

/* The fastest of `live` by the rounds in which all of these ran; without such a round, by each plan's own
 * rounds. -1: none ran. */
int hp_race_best(const hp_pairs *p, const bool *live);
/* Drops from `live` the plans that are slower than the best at this test's level. Returns their number. */
int hp_race_drop(const hp_pairs *p, int look, bool *live);
/* Is no remaining plan faster than the best by more than HP_RACE_EQUAL? */
bool hp_race_settled(const hp_pairs *p, int look, const bool *live);
/* Keeps the faster half, rounded up. If time ends before tests decide, it goes to the plans that may win
 * (successive halving, Karnin et al. 2013). Returns the number dropped. */
int hp_race_halve(const hp_pairs *p, bool *live);

/* Seconds per step with a confidence interval, as if plan i had run in all rounds of `best`: best's mean
 * times their ratio. With one round low is 0 and high is infinite. NaN: it never ran. */
typedef struct hp_measured {
    int rounds;
    double step_s, low_s, high_s;
} hp_measured;
hp_measured hp_pairs_measured(const hp_pairs *p, int best, int i);

#endif
