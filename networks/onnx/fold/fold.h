/* fold.h - functions shared by the files that compute constants. */
#ifndef HP_FOLD_H
#define HP_FOLD_H

#include "networks/onnx/onnx_inside.h"

int onnx_result_type(int type);
/* data[i] of to's type = from[k]. */
void onnx_put(const onnx_const *to, void *data, int64_t i, const onnx_const *from, int64_t k);

#endif
