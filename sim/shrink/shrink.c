/* shrink.c - the nearest strategies one after the other, until one is legal and fits. */
#include "sim/shrink/shrink.h"

#include "sim/search/fix_worlds.h"

#include <string.h>

enum { MOST_LISTED = 256, MOST_LOWERED = 48 };

typedef struct shrinker {
    hp_arena *arena;
    hp_eval *eval;
    bool regroups; /* what rules propose may split the batch into other groups */
    int lowered;
    bool found;
} shrinker;

/* The bound is cheap, and says no to most. */
static hp_status may_fit(hp_eval *e, const hp_question *q, bool *may, hp_error *err) {
    hp_estimate bound;
    HP_TRY(hp_eval_estimate(e, &q->s, &bound, err));
    *may = bound.memory_bytes <= (double)hp_eval_limit(e, &q->s).rank_bytes;
    return HP_OK;
}

static hp_status try_one(shrinker *s, const fix_world *w, const hp_question *q, hp_strategy *out,
                         hp_error *err) {
    hp_evaluation got;
    bool may = false;
    HP_TRY(may_fit(w->eval, q, &may, err));
    if (!may || s->lowered == MOST_LOWERED) return HP_OK;
    s->lowered++;
    HP_TRY(hp_question_evaluate(w->eval, q, HP_EVAL_FITS, s->arena, &got, err));
    s->found = !got.reject.code;
    if (s->found) *out = q->s;
    return HP_OK;
}

/* One that is listed, or what the rules make of it. */
static hp_status try_listed(shrinker *s, const hp_question *q, hp_strategy *out, hp_error *err) {
    hp_question root[FIX_ROOTS];
    fix_worlds worlds = {.arena = s->arena, .eval = s->eval, .setup = *hp_eval_get(s->eval), .asked = q};
    const int n = fix_near(&worlds, root);
    hp_status status = HP_OK;
    for (int i = 0; i < n && !s->found && status == HP_OK; i++) {
        const fix_world *w = fix_world_of(&worlds, &root[i]);
        if (w && hp_strategy_devices(&root[i].s) <= q->n_devices) status = try_one(s, w, &root[i], out, err);
    }
    return status;
}

/* With more than fewer devices: more micro-batches, other cuts, ... */
static hp_status try_fix(shrinker *s, hp_question *q, hp_strategy *out, hp_error *err) {
    hp_evaluation got;
    char change[HP_FIX_TEXT], text[HP_STRATEGY_TEXT];
    HP_TRY(hp_question_evaluate(s->eval, q, HP_EVAL_FITS, s->arena, &got, err));
    HP_TRY(hp_search_fix(s->eval, q, HP_FIX_THOROUGH, &got.reject, err));
    if (!hp_fix_found(got.reject.fix))
        return hp_fail(err, HP_EPLAN, "nothing like it fits on %d device%s: nearest %.200s: %s: %s; fix: %s",
                       q->n_devices, q->n_devices == 1 ? "" : "s", hp_strategy_text(&q->s, text),
                       hp_reject_text(got.reject.code), got.reject.limit, got.reject.fix);
    snprintf(change, sizeof change, "%.*s", (int)(strstr(got.reject.fix, " -> ") - got.reject.fix),
             got.reject.fix);
    HP_TRY(hp_change_apply(q, change, err));
    *out = q->s;
    return HP_OK;
}

/* Tries the strategies as they are, then with recomputation, which changes nothing but time. */
static hp_status try_all(shrinker *s, const hp_strategy *list, int n, hp_question *q, hp_strategy *out,
                         hp_error *err) {
    static const int32_t recompute[] = {-1, HP_RECOMPUTE_BOUNDARY, HP_RECOMPUTE_FULL};
    for (int k = 0; k < (q->infer ? 1 : 3); k++)
        for (int i = 0; i < n && !s->found; i++) {
            q->s = list[i];
            if (recompute[k] >= 0) q->s.recompute = recompute[k];
            HP_TRY(try_listed(s, q, out, err));
        }
    return HP_OK;
}

static hp_status shrink(shrinker *s, const hp_question *asked, hp_strategy *out, hp_error *err) {
    hp_strategy *list = HP_NEW(s->arena, hp_strategy, MOST_LISTED);
    const int n = hp_strategy_fewer(&asked->s, asked->n_devices, list, MOST_LISTED);
    hp_question q = *asked;
    q.keys_only = true;
    HP_TRY(try_all(s, list, n, &q, out, err));
    s->regroups = !s->found;
    if (s->regroups) HP_TRY(try_all(s, list, n, &q, out, err));
    if (s->found) return HP_OK;
    q.s = list[0];
    return try_fix(s, &q, out, err);
}

hp_status hp_search_shrink(hp_eval *e, const hp_question *q, hp_strategy *out, hp_error *err) {
    shrinker s = {.arena = hp_arena_new(), .eval = e};
    HP_ASSERT(q->n_devices > 0);
    const hp_status status = shrink(&s, q, out, err);
    hp_arena_free(s.arena);
    return status;
}
