/* memory_variants.c - changes for a strategy that lacks memory: values by which keys spare memory, times
 * cuts, times stages, tiles and ranks. */
#include "sim/search/fix.h"

#include "plan/strategy/strategy_axis.h"

typedef struct lister {
    hp_eval *eval;
    const hp_question *q;
    int devices, n_devices; /* wanted; at most, 0: any number */
    hp_strategy *out;
    int n, room;
    hp_strategy *others[HP_SPARES]; /* other strategies, per level */
} lister;

static void add(lister *l, const hp_strategy *s) {
    if (l->n < l->room) l->out[l->n++] = *s;
}

/* --- on the same ranks --- */

/* A memory-balanced cut, besides the cut there is. */
static void add_cuts(lister *l, hp_strategy s) {
    add(l, &s);
    if (s.stages * s.chunks == 1) return;
    const bool own = s.cut.n > 0;
    s.cut.n = 0;
    if (own) add(l, &s);
    hp_eval_complete(l->eval, &s, HP_CUT_MEMORY);
    if (s.cut.n) add(l, &s);
}

/* The next level to try, for the strategy itself and for the variants that a level makes of it. */
static const hp_axis_spare below[HP_SPARES][2] = {[HP_SPARE_BATCH] = {HP_SPARE_KEPT, HP_SPARE_KEPT},
                                                  [HP_SPARE_KEPT] = {HP_SPARE_STATE, HP_SPARE_ORDER},
                                                  [HP_SPARE_STATE] = {HP_SPARE_ORDER, HP_SPARES},
                                                  [HP_SPARE_ORDER] = {HP_SPARES, HP_SPARES}};

/* The strategy, and what the keys of this level put in its place. */
static void add_spares(lister *l, hp_axis_spare level, const hp_strategy *s) {
    const hp_axis_facts facts = {.g = hp_eval_get(l->eval)->graph, .batch = l->q->batch};
    if (level == HP_SPARES) {
        add_cuts(l, *s);
        return;
    }
    add_spares(l, below[level][0], s);
    for (int i = 0; i < HP_STRATEGY_AXES; i++) {
        const hp_axis *a = hp_strategy_axes[i];
        const int n = a->spare == level ? a->spares(s, &facts, l->others[level]) : 0;
        for (int k = 0; k < n; k++) add_spares(l, below[level][1], &l->others[level][k]);
    }
}

static void add_micros(lister *l, hp_strategy s) {
    add_spares(l, HP_SPARE_BATCH, &s);
}

/* --- on others --- */

/* `factor` times as many ranks per replica, of fewer replicas where they can be had. */
static void add_ranks(lister *l, hp_strategy s, int factor) {
    if (s.dp % factor == 0) s.dp /= factor;
    if (factor > 1) s.by[HP_AXIS_N].n = 0;
    s.cut.n = 0;
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
    for (int i = 0; i < s->sp.n; i++)
        if (!grid(g, s->sp.rows[i] * s->sp.cols[i] * factor, &more.sp.rows[i], &more.sp.cols[i])) return;
    if (s->sp.n) add_ranks(l, more, factor);
}

/* Tiles and nothing else, on the devices that there are. */
static void add_whole_tiles(lister *l, const hp_strategy *s, int tiles) {
    hp_strategy t = hp_strategy_default();
    t.sp.n = 1;
    t.dp = l->devices > tiles ? l->devices / tiles : 1;
    t.prec = s->prec;
    t.bn = s->bn;
    t.recompute = s->recompute;
    t.sp.halo = s->sp.halo;
    t.fuse_bytes = s->fuse_bytes;
    for (int i = 0; i < HP_TRAFFICS; i++) t.comm[i] = s->comm[i];
    if (grid(hp_eval_get(l->eval)->graph, tiles, &t.sp.rows[0], &t.sp.cols[0])) add_ranks(l, t, 1);
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
    hp_arena *scratch = hp_arena_new();
    for (int i = 0; i < HP_SPARES; i++) l.others[i] = HP_NEW(scratch, hp_strategy, HP_AXIS_OTHERS);
    if (others)
        add_layouts(&l, &q->s);
    else
        add_micros(&l, q->s);
    hp_arena_free(scratch);
    return l.n;
}
