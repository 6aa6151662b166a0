/* search_points.c - looks at every point of the space without lowering it, a microsecond each
 * (estimate.c). */
#include "sim/search/search_points.h"

#include "base/parallel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    OF_FAMILY = 2, /* simulated before all others */
    PIECE = 512    /* points per thread at a time */
};

/* Inference uses whole maps if they leave a fifth of the memory free. */
static const double CLOSE = 0.8;

typedef enum outcome { DROPPED, REJECTED, OPEN } outcome;

typedef struct scorer {
    const hp_space *space;
    const hp_search_options *o;
    hp_search_worker *worker;
    const hp_point *point;
    int n;
    hp_scored_point *scored;
    uint8_t *outcome;  /* per point */
    uint8_t *short_of; /* per thread: is memory short? */
    hp_error *error;   /* per piece */
} scorer;

hp_strategy hp_points_strategy(hp_eval *e, const hp_point *p) {
    hp_strategy s = hp_space_strategy(p);
    hp_eval_complete(e, &s, (hp_cut_kind)p->cut);
    return s;
}

bool hp_points_large(const hp_space *space, const hp_scored_point *p) {
    return hp_space_tasks(space, &p->p) > HP_LARGE_TASKS;
}

/* Is it the same cut under another name? */
static bool repeats(hp_eval *e, const hp_point *p) {
    hp_point time = *p;
    if (p->cut != HP_CUT_SEAM) return false;
    time.cut = HP_CUT_TIME;
    const hp_strategy a = hp_points_strategy(e, p), b = hp_points_strategy(e, &time);
    return memcmp(a.cut.units, b.cut.units, sizeof a.cut.units) == 0;
}

/* A point that is too large is tried again with its cut by memory. */
static hp_status estimate_point(hp_eval *e, hp_point *p, hp_strategy *s, hp_estimate *out, bool *fits,
                                hp_error *err) {
    for (;;) {
        *s = hp_points_strategy(e, p);
        HP_TRY(hp_eval_estimate(e, s, out, err));
        *fits = out->memory_bytes <= (double)hp_eval_limit(e, s).rank_bytes;
        if (*fits || p->stages * p->chunks == 1 || p->cut == HP_CUT_MEMORY || p->cut == HP_CUT_SEAM)
            return HP_OK;
        p->cut = HP_CUT_MEMORY;
    }
}

/* Does a rank need so little that memory decides nothing? On CPUs, the ranks of a node share its memory. */
static bool fits_easily(const hp_eval *e, const hp_strategy *s, double bytes) {
    const hp_memory_limit limit = hp_eval_limit(e, s);
    const int nodes = hp_eval_get(e)->machine->nodes, ranks = hp_strategy_ranks(s);
    const int here = (ranks + nodes - 1) / nodes;
    if (limit.node_bytes > 0 && bytes * here > CLOSE * (double)limit.node_bytes) return false;
    return bytes <= CLOSE * (double)limit.rank_bytes;
}

/* In that case, strips only cost time. */
static hp_status needs_no_strips(const scorer *s, hp_eval *e, const hp_point *p, bool *easy, hp_error *err) {
    hp_point whole = *p;
    hp_estimate out;
    whole.strips = 1;
    whole.deep = 0;
    const hp_strategy strategy = hp_points_strategy(e, &whole);
    HP_TRY(hp_eval_estimate(e, &strategy, &out, err));
    *easy = s->o->sort != HP_SORT_MEMORY && fits_easily(e, &strategy, out.likely_bytes);
    return HP_OK;
}

static void refuse_memory(hp_search_worker *w, const hp_strategy *s, const hp_estimate *out, int order) {
    const hp_miss miss = {s, out->memory_bytes, order};
    hp_reject why = {.code = HP_REJECT_MEM};
    const hp_memory_limit limit = hp_eval_limit(w->eval, s);
    if (hp_tally_wants(&w->tally, why.code, &miss))
        hp_memory_refuse(&why, &limit, out->position, s->stages, out->memory_bytes);
    hp_tally_add(&w->tally, &why, &miss);
}

/* Among equally promising points, the cheaper to simulate come first: 3 % count as much as twice the
 * tasks. */
static double patience(const hp_space *space, const hp_point *p) {
    const double tasks = (double)hp_space_tasks(space, p);
    return tasks > HP_LARGE_TASKS ? 1 + 0.03 * log2(tasks / HP_LARGE_TASKS) : 1;
}

/* Are its weights alone too large, and were other rejects closer to the limit? */
static bool too_heavy(hp_search_worker *w, const hp_strategy *strategy, int order) {
    const double weights = hp_eval_weights(w->eval, strategy);
    const hp_miss miss = {strategy, weights, order};
    const hp_reject why = {.code = HP_REJECT_MEM};
    if (weights <= (double)hp_eval_limit(w->eval, strategy).rank_bytes ||
        hp_tally_wants(&w->tally, why.code, &miss))
        return false;
    hp_tally_add(&w->tally, &why, &miss);
    return true;
}

static hp_status consider(scorer *s, int thread, int i, hp_error *err) {
    hp_search_worker *w = &s->worker[thread];
    hp_point p = s->point[i];
    hp_strategy strategy = hp_space_strategy(&p);
    hp_reject why = {0};
    hp_estimate out;
    bool fits, idle = false;
    s->outcome[i] = REJECTED;
    if (!hp_rules_allow(hp_eval_get(w->eval)->rules, &strategy, s->space->graph, s->space->batch,
                        s->space->n_devices, &why)) {
        hp_tally_add(&w->tally, &why, &(hp_miss){&strategy, i, i});
        return HP_OK;
    }
    idle = repeats(w->eval, &p);
    if (!idle && p.strips > 1) HP_TRY(needs_no_strips(s, w->eval, &p, &idle, err));
    if (idle) {
        s->outcome[i] = DROPPED;
        return HP_OK;
    }
    if (too_heavy(w, &strategy, i)) {
        s->short_of[thread] = true;
        return HP_OK;
    }
    HP_TRY(estimate_point(w->eval, &p, &strategy, &out, &fits, err));
    s->short_of[thread] |= !fits_easily(w->eval, &strategy, out.likely_bytes);
    if (!fits) {
        refuse_memory(w, &strategy, &out, i);
        return HP_OK;
    }
    const bool memory = s->o->sort == HP_SORT_MEMORY;
    const bool likely = out.likely_bytes <= (double)hp_eval_limit(w->eval, &strategy).rank_bytes;
    s->outcome[i] = OPEN;
    const double promise = memory ? out.memory_bytes : out.estimate_s;
    s->scored[i] = (hp_scored_point){.p = p,
                                     .bound = memory ? out.memory_bytes : out.bound_s,
                                     .promise = promise * patience(s->space, &p),
                                     .likely_bytes = out.likely_bytes,
                                     .order = i,
                                     .turn = likely ? 1 : 2,
                                     .family = (uint8_t)hp_family_of(&strategy)};
    return HP_OK;
}

static void consider_piece(void *self, int thread, int piece) {
    scorer *s = self;
    const int end = (piece + 1) * PIECE < s->n ? (piece + 1) * PIECE : s->n;
    hp_status status = HP_OK;
    if (hp_search_stopped(s->o)) return;
    if (thread == 0 && s->o->progress)
        s->o->progress(s->o->self, &(hp_search_progress){"strategies", piece * PIECE, s->n, NULL});
    for (int i = piece * PIECE; i < end && status == HP_OK; i++)
        status = consider(s, thread, i, &s->error[piece]);
    s->error[piece].code = status;
}

/* --- the order --- */

static int point_compare(const void *a, const void *b) {
    const hp_scored_point *x = a, *y = b;
    if (x->turn != y->turn) return x->turn < y->turn ? -1 : 1;
    if (x->promise < y->promise || x->promise > y->promise) return x->promise < y->promise ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Marks the most promising point of each family, if it is cheap to simulate. */
static void mark_families(const hp_space *space, hp_points *points) {
    hp_scored_point *best[HP_FAMILIES][OF_FAMILY] = {{NULL}};
    for (int i = 0; i < points->n; i++) {
        hp_scored_point **of = best[points->list[i].family], *p = &points->list[i];
        if (p->turn != 1 || hp_points_large(space, p)) continue;
        for (int k = 0; p && k < OF_FAMILY; k++) {
            if (of[k] && of[k]->promise <= p->promise) continue;
            hp_scored_point *worse = of[k];
            of[k] = p;
            p = worse;
        }
    }
    for (int f = 0; f < HP_FAMILIES; f++)
        for (int k = 0; k < OF_FAMILY && best[f][k]; k++) best[f][k]->turn = 0;
}

static hp_status collect(const scorer *s, int pieces, int n_worker, hp_points *out, hp_error *err) {
    for (int i = 0; i < pieces; i++) {
        if (s->error[i].code == HP_OK) continue;
        *err = s->error[i];
        return s->error[i].code;
    }
    for (int i = 0; i < s->n; i++) {
        if (s->outcome[i] == DROPPED) out->searched--;
        if (s->outcome[i] == OPEN) out->list[out->n++] = s->scored[i];
    }
    for (int i = 0; i < n_worker; i++) out->short_of_memory |= s->short_of[i] != 0;
    return HP_OK;
}

hp_status hp_points_score(hp_arena *arena, const hp_space *space, const hp_search_options *o,
                          hp_search_worker *worker, int n_worker, hp_points *out, hp_error *err) {
    hp_arena *scratch = hp_arena_new();
    hp_point *list;
    scorer s = {.space = space, .o = o, .worker = worker, .n = hp_space_list(scratch, space, &list)};
    const int pieces = (s.n + PIECE - 1) / PIECE;
    s.point = list;
    s.scored = HP_NEW(scratch, hp_scored_point, s.n);
    s.outcome = HP_NEW(scratch, uint8_t, s.n);
    s.short_of = HP_NEW(scratch, uint8_t, n_worker);
    s.error = HP_NEW(scratch, hp_error, pieces);
    *out = (hp_points){.list = HP_NEW(arena, hp_scored_point, s.n), .searched = s.n};
    hp_parallel_for(n_worker, pieces, consider_piece, &s);
    const hp_status status = collect(&s, pieces, n_worker, out, err);
    hp_arena_free(scratch);
    mark_families(space, out);
    if (out->n) qsort(out->list, (size_t)out->n, sizeof *out->list, point_compare);
    return status;
}
