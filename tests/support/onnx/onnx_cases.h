/* onnx_cases.h - runs the cases of ONNX's backend test suite (Debian: libonnx-testdata): a model,
 * inputs and expected outputs. Inputs other than the image become constants of the model; each input is
 * tried as the image. */
#ifndef HP_TESTS_ONNX_CASES_H
#define HP_TESTS_ONNX_CASES_H

#include "networks/graph/graph_check.h"
#include "networks/onnx/onnx.h"
#include "networks/onnx/onnx_file.h"
#include "plan/tiles/tile.h"
#include "tests/support/onnx/onnx_write.h"

#include <dirent.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Computes one sample: image and *out are (H, W, C). False with err: it cannot be run. */
typedef bool case_runner(hp_arena *a, const hp_onnx_model *m, const double *image, double *out,
                         hp_error *err);

/* The operators that must be supported. */
extern const char case_ops[];

extern const char case_data[];

typedef struct case_counts {
    int passed, refused, failed;
} case_counts;

/* Runs the cases of one group ("node"), folded if there is no runner; prints those that did not pass. */
void case_run_group(const char *group, const char *ops, case_runner *run, case_counts *n);

#endif
