/* loss_scale.h - dynamic loss scaling for fp16 training: as large as the gradients allow.
 *
 * A step in which a gradient overflowed on any rank is skipped by all ranks, and halves the scale; 2000
 * successful steps in a row double it. It is a power of two, so that scaling is exact. The metric that ends a
 * step is the same on every rank, so all have the same scale without a message.
 * Source: Micikevicius et al., "Mixed Precision Training", ICLR 2018, section 3.2. */
#ifndef HP_LOSS_SCALE_H
#define HP_LOSS_SCALE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hp_loss_scale {
    double value;
    int32_t good;    /* steps since the last change */
    int64_t skipped; /* steps in total */
} hp_loss_scale;

/* The initial scale. */
hp_loss_scale hp_loss_scale_start(void);
/* Is the scale already minimal? An overflow then comes from the maps, not the gradients. */
bool hp_loss_scale_is_minimal(hp_loss_scale s);
/* The scale after a step. */
hp_loss_scale hp_loss_scale_next(hp_loss_scale s, bool overflowed);

#endif
