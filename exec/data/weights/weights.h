/* weights.h - initial weights by torchvision's schemes, and weights in safetensors files with
 * torchvision's names.
 *
 * A role holds slices of some of the graph's parameters (role->place): trained ones in a weights buffer,
 * running statistics in a state buffer. Both have the program's dtype (HP_F32 or HP_F64), with elements in
 * the row-major order of graph.h's shapes.
 *
 * In training the true running statistics are a sum over ranks (exec/run/run_gather.c). They start with their
 * initial value on the roles marked HP_START of replica 0, and with zero elsewhere. Inference does not update
 * them and holds them on all ranks. */
#ifndef HP_WEIGHTS_H
#define HP_WEIGHTS_H

#include "plan/program/program.h"

#include <stdbool.h>

typedef struct hp_weights {
    const hp_graph *graph;
    const hp_role *role; /* place, trained_elems */
    int32_t dtype;       /* hp_dtype: HP_F32 or HP_F64 */
    int32_t mode;        /* hp_mode */
    int32_t replica;     /* replica of this rank */
    void *weights;       /* trained_elems elements */
    void *state;         /* may be NULL if the role has none */
} hp_weights;

/* Initial values of elements first .. first+count-1 of graph parameter `param`; see hp_weights_init. Running
 * statistics: mean 0, variance 1. */
void hp_param_draw(const hp_graph *g, int param, uint64_t seed, int64_t first, int64_t count, float *out);

/* Do the running statistics of this place start with their initial value, rather than zero? */
bool hp_weights_start(const hp_weights *w, const hp_param_place *at);

/* Draws every parameter of the role. Element e of parameter p depends only on (seed, p, e), so no strategy or
 * dtype changes it (float64 gets the float32 values). Gaps in the weights buffer become 0. Running mean 0 and
 * variance 1 where they start, otherwise zeros. Source of the schemes: torch.nn.init, He et al. 2015
 * (kaiming), nn.Linear.reset_parameters. */
void hp_weights_init(const hp_weights *w, uint64_t seed);

/* Reads the role's slices from a safetensors file of the whole network, which must have every name of the
 * graph with its shape, and no others except *.num_batches_tracked. Running statistics that do not start here
 * become zero. Errors: HP_EDATA listing the first differences. */
hp_status hp_weights_load(const char *path, const hp_weights *w, hp_error *err);

typedef struct hp_weights_source {
    /* Returns all elements of graph parameter `param` (row-major, in `dtype`), called in order of `param`;
     * valid until the next call. NULL with `err` set aborts the write. */
    const void *(*get)(void *self, int param, hp_error *err);
    void *self;
} hp_weights_source;

/* Writes the whole network, with *.num_batches_tracked = `batches` for every batch norm, so that PyTorch's
 * load_state_dict(strict=True) accepts it. HP_F32 as F32, HP_F64 as F64. Errors: HP_ECREATE, HP_EIO, the
 * source's. */
hp_status hp_weights_save(const char *path, const hp_graph *g, hp_dtype dtype,
                          const hp_weights_source *source, int64_t batches, hp_error *err);

#endif
