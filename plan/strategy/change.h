/* change.h - a question to the planner, and how another one differs from it in the words of the command line:
 * options of `simulate` and keys of the strategy, such as "--batch 256, recompute=boundary,micro=4". Fixes
 * are such changes. */
#ifndef HP_CHANGE_H
#define HP_CHANGE_H

#include "plan/strategy/strategy.h"

typedef struct hp_question {
    hp_strategy s;
    int64_t batch; /* 0: the smallest legal multiple not below the number of devices */
    int n_devices; /* at most; 0: any number */
    int image_h, image_w;
    bool infer;
    const hp_device_info *device; /* NULL: one that has everything */
    bool keys_only;               /* a fix is one of the strategy: a plan has the options that it has */
} hp_question;

/* The batch, or the default one. */
int64_t hp_question_batch(const hp_question *q);

/* The change from one question to another, empty where there is none. Returns how many options and keys it
 * has, -1 if it does not fit into `n` bytes. A limit of devices is never lifted once it is there, nor is a
 * batch. */
int hp_change_text(const hp_question *from, const hp_question *to, char *out, size_t n);
/* The other way. Errors: HP_EUSAGE. */
hp_status hp_change_apply(hp_question *q, const char *change, hp_error *err);

#endif
