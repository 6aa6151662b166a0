/* axis_tp.c - `tp`: ranks that share linear layers and heads (plan/strategy/sequence.h). What layers with
 * one parameter need of `tp`, `cp`, `bp`, `zero` and `sync` is asked here. */
#include "plan/strategy/axis_kinds.h"

#include "networks/graph/summands.h"
#include "plan/strategy/sequence.h"

/* Classes of a head whose logits such ranks split; else 0. */
static int split_classes(const hp_graph *g) {
    const hp_layer *head = &g->layer[g->n_layer - 1];
    return head->tp == (int32_t)HP_TP_COLUMN ? g->tensor[head->out].c : 0;
}

static bool legal_tp(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    const int heads = hp_fewest_heads(c->g);
    if (s->tp == 1) return true;
    if (c->g->deployed) {
        hp_refuse(why, HP_REJECT_TP, "inference keeps each layer's constants whole, tp=%d", s->tp);
        return hp_fix(why, "tp=1");
    }
    if (!hp_graph_summands(c->g)) {
        hp_refuse(why, HP_REJECT_TP, "%.60s has no linear layers that ranks could share, tp=%d", c->g->net,
                  s->tp);
        return hp_fix(why, "tp=1");
    }
    if (s->cp > 1 || s->bp > 1) {
        hp_refuse(why, HP_REJECT_TP, "tp=%d splits channels by itself: cp=%d, bp=%d", s->tp, s->cp, s->bp);
        return hp_fix(why, "cp=1,bp=1");
    }
    const int classes = split_classes(c->g);
    if (classes > 0 && s->tp > classes) {
        hp_refuse(why, HP_REJECT_TP, "%.60s has %d classes, tp=%d", c->g->net, classes, s->tp);
        return hp_fix(why, "tp=%d", classes);
    }
    if (heads == 0 || s->tp <= heads) return true;
    hp_refuse(why, HP_REJECT_TP, "an attention of %.60s has %d heads, tp=%d", c->g->net, heads, s->tp);
    return hp_fix(why, "tp=%d", heads);
}

static bool legal(const hp_legal_case *c, hp_reject *why) {
    return hp_legal_tied(c, why) && legal_tp(c, why);
}

const hp_axis hp_axis_tp = {
    .name = "tp",
    .example = "tp=2",
    .usual = "1",
    .means = "ranks that share a transformer's linear layers and heads, and the tokens everywhere else",
    .alias = {{"tensor", "tp=N"}},
    HP_DEGREE(tp),
    .family = HP_FAMILY_TENSOR,
    .marks = 2,
    .cut_key = hp_field_cut_key,
    .legal = legal};
