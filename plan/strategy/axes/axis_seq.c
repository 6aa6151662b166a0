/* axis_seq.c - `seq`: ranks that share the tokens, and how (plan/strategy/sequence.h). What `tp` leaves to
 * it is said here. */
#include "plan/strategy/axis_kinds.h"

#include "base/units.h"
#include "networks/graph/summands.h"
#include "plan/strategy/sequence.h"

#include <string.h>

static const char *const ways[] = {[HP_SEQ_RING] = "ring", [HP_SEQ_A2A] = "a2a"};
enum { N_WAYS = sizeof ways / sizeof ways[0], TEXT = 32 };

static hp_status parse_way(const char *word, hp_strategy *s, hp_error *err) {
    for (s->seq.by = 0; s->seq.by < N_WAYS; s->seq.by++)
        if (strcmp(ways[s->seq.by], word) == 0) return HP_OK;
    s->seq.by = HP_SEQ_RING;
    return hp_fail(err, HP_EUSAGE, "strategy: seq=%d:%.20s is unknown; choose one of ring, a2a", s->seq.ranks,
                   word);
}

static hp_status parse_seq(const hp_axis *a, const char *value, hp_strategy *s, hp_error *err) {
    (void)a;
    char copy[TEXT], *rest = copy;
    int64_t degree = 0;
    if (snprintf(copy, sizeof copy, "%s", value) >= (int)sizeof copy)
        return hp_fail(err, HP_EUSAGE, "strategy: seq=%.40s is too long; for example seq=4:ring", value);
    HP_TRY(hp_parse_int(strsep(&rest, ":"), "strategy: seq", 1, HP_MAX_DEGREE, &degree, err));
    s->seq.ranks = (int32_t)degree;
    s->seq.by = HP_SEQ_RING;
    return rest ? parse_way(rest, s, err) : HP_OK;
}

static void print_seq(const hp_axis *a, const hp_strategy *s, char *out) {
    (void)a;
    snprintf(out, HP_STRATEGY_TEXT, s->seq.ranks > 1 ? "%d:%s" : "%d", s->seq.ranks, ways[s->seq.by]);
}

/* Ranks that share the tokens of a stage hold the same parameters, so none may have a bias for some heads
 * alone. */
static bool has_bias(const hp_graph *g) {
    for (int l = 0; l < g->n_layer; l++)
        if (g->layer[l].op == HP_ATTENTION && g->layer[l].n_param > 0) return true;
    return false;
}

static bool legal_seq(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    const int heads = hp_fewest_heads(c->g);
    if (s->seq.ranks == 1) return true;
    if (heads == 0) {
        hp_refuse(why, HP_REJECT_SEQ, "%.60s has no attention, seq=%d; tiles (sp) split rows", c->g->net,
                  s->seq.ranks);
        return hp_fix(why, "seq=1");
    }
    if (c->g->deployed) {
        hp_refuse(why, HP_REJECT_SEQ, "inference splits tokens by tiles (sp), seq=%d", s->seq.ranks);
        return hp_fix(why, "seq=1");
    }
    if (s->cp > 1 || s->bp > 1) {
        hp_refuse(why, HP_REJECT_SEQ, "seq=%d with cp=%d, bp=%d", s->seq.ranks, s->cp, s->bp);
        return hp_fix(why, "cp=1,bp=1");
    }
    if (s->seq.by != (int32_t)HP_SEQ_A2A) return true;
    if (has_bias(c->g)) {
        hp_refuse(why, HP_REJECT_SEQ,
                  "attention of %.60s has a bias for each head, which all ranks of seq=%d:a2a would need",
                  c->g->net, s->seq.ranks);
        return hp_fix(why, "seq=%d:ring", s->seq.ranks);
    }
    if (s->seq.ranks * s->tp <= heads) return true;
    hp_refuse(why, HP_REJECT_SEQ, "an attention of %.60s has %d heads, seq=%d:a2a times tp=%d shares them",
              c->g->net, heads, s->seq.ranks, s->tp);
    return heads / s->tp > 1 ? hp_fix(why, "seq=%d:a2a", heads / s->tp)
                             : hp_fix(why, "seq=%d:ring", s->seq.ranks);
}

static int cut_key(const hp_axis *a, const hp_strategy *s, int32_t *word) {
    (void)a;
    word[0] = s->seq.ranks;
    word[1] = s->seq.by;
    return 2;
}

static int add_ways(hp_strategy s, int seq, hp_strategy *out) {
    s.seq.ranks = seq;
    for (s.seq.by = 0; s.seq.by < N_WAYS; s.seq.by++) out[s.seq.by] = s;
    return N_WAYS;
}

/* Replaces some ranks that share layers, samples, or rows of tiles. */
static int tries(const hp_strategy *best, const hp_axis_facts *f, hp_strategy *out) {
    int n = 0;
    if (!f->trains || f->large || hp_graph_summands(f->g) == 0 || best->seq.ranks > 1 ||
        best->place.how == HP_PLACE_LIST)
        return 0;
    for (int seq = 2; seq <= best->tp; seq *= 2) {
        hp_strategy other = *best;
        other.tp = best->tp / seq;
        if (best->tp % seq == 0) n += add_ways(other, seq, out + n);
    }
    for (int seq = 2; seq <= 4 && best->sp.n == 0 && best->dp % seq == 0; seq *= 2) {
        hp_strategy other = *best;
        other.dp = best->dp / seq;
        n += add_ways(other, seq, out + n);
    }
    if (best->sp.n != 1 || best->stages != 1 || best->sp.cols[0] > 1) return n;
    hp_strategy other = *best;
    other.sp.n = 0;
    return n + add_ways(other, best->sp.rows[0], out + n);
}

const hp_axis hp_axis_seq = {.name = "seq",
                             .example = "seq=4:ring",
                             .usual = "1",
                             .means = "ranks that share the tokens; in attention each rank has the queries "
                                      "of its own tokens (ring), or some heads of all tokens (seq=4:a2a)",
                             .at = offsetof(hp_strategy, seq.ranks),
                             .parse = parse_seq,
                             .print = print_seq,
                             .omits = hp_degree_is_one,
                             .reset = hp_degree_reset,
                             .legal = legal_seq,
                             .cut_key = cut_key,
                             .tried = HP_TRY_RANKS,
                             .tries = tries,
                             .family = HP_FAMILY_SEQUENCE,
                             .marks = 1};
