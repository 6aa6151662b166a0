/* budget.h - how often yardsticks are sampled: at most for a share of the run's time. A pure value; one rank
 * decides for all, by its own times.
 *
 * Samples are taken in rounds of one sample per kernel, several rounds in a burst if steps are long. Before
 * the first step and after the last there is at least one round with an exchange of messages, so that the
 * shortest run has both:
 *
 *   spent_s <= HP_YARD_SHARE * elapsed_s + what these two took + one burst. */
#ifndef HP_BUDGET_H
#define HP_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define HP_YARD_SHARE      0.01 /* share of the run's elapsed time */
#define HP_YARD_BURST_S    3e-3 /* longest burst, in seconds: it measures the current speed, and steps wait */
#define HP_YARD_MESSAGES_S 3.0  /* seconds between exchanges of messages */

typedef struct hp_yard_budget {
    double spent_s;            /* so far */
    double round_s;            /* mean duration of a round; 0: none taken yet */
    double messages_s;         /* mean duration of an exchange; 0: none made yet */
    double next_messages_s;    /* when the next one is due */
    double visit_s;            /* when steps were last interrupted */
    int64_t visit_step, pause; /* the step after which that was; steps until the next interruption */
} hp_yard_budget;

/* The contents of a burst. */
typedef struct hp_yard_burst {
    int64_t rounds;
    bool messages;
} hp_yard_burst;

/* `edge`: before the first step or after the last. */
hp_yard_burst hp_yard_budget_burst(const hp_yard_budget *b, double elapsed_s, bool edge);

/* Records the cost of a burst that ends now. */
void hp_yard_budget_charge(hp_yard_budget *b, hp_yard_burst burst, double now_s, double rounds_s,
                           double messages_s);

/* The number of steps after which the next burst may come, given that one has just followed `steps` steps.
 * Assumes steps as long as those since the last burst. A pause at most doubles. */
int64_t hp_yard_budget_next(hp_yard_budget *b, double elapsed_s, int64_t steps);

#endif
