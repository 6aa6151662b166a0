/* sequence.c - see sequence.h. */
#include "plan/strategy/sequence.h"

#include "networks/graph/summands.h"

int hp_fewest_heads(const hp_graph *g) {
    int least = 0;
    for (int l = 0; l < g->n_layer; l++) {
        const hp_layer *layer = &g->layer[l];
        if (layer->op == HP_ATTENTION && (least == 0 || layer->groups < least)) least = layer->groups;
    }
    return least;
}

const hp_graph *hp_strategy_graph(hp_arena *arena, const hp_graph *g, const hp_strategy *s) {
    const int has = hp_graph_summands(g);
    return has == 0 || has == s->tp ? g : hp_graph_with_summands(arena, g, s->tp);
}
