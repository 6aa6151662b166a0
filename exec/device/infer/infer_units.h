/* infer_units.h - the numbers of a quantised matrix layer: what takes sums of bytes times 8-bit weights to
 * units of the output. The same on every device, so that they agree on every bit; see panel.h for the
 * formula. */
#ifndef HP_INFER_UNITS_H
#define HP_INFER_UNITS_H

#include "exec/device/infer/prepare.h"

typedef struct hp_matrix_units {
    bool bytes;      /* of the output, with a clamp: v is in its units, zero point included; else real */
    bool pixels;     /* the input is the raw image */
    double in_scale; /* of the input, 1 of pixels, whose scale lies in the weights */
    int32_t in_zero;
    float pixel_zero[4]; /* of the channels that are here */
    double inverse;      /* 1 / scale of the output, or 1 */
    double zero;         /* its zero point, or 0 */
    float add_scale;
    double add_zero;
    uint8_t lo8, hi8; /* the clamp in bytes */
} hp_matrix_units;

/* How the output is stored and its activation. */
hp_infer_op hp_matrix_op(const hp_infer *in, const hp_bound *b);
/* Of a layer whose input is bytes. */
hp_matrix_units hp_matrix_units_of(const hp_infer *in, const hp_bound *b, const hp_infer_op *op);

static inline float hp_matrix_scale(const hp_matrix_units *u, float weight_scale) {
    return (float)(u->in_scale * (double)weight_scale * u->inverse);
}

static inline float hp_matrix_shift(const hp_matrix_units *u, float bias) {
    return (float)((double)bias * u->inverse + u->zero - (double)u->add_scale * u->add_zero);
}

#endif
