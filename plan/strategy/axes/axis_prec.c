/* axis_prec.c - `prec`: the precision that is computed in. What int8-dynamic wants of `sp` and `strips` is
 * said here. */
#include "plan/strategy/axis_kinds.h"

#include "networks/deploy/deploy.h"
#include "networks/graph/precision.h"

#include <string.h>

static hp_status parse_prec(const hp_axis *a, const char *value, hp_strategy *s, hp_error *err) {
    static const char *const coming[] = {"fp8", "int4"};
    for (size_t i = 0; i < sizeof coming / sizeof *coming; i++)
        if (strcmp(value, coming[i]) == 0)
            return hp_fail(
                err, HP_EUNAVAIL,
                "strategy: prec=%s is not in this version: fp32, tf32, bf16, fp16, int8, int8-dynamic",
                value);
    return hp_word_parse(a, value, s, err);
}

static bool is_of_network(const hp_legal_case *c, hp_reject *why) {
    const int has = c->g->prec;
    if (c->s->prec == has) return true;
    hp_refuse(why, HP_REJECT_PREC, "%s in %s, prec=%s",
              c->g->deployed ? "the network was prepared for inference"
                             : "the network was prepared for training",
              hp_prec_names[has], hp_prec_names[c->s->prec]);
    return hp_fix(why, "prec=%s", hp_prec_names[has]);
}

/* A layer that quantises its input measures the whole map. */
static bool has_whole_maps(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    if (s->prec != HP_PREC_INT8_DYNAMIC) return true;
    for (int i = 0; i < s->sp.n; i++) {
        if (s->sp.rows[i] == 1 && s->sp.cols[i] == 1) continue;
        hp_refuse(why, HP_REJECT_PREC, "prec=int8-dynamic measures whole maps, sp=%dx%d cuts them",
                  s->sp.rows[i], s->sp.cols[i]);
        return hp_fix(why, "sp=1x1");
    }
    if (s->strips.n == 1) return true;
    hp_refuse(why, HP_REJECT_PREC, "prec=int8-dynamic measures whole maps, strips=%d cuts them", s->strips.n);
    return hp_fix(why, "strips=1");
}

static bool legal_prec(const hp_legal_case *c, hp_reject *why) {
    return is_of_network(c, why) && has_whole_maps(c, why);
}

const hp_axis hp_axis_prec = {.name = "prec",
                              .example = "prec=bf16",
                              .usual = "fp32",
                              .means = "precision: fp32 tf32 bf16 fp16; in inference also int8 int8-dynamic",
                              .alias = {{"fp16", "prec=fp16"}, {"bf16", "prec=bf16"}, {"int8", "prec=int8"}},
                              .at = offsetof(hp_strategy, prec),
                              .words = hp_prec_names,
                              .parse = parse_prec,
                              .print = hp_word_print,
                              .omits = hp_field_is_zero,
                              .legal = legal_prec};
