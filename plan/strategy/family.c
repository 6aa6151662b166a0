/* family.c - from a strategy to the kind of parallelism that marks it. */
#include "plan/strategy/strategy_axis.h"

#include <strings.h>

static const char *const names[HP_FAMILIES] = {[HP_FAMILY_DATA] = "data",
                                               [HP_FAMILY_LAYER] = "layer",
                                               [HP_FAMILY_PIPELINE] = "pipeline",
                                               [HP_FAMILY_GEMS] = "GEMS",
                                               [HP_FAMILY_SPATIAL] = "spatial",
                                               [HP_FAMILY_SPATIAL_LAYER] = "spatial+layer",
                                               [HP_FAMILY_SPATIAL_PIPELINE] = "spatial+pipeline",
                                               [HP_FAMILY_SPATIAL_GEMS] = "spatial+GEMS",
                                               [HP_FAMILY_CHANNEL] = "channel",
                                               [HP_FAMILY_BRANCH] = "branch",
                                               [HP_FAMILY_TENSOR] = "tensor",
                                               [HP_FAMILY_SEQUENCE] = "sequence",
                                               [HP_FAMILY_CLIENTS] = "clients",
                                               [HP_FAMILY_STRIPS] = "strips"};

const char *hp_family_name(hp_family f) {
    return names[f];
}

/* The order of stages: GEMS, one micro-batch after the other, or several in a pipeline. */
static hp_family staged(const hp_strategy *s, hp_family layer) {
    if (s->gems > 1) return (hp_family)(layer + HP_FAMILY_GEMS - HP_FAMILY_LAYER);
    return (hp_family)(layer + (s->micro > 1 && hp_positions(s) > 1));
}

hp_family hp_family_of(const hp_strategy *s) {
    if (s->strips > 1) return HP_FAMILY_STRIPS;
    if (s->clients > 1) return HP_FAMILY_CLIENTS;
    if (s->bp > 1) return HP_FAMILY_BRANCH;
    if (s->cp > 1) return HP_FAMILY_CHANNEL;
    if (s->tp > 1) return HP_FAMILY_TENSOR;
    if (s->seq > 1) return HP_FAMILY_SEQUENCE;
    if (s->n_sp > 0 && s->n_sp == s->stages && s->stages == 1) return HP_FAMILY_SPATIAL;
    if (s->n_sp > 0) return staged(s, HP_FAMILY_SPATIAL_LAYER);
    return s->stages > 1 ? staged(s, HP_FAMILY_LAYER) : HP_FAMILY_DATA;
}

bool hp_strategy_is_plain(const hp_strategy *s) {
    return hp_family_of(s) == HP_FAMILY_DATA && s->micro == 1 && s->recompute == HP_RECOMPUTE_NONE;
}

const char *hp_strategy_called(const char *word) {
    for (int i = 0; i < HP_STRATEGY_AXES; i++) {
        const hp_axis_alias *alias = hp_strategy_axes[i]->alias;
        for (int k = 0; k < HP_AXIS_ALIASES && alias[k].word; k++)
            if (strcasecmp(word, alias[k].word) == 0) return alias[k].text;
    }
    return "";
}
