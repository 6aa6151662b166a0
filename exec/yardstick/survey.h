/* survey.h - samples all yardsticks over a period, without a trace, and summarises them over all ranks. */
#ifndef HP_SURVEY_H
#define HP_SURVEY_H

#include "exec/yardstick/wait.h"

#include <jansson.h>
#include <stdint.h>

typedef struct hp_yard_survey hp_yard_survey;

/* Collective: no. Keeps the waiter. */
hp_yard_survey *hp_yard_survey_open(const hp_yard_waiter *w);
void hp_yard_survey_close(hp_yard_survey *s); /* NULL is fine */

/* Takes `rounds` samples of each kernel; `messages`: also one of the messages. Collective: over all ranks,
 * which must have just been aligned. Errors: as hp_yard_wait. */
hp_status hp_yard_survey_take(hp_yard_survey *s, int rounds, bool messages, hp_error *err);

/* *answer:
 * {"yardsticks":{"arith":{"quiet_s":6.5e-05,"mean_s":7.1e-05,"n":1800,"work":7.68e+06,"unit":"flops"},...,
 * "small":{...}},"availability":0.99,"yardstick_bytes":786432}. quiet_s: the 5th percentile; work: that
 * of one sample; availability: the share of its time in which a rank had a processor. All are means over
 * ranks, except messages, which rank 0 times. NULL on the other ranks. Collective: over all ranks.
 * Errors: as hp_yard_wait. */
hp_status hp_yard_survey_answer(hp_yard_survey *s, json_t **answer, hp_error *err);

#endif
