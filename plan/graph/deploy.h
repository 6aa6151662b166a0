/* deploy.h - a network as inference runs it: graph to graph, before lowering, so that both interpreters see
 * the tasks that are really executed.
 *
 * 1. Dropout goes. A batch norm whose input is a convolution's (a transposed one's, a linear layer's) only
 *    output is folded into it (`hp_layer.norm`); an addition behind it becomes its last input, an activation
 *    its `act`. A batch norm that follows something else stays: a factor, a bias and the activation.
 * 2. A concatenation that only others like it, batch norms, scales and activations read is not computed: they
 *    read what it would join, and join it themselves.
 * 3. A global average pool becomes one over rows and one over what they leave: strips and tiles of rows sum
 * up what they have, and send a row's means instead of the map.
 * 4. Within a unit, layers are put in the order that holds less memory: as written, or each branch as late as
 *    its reader allows.
 * 5. prec: maps of more than one pixel are stored as bf16, f16, or quantised (u8). Linear layers, pooled 1x1
 *    maps, the last layer's output and what the caller lists stay real; quant and dequant layers are put
 *    where stores meet. The image of an int8 network is its raw 8-bit pixels.
 *    int8-dynamic stores all tensors real: matrix layers quantise what they read at run time
 *    (`hp_layer.dynamic`), but for those that the caller lists. */
#ifndef HP_DEPLOY_H
#define HP_DEPLOY_H

#include "plan/graph/precision.h"

typedef struct hp_deploy_options {
    int32_t prec;             /* hp_prec */
    const char *float_layers; /* names of layers kept real, separated by commas, or NULL */
} hp_deploy_options;

/* A new graph with g's parameters under their names; `deployed` is set. Lives in `arena`. Errors: HP_EUSAGE
 * (a name in float_layers that no layer has). */
hp_status hp_graph_deploy(hp_arena *arena, const hp_graph *g, const hp_deploy_options *o, hp_graph **out,
                          hp_error *err);

/* Most bytes of activations alive at once on one device, one sample, layers in graph order, dtypes of the
 * stores with 4-byte reals: in-place work counted as the lowering does it. */
int64_t hp_graph_live_bytes(const hp_graph *g);

#endif
