/* report_candidates.c - the table of candidates: on the plan's number of devices the best of each family, on
 * others the best, and plain data parallelism, which is evaluated where the search did not keep it. */
#include "cli/report/report_data.h"

#include "plan/strategy/family.h"
#include "sim/search/conditions.h"

static json_t *row_json(const report *r, const hp_candidate *c, const hp_strategy *s, int number) {
    return json_pack("{s:o, s:o, s:s, s:i, s:I, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:b, s:o}",
                     "number", number ? json_integer(number) : json_null(), "strategy",
                     report_text(r, c->strategy), "family", hp_family_name(hp_family_of(s)), "devices",
                     (int)c->gpus, "batch", (json_int_t)c->batch, "step_s", report_known(c->step_s), "low_s",
                     report_known(c->step_low_s), "high_s", report_known(c->step_high_s), "images_per_s",
                     report_known(c->images_per_s), "memory_bytes", (json_int_t)c->memory_bytes, "bubble",
                     cli_json_number(c->bubble), "exposed_comm", cli_json_number(c->exposed_comm),
                     "measured_share", cli_json_number(c->measured_share), "measured_s",
                     report_known(c->measured_s), "tie", (int)c->tie, "note", report_text(r, c->note));
}

/* Every replica holds the whole state, as others' data parallelism does by default. */
static bool is_plain_dp(const hp_strategy *s) {
    return hp_strategy_is_plain(s) && s->zero.stage == 0;
}

typedef struct listing {
    hp_strategy *strategy; /* of each candidate */
    bool *known;           /* could it be read? */
} listing;

static listing parse_all(const report *r) {
    listing l = {HP_NEW(r->arena, hp_strategy, r->n_candidate + 1),
                 HP_NEW(r->arena, bool, r->n_candidate + 1)};
    hp_error ignored;
    for (int i = 0; i < r->n_candidate; i++)
        l.known[i] = hp_strategy_parse(r->candidate[i].strategy, &l.strategy[i], &ignored) == HP_OK;
    return l;
}

static bool is_best_of_its_kind(const report *r, const listing *l, int i) {
    const hp_candidate *c = &r->candidate[i];
    const bool by_family = c->gpus == r->figures.figures.gpus;
    for (int k = 0; k < i; k++)
        if (l->known[k] && r->candidate[k].gpus == c->gpus &&
            (!by_family || (hp_family_of(&l->strategy[k]) == hp_family_of(&l->strategy[i]) &&
                            l->strategy[k].prec == l->strategy[i].prec)))
            return false;
    return true;
}

/* Plain data parallelism on the plan's devices: its figures, or why it is impossible. */
static hp_status add_plain(const report *r, json_t *rows, hp_error *err) {
    hp_strategy s;
    hp_evaluation e;
    char text[32];
    snprintf(text, sizeof text, "dp=%d", r->figures.figures.gpus);
    HP_TRY(hp_conditions_strategy(text, &r->plan, &s, err));
    HP_TRY(hp_evaluate(r->eval, r->arena, &s, HP_EVAL_PLACED, &e, err));
    json_t *row = row_json(r, &e.figures, &s, 0);
    if (e.reject.code) {
        json_object_set_new(
            row, "rejected",
            json_pack("{s:s, s:s}", "code", hp_reject_text(e.reject.code), "limit", e.reject.limit));
    }
    json_array_append_new(rows, row);
    return HP_OK;
}

hp_status report_candidates(const report *r, json_t **out, hp_error *err) {
    const listing l = parse_all(r);
    json_t *rows = json_array();
    bool plain = false;
    int chosen = -1, n = 0;
    for (int i = 0; i < r->n_candidate; i++) {
        const bool is_plain = l.known[i] && is_plain_dp(&l.strategy[i]);
        if (!l.known[i] || (i != r->chosen && !is_plain && !is_best_of_its_kind(r, &l, i))) continue;
        if (i == r->chosen) chosen = n;
        plain |= is_plain && r->candidate[i].gpus == r->figures.figures.gpus;
        json_array_append_new(rows, row_json(r, &r->candidate[i], &l.strategy[i], i + 1));
        n++;
    }
    const hp_status status = plain ? HP_OK : add_plain(r, rows, err);
    *out = json_pack("{s:o, s:i, s:i, s:s}", "rows", rows, "chosen", chosen, "all", r->n_candidate, "command",
                     hp_arena_printf(r->arena, "%s NUMBER", report_command(r, "why", r->path)));
    return status;
}
