/* pairs.h - races between plans on a machine whose speed moves: rounds in which all that are left run once, compared
 * within the round, since what slows a round slows all of it.
 *
 * The unit is one round of one plan (its typical step); what is compared are logarithms, so that differences are
 * ratios. In the model log y = round + plan + noise (a randomised block design), rounds cancel in every pair. Races of
 * paired comparisons: Moore and Lee 1994 (BRACE), Birattari et al. 2002 (F-Race, which pools over all that are left). */
#ifndef HP_PAIRS_H
#define HP_PAIRS_H

#include <stdbool.h>

#define HP_RACE_ALPHA 0.05 /* the fastest is dropped in at most this part of races */
#define HP_RACE_EQUAL                                                                                        \
    0.01 /* plans within this part of each other are equal: what choosing carefully gains is less */
#define HP_RACE_LEVEL 0.90  /* of confidence intervals, as those of predictions */
enum { HP_RACE_FIRST = 3 }; /* rounds before the first test */

typedef struct hp_pairs {
    int n, n_round;
    const double *step_s; /* (n_round, n), NaN: did not run in that round */
} hp_pairs;

/* The typical step of a round, seconds: the mean without the fastest and the slowest tenth. Where a core is either
 * fast or slow, a median jumps between the two; a mean is what many steps take. NaN when n is 0. Sorts `step_s`. */
double hp_pairs_round(double *step_s, int n);

/* log(step of b / step of a), its standard error, and the degrees of freedom of that. n: rounds in which both ran. */
typedef struct hp_pair {
    int n, df;
    double mean, error;
} hp_pair;

/* pool: whose noise counts (n values; a and b always do), in the rounds in which all of them ran; NULL: of a and b
 * alone. The error is the larger one of the pair's own and of all, with that one's degrees of freedom, so that few rounds
 * that agree by chance do not make a difference, and one plan's larger noise is not hidden by the others'. */
hp_pair hp_pairs_of(const hp_pairs *p, const bool *pool, int a, int b);
/* One-sided p value: could b be as fast as a? 1 with less than two rounds. */
double hp_pair_slower(const hp_pair *pair);

/* What each pair may spend at test number `look` (1, 2, ...) of a race of n plans: alpha / (look (look + 1)) over all
 * tests, which sums up to alpha (alpha spending, Lan and DeMets 1983), and an equal part for each of the n - 1 pairs that
 * could drop the fastest. */
double hp_race_level(int n, int look);

/* The fastest of `live` by the rounds in which all of these ran; without such a round, by the rounds that each ran.
 * -1: none ran. */
int hp_race_best(const hp_pairs *p, const bool *live);
/* Drops from `live` what is slower than the best at this test's level. Returns how many. */
int hp_race_drop(const hp_pairs *p, int look, bool *live);
/* Could none that is left be faster than the best by more than HP_RACE_EQUAL? */
bool hp_race_settled(const hp_pairs *p, int look, const bool *live);
/* Keeps the faster half, the larger one of an odd number: where time ends before tests decide, it goes to those that may
 * win (successive halving, Karnin et al. 2013). Returns how many it removes. */
int hp_race_halve(const hp_pairs *p, bool *live);

/* Seconds per step with confidence interval, as if plan i had run in all rounds of `best`: best's mean times their
 * ratio. With one round low is 0 and high infinite. NaN: it never ran. */
typedef struct hp_measured {
    int rounds;
    double step_s, low_s, high_s;
} hp_measured;
hp_measured hp_pairs_measured(const hp_pairs *p, int best, int i);

#endif
