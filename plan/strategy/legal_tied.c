/* legal_tied.c - layers that are tied to one parameter, such as a head to the table of ids (Press and Wolf 2017), lie on one
 * stage and are not sliced: there is one copy of it on each rank, into which all of them add their gradients. */
#include "plan/strategy/legal.h"

/* A layer whose parameter another one holds; -1: none. */
static int first_tied(const hp_graph *g) {
    for (int l = 0; l < g->n_layer; l++)
        if (g->layer[l].n_param && g->param[g->layer[l].param[0]].layer != l) return l;
    return -1;
}

bool hp_legal_tied(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    const int tied = s->stages * s->chunks * s->cp * s->bp > 1 ? first_tied(c->g) : -1;
    if (tied < 0) return true;
    const hp_layer *l = &c->g->layer[tied];
    hp_refuse(why, HP_REJECT_TIED, "layer %.60s has the parameter of layer %.60s: both on one stage, whole",
              l->name, c->g->layer[c->g->param[l->param[0]].layer].name);
    if (s->cp > 1) return hp_fix(why, "cp=1");
    if (s->bp > 1) return hp_fix(why, "bp=1");
    return hp_fix(why, s->chunks > 1 ? "chunks=1" : "stages=1");
}
