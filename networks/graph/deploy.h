/* deploy.h - prepares a network for inference: a transformation of the graph before lowering, so that both
 * interpreters see the tasks that are really executed.
 *
 * 1. Dropout is removed. A batch norm that alone reads the output of a convolution (transposed convolution,
 *    linear layer) is folded into it (`hp_layer.norm`); an addition that follows becomes its last input, an
 *    activation its `act`. A batch norm after any other layer stays: a factor, a bias and the activation.
 *    A row layer and the sum of its blocks (networks/graph/summands.h) become one layer: inference splits no channels.
 * 2. A concatenation that only concatenations, batch norms, scales and activations read is not computed:
 *    these layers read its inputs instead and join them themselves.
 * 3. A global average pool becomes a pool over rows and a pool over the resulting row of means: strips and
 *    tiles of rows sum what they have, and send a row's means instead of the map.
 * 4. Within a unit, the order of layers is the one that needs less memory: as written, or each branch as late
 *    as its reader allows.
 * 5. prec: maps of more than one pixel are stored as bf16, f16, or quantised (u8). Linear layers, pooled 1x1
 *    maps, the last layer's output and the layers that the caller lists stay real; quant and dequant layers
 *    convert between stores. The image of an int8 network is its raw 8-bit pixels. int8-dynamic stores all
 *    tensors real: matrix layers quantise what they read at run time (`hp_layer.dynamic`), except those that
 *    the caller lists. What layers that run as trained read and write stays real; ids too. */
#ifndef HP_DEPLOY_H
#define HP_DEPLOY_H

#include "networks/graph/dtype.h"
#include "networks/graph/precision.h"

typedef struct hp_deploy_options {
    int32_t prec;             /* hp_prec */
    const char *float_layers; /* names of layers kept real, separated by commas, or NULL */
} hp_deploy_options;

/* Returns a new graph with g's parameters under their names and `deployed` set. Lives in `arena`. Errors:
 * HP_EUSAGE (float_layers names a layer that does not exist). */
hp_status hp_graph_deploy(hp_arena *arena, const hp_graph *g, const hp_deploy_options *o, hp_graph **out,
                          hp_error *err);

/* Does the layer run in inference as in training, on its parameters as they are? What transformers have beside linear
 * layers: norms over channels, attention, tables, tokens. */
bool hp_layer_as_trained(const hp_layer *l);
/* Where such a layer's constants have its i-th parameter, in bytes; the end of all: i = n_param. */
int64_t hp_constant_at(const hp_graph *g, const hp_layer *l, int i, hp_dtype real);

/* Peak bytes of activations alive at once on one device for one sample, layers in graph order, element sizes
 * from the stores (real: 4 bytes). In-place layers count as the lowering treats them. */
int64_t hp_graph_live_bytes(const hp_graph *g);

#endif
