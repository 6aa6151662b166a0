/* graph_json.h - a network graph as JSON text. plan.db stores networks that are not built in by name in this
 * form.
 *
 * For graphs as built or imported, not deployed. Text is untrusted: it is accepted only if every id is in
 * range, names are unique and every shape is the one that its layer infers. */
#ifndef HP_GRAPH_JSON_H
#define HP_GRAPH_JSON_H

#include "networks/graph/graph.h"

/* JSON text of a graph that is not deployed. Lives in `arena`. */
const char *hp_graph_json(hp_arena *arena, const hp_graph *g);
/* The result is fused like a built-in network. Errors: HP_EDATA naming the wrong member. */
hp_status hp_graph_from_json(hp_arena *arena, const char *text, hp_graph **graph, hp_error *err);

/* Reads a network from a file: ONNX, or the model.db of `hplan import`. image_h, image_w: 0 keeps the file's
 * size. Errors: HP_EDATA, HP_EPLAN, HP_EUSAGE as hp_onnx_read. */
hp_status hp_model_read(hp_arena *arena, const char *path, int image_h, int image_w, hp_graph **graph,
                        hp_error *err);

#endif
