/* legal_tied.c - layers that are tied to one parameter, such as a head to the table of ids (Press and Wolf 2017): each rank
 * has one copy, into which all of its layers add their gradients. It is not sliced; on several stages its gradient is
 * summed over all of their ranks, which only an all-reduce after the last backward pass does. */
#include "plan/strategy/legal.h"

/* A layer whose parameter another one holds; -1: none. */
static int first_tied(const hp_graph *g) {
    for (int l = 0; l < g->n_layer; l++)
        if (g->layer[l].n_param && g->param[g->layer[l].param[0]].layer != l) return l;
    return -1;
}

/* The key that is in the way, as it would have to be; NULL: none is. */
static const char *in_the_way(const hp_strategy *s) {
    const bool stages = s->stages * s->chunks > 1;
    if (s->cp > 1) return "cp=1";
    if (s->bp > 1) return "bp=1";
    if (stages && s->zero > 1) return "zero=1";
    return stages && s->sync != HP_SYNC_ALLREDUCE ? "sync=allreduce" : NULL;
}

bool hp_legal_tied(const hp_legal_case *c, hp_reject *why) {
    const char *fix = in_the_way(c->s);
    const int tied = fix ? first_tied(c->g) : -1;
    if (tied < 0) return true;
    const hp_layer *l = &c->g->layer[tied];
    hp_refuse(why, HP_REJECT_TIED, "layer %.60s has the parameter of layer %.60s, which is kept whole",
              l->name, c->g->layer[c->g->param[l->param[0]].layer].name);
    return hp_fix(why, "%s", fix);
}
