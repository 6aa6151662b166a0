/* deploy.h - prepares a network for inference: a transformation of the graph before lowering, so that both
 * interpreters see the tasks that actually run.
 *
 * 1. Dropout is removed. A batch norm that is the only reader of a convolution (transposed convolution,
 *    linear layer) is folded into it (`hp_layer.norm`). A following addition becomes its last input, a
 *    following activation its `act`. After any other layer, a batch norm remains as a factor, a bias and the
 *    activation. A row layer and the sum of its blocks (networks/graph/summands.h) become one layer:
 *    inference splits no channels.
 * 2. A concatenation is not computed if only concatenations, batch norms, scales and activations read it:
 *    these layers read its inputs instead and join them themselves.
 * 3. A global average pool becomes a pool over rows and a pool over the resulting row of means. Strips and
 *    tiles of rows sum what they have and send a row's means instead of the map.
 * 4. Within a unit, layers run in the order that needs less memory: as written, or each branch as late as its
 *    reader allows.
 * 5. prec: maps of more than one pixel are stored as bf16, f16, or quantised (u8). Linear layers, pooled 1x1
 *    maps, the last layer's output and the layers that the caller lists stay real; quant and dequant layers
 *    convert between stores. The image of an int8 network is its raw 8-bit pixels. int8-dynamic stores all
 *    tensors as real: matrix layers quantise their input at run time (`hp_layer.dynamic`), except those that
 *    the caller lists. Inputs and outputs of layers that run as in training stay real; so do ids. */
#ifndef HP_DEPLOY_H
#define HP_DEPLOY_H

#include "networks/graph/dtype.h"
#include "networks/graph/precision.h"

typedef struct hp_deploy_options {
    int32_t prec;             /* hp_prec */
    const char *float_layers; /* names of layers that stay real, separated by commas; or NULL */
} hp_deploy_options;

/* Returns a new graph with g's parameters under their names and `deployed` set. Lives in `arena`. Errors:
 * HP_EUSAGE (float_layers names a layer that does not exist). */
hp_status hp_graph_deploy(hp_arena *arena, const hp_graph *g, const hp_deploy_options *o, hp_graph **out,
                          hp_error *err);

/* Does the layer run in inference as in training, with unmodified parameters? This covers a transformer's
 * layers except the linear ones: norms over channels, attention, tables, tokens. */
bool hp_layer_as_trained(const hp_layer *l);
/* Byte offset of the i-th parameter in such a layer's constants; i = n_param gives their total size. */
int64_t hp_constant_at(const hp_graph *g, const hp_layer *l, int i, hp_dtype real);

/* Peak bytes of live activations on one device for one sample, in graph order, with the stores' element sizes
 * (real: 4 bytes). Counts in-place layers as the lowering does. */
int64_t hp_graph_live_bytes(const hp_graph *g);

#endif
