/* budget.h - how often yardsticks are sampled: for at most a share of the run's time. A pure value, decided on by one
 * rank for all; times are its own.
 *
 * Samples are taken in rounds of one sample of each kernel, several in a burst where steps are long. Before the first
 * step and after the last there is at least one round with an exchange of messages, so that the shortest run has both:
 *
 *   spent_s <= HP_YARD_SHARE * elapsed_s + what these two took + one burst. */
#ifndef HP_BUDGET_H
#define HP_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define HP_YARD_SHARE      0.01 /* of the run's elapsed time */
#define HP_YARD_BURST_S    3e-3 /* longest burst: the speed of a moment, while steps wait */
#define HP_YARD_MESSAGES_S 3.0  /* from one exchange of messages to the next */

typedef struct hp_yard_budget {
    double spent_s;            /* so far */
    double round_s;            /* mean of a round; 0: none was taken */
    double messages_s;         /* of an exchange; 0: none was made */
    double next_messages_s;    /* when the next one is due */
    double visit_s;            /* when steps were last interrupted */
    int64_t visit_step, pause; /* after which step that was, and for how many steps they then ran */
} hp_yard_budget;

/* What a burst holds. */
typedef struct hp_yard_burst {
    int64_t rounds;
    bool messages;
} hp_yard_burst;

/* `edge`: before the first step or after the last. */
hp_yard_burst hp_yard_budget_burst(const hp_yard_budget *b, double elapsed_s, bool edge);

/* Enters what a burst took that ends now. */
void hp_yard_budget_charge(hp_yard_budget *b, hp_yard_burst burst, double now_s, double rounds_s,
                           double messages_s);

/* After the burst that followed `steps` steps: after how many steps in all the next may come. Steps are expected to take
 * as long as since the last burst, and a pause at most doubles. */
int64_t hp_yard_budget_next(hp_yard_budget *b, double elapsed_s, int64_t steps);

#endif
