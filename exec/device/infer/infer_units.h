/* infer_units.h - the numbers of a quantised matrix layer: they convert sums of bytes times 8-bit
 * weights to units of the output. The same on every device, so that they agree bit for bit; see
 * panel.h for the formula. */
#ifndef HP_INFER_UNITS_H
#define HP_INFER_UNITS_H

#include "exec/device/infer/prepare.h"

typedef struct hp_matrix_units {
    bool bytes;      /* output is bytes with a clamp: v is in its units, zero point
                      * included; else v is real */
    bool pixels;     /* the input is the raw image */
    double in_scale; /* scale of the input; 1 for pixels, whose scale is part of the weights */
    int32_t in_zero;
    float pixel_zero[4]; /* zero points of the local channels */
    double inverse;      /* 1 / the output's scale, or 1 */
    double zero;         /* the output's zero point, or 0 */
    float add_scale;
    double add_zero;
    uint8_t lo8, hi8; /* the clamp in bytes */
} hp_matrix_units;

/* How the output is stored and its activation. */
hp_infer_op hp_matrix_op(const hp_infer *in, const hp_bound *b);
/* Numbers of a layer whose input is bytes. */
hp_matrix_units hp_matrix_units_of(const hp_infer *in, const hp_bound *b, const hp_infer_op *op);

static inline float hp_matrix_scale(const hp_matrix_units *u, float weight_scale) {
    return (float)(u->in_scale * (double)weight_scale * u->inverse);
}

static inline float hp_matrix_shift(const hp_matrix_units *u, float bias) {
    return (float)((double)bias * u->inverse + u->zero - (double)u->add_scale * u->add_zero);
}

#endif
