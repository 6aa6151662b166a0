/* device_update.c - values shared by all of a step's updates. */
#include "exec/device/device.h"

#include <math.h>

hp_update_rates_f64 hp_step_rates(const hp_step *s) {
    const double t = (double)(s->updates + 1);
    return (hp_update_rates_f64){.lr = s->lr,
                                 .momentum = s->momentum,
                                 .decay = s->weight_decay,
                                 .beta1 = s->beta1,
                                 .beta2 = s->beta2,
                                 .rest1 = 1 - s->beta1,
                                 .rest2 = 1 - s->beta2,
                                 .eps = s->eps,
                                 .step = s->lr / (1 - pow(s->beta1, t)),
                                 .narrow = 1 / sqrt(1 - pow(s->beta2, t))};
}
