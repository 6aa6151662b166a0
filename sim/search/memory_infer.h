/* memory_infer.h - what an eager framework needs for inference: every operation writes a tensor of its own, norms,
 * additions and activations among them. What its allocator keeps beyond that (nvidia-smi shows it) it lets go before it
 * fails; workspaces of libraries are not known. */
#ifndef HP_SIM_MEMORY_INFER_H
#define HP_SIM_MEMORY_INFER_H

#include "plan/program/program.h"

/* Most bytes of a role's tensors that live at a time, without its parameters and the device's context. */
int64_t hp_eager_infer_bytes(const hp_program *p, const hp_graph *g, int role);

#endif
