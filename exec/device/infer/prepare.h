/* prepare.h - works out what a task of a deployed graph (networks/deploy/deploy.h) needs, once, before the
 * first step: operands, activation, byte tables, constants. Plain data for every device. */
#ifndef HP_PREPARE_H
#define HP_PREPARE_H

#include "exec/data/weights/constants.h"
#include "exec/device/device_bind.h"
#include "exec/device/infer/op.h"
#include "base/arena.h"

typedef struct hp_infer {
    const hp_device_config *config;
    hp_arena *arena; /* owns what is prepared; lives as long as the device */
    bool *packed;    /* per layer: its pack buffer is filled */
    void *shared;    /* shared by kernels of training, private to the device; NULL until one is prepared */
} hp_infer;

/* How the tensor's elements are stored as `dtype`. Bytes of the image are raw pixels, whose scales differ by
 * channel: scale 1, zero 0. */
hp_qparams hp_infer_qparams(const hp_infer *in, int tensor, hp_dtype dtype);
void hp_infer_set_act(hp_infer_op *o, const hp_layer *l);

/* Prepares any layer other than a matrix product, in in->arena. The caller sets the constants that
 * hp_infer_factor_count counts. Errors: HP_EUNAVAIL (an operand's store). */
hp_status hp_infer_op_of(const hp_infer *in, const hp_bound *b, hp_infer_op *op, hp_error *err);

/* Number of factors and biases of the local output channels: factors first, then biases, float32. 0:
 * the layer has none. */
int64_t hp_infer_factor_count(const hp_bound *b);
/* Errors: as hp_constants_filter. */
hp_status hp_infer_factors(const hp_infer *in, const hp_bound *b, float *factors, hp_error *err);

#endif
