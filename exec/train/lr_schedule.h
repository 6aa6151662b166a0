/* lr_schedule.h - the learning rate, a pure function of the step and of the number of steps: a resumed run
 * has the rates that an uninterrupted one has. */
#ifndef HP_LR_SCHEDULE_H
#define HP_LR_SCHEDULE_H

#include "base/status.h"

#include <stdint.h>

typedef enum hp_lr_kind {
#define SCHEDULE(id, ...) HP_LR_##id,
#include "exec/train/schedules.def"
#undef SCHEDULE
    HP_LR_KINDS
} hp_lr_kind;

enum { HP_LR_STEPS = 32 };

typedef struct hp_lr_schedule {
    hp_lr_kind kind;
    double lr, least, gamma;
    int64_t warmup; /* steps in which it rises on a line from lr / warmup to lr */
    int32_t n;
    int64_t at[HP_LR_STEPS]; /* HP_LR_STEP: steps that reduce the rate, ascending */
} hp_lr_schedule;

/* The words of the command line; NULL where they were not said. `lr`: the highest. Errors: HP_EUSAGE. */
typedef struct hp_lr_words {
    const char *schedule, *warmup, *min_lr, *lr_steps, *lr_gamma;
} hp_lr_words;
hp_status hp_lr_parse(const hp_lr_words *w, double lr, hp_lr_schedule *s, hp_error *err);

/* The learning rate of step `step` (from 0) of `total`. After the warm-up it equals that of
 * torch.optim.lr_scheduler's CosineAnnealingLR, LinearLR, MultiStepLR. */
double hp_lr_at(const hp_lr_schedule *s, int64_t step, int64_t total);

/* "cosine warmup=100 min=1e-05 of 2000 steps", the same of equal schedules. `out` holds HP_LR_TEXT bytes. */
enum { HP_LR_TEXT = 512 };
const char *hp_lr_text(const hp_lr_schedule *s, int64_t total, char *out);

#endif
