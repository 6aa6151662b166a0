/* eager.h - what an eager framework keeps on a rank: PyTorch's rules on the tasks of a program.
 *
 * Convolutions, linear layers, norms, products and poolings keep their inputs, attention its scores, activations their outputs,
 * max-pooling an int64 index per output, dropout a byte; a halo-padded copy of an input is kept beside the
 * input. The image and the logits are variables of the loop, and stay. Parameters, gradients and momentum are 12 bytes each, in
 * 16 bits casts of them 2 more. Inputs received from another stage and outputs
 * sent to one stay until the micro-batch's backward pass is over (MPI4DL holds one buffer per micro-batch).
 */
#ifndef HP_EAGER_H
#define HP_EAGER_H

#include "costmodels/framework/framework.h"
#include "machines/machine.h"
#include "plan/program/program.h"

/* Does a layer keep its first input, and how many bytes of indices or masks per element of its output? */
typedef struct hp_eager_rule {
    bool input;
    int8_t extra_bytes;
} hp_eager_rule;
extern const hp_eager_rule hp_eager_rules[HP_LAYER_OPS];

/* How often a framework computes an activation that the graph computes once: modules begin with one of their
 * own. Paths whose results are concatenated right away belong to one module. 1 for other layers. */
int hp_eager_activations(const hp_graph *g, int layer);

/* Does a layer keep its input k? */
bool hp_eager_keeps(const hp_layer *l, int k);
/* And its output? */
bool hp_eager_keeps_output(const hp_layer *l);

/* Peak bytes of a role without the device's context. f: NULL: PyTorch. */
int64_t hp_eager_bytes(const hp_program *p, const hp_graph *g, const hp_framework *f, int role);
/* sim_memory_infer.c: of inference, without parameters either. Every operation writes a tensor of its own, norms, additions
 * and activations among them. What an allocator keeps beyond that (nvidia-smi shows it) it lets go before it fails;
 * workspaces of libraries are not known. */
int64_t hp_eager_infer_bytes(const hp_program *p, const hp_graph *g, const hp_framework *f, int role);

/* Of one process on the device before any tensor; 0 on CPUs. */
int64_t hp_context_bytes(const hp_machine *m, bool eager);
/* The same of a framework (NULL: any), which may say it itself. */
int64_t hp_framework_context_bytes(const hp_machine *m, const hp_framework *f);

#endif
