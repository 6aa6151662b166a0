/* optimizer.h - the optimisers (networks/graph/optimizers.def), and the parameters to which weight decay
 * applies. */
#ifndef HP_OPTIMIZER_H
#define HP_OPTIMIZER_H

#include "networks/graph/graph.h"

typedef enum hp_optimizer_state {
#define STATE(id, name) HP_OPTIMIZER_##id,
#define OPTIMIZER(...)
#include "networks/graph/optimizers.def"
    HP_OPTIMIZER_STATES
} hp_optimizer_state;

typedef enum hp_optimizer {
#define STATE(id, name)
#define OPTIMIZER(id, ...) HP_##id,
#include "networks/graph/optimizers.def"
    HP_OPTIMIZERS
} hp_optimizer;

enum { HP_MAX_OPTIMIZER_STATES = 2 };

typedef struct hp_optimizer_info {
    const char *name;
    hp_optimizer_state first; /* its states are consecutive */
    int32_t states;
    double operations; /* arithmetic operations per element */
    bool matrices;     /* weight decay only for parameters of two or more dimensions: no biases, no norms */
    bool linear;
    const char *meaning;
} hp_optimizer_info;
extern const hp_optimizer_info hp_optimizer_infos[HP_OPTIMIZERS];

/* For help: "|sgd|adamw". */
extern const char hp_optimizer_names[];

/* Looks up an optimiser; NULL: sgd. Errors: HP_EUSAGE with the list of names. */
hp_status hp_optimizer_find(const char *name, int32_t *optimizer, hp_error *err);

static inline const hp_optimizer_info *hp_optimizer_of(const hp_graph *g) {
    return &hp_optimizer_infos[g->optimizer];
}

/* Does it have two or more dimensions? These come first in their bucket, so that weight decay applies to one
 * range. */
static inline bool hp_param_is_matrix(const hp_param *p) {
    return p->n_dim > 1;
}

#endif
