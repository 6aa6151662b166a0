/* model.h - what is kept of an imported model: a database (hp_model_read of graph/json.h reads it) and a file
 * of weights. */
#ifndef HP_MODEL_H
#define HP_MODEL_H

#include "plan/onnx/onnx.h"

/* Its weights, read with it, as safetensors under the graph's names. Errors: HP_ECREATE, HP_EIO. */
hp_status hp_model_write_weights(const char *path, const hp_onnx_model *m, hp_error *err);
/* Writes `path`: the model file `onnx` without its weights, and the image size of g as the default. Errors:
 * HP_ECREATE, HP_EIO, HP_EDATA. */
hp_status hp_model_write(const char *path, const char *onnx, const hp_graph *g, hp_error *err);

#endif
