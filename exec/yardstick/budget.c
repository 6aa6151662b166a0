/* budget.c - how often yardsticks are sampled; see budget.h. */
#include "exec/yardstick/budget.h"

#include <math.h>

static double credit_s(const hp_yard_budget *b, double elapsed_s) {
    return HP_YARD_SHARE * elapsed_s - b->spent_s;
}

static bool messages_due(const hp_yard_budget *b, double elapsed_s) {
    return elapsed_s >= b->next_messages_s;
}

/* Minimum duration of the next burst, in seconds. */
static double least_s(const hp_yard_budget *b, double elapsed_s) {
    return b->round_s + (messages_due(b, elapsed_s) ? b->messages_s : 0);
}

/* Once messages are due, nothing is spent until there is enough for them. */
hp_yard_burst hp_yard_budget_burst(const hp_yard_budget *b, double elapsed_s, bool edge) {
    const double left_s = credit_s(b, elapsed_s);
    const bool enough = left_s >= least_s(b, elapsed_s);
    hp_yard_burst burst = {.rounds = edge || enough,
                           .messages = edge || (enough && messages_due(b, elapsed_s))};
    const double for_rounds_s = fmin(left_s - (burst.messages ? b->messages_s : 0), HP_YARD_BURST_S);
    if (enough && b->round_s > 0 && for_rounds_s / b->round_s > 1)
        burst.rounds = (int64_t)(for_rounds_s / b->round_s);
    return burst;
}

/* The newest burst weighs a quarter: some are long because the machine paused meanwhile. */
static double mean_with(double mean_s, double newest_s) {
    static const double NEW = 0.25;
    return mean_s > 0 ? (1 - NEW) * mean_s + NEW * newest_s : newest_s;
}

void hp_yard_budget_charge(hp_yard_budget *b, hp_yard_burst burst, double now_s, double rounds_s,
                           double messages_s) {
    b->spent_s += rounds_s + messages_s;
    if (burst.rounds > 0) b->round_s = mean_with(b->round_s, rounds_s / (double)burst.rounds);
    if (!burst.messages) return;
    b->messages_s = mean_with(b->messages_s, messages_s);
    b->next_messages_s = now_s + HP_YARD_MESSAGES_S;
}

int64_t hp_yard_budget_next(hp_yard_budget *b, double elapsed_s, int64_t steps) {
    const int64_t since = steps - b->visit_step;
    const double step_s = since > 0 ? (elapsed_s - b->visit_s) / (double)since : 0;
    const double missing_s = (least_s(b, elapsed_s) - credit_s(b, elapsed_s)) / HP_YARD_SHARE;
    const int64_t most = b->pause > 0 ? 2 * b->pause : 1;
    const double wanted = step_s > 0 ? ceil(missing_s / step_s) : (double)most;
    b->pause = wanted < 1 ? 1 : wanted < (double)most ? (int64_t)wanted : most;
    b->visit_s = elapsed_s;
    b->visit_step = steps;
    return steps + b->pause;
}
