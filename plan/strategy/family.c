/* family.c - from a strategy to the kind of parallelism that marks it. */
#include "plan/strategy/axis_kinds.h"

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

/* The key whose value above 1 marks the strategy most; NULL: none does. */
static const hp_axis *marked_by(const hp_strategy *s) {
    const hp_axis *most = NULL;
    for (int i = 0; i < HP_STRATEGY_AXES; i++) {
        const hp_axis *a = hp_strategy_axes[i];
        if (a->marks > (most ? most->marks : 0) && hp_field_value(a, s) > 1) most = a;
    }
    return most;
}

hp_family hp_family_of(const hp_strategy *s) {
    const hp_axis *marked = marked_by(s);
    if (marked) return marked->family;
    if (s->sp.n > 0 && s->sp.n == s->stages && s->stages == 1) return HP_FAMILY_SPATIAL;
    if (s->sp.n > 0) return staged(s, HP_FAMILY_SPATIAL_LAYER);
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
