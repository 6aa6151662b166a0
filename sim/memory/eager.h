/* eager.h - what an eager framework keeps on a rank: PyTorch's rules applied to the tasks of a program.
 *
 * Convolutions, linear layers, norms, products and poolings keep their inputs; attention its scores;
 * activations their outputs; max-pooling an int64 index per output; dropout a byte. A halo-padded copy of an
 * input is kept in addition to the input. The image and the logits are loop variables, and stay. Parameters,
 * gradients and momentum take 12 bytes each; in 16 bits, casts add 2. Inputs from another stage and outputs
 * to one stay until the micro-batch's backward pass ends (MPI4DL holds one buffer per micro-batch). */
#ifndef HP_EAGER_H
#define HP_EAGER_H

#include "costmodels/framework/framework.h"
#include "machines/machine.h"
#include "plan/program/program.h"

/* Does a layer keep its first input? And how many bytes of indices or masks does it keep per output
 * element? */
typedef struct hp_eager_rule {
    bool input;
    int8_t extra_bytes;
} hp_eager_rule;
extern const hp_eager_rule hp_eager_rules[HP_LAYER_OPS];

/* How often a framework computes an activation that the graph computes once: modules begin with their own
 * activation. Paths whose results are concatenated immediately belong to one module. 1 for other layers. */
int hp_eager_activations(const hp_graph *g, int layer);

/* Does a layer keep its input k? */
bool hp_eager_keeps(const hp_layer *l, int k);
/* Does the backward pass read the layer's output? */
bool hp_eager_keeps_output(const hp_layer *l);

/* Peak bytes of a role without the device's context. f: NULL: PyTorch. */
int64_t hp_eager_bytes(const hp_program *p, const hp_graph *g, const hp_framework *f, int role);
/* sim_memory_infer.c: the same for inference, also without parameters. Every operation writes a separate
 * tensor, including norms, additions and activations. An allocator frees what it caches beyond that (visible
 * in nvidia-smi) before it fails; workspaces of libraries are unknown. */
int64_t hp_eager_infer_bytes(const hp_program *p, const hp_graph *g, const hp_framework *f, int role);

/* Bytes of one process on the device before any tensor; 0 on CPUs. */
int64_t hp_context_bytes(const hp_machine *m, bool eager);
/* The same for a framework (NULL: any), which may specify it. */
int64_t hp_framework_context_bytes(const hp_machine *m, const hp_framework *f);

#endif
