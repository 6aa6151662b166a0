/* memory_variants.c - what can be changed of a strategy that lacks memory: recomputation or strips, times
 * micro-batches, times the order of passes and cuts, times stages, tiles and ranks. */
#include "sim/search/fix.h"

#include "plan/strategy/layout.h"
#include "plan/strategy/axes/axis_zero.h"

typedef struct lister {
    hp_eval *eval;
    const hp_question *q;
    int devices, n_devices; /* wanted; at most, 0: any number */
    hp_strategy *out;
    int n, room;
} lister;

static void add(lister *l, const hp_strategy *s) {
    if (l->n < l->room) l->out[l->n++] = *s;
}

/* --- on the same ranks --- */

/* A memory-balanced cut, besides the cut there is. */
static void add_cuts(lister *l, hp_strategy s) {
    add(l, &s);
    if (s.stages * s.chunks == 1) return;
    const bool own = s.n_cut > 0;
    s.n_cut = 0;
    if (own) add(l, &s);
    hp_eval_complete(l->eval, &s, HP_CUT_MEMORY);
    if (s.n_cut) add(l, &s);
}

/* One forward, one backward: fewer micro-batches in flight. */
static void add_orders(lister *l, hp_strategy s) {
    add_cuts(l, s);
    if (s.micro == 1 || s.sched == HP_SCHED_1F1B || hp_positions(&s) == 1 || s.chunks > 1 || s.gems > 1)
        return;
    s.sched = HP_SCHED_1F1B;
    add_cuts(l, s);
}

/* Each holder of the same weights with a part of what belongs to them. */
static void add_parts(lister *l, hp_strategy s) {
    add_orders(l, s);
    if (s.zero || hp_strategy_ranks(&s) == s.stages) return;
    for (s.zero = 1; s.zero <= HP_ZERO_STAGES; s.zero += 2) add_cuts(l, s);
}

static void add_recomputes(lister *l, hp_strategy s) {
    static const hp_recompute stronger[] = {HP_RECOMPUTE_BOUNDARY, HP_RECOMPUTE_FULL};
    add_parts(l, s);
    if (s.sched == HP_SCHED_ZB) s.sched = s.micro > 1 ? HP_SCHED_1F1B : HP_SCHED_LP; /* it keeps all */
    for (size_t i = 0; i < sizeof stronger / sizeof *stronger; i++) {
        if (s.recompute == (int32_t)stronger[i]) continue;
        hp_strategy again = s;
        again.recompute = (int32_t)stronger[i];
        add_orders(l, again);
    }
}

static void add_strips(lister *l, hp_strategy s) {
    static const int counts[] = {4, 16, 64, 256, 1024};
    const int rows = hp_eval_get(l->eval)->graph->image_h / (s.n_sp ? s.sp_rows[0] : 1);
    add_cuts(l, s);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (counts[i] <= s.strips || counts[i] > rows) continue;
        hp_strategy strips = s;
        strips.strips = counts[i];
        strips.deep = 0;
        add_cuts(l, strips);
    }
}

static void add_passes(lister *l, const hp_strategy *s) {
    if (hp_eval_get(l->eval)->graph->deployed)
        add_strips(l, *s);
    else
        add_recomputes(l, *s);
}

/* More micro-batches, up to one sample each. */
static void add_micros(lister *l, hp_strategy s) {
    enum { MOST = 4096 };
    const hp_question q = {.s = s, .batch = l->q->batch};
    const int64_t groups = hp_strategy_divisor(&s) / s.micro;
    const int64_t share = hp_question_batch(&q) / groups, micro = s.micro;
    add_passes(l, &s);
    for (int64_t m = 2 * micro; m <= share && m <= MOST; m = m < share && 2 * m > share ? share : 2 * m) {
        if (share % m) continue;
        s.micro = (int32_t)m;
        if (s.sched == HP_SCHED_LP) s.sched = HP_SCHED_GPIPE;
        add_passes(l, &s);
        if (m == share) return;
    }
}

/* --- on others --- */

/* `factor` times as many ranks per replica, of fewer replicas where they can be had. */
static void add_ranks(lister *l, hp_strategy s, int factor) {
    if (s.dp % factor == 0) s.dp /= factor;
    if (factor > 1) s.by[HP_AXIS_N].n = 0;
    s.n_cut = 0;
    if (!l->n_devices || hp_strategy_devices(&s) <= l->n_devices) add_micros(l, s);
}

/* Nearest to a square, no more rows or columns than the image has. */
static bool grid(const hp_graph *g, int tiles, int32_t *rows, int32_t *cols) {
    *rows = 1;
    for (int k = 1; k * k <= tiles; k++)
        if (tiles % k == 0) *rows = k;
    *cols = tiles / *rows;
    return *rows <= g->image_h && *cols <= g->image_w;
}

static void add_stages(lister *l, const hp_strategy *s, int factor) {
    hp_strategy more = *s;
    more.stages *= factor;
    if (more.stages <= HP_MAX_STAGES) add_ranks(l, more, factor);
}

static void add_tiles(lister *l, const hp_strategy *s, int factor) {
    const hp_graph *g = hp_eval_get(l->eval)->graph;
    hp_strategy more = *s;
    more.by[HP_AXIS_H].n = more.by[HP_AXIS_W].n = 0;
    for (int i = 0; i < s->n_sp; i++)
        if (!grid(g, s->sp_rows[i] * s->sp_cols[i] * factor, &more.sp_rows[i], &more.sp_cols[i])) return;
    if (s->n_sp) add_ranks(l, more, factor);
}

/* Tiles and nothing else, on the devices that there are. */
static void add_whole_tiles(lister *l, const hp_strategy *s, int tiles) {
    hp_strategy t = hp_strategy_default();
    t.n_sp = 1;
    t.dp = l->devices > tiles ? l->devices / tiles : 1;
    t.prec = s->prec;
    t.bn = s->bn;
    t.recompute = s->recompute;
    t.halo = s->halo;
    t.fuse_bytes = s->fuse_bytes;
    for (int i = 0; i < HP_TRAFFICS; i++) t.comm[i] = s->comm[i];
    if (grid(hp_eval_get(l->eval)->graph, tiles, &t.sp_rows[0], &t.sp_cols[0])) add_ranks(l, t, 1);
}

static void add_layouts(lister *l, const hp_strategy *s) {
    enum { MOST_STAGES = 4, MOST_TILES = 256 };
    hp_strategy alone = *s;
    alone.clients = 1;
    if (s->clients > 1) add_micros(l, alone);
    for (int f = 2; f <= MOST_STAGES; f *= 2) add_stages(l, s, f);
    for (int f = 2; f <= MOST_TILES; f *= 2) add_tiles(l, s, f);
    for (int f = 2; f <= MOST_TILES; f *= 2) add_whole_tiles(l, s, f);
    hp_strategy fewer = *s; /* replicas that share a node's memory */
    fewer.by[HP_AXIS_N].n = 0;
    for (fewer.dp /= 2; fewer.dp >= 1 && hp_eval_get(l->eval)->machine->share_cpu; fewer.dp /= 2)
        add_micros(l, fewer);
}

int hp_memory_variants(hp_eval *e, const hp_question *q, int devices, int n_devices, bool others,
                       hp_strategy *out, int room) {
    lister l = {.eval = e,
                .q = q,
                .devices = n_devices && n_devices < devices ? n_devices : devices,
                .n_devices = n_devices,
                .out = out,
                .room = room};
    if (others)
        add_layouts(&l, &q->s);
    else
        add_micros(&l, q->s);
    return l.n;
}
