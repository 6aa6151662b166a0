/* device_act.h - activations and their derivatives of single numbers, in float and in double, the same on
 * every device. hp_act_of_f32 selects by hp_act; loops for one activation use hp_act_FUNCTION_f32. */
#ifndef HP_DEVICE_ACT_H
#define HP_DEVICE_ACT_H

#include "exec/device/erfc.h"
#include "exec/device/host_device.h"
#include "networks/graph/acts.h"
#include "networks/graph/graph.h"

#include <math.h>

#define HP_REAL       float
#define HP_FN(name)   hp_act_##name##_f32
#define HP_LIBM(name) name##f
#define HP_ERFC       hp_erfc_f32
#define HP_EXP        hp_exp_f32
#include "exec/device/device_act.inc"
#undef HP_ERFC
#undef HP_EXP
#undef HP_REAL
#undef HP_FN
#undef HP_LIBM

#define HP_REAL       double
#define HP_FN(name)   hp_act_##name##_f64
#define HP_LIBM(name) name
#define HP_ERFC       erfc
#define HP_EXP        exp
#include "exec/device/device_act.inc"
#undef HP_ERFC
#undef HP_EXP
#undef HP_REAL
#undef HP_FN
#undef HP_LIBM

/* The two arguments of the functions besides x. */
typedef struct hp_act_args {
    double a, b;
} hp_act_args;

static inline hp_act_args hp_act_args_of(const hp_layer *l) {
    const hp_act_bounds r = hp_act_bounds_of(l);
    if (hp_act_infos[l->act].kind == HP_ACT_IS_CLAMP) return (hp_act_args){r.least, r.greatest};
    return (hp_act_args){l->act_arg.a, l->act_arg.b};
}

#endif
