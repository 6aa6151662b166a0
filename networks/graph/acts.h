/* acts.h - activations by name, from networks/graph/acts.def, for files that name or count them.
 *
 * Widely included headers must not include this one, so that a new row recompiles few files. A layer stores
 * its activation as a number; graph.h declares the functions that apply to any activation (its name, range,
 * what its backward pass reads). */
#ifndef HP_ACTS_H
#define HP_ACTS_H

typedef enum hp_act {
#define ACT(id, name, function, kind, least, greatest, backward, meaning) HP_ACT_##id,
#include "networks/graph/acts.def"
#undef ACT
    HP_ACTS
} hp_act;

#endif
