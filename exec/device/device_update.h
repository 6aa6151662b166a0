/* device_update.h - the optimisers, element by element, in float and in double, the same on every device:
 * hp_update_FUNCTION_f32, with the rates of a step. */
#ifndef HP_DEVICE_UPDATE_H
#define HP_DEVICE_UPDATE_H

#include "exec/device/host_device.h"

#include <math.h>

#define HP_REAL       float
#define HP_FN(name)   hp_update_##name##_f32
#define HP_LIBM(name) name##f
#include "exec/device/device_update.inc"
#undef HP_REAL
#undef HP_FN
#undef HP_LIBM

#define HP_REAL       double
#define HP_FN(name)   hp_update_##name##_f64
#define HP_LIBM(name) name
#include "exec/device/device_update.inc"
#undef HP_REAL
#undef HP_FN
#undef HP_LIBM

/* Factor that limits gradients of this norm to `longest`, as torch.nn.utils.clip_grad_norm_. */
HP_HOST_DEVICE double hp_update_clip_factor(double norm, double longest) {
    const double factor = longest / (norm + 1e-6);
    if (!(norm < INFINITY)) return NAN; /* so that a diverged training shows */
    return factor < 1 ? factor : 1;
}

HP_HOST_DEVICE hp_update_rates_f32 hp_update_rates_as_f32(const hp_update_rates_f64 *r) {
    hp_update_rates_f32 f;
    f.lr = (float)r->lr;
    f.momentum = (float)r->momentum;
    f.decay = (float)r->decay;
    f.beta1 = (float)r->beta1;
    f.beta2 = (float)r->beta2;
    f.rest1 = (float)r->rest1;
    f.rest2 = (float)r->rest2;
    f.eps = (float)r->eps;
    f.step = (float)r->step;
    f.narrow = (float)r->narrow;
    return f;
}

#endif
