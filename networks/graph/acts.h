/* acts.h - the activations by name, from networks/graph/acts.def: for the files that name one or count them.
 *
 * No header that many files include may include this one: a layer holds its activation as a number (graph.h), and what
 * is asked of one whichever it is (its name, range, what its backward pass reads) is declared there, so that a
 * new row compiles only these files again. */
#ifndef HP_ACTS_H
#define HP_ACTS_H

typedef enum hp_act {
#define ACT(id, name, function, kind, least, greatest, backward, meaning) HP_ACT_##id,
#include "networks/graph/acts.def"
#undef ACT
    HP_ACTS
} hp_act;

#endif
