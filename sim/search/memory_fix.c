/* memory_fix.c - the smallest change that makes a too large strategy fit: each is tried, those that cannot
 * help without lowering them. */
#include "sim/search/search.h"

#include "plan/base/units.h"

/* The changes that save memory, the least painful first: recomputation, more micro-batches (0 = one sample
 * each), both, twice the stages, twice the tiles; in inference strips instead of recomputation. */
typedef struct memory_change {
    int recompute; /* hp_recompute, -1 = as it is */
    int micro_factor, stage_factor, tile_factor;
    const char *what;
    int strips; /* 0 = as it is */
} memory_change;

static const memory_change training_changes[] = {
    {HP_RECOMPUTE_BOUNDARY, 1, 1, 1, "recompute=boundary"},
    {HP_RECOMPUTE_FULL, 1, 1, 1, "recompute=full"},
    {-1, 2, 1, 1, "twice the micro-batches"},
    {HP_RECOMPUTE_BOUNDARY, 2, 1, 1, "twice the micro-batches, recompute=boundary"},
    {-1, 0, 1, 1, "one sample per micro-batch"},
    {HP_RECOMPUTE_BOUNDARY, 0, 1, 1, "one sample per micro-batch, recompute=boundary"},
    {-1, 1, 2, 1, "twice the stages"},
    {-1, 1, 1, 2, "twice the tiles"},
    {HP_RECOMPUTE_BOUNDARY, 1, 1, 4, "four times the tiles, recompute=boundary"}};
static const memory_change inference_changes[] = {
    {-1, 1, 1, 1, "strips=4", 4},
    {-1, 1, 1, 1, "strips=16", 16},
    {-1, 0, 1, 1, "one sample per micro-batch", 0},
    {-1, 0, 1, 1, "one sample per micro-batch, strips=4", 4},
    {-1, 0, 1, 1, "one sample per micro-batch, strips=16", 16},
    {-1, 1, 1, 1, "strips=64", 64},
    {-1, 0, 1, 1, "one sample per micro-batch, strips=64", 64},
    {-1, 1, 1, 1, "strips=256", 256},
    {-1, 0, 1, 1, "one sample per micro-batch, strips=256", 256},
    {-1, 1, 1, 1, "strips=1024", 1024},
    {-1, 1, 2, 1, "twice the stages", 0},
    {-1, 1, 1, 2, "twice the tiles", 0},
    {-1, 1, 1, 2, "twice the tiles, strips=16", 16},
    {-1, 1, 1, 2, "twice the tiles, strips=64", 64}};

static const memory_change *changes_of(const hp_graph *g, int *n) {
    *n = g->deployed ? sizeof inference_changes / sizeof *inference_changes
                     : sizeof training_changes / sizeof *training_changes;
    return g->deployed ? inference_changes : training_changes;
}

static void more_tiles(hp_strategy *s, int factor) {
    if (s->n_sp == 0 && s->stages > 1) return;
    if (s->n_sp == 0) s->sp_rows[0] = s->sp_cols[0] = s->n_sp = 1;
    for (int i = 0; i < s->n_sp; i++)
        *(s->sp_rows[i] > s->sp_cols[i] ? &s->sp_cols[i] : &s->sp_rows[i]) *= factor;
}

static hp_strategy apply_change(const hp_strategy *s, const memory_change *c, int64_t batch) {
    hp_strategy changed = *s;
    if (c->recompute >= 0) changed.recompute = c->recompute;
    if (c->strips > s->strips) changed.strips = c->strips;
    if (c->strips > s->strips) changed.deep = 0;
    const int64_t all = batch / ((int64_t)hp_strategy_replicas(s) * s->gems);
    changed.micro = c->micro_factor ? s->micro * c->micro_factor : (int32_t)(all < 4096 ? all : 4096);
    if (changed.micro > 1 && changed.sched == HP_SCHED_LP) changed.sched = HP_SCHED_GPIPE;
    const int factor = c->stage_factor * c->tile_factor;
    if (factor == 1) return changed;
    changed.stages *= c->stage_factor;
    if (c->tile_factor > 1) more_tiles(&changed, c->tile_factor);
    changed.n_cut = 0;
    if (changed.dp % factor == 0) changed.dp /= factor;
    return changed;
}

static bool legal(hp_eval *e, const hp_strategy *s) {
    const hp_eval_setup *setup = hp_eval_get(e);
    return hp_rules_allow(setup->rules, s, setup->graph, setup->batch, 0, NULL);
}

/* Legal, and small enough as far as can be seen without lowering? */
static hp_status may_fit(hp_eval *e, const hp_strategy *s, bool *may, hp_error *err) {
    const hp_memory_limit limit = hp_eval_limit(e, s);
    hp_estimate out;
    *may = legal(e, s);
    if (!*may) return HP_OK;
    HP_TRY(hp_eval_estimate(e, s, &out, err));
    *may = out.memory_bytes <= (double)limit.rank_bytes;
    return HP_OK;
}

/* Buffers placed need more than what is alive at once: a fix is reported only where that fits, too. Large
 * training programs have room beside what places them best. */
static hp_status try_change(hp_eval *e, const hp_strategy *s, hp_evaluation *got, hp_error *err) {
    enum { LARGE_TASKS = 20000 };
    bool may;
    *got = (hp_evaluation){.reject.code = HP_REJECT_MEM};
    HP_TRY(may_fit(e, s, &may, err));
    if (!may) return HP_OK;
    hp_arena *scratch = hp_arena_new();
    hp_status status = hp_evaluate(e, scratch, s, HP_EVAL_MEMORY, got, err);
    const bool place = hp_eval_get(e)->graph->deployed || got->tasks <= LARGE_TASKS;
    if (status == HP_OK && !got->reject.code && place)
        status = hp_evaluate(e, scratch, s, HP_EVAL_FITS, got, err);
    hp_arena_free(scratch);
    return status;
}

/* The change on the same ranks that may need least of all, far below the strategy itself; NULL: none. */
static hp_status least_change(hp_eval *e, const hp_strategy *s, const memory_change **least, hp_error *err) {
    static const double FAR = 0.5;
    int n;
    const memory_change *change = changes_of(hp_eval_get(e)->graph, &n);
    hp_estimate out;
    HP_TRY(hp_eval_estimate(e, s, &out, err));
    double bytes = FAR * out.likely_bytes;
    for (int i = 0; i < n; i++) {
        const hp_strategy changed = apply_change(s, &change[i], hp_eval_get(e)->batch);
        if (change[i].stage_factor * change[i].tile_factor > 1 || !legal(e, &changed)) continue;
        HP_TRY(hp_eval_estimate(e, &changed, &out, err));
        if (out.likely_bytes >= bytes) continue;
        bytes = out.likely_bytes;
        *least = &change[i];
    }
    return HP_OK;
}

/* No change helps: what the strategy needs with its buffers placed, which is more than the bound that refused
 * it. */
static hp_status exact_need(hp_eval *e, const hp_strategy *s, hp_reject *why, hp_error *err) {
    hp_arena *scratch = hp_arena_new();
    hp_evaluation got;
    const hp_status status = hp_evaluate(e, scratch, s, HP_EVAL_FITS, &got, err);
    hp_arena_free(scratch);
    if (status == HP_OK && got.reject.code) *why = got.reject;
    return status;
}

static hp_status least_need(hp_eval *e, const hp_strategy *s, hp_reject *why, hp_error *err) {
    const memory_change *least = NULL;
    hp_reject changed = {.code = HP_FEASIBLE};
    HP_TRY(exact_need(e, s, why, err));
    HP_TRY(least_change(e, s, &least, err));
    if (!least) return HP_OK;
    const hp_strategy other = apply_change(s, least, hp_eval_get(e)->batch);
    HP_TRY(exact_need(e, &other, &changed, err));
    if (changed.code) snprintf(why->fix, sizeof why->fix, "%s, and %.100s", least->what, changed.fix);
    return HP_OK;
}

hp_status hp_search_memory_fix(hp_eval *e, const hp_strategy *s, hp_reject *why, hp_error *err) {
    int n;
    const memory_change *change = changes_of(hp_eval_get(e)->graph, &n);
    for (int i = 0; i < n; i++) {
        const hp_strategy changed = apply_change(s, &change[i], hp_eval_get(e)->batch);
        hp_evaluation got;
        char size[32];
        if (hp_strategy_equal(&changed, s)) continue;
        HP_TRY(try_change(e, &changed, &got, err));
        if (got.reject.code) continue;
        snprintf(why->fix, sizeof why->fix, "%s -> %s", change[i].what,
                 hp_format_bytes((double)got.figures.memory_bytes, size));
        return HP_OK;
    }
    return least_need(e, s, why, err);
}
