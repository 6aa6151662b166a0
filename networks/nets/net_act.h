/* net_act.h - builds activations: not in builder.h, which many files include that name none (networks/graph/acts.h). */
#ifndef HP_NET_ACT_H
#define HP_NET_ACT_H

#include "networks/graph/acts.h"
#include "networks/nets/builder.h"

int hp_build_act(hp_builder *b, int x, const char *name, hp_act act);
int hp_build_act_with(hp_builder *b, int x, const char *name, hp_act act, double act_a, double act_b);

#endif
