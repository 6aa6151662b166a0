/* loss_scale.c - when the loss scale is doubled and halved. */
#include "exec/train/loss_scale.h"

enum { STEPS_TO_DOUBLE = 2000 };

/* Above 2^24 a gradient of 1 has long overflowed; below 2^-14 a smaller scale does not save any gradient. */
#define LARGEST  0x1p24
#define SMALLEST 0x1p-14

hp_loss_scale hp_loss_scale_start(void) {
    return (hp_loss_scale){.value = 0x1p16};
}

bool hp_loss_scale_is_minimal(hp_loss_scale s) {
    return s.value <= SMALLEST;
}

hp_loss_scale hp_loss_scale_next(hp_loss_scale s, bool overflowed) {
    if (overflowed)
        return (hp_loss_scale){.value = s.value > SMALLEST ? s.value / 2 : SMALLEST,
                               .skipped = s.skipped + 1};
    if (++s.good < STEPS_TO_DOUBLE) return s;
    s.good = 0;
    if (s.value < LARGEST) s.value *= 2;
    return s;
}
