/* legal_layout.c - rules for how stages are split: tiles, slices after them, channels. More tiles than rows
 * or columns are legal, such tiles are empty; so is any grid after any other. */
#include "plan/strategy/legal.h"
#include "networks/graph/precision.h"

/* Room for one more stage after the spatial ones? */
static bool fits_stages(const hp_legal_case *c, int stages) {
    return stages * c->s->chunks <= hp_most_stages(c->g);
}

bool hp_legal_tiles(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    if (s->n_sp <= s->stages) return true;
    hp_refuse(why, HP_REJECT_SP, "sp has %d entries, one per spatial stage, stages=%d", s->n_sp, s->stages);
    if (fits_stages(c, s->n_sp)) return hp_fix(why, "stages=%d", s->n_sp);
    return hp_fix(why, "sp=%dx%d", s->sp_rows[0], s->sp_cols[0]);
}

bool hp_legal_tail(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    const bool shared = s->tail == HP_TAIL_SHARED;
    if (s->ldp > 1 && (shared || s->n_sp == s->stages)) {
        hp_refuse(why, HP_REJECT_TAIL, "ldp=%d slices stages after the spatial ones%s", s->ldp,
                  shared ? "; tail=shared has a slice per tile already" : ", there are none");
        return hp_fix(why, "ldp=1");
    }
    if (!shared || (s->n_sp && s->stages == s->n_sp + 1)) return true;
    hp_refuse(why, HP_REJECT_TAIL,
              "tail=shared needs one stage after the spatial ones: %d of stages=%d are spatial", s->n_sp,
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

bool hp_legal_prec(const hp_legal_case *c, hp_reject *why) {
    const int has = c->g->prec;
    if (c->s->prec == has) return true;
    hp_refuse(why, HP_REJECT_PREC, "%s in %s, prec=%s",
              c->g->deployed ? "the network was prepared for inference"
                             : "the network was prepared for training",
              hp_prec_names[has], hp_prec_names[c->s->prec]);
    return hp_fix(why, "prec=%s", hp_prec_names[has]);
}

/* A layer that quantises its input measures the whole map. */
bool hp_legal_whole(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    if (s->prec != HP_PREC_INT8_DYNAMIC) return true;
    for (int i = 0; i < s->n_sp; i++) {
        if (s->sp_rows[i] == 1 && s->sp_cols[i] == 1) continue;
        hp_refuse(why, HP_REJECT_PREC, "prec=int8-dynamic measures whole maps, sp=%dx%d cuts them",
                  s->sp_rows[i], s->sp_cols[i]);
        return hp_fix(why, "sp=1x1");
    }
    if (s->strips == 1) return true;
    hp_refuse(why, HP_REJECT_PREC, "prec=int8-dynamic measures whole maps, strips=%d cuts them", s->strips);
    return hp_fix(why, "strips=1");
}

/* What a part gets of an axis. */
static int length_of(const hp_layout *l, int axis, int64_t items, int parts, int part) {
    return hp_proportions_at(&l->by[axis], items, parts, part + 1) -
           hp_proportions_at(&l->by[axis], items, parts, part);
}

/* Of the image, in a tile of the first stage. */
static int fewest_rows(const hp_legal_case *c) {
    const hp_layout l = hp_stage_layout(c->s, 0);
    return length_of(&l, HP_AXIS_H, c->g->image_h, l.rows, hp_proportions_lightest(&l.by[HP_AXIS_H], l.rows));
}

/* Of a micro-batch, on a rank of the first stage. */
static int most_samples(const hp_legal_case *c) {
    const hp_layout l = hp_stage_layout(c->s, 0);
    const int64_t all = c->batch / hp_strategy_replicas(c->s) / hp_strategy_groups(c->s);
    return length_of(&l, HP_AXIS_N, all, l.slices, hp_proportions_heaviest(&l.by[HP_AXIS_N], l.slices));
}

/* Strips are rows of one image, a row at least each, in inference. */
bool hp_legal_strips(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    if (s->strips == 1) return true;
    if (!c->g->deployed) {
        hp_refuse(why, HP_REJECT_STRIPS, "training keeps whole activations, strips=%d", s->strips);
        return hp_fix(why, "strips=1");
    }
    const int rows = fewest_rows(c);
    if (s->strips > rows && rows > 0) {
        hp_refuse(why, HP_REJECT_STRIPS, "a tile of the image has %d rows, strips=%d", rows, s->strips);
        return hp_fix(why, "strips=%d", rows);
    }
    if (s->bp > 1 || s->sched == HP_SCHED_GEMS) {
        hp_refuse(why, HP_REJECT_STRIPS, "strips go through all branches of a stage in one direction");
        return s->bp > 1 ? hp_fix(why, "bp=1") : hp_fix(why, "sched=gpipe,gems=1");
    }
    const int samples = most_samples(c);
    if (samples <= 1) return true;
    hp_refuse(why, HP_REJECT_STRIPS, "strips are of one image, a micro-batch has %d", samples);
    if (s->tail == HP_TAIL_SHARED) return hp_fix(why, "tail=own");
    if (s->n_sp && s->ldp > 1) return hp_fix(why, "ldp=1");
    return hp_fix(why, "micro=%d", samples * s->micro);
}

/* Several processes of a device are told apart on their node by order alone (exec/cuda/runtime/cuda.c). */
bool hp_legal_place(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    const int roles = hp_strategy_roles(s), places = hp_strategy_devices(s);
    if (s->place != HP_PLACE_BLOCK && s->clients > 1 && roles > 1) {
        hp_refuse(why, HP_REJECT_PLACE,
                  "place wants one rank on a device, or replicas of one rank: clients=%d with %d ranks each",
                  s->clients, roles);
        return hp_fix(why, "place=block");
    }
    if (s->place != HP_PLACE_LIST || s->n_seat == roles || s->n_seat == places) return true;
    hp_refuse(why, HP_REJECT_PLACE, "place has %d entries, a replica has %d rank%s and all of them %d",
              s->n_seat, roles, roles == 1 ? "" : "s", places);
    return hp_fix(why, "place=block");
}
