/* described_dnn.h - cuDNN for a GPU that a file describes, without a GPU; and convolutions to try with it. */
#ifndef HP_TESTS_DESCRIBED_DNN_H
#define HP_TESTS_DESCRIBED_DNN_H

#include "exec/cuda/dnn/engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* compile: also compiles kernels that cuDNN compiles at run time. */
hp_dnn *described_dnn(bool compile);

/* A 3x3 convolution over a square map, with equal channels in and out, that keeps the map's size. */
hp_dnn_conv square_conv(hp_dnn_kind kind, hp_dtype dtype, int64_t n, int32_t side, int32_t channels);

#endif
