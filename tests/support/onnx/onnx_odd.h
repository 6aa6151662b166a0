/* onnx_odd.h - a small model with some of everything: an open size, hard swish in four nodes, scales before
 * and after convolutions, a gate, a resize. */
#ifndef HP_TESTS_ONNX_ODD_H
#define HP_TESTS_ONNX_ODD_H

#include "base/rng.h"
#include "networks/onnx/onnx.h"
#include "tests/support/onnx/onnx_write.h"

#include <stdio.h>

enum { ODD_C = 6 };

const float *drawn(hp_arena *a, uint64_t stream, int64_t n);
void write_number(onnx_writer *w, const char *name, float v);
onnx_writer odd_model(hp_arena *a);
hp_status odd_parse(onnx_writer *w, int h, int width, hp_onnx_model *m, hp_error *err);

#endif
