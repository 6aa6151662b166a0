/* rates.h - what the optimiser of a run does in each step: its numbers, and the schedule of its learning
 * rate. */
#ifndef HP_RATES_H
#define HP_RATES_H

#include "exec/device/device.h"
#include "exec/train/lr_schedule.h"

/* The words of the command line; NULL where they were not said. */
typedef struct hp_rate_words {
    const char *lr, *momentum, *weight_decay, *betas, *eps, *clip_norm;
    hp_lr_words schedule;
} hp_rate_words;

typedef struct hp_rates {
    int32_t optimizer; /* hp_optimizer */
    double momentum, weight_decay, beta1, beta2, eps;
    double clip_norm; /* 0: gradients are not clipped */
    hp_lr_schedule schedule;
} hp_rates;

/* Parses the rates for a network in training. Errors: HP_EUSAGE, also where a word belongs to another
 * optimiser, or to clipping that the plan does not have. */
hp_status hp_rates_parse(const hp_rate_words *w, const hp_graph *g, hp_rates *r, hp_error *err);

/* Sets a step's numbers; it is step->step, from 0, of `total`, and the step->updates-th update. */
void hp_rates_set(const hp_rates *r, int64_t total, hp_step *step);

#endif
