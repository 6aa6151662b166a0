/* axis_stages.c - `stages`: parts of the network one after another, each on ranks of its own. */
#include "plan/strategy/axis_kinds.h"

static bool legal_stages(const hp_legal_case *c, hp_reject *why) {
    const int64_t parts = (int64_t)c->s->stages * c->s->chunks;
    const int most = hp_most_stages(c->g);
    if (parts <= most) return true;
    if (c->g->n_unit < HP_MAX_STAGES)
        hp_refuse(why, HP_REJECT_STAGES, "%.60s has %d unit%s, stages*chunks = %lld", c->g->net, c->g->n_unit,
                  c->g->n_unit == 1 ? "" : "s", (long long)parts);
    else
        hp_refuse(why, HP_REJECT_STAGES, "at most %d stages*chunks, not %lld", HP_MAX_STAGES,
                  (long long)parts);
    if (c->s->chunks > most) return hp_fix(why, "chunks=1");
    return hp_fix(why, "stages=%d", most / c->s->chunks);
}

const hp_axis hp_axis_stages = {.name = "stages",
                                .example = "stages=4",
                                .usual = "1",
                                .means = "pipeline stages",
                                .alias = {{"pp", "stages=N"}, {"pipeline", "stages=N"}},
                                HP_DEGREE(stages),
                                .cut_key = hp_field_cut_key,
                                .legal = legal_stages};
