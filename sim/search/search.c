/* search.c - every point of the space is estimated, which takes a microsecond (estimate.c); lowering and
 * simulating, a millisecond to a second, is for the promising: best first, with lower bounds to stop at (as in
 * branch and bound; Calculon, Isaev et al. 2023, evaluates all). */
#include "sim/search/search.h"

#include "sim/search/fix.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum {
    MAX_TASKS = 400000,  /* about 200 MB while a candidate is evaluated */
    BUDGET = 2000000,    /* tasks: a few seconds; one half for small programs, one for large ones */
    LARGE_TASKS = 20000, /* such programs are simulated once, and not placed */
    SPARE = 4,           /* kept beyond those wanted: placement may reorder neighbours or refuse one */
    FAMILIES = 64,
    OF_FAMILY = 2, /* evaluated before all others */
    PATIENCE = 4   /* times the budget, as long as nothing fits */
};

/* In inference whole maps are taken where they leave a fifth of the memory free. */
static const double CLOSE = 0.8;

/* Several clients on a device that one keeps busy gain less than their contexts and smaller batches cost. */
static const double WORTH_BUSY = 0.9;

typedef struct point {
    hp_point p;
    double bound_s;
    double promise; /* the smaller the better: estimated seconds, or bytes where memory ranks */
    int32_t order;
    int32_t rank; /* 0: the best of its family; 2: probably does not fit; 1: all others */
} point;

typedef struct search {
    hp_arena *arena;
    hp_eval *eval;
    const hp_space *space;
    const hp_search_options *o;
    hp_search_result *r;
    point *point;
    int n_point;
    int64_t spent[2]; /* on small programs, on large ones */
    int best_capacity, rejected_capacity;
    int kept;             /* at most: those wanted and a few */
    bool one_stage;       /* a strategy without pipeline fits */
    bool short_of_memory; /* some strategy does not fit, or barely */
    double *miss;         /* per reject: by how much the example is over the limit */
    bool *tiles;          /* and whether it has tiles */
    int miss_capacity, tiles_capacity;
} search;

/* Memory is short in one way with tiles and in another without: an example of each. */
static bool same_reject(const search *s, int i, hp_reject_code code, bool tiles) {
    return s->r->rejected[i].code == code && (code != HP_REJECT_MEM || s->tiles[i] == tiles);
}

/* Counts a reject under its code; the example is the one that misses by the least. */
static void count_reject(search *s, const hp_reject *why, const hp_strategy *strategy, double miss) {
    int i = 0;
    while (i < s->r->n_rejected && !same_reject(s, i, why->code, strategy->n_sp > 0)) i++;
    if (i == s->r->n_rejected) {
        HP_ROOM(s->arena, s->r->rejected, i, s->rejected_capacity);
        HP_ROOM(s->arena, s->miss, i, s->miss_capacity);
        HP_ROOM(s->arena, s->tiles, i, s->tiles_capacity);
        s->r->rejected[i] = (hp_rejected){.code = why->code};
        s->miss[i] = INFINITY;
        s->tiles[i] = strategy->n_sp > 0;
        s->r->n_rejected++;
    }
    hp_rejected *r = &s->r->rejected[i];
    r->count++;
    if (miss >= s->miss[i]) return;
    s->miss[i] = miss;
    hp_strategy_text(strategy, r->example);
    snprintf(r->limit, sizeof r->limit, "%s", why->limit);
}

/* --- all points, without lowering --- */

static int point_compare(const void *a, const void *b) {
    const point *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    if (x->promise < y->promise || x->promise > y->promise) return x->promise < y->promise ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Tiles, slices after them, GEMS, channels, clients, a pipeline: what makes candidates different in kind. */
static int family_of(const hp_point *p) {
    return (p->n_sp > 0) | (p->gems > 1) << 1 | (p->stages > 1) << 2 | (p->tail || p->ldp > 1) << 3 |
           (p->clients > 1) << 4 | (p->cp * p->bp > 1) << 5;
}

static bool is_large(const search *s, const point *p) {
    return hp_space_tasks(s->space, &p->p) > LARGE_TASKS;
}

/* The most promising of each family, as far as simulating it is cheap. */
static void mark_families(search *s) {
    point *best[FAMILIES][OF_FAMILY] = {{NULL}};
    for (int i = 0; i < s->n_point; i++) {
        point **of = best[family_of(&s->point[i].p)], *p = &s->point[i];
        if (p->rank != 1 || is_large(s, p)) continue;
        for (int k = 0; k < OF_FAMILY; k++) {
            if (of[k] && of[k]->promise <= p->promise) continue;
            point *worse = of[k];
            of[k] = p;
            p = worse;
            if (!p) break;
        }
    }
    for (int f = 0; f < FAMILIES; f++)
        for (int k = 0; k < OF_FAMILY && best[f][k]; k++) best[f][k]->rank = 0;
}

/* The same cut by another name? */
static bool repeats(search *s, const hp_point *p) {
    if (p->cut != HP_CUT_SEAM) return false;
    hp_strategy seam = hp_space_strategy(p), time = seam;
    hp_eval_complete(s->eval, &seam, HP_CUT_SEAM);
    hp_eval_complete(s->eval, &time, HP_CUT_TIME);
    return memcmp(seam.cut, time.cut, sizeof seam.cut) == 0;
}

/* A too large point is tried again with its cut by memory. */
static hp_status estimate_point(search *s, hp_point *p, hp_estimate *out, bool *fits, hp_reject *why,
                                hp_error *err) {
    for (;;) {
        hp_strategy strategy = hp_space_strategy(p);
        const hp_memory_limit limit = hp_eval_limit(s->eval, &strategy);
        hp_eval_complete(s->eval, &strategy, (hp_cut_kind)p->cut);
        HP_TRY(hp_eval_estimate(s->eval, &strategy, out, err));
        *fits = out->memory_bytes <= (double)limit.rank_bytes;
        if (*fits || p->stages * p->chunks == 1 || p->cut == HP_CUT_MEMORY || p->cut == HP_CUT_SEAM) {
            if (!*fits) hp_memory_refuse(why, &limit, out->position, p->stages, out->memory_bytes);
            return HP_OK;
        }
        p->cut = HP_CUT_MEMORY;
    }
}

/* Does a rank need so little that memory decides nothing? On CPUs the ranks of a node share its memory. */
static bool fits_easily(const search *s, const hp_strategy *strategy, double bytes) {
    const hp_memory_limit limit = hp_eval_limit(s->eval, strategy);
    const int nodes = hp_eval_get(s->eval)->machine->nodes, ranks = hp_strategy_ranks(strategy);
    const int here = (ranks + nodes - 1) / nodes;
    if (limit.node_bytes > 0 && bytes * here > CLOSE * (double)limit.node_bytes) return false;
    return bytes <= CLOSE * (double)limit.rank_bytes;
}

/* Then strips only cost time. */
static hp_status needs_no_strips(search *s, const hp_point *p, bool *easy, hp_error *err) {
    hp_strategy whole = hp_space_strategy(p);
    hp_estimate out;
    whole.strips = 1;
    whole.deep = 0;
    hp_eval_complete(s->eval, &whole, (hp_cut_kind)p->cut);
    HP_TRY(hp_eval_estimate(s->eval, &whole, &out, err));
    *easy = s->o->sort != HP_SORT_MEMORY && fits_easily(s, &whole, out.likely_bytes);
    return HP_OK;
}

static hp_status consider(search *s, hp_point p, int order, hp_error *err) {
    const int64_t max_tasks = s->o->max_tasks ? s->o->max_tasks : MAX_TASKS;
    const hp_strategy strategy = hp_space_strategy(&p);
    const hp_eval_setup *setup = hp_eval_get(s->eval);
    hp_reject why = {0};
    hp_estimate out;
    bool fits = true;
    if (!hp_rules_allow(setup->rules, &strategy, s->space->graph, s->space->batch, s->space->n_devices,
                        &why)) {
        count_reject(s, &why, &strategy, order);
        return HP_OK;
    }
    bool idle = repeats(s, &p);
    if (!idle && p.strips > 1) HP_TRY(needs_no_strips(s, &p, &idle, err));
    if (idle) {
        s->r->searched--;
        return HP_OK;
    }
    HP_TRY(estimate_point(s, &p, &out, &fits, &why, err));
    const double has = (double)hp_eval_limit(s->eval, &strategy).rank_bytes;
    s->short_of_memory |= !fits_easily(s, &strategy, out.likely_bytes);
    if (!fits) {
        count_reject(s, &why, &strategy, out.memory_bytes);
    } else if (p.clients > 1 && out.busy > WORTH_BUSY) {
        s->r->valid++; /* nothing to gain */
        s->r->cut_off++;
    } else if (hp_space_tasks(s->space, &p) > max_tasks) {
        s->r->left_out++;
    } else {
        const double promise = s->o->sort == HP_SORT_MEMORY ? out.memory_bytes : out.estimate_s;
        s->point[s->n_point++] = (point){p, out.bound_s, promise, order, out.likely_bytes > has ? 2 : 1};
    }
    return HP_OK;
}

/* Legal points that may fit, in the order in which they are simulated. */
static hp_status list_points(search *s, hp_error *err) {
    hp_point *list;
    const int n = hp_space_list(s->arena, s->space, &list);
    s->r->searched += n;
    s->n_point = 0;
    s->point = HP_NEW(s->arena, point, n);
    for (int i = 0; i < n; i++) HP_TRY(consider(s, list[i], i, err));
    mark_families(s);
    qsort(s->point, (size_t)s->n_point, sizeof *s->point, point_compare);
    return HP_OK;
}

/* --- the promising ones --- */

static double rank_value(const hp_evaluation *e, hp_sort sort) {
    if (sort == HP_SORT_MEMORY) return (double)e->figures.memory_bytes;
    return sort == HP_SORT_IMAGES ? -e->figures.images_per_s : e->figures.step_high_s;
}

/* Keeps the best, in order; equal ones stay in the order they came. */
static void keep(search *s, const hp_evaluation *e) {
    hp_search_result *r = s->r;
    const double value = rank_value(e, s->o->sort);
    int at = r->n;
    while (at > 0 && rank_value(&r->best[at - 1], s->o->sort) > value) at--;
    if (at >= s->kept) return;
    HP_ROOM(s->arena, r->best, r->n, s->best_capacity);
    memmove(&r->best[at + 1], &r->best[at], sizeof *r->best * (size_t)(r->n - at));
    r->best[at] = *e;
    if (++r->n > s->kept) r->n = s->kept;
}

/* Can a candidate with this lower bound still be among those kept? */
static bool hopeless(const search *s, double bound_s) {
    if (s->r->n < s->kept || s->o->sort == HP_SORT_MEMORY) return false;
    double worst = 0;
    for (int i = 0; i < s->r->n; i++) worst = fmax(worst, s->r->best[i].figures.step_high_s);
    return bound_s > worst * (1 + 1e-9);
}

static hp_eval_depth depth_of(const search *s, const point *p) {
    if (s->o->sort == HP_SORT_MEMORY || hopeless(s, p->bound_s)) return HP_EVAL_MEMORY;
    return s->o->sort == HP_SORT_TIME && !is_large(s, p) ? HP_EVAL_RANK : HP_EVAL_STEP;
}

static bool may_cut_otherwise(const hp_point *p) {
    return p->stages * p->chunks > 1 && p->cut == HP_CUT_TIME;
}

static hp_status try_point(search *s, const hp_point *p, hp_eval_depth depth, hp_evaluation *e,
                           int64_t *spent, hp_error *err) {
    hp_strategy strategy = hp_space_strategy(p);
    hp_eval_complete(s->eval, &strategy, (hp_cut_kind)p->cut);
    HP_TRY(hp_evaluate(s->eval, s->arena, &strategy, depth, e, err));
    *spent += depth == HP_EVAL_MEMORY ? e->tasks / 2 : e->tasks;
    return HP_OK;
}

/* Placing buffers may need a little more than the most bytes alive at once. */
static hp_status fits_placed(search *s, const hp_evaluation *e, bool *fits, hp_error *err) {
    hp_evaluation placed = {.n_role = 0};
    if (e->tasks <= LARGE_TASKS)
        HP_TRY(hp_evaluate(s->eval, s->arena, &e->strategy, HP_EVAL_PLACED, &placed, err));
    *fits = !placed.reject.code;
    return HP_OK;
}

static hp_status evaluate_point(search *s, const point *at, int64_t *spent, hp_error *err) {
    hp_evaluation e;
    hp_point p = at->p;
    const hp_eval_depth depth = depth_of(s, at);
    HP_TRY(try_point(s, &p, depth, &e, spent, err));
    if (e.reject.code && may_cut_otherwise(&p)) {
        p.cut = HP_CUT_MEMORY;
        HP_TRY(try_point(s, &p, depth, &e, spent, err));
    }
    if (e.reject.code) {
        s->short_of_memory = true;
        count_reject(s, &e.reject, &e.strategy, (double)e.figures.memory_bytes);
        return HP_OK;
    }
    s->r->valid++;
    if (p.stages == 1 && !s->one_stage) HP_TRY(fits_placed(s, &e, &s->one_stage, err));
    if (depth == HP_EVAL_MEMORY && s->o->sort != HP_SORT_MEMORY) {
        s->r->cut_off++;
        return HP_OK;
    }
    s->r->simulated++;
    keep(s, &e);
    return HP_OK;
}

/* Small programs and large ones have budgets of their own: one large program costs as much as many small
 * ones. */
static hp_status evaluate_points(search *s, hp_error *err) {
    const int64_t budget =
        s->o->budget ? (s->o->budget < INT64_MAX / 4 ? s->o->budget : INT64_MAX / 4) : BUDGET;
    s->spent[0] = s->spent[1] = 0;
    for (int i = 0; i < s->n_point; i++) {
        int64_t *spent = &s->spent[is_large(s, &s->point[i])];
        if (*spent < (s->r->n ? 1 : PATIENCE) * (budget / 2)) {
            HP_TRY(evaluate_point(s, &s->point[i], spent, err));
        } else {
            s->r->valid++;
            s->r->cut_off++;
        }
    }
    return HP_OK;
}

/* Does a strategy without pipeline probably fit? */
static bool one_stage_likely(const search *s) {
    for (int i = 0; i < s->n_point; i++)
        if (s->point[i].p.stages == 1 && s->point[i].rank < 2) return true;
    return false;
}

/* Those kept are evaluated as they would run, with their memory placed. */
static hp_status place_kept(search *s, hp_error *err) {
    hp_search_result *r = s->r;
    int n = 0;
    for (int i = 0; i < r->n; i++) {
        hp_evaluation e = r->best[i];
        /* what is run must fit placed: strips are chosen where memory is short */
        const bool small = e.tasks <= LARGE_TASKS || (n == 0 && e.strategy.strips > 1);
        const hp_eval_depth depth = small ? HP_EVAL_PLACED : HP_EVAL_STEP;
        if (small || !e.bound_by)
            HP_TRY(hp_evaluate(s->eval, s->arena, &r->best[i].strategy, depth, &e, err));
        if (!e.reject.code) HP_TRY(hp_search_backends(s->eval, s->arena, depth, &e, err));
        if (!e.reject.code)
            r->best[n++] = e;
        else if (s->r->valid-- > 0)
            count_reject(s, &e.reject, &e.strategy, (double)e.figures.memory_bytes);
    }
    hp_search_rank(r->best, n, s->o->sort);
    r->n = n < s->o->top ? n : s->o->top;
    return HP_OK;
}

static hp_status last_resort(search *s, hp_error *err) {
    hp_evaluation e;
    HP_TRY(hp_search_any_strips(s->arena, s->eval, s->space, &e, &s->r->searched, err));
    if (!e.n_role) return HP_OK;
    s->r->valid++, s->r->simulated++;
    keep(s, &e);
    return HP_OK;
}

/* The examples get fixes that were tried. */
static hp_status explain_rejects(search *s, hp_error *err) {
    for (int i = 0; i < s->r->n_rejected; i++) {
        hp_rejected *r = &s->r->rejected[i];
        hp_strategy example;
        if (hp_strategy_parse(r->example, &example, NULL) != HP_OK) continue;
        const hp_question q = hp_eval_question(s->eval, &example, s->space->n_devices);
        hp_reject why = {.code = r->code};
        snprintf(why.limit, sizeof why.limit, "%s", r->limit);
        HP_TRY(hp_search_fix(s->eval, &q, HP_FIX_QUICK, &why, err));
        snprintf(r->limit, sizeof r->limit, "%s", why.limit);
        snprintf(r->fix, sizeof r->fix, "%s", why.fix);
    }
    return HP_OK;
}

hp_status hp_search(hp_arena *arena, hp_eval *e, const hp_space *space, const hp_search_options *o,
                    hp_search_result *result, hp_error *err) {
    *result = (hp_search_result){0};
    search s = {.arena = arena, .eval = e, .space = space, .o = o, .r = result};
    s.kept = o->top < INT_MAX - SPARE ? o->top + SPARE : o->top;
    hp_space smaller = *space, strips = *space;
    smaller.small_groups = strips.strips = true;
    HP_TRY(list_points(&s, err));
    for (int pass = 0; pass < 2 && !s.one_stage; pass++) {
        if (pass == 1 || !one_stage_likely(&s)) { /* whole batches do not fit: parts of them may */
            if (s.space == &smaller) break;
            s.space = &smaller;
            HP_TRY(list_points(&s, err));
        }
        HP_TRY(evaluate_points(&s, err));
    }
    s.space = &strips;
    if (space->graph->deployed && (s.short_of_memory || o->sort == HP_SORT_MEMORY)) {
        HP_TRY(list_points(&s, err));
        HP_TRY(evaluate_points(&s, err));
    }
    s.space = space;
    HP_TRY(place_kept(&s, err));
    if (space->graph->deployed && s.short_of_memory && !s.r->n) HP_TRY(last_resort(&s, err));
    return explain_rejects(&s, err);
}

typedef struct ranked {
    double value;
    int order;
} ranked;

static int ranked_compare(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->value < y->value || x->value > y->value) return x->value < y->value ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

void hp_search_rank(hp_evaluation *list, int n, hp_sort sort) {
    hp_arena *scratch = hp_arena_new();
    ranked *key = HP_NEW(scratch, ranked, n);
    hp_evaluation *old = HP_NEW(scratch, hp_evaluation, n);
    for (int i = 0; i < n; i++) {
        key[i] = (ranked){rank_value(&list[i], sort), i};
        old[i] = list[i];
    }
    if (n) qsort(key, (size_t)n, sizeof *key, ranked_compare);
    for (int i = 0; i < n; i++) {
        list[i] = old[key[i].order];
        const hp_candidate *before = i ? &list[i - 1].figures : NULL, *c = &list[i].figures;
        list[i].figures.tie = before && before->gpus == c->gpus && before->step_low_s <= c->step_high_s &&
                              c->step_low_s <= before->step_high_s;
    }
    hp_arena_free(scratch);
}
