/* legal_layout.c - rules for how stages are split: tiles, slices behind them, channels. More tiles than rows
 * or columns are legal, such tiles are empty; so is any grid behind any other. */
#include "plan/legal.h"

/* Room for one more stage behind the spatial ones? */
static bool fits_stages(const hp_legal_case *c, int stages) {
    return stages * c->s->chunks <= hp_most_stages(c->g);
}

bool hp_legal_tiles(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    if (s->n_sp <= s->stages) return true;
    hp_refuse(why, "E-SP", "sp has %d entries, one per spatial stage, stages=%d", s->n_sp, s->stages);
    if (fits_stages(c, s->n_sp)) return hp_fix(why, "stages=%d", s->n_sp);
    return hp_fix(why, "sp=%dx%d", s->sp_rows[0], s->sp_cols[0]);
}

bool hp_legal_tail(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    const bool shared = s->tail == HP_TAIL_SHARED;
    if (s->ldp > 1 && (shared || s->n_sp == s->stages)) {
        hp_refuse(why, "E-TAIL", "ldp=%d slices stages behind the spatial ones%s", s->ldp,
                  shared ? "; tail=shared has a slice per tile already" : ", there are none");
        return hp_fix(why, "ldp=1");
    }
    if (!shared || (s->n_sp && s->stages == s->n_sp + 1)) return true;
    hp_refuse(why, "E-TAIL",
              "tail=shared needs one stage behind the spatial ones: %d of stages=%d are spatial", s->n_sp,
              s->stages);
    if (s->n_sp && fits_stages(c, s->n_sp + 1)) return hp_fix(why, "stages=%d", s->n_sp + 1);
    return hp_fix(why, "tail=own");
}

/* Most output channels of a convolution. */
static int channels_to_split(const hp_graph *g) {
    int most = 1;
    for (int l = 0; l < g->n_layer; l++) {
        const int c = g->tensor[g->layer[l].out].c;
        if (g->layer[l].op == HP_CONV && c > most) most = c;
    }
    return most;
}

bool hp_legal_channels(const hp_legal_case *c, hp_reject *why) {
    if (c->s->cp == 1) return true;
    const int most = channels_to_split(c->g);
    if (most >= c->s->cp) return true;
    hp_refuse(why, "E-CP", "no convolution of %.60s has more than %d channels, cp=%d", c->g->net, most,
              c->s->cp);
    return hp_fix(why, "cp=%d", most);
}
