/* strips.h - splits an operation with too many elements into smaller ones: whole samples, or strips of
 * rows of one sample.
 *
 * Forward: strips of the output, with the input rows that they read. Gradient of the input: strips of it,
 * with all output rows that touch it; rows outside a strip are padding, whose gradient is dropped, so strips
 * do not overlap. Gradient of the kernel: strips of the output, each adding to the one before.
 *
 * Pieces never see unread inputs: their x is only the part of the map that is read. */
#ifndef HP_STRIPS_H
#define HP_STRIPS_H

#include "exec/cuda/dnn/dnn.h"

#define HP_DNN_MOST_ELEMENTS ((INT64_C(1) << 31) - 1) /* elements of a tensor passed to cuDNN */

typedef struct hp_dnn_piece {
    hp_dnn_conv conv;
    int64_t x_at, y_at; /* offsets of the first element in x, and in y and z */
} hp_dnn_piece;

/* Splits into pieces, in the order in which they must run; returns the operation itself if no tensor has more
 * than `limit` elements. The caller frees `piece`. Errors: HP_EUNAVAIL (sizes, strides and padding are
 * inconsistent; a single row has more). */
hp_status hp_dnn_split(const hp_dnn_conv *c, int64_t limit, hp_dnn_piece **piece, int *n, hp_error *err);

/* Does it leave elements of dx unwritten? They must be zero, as nothing reads their inputs. */
bool hp_dnn_leaves(const hp_dnn_conv *c);

#endif
