/* axis_strips.c - `strips`: the image of an inference in strips, one after another through the first layers.
 * */
#include "plan/strategy/axis_kinds.h"
#include "plan/strategy/sched_kind.h"

/* Length of a part along an axis. */
static int length_of(const hp_layout *l, int axis, int64_t items, int parts, int part) {
    return hp_proportions_at(&l->by[axis], items, parts, part + 1) -
           hp_proportions_at(&l->by[axis], items, parts, part);
}

/* Rows of the image in the smallest tile of the first stage. */
static int fewest_rows(const hp_legal_case *c) {
    const hp_layout l = hp_stage_layout(c->s, 0);
    return length_of(&l, HP_AXIS_H, c->g->image_h, l.rows, hp_proportions_lightest(&l.by[HP_AXIS_H], l.rows));
}

/* Samples of a micro-batch on the fullest rank of the first stage. */
static int most_samples(const hp_legal_case *c) {
    const hp_layout l = hp_stage_layout(c->s, 0);
    const int64_t all = c->batch / hp_strategy_replicas(c->s) / hp_strategy_groups(c->s);
    return length_of(&l, HP_AXIS_N, all, l.slices, hp_proportions_heaviest(&l.by[HP_AXIS_N], l.slices));
}

/* Strips are rows of one image, a row at least each, in inference. */
static bool legal_strips(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    if (s->strips.n == 1) return true;
    if (!c->g->deployed) {
        hp_refuse(why, HP_REJECT_STRIPS, "training keeps whole activations, strips=%d", s->strips.n);
        return hp_fix(why, "strips=1");
    }
    const int rows = fewest_rows(c);
    if (s->strips.n > rows && rows > 0) {
        hp_refuse(why, HP_REJECT_STRIPS, "a tile of the image has %d rows, strips=%d", rows, s->strips.n);
        return hp_fix(why, "strips=%d", rows);
    }
    if (s->bp > 1 || hp_sched_of(s)->mirrors) {
        hp_refuse(why, HP_REJECT_STRIPS, "strips go through all branches of a stage in one direction");
        return s->bp > 1 ? hp_fix(why, "bp=1") : hp_fix(why, "sched=gpipe,gems=1");
    }
    const int samples = most_samples(c);
    if (samples <= 1) return true;
    hp_refuse(why, HP_REJECT_STRIPS, "strips are of one image, a micro-batch has %d", samples);
    if (s->sp.tail == HP_TAIL_SHARED) return hp_fix(why, "tail=own");
    if (s->sp.n && s->ldp > 1) return hp_fix(why, "ldp=1");
    return hp_fix(why, "micro=%d", samples * s->micro);
}

static int spares(const hp_strategy *s, const hp_axis_facts *f, hp_strategy *out) {
    static const int COUNTS[] = {4, 16, 64, 256, 1024};
    const int rows = f->g->image_h / (s->sp.n ? s->sp.rows[0] : 1);
    int n = 0;
    for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS && f->g->deployed; i++) {
        if (COUNTS[i] <= s->strips.n || COUNTS[i] > rows) continue;
        out[n] = *s;
        out[n].strips.n = COUNTS[i];
        out[n++].strips.deep = 0;
    }
    return n;
}

const hp_axis hp_axis_strips = {.name = "strips",
                                .example = "strips=16",
                                .usual = "1",
                                .means = "inference: strips of the image, one after another",
                                HP_DEGREE(strips.n),
                                .legal = legal_strips,
                                .spare = HP_SPARE_STATE,
                                .spares = spares,
                                .family = HP_FAMILY_STRIPS,
                                .marks = 6};
