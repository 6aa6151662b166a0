/* dnn_check.h - checks that an engine computes what it should. Operands are small multiples of 1/4, whose
 * products and sums are exact in every type. A few hundred random elements of the result are compared
 * with sums in float64.
 *
 * Engines cannot be trusted: on an H100, cuDNN 9.19 finalises plans for gradients of grouped filters, and
 * runs them without an error, that leave part of the result unwritten. */
#ifndef HP_DNN_CHECK_H
#define HP_DNN_CHECK_H

#include "exec/cuda/dnn/dnn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Operands, numbered by the seed of their elements. */
typedef enum hp_dnn_drawn {
    HP_DNN_DRAW_X,
    HP_DNN_DRAW_W,
    HP_DNN_DRAW_Y,
    HP_DNN_DRAW_Z,
    HP_DNN_DRAW_BIAS
} hp_dnn_drawn;

/* Fills n elements with multiples of 1/4 between -1 and 1, a pure function of operand and index. */
cudaError_t hp_dnn_draw(void *to, int32_t dtype, int64_t n, hp_dnn_drawn operand, cudaStream_t s);

/* Counts into *wrong (on the device) the drawn elements that deviate by more than the type's rounding from
 * the result for operands filled by hp_dnn_draw. Checks y, or gradient x or w, which with c->add initially
 * held what hp_dnn_draw writes there. A NaN is wrong. */
cudaError_t hp_dnn_check(const hp_dnn_conv *c, const hp_dnn_data *data, int32_t *wrong, cudaStream_t s);

#ifdef __cplusplus
}
#endif
#endif
