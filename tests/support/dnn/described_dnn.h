/* described_dnn.h - cuDNN without a GPU: one that a file describes, and convolutions to ask it for. */
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

/* compile: kernels that cuDNN compiles at run time are. */
hp_dnn *described_dnn(bool compile);

/* 3x3 over a square map of as many channels in as out, which it leaves as large as it is. */
hp_dnn_conv square_conv(hp_dnn_kind kind, hp_dtype dtype, int64_t n, int32_t side, int32_t channels);

#endif
