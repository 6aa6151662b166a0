/* axis_cp.c - `cp`: output channels of every convolution on ranks of their own. */
#include "plan/strategy/axis_kinds.h"

/* Most output channels of a convolution. */
static int channels_to_split(const hp_graph *g) {
    int most = 1;
    for (int l = 0; l < g->n_layer; l++) {
        const int c = g->tensor[g->layer[l].out].c;
        if (g->layer[l].op == HP_CONV && c > most) most = c;
    }
    return most;
}

static bool legal_channels(const hp_legal_case *c, hp_reject *why) {
    if (c->s->cp == 1) return true;
    if (c->g->deployed) {
        hp_refuse(why, HP_REJECT_CP, "inference keeps each layer's constants whole, cp=%d", c->s->cp);
        return hp_fix(why, "cp=1");
    }
    const int most = channels_to_split(c->g);
    if (most >= c->s->cp) return true;
    hp_refuse(why, HP_REJECT_CP, "no convolution of %.60s has more than %d channels, cp=%d", c->g->net, most,
              c->s->cp);
    return hp_fix(why, "cp=%d", most);
}

const hp_axis hp_axis_cp = {.name = "cp",
                            .example = "cp=2",
                            .usual = "1",
                            .means = "ranks that share the output channels of every convolution",
                            HP_DEGREE(cp),
                            .family = HP_FAMILY_CHANNEL,
                            .marks = 3,
                            .cut_key = hp_field_cut_key,
                            .legal = legal_channels};
