/* model.h - what `hplan import` stores: a database (read by hp_model_read of graph/graph_json.h) and a file
 * of weights. */
#ifndef HP_MODEL_H
#define HP_MODEL_H

#include "networks/onnx/onnx.h"

/* Writes its weights as safetensors under the graph's names; the model must have been read with weights.
 * Errors: HP_ECREATE, HP_EIO. */
hp_status hp_model_write_weights(const char *path, const hp_onnx_model *m, hp_error *err);
/* Writes the model file `onnx` without its weights to the database `path`, with g's image size as the
 * default. Errors: HP_ECREATE, HP_EIO, HP_EDATA. */
hp_status hp_model_write(const char *path, const char *onnx, const hp_graph *g, hp_error *err);

#endif
