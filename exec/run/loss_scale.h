/* loss_scale.h - dynamic loss scaling of fp16 training: as large as gradients bear.
 *
 * A step in which a gradient overflowed on any rank is skipped by all, and halves the scale; 2000 good ones
 * double it. A power of two, so that scaling rounds nothing. The metric that ends a step tells every rank the
 * same, so that all have the same scale without a message.
 * Source: Micikevicius et al., "Mixed Precision Training", ICLR 2018, section 3.2. */
#ifndef HP_LOSS_SCALE_H
#define HP_LOSS_SCALE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hp_loss_scale {
    double value;
    int32_t good;    /* steps since it changed */
    int64_t skipped; /* steps in all */
} hp_loss_scale;

hp_loss_scale hp_loss_scale_start(void);
/* Would no smaller scale help a step that overflows? Then maps overflow, not gradients. */
bool hp_loss_scale_spent(hp_loss_scale s);
/* After a step. */
hp_loss_scale hp_loss_scale_next(hp_loss_scale s, bool overflowed);

#endif
