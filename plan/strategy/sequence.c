/* sequence.c - see sequence.h. */
#include "plan/strategy/sequence.h"

#include "base/units.h"
#include "networks/graph/summands.h"

#include <stdio.h>
#include <string.h>

static const char *const ways[] = {[HP_SEQ_RING] = "ring", [HP_SEQ_A2A] = "a2a"};
enum { N_WAYS = sizeof ways / sizeof ways[0], TEXT = 32 };

/* --- text --- */

static hp_status parse_way(const char *word, hp_strategy *s, hp_error *err) {
    for (s->seq_by = 0; s->seq_by < N_WAYS; s->seq_by++)
        if (strcmp(ways[s->seq_by], word) == 0) return HP_OK;
    s->seq_by = HP_SEQ_RING;
    return hp_fail(err, HP_EUSAGE, "strategy: seq=%d:%.20s is unknown; choose one of ring, a2a", s->seq,
                   word);
}

hp_status hp_seq_parse(const char *value, hp_strategy *s, hp_error *err) {
    char copy[TEXT], *rest = copy;
    int64_t degree = 0;
    if (snprintf(copy, sizeof copy, "%s", value) >= (int)sizeof copy)
        return hp_fail(err, HP_EUSAGE, "strategy: seq=%.40s is too long; for example seq=4:ring", value);
    HP_TRY(hp_parse_int(strsep(&rest, ":"), "strategy: seq", 1, HP_MAX_DEGREE, &degree, err));
    s->seq = (int32_t)degree;
    s->seq_by = HP_SEQ_RING;
    return rest ? parse_way(rest, s, err) : HP_OK;
}

void hp_seq_text(const hp_strategy *s, char *out) {
    snprintf(out, HP_STRATEGY_TEXT, s->seq > 1 ? "%d:%s" : "%d", s->seq, ways[s->seq_by]);
}

/* --- rules --- */

/* The fewest heads of any attention; 0: there is none. */
static int fewest_heads(const hp_graph *g) {
    int least = 0;
    for (int l = 0; l < g->n_layer; l++) {
        const hp_layer *layer = &g->layer[l];
        if (layer->op == HP_ATTENTION && (least == 0 || layer->groups < least)) least = layer->groups;
    }
    return least;
}

/* Ranks that share the tokens of a stage hold the same parameters, so none may have a bias for some heads alone. */
static bool has_bias(const hp_graph *g) {
    for (int l = 0; l < g->n_layer; l++)
        if (g->layer[l].op == HP_ATTENTION && g->layer[l].n_param > 0) return true;
    return false;
}

/* Classes of a head whose logits such ranks split; else 0. */
static int split_classes(const hp_graph *g) {
    const hp_layer *head = &g->layer[g->n_layer - 1];
    return head->tp == (int32_t)HP_TP_COLUMN ? g->tensor[head->out].c : 0;
}

static bool legal_tp(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    const int heads = fewest_heads(c->g);
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

static bool legal_seq(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    const int heads = fewest_heads(c->g);
    if (s->seq == 1) return true;
    if (heads == 0) {
        hp_refuse(why, HP_REJECT_SEQ, "%.60s has no attention, seq=%d; tiles (sp) split rows", c->g->net,
                  s->seq);
        return hp_fix(why, "seq=1");
    }
    if (c->g->deployed) {
        hp_refuse(why, HP_REJECT_SEQ, "inference splits tokens by tiles (sp), seq=%d", s->seq);
        return hp_fix(why, "seq=1");
    }
    if (s->cp > 1 || s->bp > 1) {
        hp_refuse(why, HP_REJECT_SEQ, "seq=%d with cp=%d, bp=%d", s->seq, s->cp, s->bp);
        return hp_fix(why, "cp=1,bp=1");
    }
    if (s->seq_by != (int32_t)HP_SEQ_A2A) return true;
    if (has_bias(c->g)) {
        hp_refuse(why, HP_REJECT_SEQ,
                  "attention of %.60s has a bias for each head, which all ranks of seq=%d:a2a would need",
                  c->g->net, s->seq);
        return hp_fix(why, "seq=%d:ring", s->seq);
    }
    if (s->seq * s->tp <= heads) return true;
    hp_refuse(why, HP_REJECT_SEQ, "an attention of %.60s has %d heads, seq=%d:a2a times tp=%d shares them",
              c->g->net, heads, s->seq, s->tp);
    return heads / s->tp > 1 ? hp_fix(why, "seq=%d:a2a", heads / s->tp) : hp_fix(why, "seq=%d:ring", s->seq);
}

bool hp_legal_sequence(const hp_legal_case *c, hp_reject *why) {
    return legal_tp(c, why) && legal_seq(c, why);
}

const hp_graph *hp_strategy_graph(hp_arena *arena, const hp_graph *g, const hp_strategy *s) {
    const int has = hp_graph_summands(g);
    return has == 0 || has == s->tp ? g : hp_graph_with_summands(arena, g, s->tp);
}
