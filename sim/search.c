/* search.c - the space is small (hundreds to thousands of points) and an evaluation takes milliseconds or
 * less, so that looking at everything is both fast enough and provably best within the model (as Calculon
 * does, Isaev et al. 2023). */
#include "sim/search.h"

#include "plan/base/units.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum {
    MAX_TASKS = 400000, /* about 100 MB while a candidate is looked at */
    SPARE = 4           /* kept beyond those wanted: placement may reorder neighbours or refuse one */
};

typedef struct point {
    hp_strategy s;
    double bound_s;
    int64_t order;
} point;

typedef struct search {
    hp_arena *arena;
    hp_eval *eval;
    const hp_space *space;
    const hp_search_options *o;
    hp_search_result *r;
    point *point;
    int n_point;
    int best_capacity, rejected_capacity;
    int kept;       /* at most: those wanted and a few */
    bool one_stage; /* a strategy without pipeline fits */
    int64_t *miss;  /* per reject: bytes the example is over the limit */
    int miss_capacity;
} search;

/* Counts a reject under its code; the example is the one that misses by the least. */
static void count_reject(search *s, const hp_reject *why, const char *text, int64_t miss) {
    int i = 0;
    while (i < s->r->n_rejected && strcmp(s->r->rejected[i].code, why->code) != 0) i++;
    if (i == s->r->n_rejected) {
        HP_ROOM(s->arena, s->r->rejected, i, s->rejected_capacity);
        HP_ROOM(s->arena, s->miss, i, s->miss_capacity);
        s->r->rejected[i] = (hp_rejected){.code = why->code};
        s->miss[i] = INT64_MAX;
        s->r->n_rejected++;
    }
    hp_rejected *r = &s->r->rejected[i];
    r->count++;
    if (miss >= s->miss[i]) return;
    s->miss[i] = miss;
    snprintf(r->example, sizeof r->example, "%s", text);
    snprintf(r->limit, sizeof r->limit, "%s", why->limit);
    snprintf(r->fix, sizeof r->fix, "%s", why->fix);
}

static int point_compare(const void *a, const void *b) {
    const point *x = a, *y = b;
    if (x->bound_s < y->bound_s || x->bound_s > y->bound_s) return x->bound_s < y->bound_s ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Legal points with their bounds, the most promising first. */
static hp_status list_points(search *s, hp_error *err) {
    hp_strategy *list;
    const int n = hp_space_list(s->arena, s->space, &list);
    s->r->searched += n;
    s->n_point = 0;
    s->point = HP_NEW(s->arena, point, n);
    const int64_t max_tasks = s->o->max_tasks ? s->o->max_tasks : MAX_TASKS;
    for (int i = 0; i < n; i++) {
        hp_reject why = {0};
        char text[HP_STRATEGY_TEXT];
        if (!hp_strategy_legal(&list[i], s->space->graph, s->space->batch, s->space->n_devices, &why)) {
            count_reject(s, &why, hp_strategy_text(&list[i], text), i);
        } else if (hp_space_tasks(s->space, &list[i]) > max_tasks) {
            s->r->left_out++;
        } else {
            point *p = &s->point[s->n_point++];
            *p = (point){.s = list[i], .order = i};
            HP_TRY(hp_eval_bound(s->eval, &p->s, &p->bound_s, err));
        }
    }
    qsort(s->point, (size_t)s->n_point, sizeof *s->point, point_compare);
    return HP_OK;
}

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

static hp_status look_at(search *s, const point *p, hp_error *err) {
    hp_evaluation e;
    const bool time_matters = !hopeless(s, p->bound_s);
    if (time_matters)
        HP_TRY(hp_evaluate(s->eval, s->arena, &p->s, false, &e, err));
    else
        HP_TRY(hp_eval_feasible(s->eval, s->arena, &p->s, false, &e, err));
    if (e.reject.code) {
        const hp_eval_setup *setup = hp_eval_get(s->eval);
        const int64_t limit = setup->memory_limit ? setup->memory_limit : setup->machine->device.memory_bytes;
        count_reject(s, &e.reject, e.figures.strategy, e.figures.memory_bytes - limit);
        return HP_OK;
    }
    s->r->valid++;
    s->one_stage |= p->s.stages == 1;
    if (!time_matters) {
        s->r->cut_off++;
        return HP_OK;
    }
    s->r->simulated++;
    keep(s, &e);
    return HP_OK;
}

static hp_status look_at_all(search *s, hp_error *err) {
    HP_TRY(list_points(s, err));
    for (int i = 0; i < s->n_point; i++) HP_TRY(look_at(s, &s->point[i], err));
    return HP_OK;
}

/* Those kept are evaluated as they would run, with their memory placed. */
static hp_status place_kept(search *s, hp_error *err) {
    hp_search_result *r = s->r;
    int n = 0;
    for (int i = 0; i < r->n; i++) {
        hp_evaluation e;
        HP_TRY(hp_evaluate(s->eval, s->arena, &r->best[i].strategy, true, &e, err));
        if (!e.reject.code)
            r->best[n++] = e;
        else if (s->r->valid-- > 0)
            count_reject(s, &e.reject, e.figures.strategy, 0);
    }
    r->n = n;
    hp_search_rank(r->best, n, s->o->sort);
    if (r->n > s->o->top) r->n = s->o->top;
    return HP_OK;
}

/* The example of E-MEM gets a fix that was tried. */
static hp_status explain_memory(search *s, hp_error *err) {
    for (int i = 0; i < s->r->n_rejected; i++) {
        hp_rejected *r = &s->r->rejected[i];
        hp_strategy example;
        if (strcmp(r->code, "E-MEM") != 0 || hp_strategy_parse(r->example, &example, NULL) != HP_OK) continue;
        hp_reject why = {.code = r->code};
        snprintf(why.fix, sizeof why.fix, "%s", r->fix);
        HP_TRY(hp_search_memory_fix(s->eval, &example, &why, err));
        snprintf(r->fix, sizeof r->fix, "%s", why.fix);
    }
    return HP_OK;
}

hp_status hp_search(hp_arena *arena, hp_eval *e, const hp_space *space, const hp_search_options *o,
                    hp_search_result *result, hp_error *err) {
    *result = (hp_search_result){0};
    search s = {.arena = arena, .eval = e, .space = space, .o = o, .r = result};
    s.kept = o->top < INT_MAX - SPARE ? o->top + SPARE : o->top;
    HP_TRY(look_at_all(&s, err));
    if (!s.one_stage) { /* whole batches do not fit: parts of them may */
        hp_space smaller = *space;
        smaller.small_groups = true;
        s.space = &smaller;
        HP_TRY(look_at_all(&s, err));
        s.space = space;
    }
    HP_TRY(place_kept(&s, err));
    return explain_memory(&s, err);
}

void hp_search_rank(hp_evaluation *list, int n, hp_sort sort) {
    for (int i = 1; i < n; i++) { /* insertion sort: stable, and the lists are short */
        const hp_evaluation e = list[i];
        int at = i;
        for (; at > 0 && rank_value(&list[at - 1], sort) > rank_value(&e, sort); at--)
            list[at] = list[at - 1];
        list[at] = e;
    }
    for (int i = 0; i < n; i++) {
        const hp_candidate *before = i ? &list[i - 1].figures : NULL, *c = &list[i].figures;
        list[i].figures.tie = before && before->gpus == c->gpus && before->step_low_s <= c->step_high_s &&
                              c->step_low_s <= before->step_high_s;
    }
}

/* The changes that save memory, the least painful first: recomputation, more micro-batches (0 = one sample
 * each), both, twice the stages. */
static const struct memory_change {
    int recompute; /* hp_recompute, -1 = as it is */
    int micro_factor, stage_factor;
    const char *what;
} memory_changes[] = {{HP_RECOMPUTE_BOUNDARY, 1, 1, "recompute=boundary"},
                      {HP_RECOMPUTE_FULL, 1, 1, "recompute=full"},
                      {-1, 2, 1, "twice the micro-batches"},
                      {HP_RECOMPUTE_BOUNDARY, 2, 1, "twice the micro-batches, recompute=boundary"},
                      {-1, 0, 1, "one sample per micro-batch"},
                      {HP_RECOMPUTE_BOUNDARY, 0, 1, "one sample per micro-batch, recompute=boundary"},
                      {-1, 1, 2, "twice the stages"}};
enum { CHANGES = sizeof memory_changes / sizeof memory_changes[0] };

static hp_strategy apply_change(const hp_strategy *s, const struct memory_change *c, int64_t batch) {
    hp_strategy changed = *s;
    if (c->recompute >= 0) changed.recompute = c->recompute;
    const int64_t all = batch / s->dp;
    changed.micro = c->micro_factor ? s->micro * c->micro_factor : (int32_t)(all < 4096 ? all : 4096);
    if (changed.micro > 1 && changed.sched == HP_SCHED_LP) changed.sched = HP_SCHED_GPIPE;
    if (c->stage_factor == 1) return changed;
    changed.stages *= c->stage_factor;
    changed.n_cut = 0;
    if (changed.dp % c->stage_factor == 0) changed.dp /= c->stage_factor;
    return changed;
}

/* No change helps: what the strategy needs with its buffers placed, which is more than the bound that refused
 * it. */
static hp_status exact_need(hp_eval *e, const hp_strategy *s, hp_reject *why, hp_error *err) {
    hp_arena *scratch = hp_arena_new();
    hp_evaluation got;
    const hp_status status = hp_eval_feasible(e, scratch, s, true, &got, err);
    hp_arena_free(scratch);
    if (status == HP_OK && got.reject.code) *why = got.reject;
    return status;
}

hp_status hp_search_memory_fix(hp_eval *e, const hp_strategy *s, hp_reject *why, hp_error *err) {
    for (int i = 0; i < CHANGES; i++) {
        const hp_strategy changed = apply_change(s, &memory_changes[i], hp_eval_get(e)->batch);
        if (hp_strategy_equal(&changed, s)) continue;
        hp_arena *scratch = hp_arena_new();
        hp_evaluation got;
        const hp_status status = hp_eval_feasible(e, scratch, &changed, false, &got, err);
        hp_arena_free(scratch);
        HP_TRY(status);
        if (got.reject.code) continue;
        char size[32];
        snprintf(why->fix, sizeof why->fix, "%s -> %s", memory_changes[i].what,
                 hp_format_bytes((double)got.figures.memory_bytes, size));
        return HP_OK;
    }
    return exact_need(e, s, why, err);
}
