/* fix.c - rules propose changes until all are met (fix_roots.c), memory is sought among variants
 * (memory_variants.c), and the results are estimated and evaluated, fewest changes first. */
#include "sim/search/fix.h"

#include "base/units.h"
#include "networks/graph/precision.h"
#include "sim/search/fix_worlds.h"
#include "sim/search/space.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum {
    MOST_VARIANTS = 800,
    HOPEFUL = 4,  /* number of variants among which the closest is sought */
    TIMES = 2,    /* total lowered tasks, as a multiple of the limit for one program */
    SMALLEST = 20 /* a program counts as at least this fraction of the largest */
};

/* Assumed ratio of need to estimate until one of the kind was lowered. Variants that probably do not fit are
 * tried last. */
static const double OPTIMISM = 0.9;

enum { KINDS = 8 };

/* Estimates are accurate to some percent on plain ranks; tiles, shared channels and stages each have an error
 * of their own. */
static int kind_of(const hp_strategy *s) {
    return (s->sp.n > 0) | (s->cp * s->tp * s->bp > 1) << 1 | (s->stages > 1) << 2;
}

typedef enum state { LISTED, ESTIMATED, DONE } state;

typedef struct variant {
    hp_question q;
    fix_world *world;
    state state;
    int changes; /* plus one if it takes more devices than were asked for */
    bool large;
    double cost; /* device seconds per image */
    double likely_bytes, limit_bytes;
} variant;

typedef struct fixer {
    hp_arena *arena;
    fix_worlds *worlds;
    const hp_question *asked;
    hp_reject *why;
    bool works;               /* why->fix does */
    int64_t most_tasks, left; /* to be lowered */
    bool skipped;             /* some were too large to try */
    hp_question root[FIX_ROOTS];
    int n_root;
    variant *list;
    int n;
    double ratio[KINDS]; /* largest ratio of need to estimate */
    int failed[KINDS];
    /* variants whose bound is too high, those with the smallest estimates */
    const variant *hopeful[HOPEFUL];
    double least_bytes; /* smallest need found, and its strategy */
    char least[HP_FIX_TEXT], least_limit[sizeof((hp_reject *)0)->limit];
} fixer;

hp_question hp_eval_question(const hp_eval *e, const hp_strategy *s, int n_devices) {
    const hp_eval_setup *setup = hp_eval_get(e);
    return (hp_question){.s = *s,
                         .batch = setup->batch,
                         .n_devices = n_devices,
                         .image_h = setup->graph->image_h,
                         .image_w = setup->graph->image_w,
                         .infer = setup->mode == HP_MODE_INFER,
                         .device = setup->device};
}

hp_status hp_question_evaluate(hp_eval *e, const hp_question *q, hp_eval_depth depth, hp_arena *arena,
                               hp_evaluation *out, hp_error *err) {
    *out = (hp_evaluation){.strategy = q->s};
    hp_strategy_text(&q->s, out->figures.strategy);
    out->figures.gpus = hp_strategy_devices(&q->s);
    out->figures.batch = hp_eval_get(e)->batch;
    return fix_is_legal(e, q, &out->reject) ? hp_evaluate(e, arena, &q->s, depth, out, err) : HP_OK;
}

/* --- to questions that may fit --- */

static int64_t tasks_of(const fix_world *w, const hp_strategy *s) {
    const hp_eval_setup *setup = hp_eval_get(w->eval);
    const hp_space space = {.graph = setup->graph, .mode = setup->mode};
    hp_point p = {.stages = s->stages,
                  .micro = s->micro,
                  .ldp = s->ldp,
                  .gems = s->gems,
                  .cp = (int16_t)s->cp,
                  .tp = (int16_t)s->tp,
                  .bp = (int16_t)s->bp,
                  .strips = (int16_t)s->strips.n,
                  .deep = (int16_t)s->strips.deep,
                  .recompute = (uint8_t)s->recompute};
    for (int i = 0; i < s->sp.n; i++) { /* the most tiles count */
        if ((int64_t)s->sp.rows[i] * s->sp.cols[i] <= (int64_t)p.rows[0] * p.cols[0]) continue;
        p.n_sp = 1;
        p.rows[0] = s->sp.rows[i];
        p.cols[0] = s->sp.cols[i];
    }
    const int shared = s->cp * s->tp * s->seq.ranks * s->bp,
              few = 8; /* more of them exchange with each other, pair by pair */
    return hp_space_tasks(&space, &p) * (shared > few ? shared / few : 1);
}

/* Adds a possible variant to the list. */
static void add_variant(fixer *f, const hp_question *q) {
    char change[HP_FIX_TEXT - 32];
    hp_reject why;
    variant v = {.q = *q, .world = fix_world_of(f->worlds, q)};
    if (!v.world || f->n >= MOST_VARIANTS || !fix_is_legal(v.world->eval, q, &why)) return;
    v.changes = hp_change_text(f->asked, q, change, sizeof change);
    if (v.changes <= 0) return;
    v.changes += hp_strategy_devices(&q->s) > hp_strategy_devices(&f->asked->s);
    v.large = tasks_of(v.world, &q->s) > f->most_tasks;
    f->list[f->n++] = v;
}

/* Adds variants of the legal questions in this precision: on the same ranks, or on others. */
static void add_variants(fixer *f, int32_t prec, bool other_ranks) {
    hp_strategy *s = HP_NEW(f->arena, hp_strategy, MOST_VARIANTS);
    for (int i = 0; i < f->n_root; i++) {
        hp_question q = f->root[i];
        q.s.prec = prec;
        const fix_world *w = fix_world_of(f->worlds, &q);
        if (!w) continue;
        const int n = hp_memory_variants(w->eval, &q, hp_strategy_devices(&f->asked->s),
                                         fix_most_devices(f->worlds->setup.machine, &q), other_ranks, s,
                                         MOST_VARIANTS / 2);
        for (int k = 0; k < n; k++) {
            q.s = s[k];
            add_variant(f, &q);
        }
    }
}

/* --- evaluation --- */

/* Inserts it in order among the hopeful ones. */
static void note_hopeful(fixer *f, const variant *v) {
    for (int i = 0; i < HOPEFUL; i++) {
        const variant *other = f->hopeful[i];
        if (other && other->likely_bytes <= v->likely_bytes) continue;
        f->hopeful[i] = v;
        v = other;
        if (!v) return;
    }
}

/* A variant whose bound does not fit is finished. */
static hp_status estimate(fixer *f, variant *v, hp_error *err) {
    hp_estimate out;
    HP_TRY(hp_eval_estimate(v->world->eval, &v->q.s, &out, err));
    v->limit_bytes = (double)hp_eval_limit(v->world->eval, &v->q.s).rank_bytes;
    v->likely_bytes = out.likely_bytes;
    v->cost = out.estimate_s * hp_strategy_devices(&v->q.s) / (double)hp_question_batch(&v->q);
    v->state = out.memory_bytes > v->limit_bytes ? DONE : ESTIMATED;
    if (v->state == DONE && !v->large) note_hopeful(f, v);
    return HP_OK;
}

static void note_need(fixer *f, const hp_question *q, const hp_evaluation *got) {
    const double bytes = (double)got->figures.memory_bytes;
    if (f->least_bytes > 0 && bytes >= f->least_bytes) return;
    if (hp_change_text(f->asked, q, f->least, sizeof f->least) < 0) return;
    f->least_bytes = bytes;
    snprintf(f->least_limit, sizeof f->least_limit, "%s", got->reject.limit);
}

/* Evaluates with placed buffers, which need more than the live bytes. */
static hp_status place(fixer *f, const hp_question *q, hp_evaluation *got, hp_error *err) {
    hp_arena *scratch = hp_arena_new();
    const hp_status status =
        hp_evaluate(fix_world_of(f->worlds, q)->eval, scratch, &q->s, HP_EVAL_FITS, got, err);
    hp_arena_free(scratch);
    if (status == HP_OK && got->reject.code) note_need(f, q, got);
    return status;
}

static hp_status try_variant(fixer *f, variant *v, hp_error *err) {
    char change[HP_FIX_TEXT - 32], size[32];
    hp_evaluation got;
    v->state = DONE;
    f->skipped |= v->large || f->left <= 0;
    if (v->large || f->left <= 0) return HP_OK;
    HP_TRY(place(f, &v->q, &got, err));
    const int kind = kind_of(&v->q.s);
    const int64_t least = f->most_tasks / SMALLEST;
    f->left -= got.tasks > least ? got.tasks : least;
    f->ratio[kind] = fmax(f->ratio[kind], (double)got.figures.memory_bytes / v->likely_bytes);
    f->works = !got.reject.code;
    f->failed[kind] += !f->works;
    if (!f->works) return HP_OK;
    hp_change_text(f->asked, &v->q, change, sizeof change);
    snprintf(f->why->fix, sizeof f->why->fix, "%s -> %s", change,
             hp_format_bytes((double)got.figures.memory_bytes, size));
    return HP_OK;
}

static bool is_doubtful(const fixer *f, const variant *v) {
    return v->likely_bytes * f->ratio[kind_of(&v->q.s)] > v->limit_bytes;
}

/* Order: fewest changes first; then kinds that failed less often; then the cheapest. */
static bool comes_before(const fixer *f, const variant *x, const variant *y) {
    const int x_failed = f->failed[kind_of(&x->q.s)], y_failed = f->failed[kind_of(&y->q.s)];
    if (x->changes != y->changes) return x->changes < y->changes;
    if (x->large != y->large) return y->large;
    if (x_failed != y_failed) return x_failed < y_failed;
    return x->cost < y->cost;
}

static variant *next_variant(fixer *f, int most_changes, bool doubtful) {
    variant *next = NULL;
    for (variant *v = f->list; v < f->list + f->n; v++) {
        if (v->state != ESTIMATED || v->changes > most_changes || (!doubtful && is_doubtful(f, v))) continue;
        if (!next || comes_before(f, v, next)) next = v;
    }
    return next;
}

/* The fewest changes among the listed variants; INT_MAX: none. */
static int next_changes(const fixer *f) {
    int fewest = INT_MAX;
    for (int i = 0; i < f->n; i++)
        if (f->list[i].state == LISTED && f->list[i].changes < fewest) fewest = f->list[i].changes;
    return fewest;
}

/* Variants with more changes are estimated only after those with fewer have failed. */
static hp_status try_listed(fixer *f, hp_error *err) {
    for (int changes; !f->works && (changes = next_changes(f)) < INT_MAX;) {
        for (variant *v = f->list; v < f->list + f->n; v++)
            if (v->state == LISTED && v->changes == changes) HP_TRY(estimate(f, v, err));
        for (variant *v; !f->works && (v = next_variant(f, changes, false));) HP_TRY(try_variant(f, v, err));
    }
    return HP_OK;
}

static hp_status try_doubtful(fixer *f, hp_error *err) {
    for (variant *v; !f->works && (v = next_variant(f, INT_MAX, true));) HP_TRY(try_variant(f, v, err));
    return HP_OK;
}

/* Tries half the bytes, with other numbers, after all variants that keep the numbers unchanged. */
static hp_status try_half(fixer *f, hp_error *err) {
    const int32_t prec = f->asked->s.prec;
    if (f->works || (prec != HP_PREC_FP32 && prec != HP_PREC_TF32)) return HP_OK;
    for (int other_ranks = 0; other_ranks < 2 && !f->works; other_ranks++) {
        add_variants(f, HP_PREC_BF16, other_ranks);
        HP_TRY(try_listed(f, err));
    }
    return HP_OK;
}

static hp_status try_all(fixer *f, hp_error *err) {
    for (int other_ranks = 0; other_ranks < 2 && !f->works; other_ranks++) {
        add_variants(f, f->asked->s.prec, other_ranks);
        HP_TRY(try_listed(f, err));
    }
    HP_TRY(try_half(f, err));
    return try_doubtful(f, err);
}

/* --- where nothing helps --- */

/* With its buffers placed, the strategy itself needs more than the bound that rejected it. */
static hp_status exact_need(fixer *f, hp_error *err) {
    const fix_world *w = fix_world_of(f->worlds, f->asked);
    hp_evaluation got;
    if (f->why->code != HP_REJECT_MEM || tasks_of(w, &f->asked->s) > HP_FIX_QUICK) return HP_OK;
    HP_TRY(place(f, f->asked, &got, err));
    if (got.reject.code == HP_REJECT_MEM)
        snprintf(f->why->limit, sizeof f->why->limit, "%s", got.reject.limit);
    return HP_OK;
}

static const char NONE[] = HP_FIX_NONE;

bool hp_fix_found(const char *fix) {
    return strncmp(fix, NONE, strlen(NONE)) != 0;
}

static hp_status write_none(fixer *f, hp_error *err) {
    const int most = fix_most_devices(f->worlds->setup.machine, f->asked);
    const int devices = most ? most : hp_strategy_devices(&f->asked->s);
    hp_evaluation got;
    for (int i = 0; i < HOPEFUL && f->hopeful[i]; i++) HP_TRY(place(f, &f->hopeful[i]->q, &got, err));
    char *fix = f->why->fix;
    const size_t room = sizeof f->why->fix;
    const size_t n = (size_t)snprintf(fix, room, "%s on %d device%s%s", NONE, devices,
                                      devices == 1 ? "" : "s", f->skipped ? " among small programs" : "");
    if (f->least_bytes > 0 && f->least[0])
        snprintf(fix + n, room - n, "; nearest: %.120s (%s)", f->least, f->least_limit);
    return HP_OK;
}

hp_status hp_search_fix(hp_eval *e, const hp_question *q, int64_t most_tasks, hp_reject *why, hp_error *err) {
    fixer f = {.arena = hp_arena_new(),
               .asked = q,
               .why = why,
               .most_tasks = most_tasks,
               .left = TIMES * most_tasks};
    fix_worlds worlds = {.arena = f.arena, .eval = e, .setup = *hp_eval_get(e), .asked = q};
    f.worlds = &worlds;
    f.list = HP_NEW(f.arena, variant, MOST_VARIANTS);
    for (int i = 0; i < KINDS; i++) f.ratio[i] = OPTIMISM;
    f.n_root = fix_roots(&worlds, f.root);
    hp_status status = exact_need(&f, err);
    if (status == HP_OK) status = try_all(&f, err);
    if (status == HP_OK && !f.works) status = write_none(&f, err);
    hp_arena_free(f.arena);
    return status;
}
