/* model.h - databases that hold an imported model (hp_model_read of graph_json.h reads them). */
#ifndef HP_MODEL_H
#define HP_MODEL_H

#include "plan/onnx/onnx.h"

/* Writes `path`: the model file `onnx` without its weights, and the image size of g as the default. Errors:
 * HP_ECREATE, HP_EIO, HP_EDATA. */
hp_status hp_model_write(const char *path, const char *onnx, const hp_graph *g, hp_error *err);

#endif
