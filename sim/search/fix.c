/* fix.c - rules propose until all are met, memory is looked for among variants (memory_variants.c), and what comes
 * out is evaluated, the fewest changes first. */
#include "sim/search/fix.h"

#include "plan/base/units.h"
#include "sim/search/fix_worlds.h"
#include "sim/search/space.h"

#include <math.h>
#include <string.h>

enum {
    MOST_STEPS = 12,   /* proposals one after the other */
    MOST_VISITS = 100, /* questions asked of the rules */
    MOST_ROOTS = 8,    /* legal ones whose memory is looked at */
    MOST_VARIANTS = 400,
    TIMES = 2,    /* as many tasks are lowered in all as one program may have */
    SMALLEST = 20 /* a program counts as this part of the largest at least */
};

/* Need over estimate, until one of the kind was lowered: what then probably does not fit is tried last of all. */
static const double OPTIMISM = 0.9;

enum { KINDS = 8 };

/* Estimates are good to some percent on plain ranks, but for tiles, shared channels and stages each in its way. */
static int kind_of(const hp_strategy *s) {
    return (s->n_sp > 0) | (s->cp * s->bp > 1) << 1 | (s->stages > 1) << 2;
}

typedef struct variant {
    hp_question q;
    fix_world *world;
    int changes; /* one more where it takes more devices than were asked for */
    bool large, tried;
    double cost; /* device seconds per image */
    double likely_bytes, limit_bytes;
} variant;

typedef struct fixer {
    hp_arena *arena;
    fix_worlds *worlds;
    const hp_question *asked;
    int64_t most_tasks, left; /* to be lowered */
    bool skipped;             /* some were too large to be tried */
    hp_question root[MOST_ROOTS];
    int n_root, visits;
    variant *list;
    int n, capacity;
    double ratio[KINDS]; /* the largest of need over estimate */
    int failed[KINDS];
    double least_bytes; /* the smallest need met, and whose */
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

/* --- to legal questions --- */

/* Cores may be shared, GPUs are as many as there are; 0: any number. */
static int most_devices(const hp_machine *m, const hp_question *q) {
    const int there = m->device.is_cpu ? 0 : hp_machine_devices(m);
    return !q->n_devices || (there && there < q->n_devices) ? there : q->n_devices;
}

static bool is_legal(const hp_eval *e, const hp_question *q, hp_reject *why) {
    const hp_eval_setup *setup = hp_eval_get(e);
    return hp_eval_allows(setup, &q->s, most_devices(setup->machine, q), why);
}

hp_status hp_question_evaluate(hp_eval *e, const hp_question *q, hp_eval_depth depth, hp_arena *arena,
                               hp_evaluation *out, hp_error *err) {
    *out = (hp_evaluation){.strategy = q->s};
    hp_strategy_text(&q->s, out->figures.strategy);
    out->figures.gpus = hp_strategy_devices(&q->s);
    out->figures.batch = hp_eval_get(e)->batch;
    return is_legal(e, q, &out->reject) ? hp_evaluate(e, arena, &q->s, depth, out, err) : HP_OK;
}

static void legalise(fixer *f, const hp_question *q, int steps);

/* Of a text, or of nothing that changes the question. */
static void follow(fixer *f, const hp_question *q, const char *change, int steps) {
    const hp_machine *m = f->worlds->setup.machine;
    hp_question next = *q;
    char text[HP_STRATEGY_TEXT];
    if (hp_change_apply(&next, change, NULL) != HP_OK) return;
    if (next.n_devices > hp_machine_devices(m) && !m->device.is_cpu) return;
    if (hp_change_text(q, &next, text, sizeof text) > 0) legalise(f, &next, steps + 1);
}

static void follow_proposals(fixer *f, const hp_question *q, const hp_reject *why, int steps) {
    static const char or [] = ", or ";
    const char *at = why->fix;
    while (*at) {
        char one[HP_FIX_TEXT];
        const char *end = strstr(at, or);
        const size_t n = end ? (size_t)(end - at) : strlen(at);
        snprintf(one, sizeof one, "%.*s", (int)n, at);
        follow(f, q, one, steps);
        at += n + (end ? strlen(or) : 0);
    }
}

/* Fewer replicas, or ranks of a replica, than there are too many of. */
static void follow_fewer(fixer *f, const hp_question *q, int steps) {
    static const char *const one[] = {"ldp=1", "cp=1", "bp=1", "sp=1x1,tail=own,ldp=1",
                                      "stages=1,chunks=1,cut=balanced"};
    const int most = most_devices(f->worlds->setup.machine, q);
    const int devices = hp_strategy_devices(&q->s), roles = devices / q->s.dp;
    char change[64];
    if (roles <= most) {
        snprintf(change, sizeof change, "dp=%d", most / roles);
        follow(f, q, change, steps);
    }
    for (int n = q->s.stages < HP_MAX_STAGES ? q->s.stages - 1 : HP_MAX_STAGES; n > 1; n--) {
        hp_strategy fewer = q->s;
        fewer.stages = n;
        if (hp_strategy_devices(&fewer) > most) continue;
        snprintf(change, sizeof change, "stages=%d,cut=balanced", n);
        follow(f, q, change, steps);
        break;
    }
    for (size_t i = 0; i < sizeof one / sizeof *one; i++) follow(f, q, one[i], steps);
}

/* Degrees that divide the batch. */
static void follow_divisors(fixer *f, const hp_question *q, int steps) {
    static const struct {
        const char *key;
        size_t offset;
    } degree[] = {{"micro", offsetof(hp_strategy, micro)},
                  {"dp", offsetof(hp_strategy, dp)},
                  {"ldp", offsetof(hp_strategy, ldp)},
                  {"gems", offsetof(hp_strategy, gems)}};
    char change[64];
    for (size_t i = 0; i < sizeof degree / sizeof *degree; i++) {
        hp_strategy s = q->s;
        int32_t *value = (int32_t *)(void *)((char *)&s + degree[i].offset);
        const int64_t rest = hp_strategy_divisor(&s) / *value;
        int64_t fewer = *value - 1;
        while (fewer >= 1 && q->batch % (rest * fewer)) fewer--;
        if (fewer < 1) continue;
        snprintf(change, sizeof change, "%s=%lld", degree[i].key, (long long)fewer);
        follow(f, q, change, steps);
    }
}

static void follow_whole(fixer *f, const hp_question *q, int steps) {
    follow(f, q, "cp=1", steps);
}

static const struct {
    hp_reject_code code;
    void (*follow)(fixer *f, const hp_question *q, int steps);
} others[] = {
    {HP_REJECT_GPUS, follow_fewer}, {HP_REJECT_BATCH, follow_divisors}, {HP_REJECT_CP, follow_whole}};

static void legalise(fixer *f, const hp_question *q, int steps) {
    hp_reject why;
    fix_world *w = f->visits++ < MOST_VISITS && steps <= MOST_STEPS ? fix_world_of(f->worlds, q) : NULL;
    if (!w || f->n_root == MOST_ROOTS) return;
    if (is_legal(w->eval, q, &why)) {
        f->root[f->n_root++] = *q;
        return;
    }
    follow_proposals(f, q, &why, steps);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].code == why.code) others[i].follow(f, q, steps);
}

/* As many replicas and nothing else, where the rules lead nowhere nearer. */
static void add_plain(fixer *f) {
    hp_question plain = *f->asked;
    const int most = most_devices(f->worlds->setup.machine, &plain), devices = hp_strategy_devices(&plain.s);
    plain.s = hp_strategy_default();
    plain.s.dp = most && most < devices ? most : devices;
    plain.s.prec = f->asked->s.prec;
    f->visits = 0;
    legalise(f, &plain, 0);
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
                  .bp = (int16_t)s->bp,
                  .strips = (int16_t)s->strips,
                  .deep = (int16_t)s->deep,
                  .recompute = (uint8_t)s->recompute};
    for (int i = 0; i < s->n_sp; i++) { /* the most tiles count */
        if ((int64_t)s->sp_rows[i] * s->sp_cols[i] <= (int64_t)p.rows[0] * p.cols[0]) continue;
        p.n_sp = 1;
        p.rows[0] = s->sp_rows[i];
        p.cols[0] = s->sp_cols[i];
    }
    const int shared = s->cp * s->bp, few = 8; /* more of them exchange with each other, pair by pair */
    return hp_space_tasks(&space, &p) * (shared > few ? shared / few : 1);
}

/* The least need that was met; the first of equals. */
static void note_need(fixer *f, const hp_question *q, double bytes, const char *limit) {
    if (f->least_bytes > 0 && bytes >= f->least_bytes) return;
    if (hp_change_text(f->asked, q, f->least, sizeof f->least) < 0) return;
    f->least_bytes = bytes;
    snprintf(f->least_limit, sizeof f->least_limit, "%s", limit);
}

static hp_status add_variant(fixer *f, const hp_question *q, hp_error *err) {
    char change[HP_FIX_TEXT - 32];
    hp_estimate out;
    hp_reject why;
    variant v = {.q = *q, .world = fix_world_of(f->worlds, q)};
    if (!v.world || f->n >= MOST_VARIANTS || !is_legal(v.world->eval, q, &why)) return HP_OK;
    v.changes = hp_change_text(f->asked, q, change, sizeof change);
    if (v.changes <= 0) return HP_OK;
    HP_TRY(hp_eval_estimate(v.world->eval, &q->s, &out, err));
    const hp_memory_limit limit = hp_eval_limit(v.world->eval, &q->s);
    if (out.memory_bytes > (double)limit.rank_bytes) {
        hp_memory_refuse(&why, &limit, out.position, q->s.stages, out.memory_bytes);
        note_need(f, q, out.memory_bytes, why.limit);
        return HP_OK;
    }
    const int devices = hp_strategy_devices(&q->s);
    v.changes += devices > hp_strategy_devices(&f->asked->s);
    v.likely_bytes = out.likely_bytes;
    v.limit_bytes = (double)limit.rank_bytes;
    v.large = tasks_of(v.world, &q->s) > f->most_tasks;
    v.cost = out.estimate_s * devices / (double)hp_question_batch(q);
    HP_ROOM(f->arena, f->list, f->n, f->capacity);
    f->list[f->n++] = v;
    return HP_OK;
}

static hp_status add_variants(fixer *f, bool others_too, hp_error *err) {
    hp_strategy *s = HP_NEW(f->arena, hp_strategy, MOST_VARIANTS);
    for (int i = 0; i < f->n_root; i++) {
        hp_question q = f->root[i];
        const fix_world *w = fix_world_of(f->worlds, &q);
        const int n =
            hp_memory_variants(w->eval, &q, hp_strategy_devices(&f->asked->s),
                               most_devices(f->worlds->setup.machine, &q), others_too, s, MOST_VARIANTS);
        for (int k = 0; k < n; k++) {
            q.s = s[k];
            HP_TRY(add_variant(f, &q, err));
        }
    }
    return HP_OK;
}

/* --- evaluation --- */

/* The fewest changes first; of those, kinds that have failed less often, then the cheapest. */
static bool comes_before(const fixer *f, const variant *x, const variant *y) {
    const int x_failed = f->failed[kind_of(&x->q.s)], y_failed = f->failed[kind_of(&y->q.s)];
    if (x->changes != y->changes) return x->changes < y->changes;
    if (x->large != y->large) return y->large;
    if (x_failed != y_failed) return x_failed < y_failed;
    return x->cost < y->cost;
}

static void write_fix(const fixer *f, const variant *v, double bytes, hp_reject *why) {
    char change[HP_FIX_TEXT - 32], size[32];
    hp_change_text(f->asked, &v->q, change, sizeof change);
    snprintf(why->fix, sizeof why->fix, "%s -> %s", change, hp_format_bytes(bytes, size));
}

/* Buffers placed need more than what is alive at once. */
static hp_status try_variant(fixer *f, const variant *v, bool *works, hp_reject *why, hp_error *err) {
    hp_evaluation got;
    *works = false;
    f->skipped |= v->large || f->left <= 0;
    if (v->large || f->left <= 0) return HP_OK;
    hp_arena *scratch = hp_arena_new();
    const hp_status status = hp_evaluate(v->world->eval, scratch, &v->q.s, HP_EVAL_FITS, &got, err);
    hp_arena_free(scratch);
    HP_TRY(status);
    const int64_t least = f->most_tasks / SMALLEST;
    f->left -= got.tasks > least ? got.tasks : least;
    double *ratio = &f->ratio[kind_of(&v->q.s)];
    *ratio = fmax(*ratio, (double)got.figures.memory_bytes / v->likely_bytes);
    *works = !got.reject.code;
    f->failed[kind_of(&v->q.s)] += !*works;
    if (*works)
        write_fix(f, v, (double)got.figures.memory_bytes, why);
    else
        note_need(f, &v->q, (double)got.figures.memory_bytes, got.reject.limit);
    return HP_OK;
}

static bool is_doubtful(const fixer *f, const variant *v) {
    return v->likely_bytes * f->ratio[kind_of(&v->q.s)] > v->limit_bytes;
}

static variant *next_variant(fixer *f, bool doubtful) {
    variant *next = NULL;
    for (variant *v = f->list; v < f->list + f->n; v++) {
        if (v->tried || (!doubtful && is_doubtful(f, v))) continue;
        if (!next || comes_before(f, v, next)) next = v;
    }
    return next;
}

static hp_status try_variants(fixer *f, bool doubtful, bool *works, hp_reject *why, hp_error *err) {
    for (variant *v; !*works && (v = next_variant(f, doubtful));) {
        v->tried = true;
        HP_TRY(try_variant(f, v, works, why, err));
    }
    return HP_OK;
}

/* --- where nothing helps --- */

/* With its buffers placed the strategy itself needs more than the bound that refused it. */
static hp_status exact_need(fixer *f, hp_reject *why, hp_error *err) {
    const fix_world *w = fix_world_of(f->worlds, f->asked);
    hp_evaluation got;
    if (why->code != HP_REJECT_MEM || tasks_of(w, &f->asked->s) > HP_FIX_QUICK) return HP_OK;
    hp_arena *scratch = hp_arena_new();
    const hp_status status = hp_evaluate(w->eval, scratch, &f->asked->s, HP_EVAL_FITS, &got, err);
    hp_arena_free(scratch);
    if (status != HP_OK || got.reject.code != HP_REJECT_MEM) return status;
    snprintf(why->limit, sizeof why->limit, "%s", got.reject.limit);
    note_need(f, f->asked, (double)got.figures.memory_bytes, got.reject.limit);
    return HP_OK;
}

static void write_none(const fixer *f, hp_reject *why) {
    const int most = most_devices(f->worlds->setup.machine, f->asked);
    const size_t n = (size_t)snprintf(why->fix, sizeof why->fix, "none found on %d devices%s",
                                      most ? most : hp_strategy_devices(&f->asked->s),
                                      f->skipped ? " among small programs" : "");
    if (f->least_bytes > 0 && f->least[0])
        snprintf(why->fix + n, sizeof why->fix - n, "; nearest: %.120s (%s)", f->least, f->least_limit);
}

hp_status hp_search_fix(hp_eval *e, const hp_question *q, int64_t most_tasks, hp_reject *why, hp_error *err) {
    fixer f = {.arena = hp_arena_new(), .asked = q, .most_tasks = most_tasks, .left = TIMES * most_tasks};
    fix_worlds worlds = {.arena = f.arena, .eval = e, .setup = *hp_eval_get(e), .asked = q};
    bool works = false;
    f.worlds = &worlds;
    hp_status status = exact_need(&f, why, err);
    legalise(&f, q, 0);
    if (!f.n_root) add_plain(&f);
    for (int i = 0; i < KINDS; i++) f.ratio[i] = OPTIMISM;
    for (int pass = 0; pass < 3 && status == HP_OK && !works; pass++) {
        if (pass < 2) status = add_variants(&f, pass == 1, err);
        if (status == HP_OK) status = try_variants(&f, pass == 2, &works, why, err);
    }
    if (status == HP_OK && !works) write_none(&f, why);
    hp_arena_free(f.arena);
    return status;
}
