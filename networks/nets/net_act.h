/* net_act.h - builds activations. Separate from builder.h, because many files include that without naming one
 * (networks/graph/acts.h). */
#ifndef HP_NET_ACT_H
#define HP_NET_ACT_H

#include "networks/graph/acts.h"
#include "networks/nets/builder.h"

int hp_build_act(hp_builder *b, int x, const char *name, hp_act act);
int hp_build_act_with(hp_builder *b, int x, const char *name, hp_act act, double act_a, double act_b);

#endif
