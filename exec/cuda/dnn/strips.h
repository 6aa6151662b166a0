/* strips.h - an operation of too many elements as several of fewer: whole samples, or strips of rows of
 * one.
 *
 * Forward: strips of the output with the rows of the input that they read. Gradient of the input: strips of
 * it with all rows of the output that it touches; rows outside are padding there, whose gradient is dropped,
 * so that strips do not overlap. Gradient of the kernel: strips of the output, each adding to the one before.
 *
 * Of inputs that are not read the pieces know nothing: they see the part of the map that is. */
#ifndef HP_STRIPS_H
#define HP_STRIPS_H

#include "exec/cuda/dnn/dnn.h"

#define HP_DNN_MOST_ELEMENTS ((INT64_C(1) << 31) - 1) /* of a tensor that cuDNN is handed */

typedef struct hp_dnn_piece {
    hp_dnn_conv conv;
    int64_t x_at, y_at; /* its first element in x, in y and z */
} hp_dnn_piece;

/* The pieces in the order in which they are to run; the operation itself when no tensor has more than `limit`
 * elements. `piece` is the caller's to free. Errors: HP_EUNAVAIL (sizes, strides and padding do not belong
 * together; a row alone has more). */
hp_status hp_dnn_split(const hp_dnn_conv *c, int64_t limit, hp_dnn_piece **piece, int *n, hp_error *err);

/* Does it leave elements of dx as they were, which should be zeros, as nothing reads their inputs? */
bool hp_dnn_leaves(const hp_dnn_conv *c);

#endif
