/* space.c - nested loops over the degrees; the search, not the space, knows what is good. */
#include "sim/search/space.h"

#include "networks/graph/branch.h"
#include "networks/graph/summands.h"
#include "plan/strategy/sched_kind.h"
#include "networks/graph/depths.h"

typedef struct lister {
    hp_arena *arena;
    const hp_space *space;
    int32_t depth[HP_DEPTHS];
    int n_depth;
    hp_point *list;
    int n, capacity;
} lister;

static const int chunk_counts[] = {2, 4}; /* Narayanan et al. 2021 see most of the gain by 4 */
static const int pass_counts[] = {2, 4};  /* GEMS: MAST, and the smallest MASTER */
static const int strip_counts[] = {4, 16, 64, 256};
static const int channel_counts[] = {2, 4}, branch_counts[] = {2, 3}, tensor_counts[] = {2, 4, 8};
static const int probing_micros[] = {1, 2, 4,
                                     8}; /* also tried where they do not divide: their reject is a hint */
enum {
    MOST_TAIL = 8,  /* stages after spatial ones: more are a pipeline with a tiled head */
    FEW_TILES = 16, /* up to here every count of tiles is a point */
    DEEPEST_HALO = 3
};

#define COUNT(table) (sizeof(table) / sizeof *(table))

static void append(lister *l, const hp_point *p) {
    HP_ROOM(l->arena, l->list, l->n, l->capacity);
    l->list[l->n++] = *p;
}

/* Slices of a micro-batch. */
static int slices_of(const hp_point *p) {
    return p->tail == HP_TAIL_SHARED ? p->rows[p->n_sp - 1] * p->cols[p->n_sp - 1] : p->ldp;
}

static void add_depths(lister *l, hp_point p, int strips) {
    for (int k = 0; k < (p.stages > 1 ? 1 : l->n_depth); k++) {
        p.strips = (int16_t)strips;
        p.deep = (int16_t)l->depth[k];
        append(l, &p);
    }
}

/* Strips are of one image; how tiles exchange halos matters little after them. A pipeline's first stage is
 * short as it is. */
static void add_strips(lister *l, hp_point p) {
    const int64_t images = l->space->batch / ((int64_t)p.dp * p.clients * slices_of(&p) * p.micro * p.gems);
    const int rows = l->space->graph->image_h / (p.n_sp ? p.rows[0] : 1);
    if (images > 1 || p.halo > 1 || p.overlap != HP_OVERLAP_NONE || p.bp > 1) return;
    if (l->space->any_strips) {
        for (int n = 2; n <= rows && n <= INT16_MAX; n *= 2) add_depths(l, p, n);
        if ((rows & (rows - 1)) && rows <= INT16_MAX) add_depths(l, p, rows);
        return;
    }
    for (size_t i = 0; i < COUNT(strip_counts) && strip_counts[i] <= rows; i++)
        add_depths(l, p, strip_counts[i]);
}

static void add(lister *l, const hp_point *p) {
    if (l->space->strips)
        add_strips(l, *p);
    else
        append(l, p);
}

/* --- schedules of a layout --- */

/* Recomputation exists in training; `except-last` differs from `full` only when there are several
 * micro-batches; zero-bubble keeps what recomputation drops. */
static void add_recompute(lister *l, hp_point p) {
    const int last = p.micro > 1 ? HP_RECOMPUTE_EXCEPT_LAST : HP_RECOMPUTE_FULL;
    add(l, &p);
    if (l->space->mode == HP_MODE_INFER || l->space->no_recompute || hp_sched_kinds[p.sched]->splits_backward)
        return;
    for (int r = HP_RECOMPUTE_BOUNDARY; r <= last; r++) {
        p.recompute = (uint8_t)r;
        add(l, &p);
    }
}

/* With one batch after the other the tail is only waited for: as little of it as possible is worth trying. */
static void add_cuts(lister *l, hp_point p) {
    add_recompute(l, p);
    if (p.micro > 1 || p.n_sp == 0 || p.n_sp == p.stages || p.tail == HP_TAIL_SHARED) return;
    p.cut = HP_CUT_SEAM;
    add_recompute(l, p);
}

static void add_sched(lister *l, hp_point p, int sched, int chunks, int gems) {
    p.sched = (uint8_t)sched;
    p.chunks = (int16_t)chunks;
    p.gems = gems;
    add_cuts(l, p);
}

static void add_chunks(lister *l, hp_point p) {
    for (size_t i = 0; i < COUNT(chunk_counts); i++) {
        const int chunks = chunk_counts[i];
        if (p.stages * chunks > l->space->graph->n_unit || p.micro % p.stages != 0) continue;
        for (int k = 0; k < HP_SCHEDS; k++)
            if (hp_sched_kinds[k]->interleaves) add_sched(l, p, k, chunks, 1);
    }
}

static int positions(const hp_point *p) {
    return p->tail == HP_TAIL_SHARED ? p->n_sp : p->stages;
}

/* One position, one micro-batch or inference: the schedules are one and the same. */
static void add_schedules(lister *l, hp_point p, int micro) {
    p.micro = micro;
    add_sched(l, p, hp_sched_plain(micro), 1, 1);
    if (positions(&p) == 1 || micro == 1) return;
    for (int k = 0; k < HP_SCHEDS && l->space->mode == HP_MODE_TRAIN; k++)
        if (hp_sched_kinds[k]->pipelines) add_sched(l, p, k, 1, 1);
    if (p.n_sp == 0) add_chunks(l, p);
}

/* Passes over a pipeline and its mirror image take their part of the batch before the micro-batches do. */
static void add_mirrored(lister *l, hp_point p, int64_t share, int sched) {
    for (size_t i = 0; i < COUNT(pass_counts); i++) {
        const int gems = pass_counts[i];
        if (share % gems != 0) continue;
        for (p.micro = 1; p.micro <= share / gems && p.micro < UINT16_MAX; p.micro++)
            if (share / gems % p.micro == 0) add_sched(l, p, sched, 1, gems);
    }
}

static void add_gems(lister *l, const hp_point *p, int64_t share) {
    if (positions(p) == 1 || l->space->mode == HP_MODE_INFER) return;
    for (int k = 0; k < HP_SCHEDS; k++)
        if (hp_sched_kinds[k]->mirrors) add_mirrored(l, *p, share, k);
}

static void add_micros(lister *l, const hp_point *p) {
    const int64_t replicas = (int64_t)p->dp * p->clients * slices_of(p), share = l->space->batch / replicas;
    if (p->n_sp > 0 && l->space->batch % replicas != 0) return; /* plain layouts say so */
    for (size_t i = 0; i < COUNT(probing_micros) && p->n_sp == 0; i++) {
        if (share < probing_micros[i] || share % probing_micros[i] != 0)
            add_schedules(l, *p, probing_micros[i]);
    }
    for (int64_t micro = 1; micro <= share && micro < UINT16_MAX; micro++) {
        if (share % micro == 0) add_schedules(l, *p, (int)micro);
    }
    if (share > 0) add_gems(l, p, share);
}

/* --- layouts of a replica --- */

static void add_halos(lister *l, hp_point p) {
    for (int halo = 1; halo <= DEEPEST_HALO; halo++) {
        p.halo = (int16_t)halo;
        add_micros(l, &p);
    }
    p.halo = 1;
    p.overlap = HP_OVERLAP_INTERIOR;
    add_micros(l, &p);
}

/* Behind the spatial stages: nothing, the same ranks with slices of the samples, or `rest` ranks of their own
 * as stages times slices. */
static void add_tails(lister *l, hp_point p, int rest) {
    const int units = l->space->graph->n_unit;
    p.stages = p.n_sp;
    if (rest == 0 && p.stages <= units) {
        add_halos(l, p);
        p.stages++;
        p.tail = HP_TAIL_SHARED;
        if (p.stages <= units) add_halos(l, p);
    }
    for (int tail = 1; tail <= rest && tail <= MOST_TAIL && p.n_sp + tail <= units; tail++) {
        if (rest % tail != 0) continue;
        p.stages = p.n_sp + tail;
        p.ldp = rest / tail;
        add_halos(l, p);
    }
}

static void add_grid(lister *l, hp_point p, int rows, int cols, int rest) {
    if (rows > l->space->graph->image_h || cols > l->space->graph->image_w) return;
    p.n_sp = 1;
    p.rows[0] = rows;
    p.cols[0] = cols;
    add_tails(l, p, rest);
    p.n_sp = 2;
    p.rows[1] = rows;
    p.cols[1] = cols;
    if (rest >= rows * cols) add_tails(l, p, rest - rows * cols);
    *(rows >= cols ? &p.rows[1] : &p.cols[1]) =
        (rows >= cols ? rows : cols) / 2; /* the maps are smaller by then */
    const int fewer = p.rows[1] * p.cols[1];
    if (fewer > 1 && fewer < rows * cols && rest >= fewer) add_tails(l, p, rest - fewer);
}

/* Strips, and the two grids nearest to a square. */
static void add_grids(lister *l, const hp_point *p, int tiles, int rest) {
    int side = 1;
    for (int k = 1; k * k <= tiles; k++)
        if (tiles % k == 0) side = k;
    add_grid(l, *p, tiles, 1, rest);
    add_grid(l, *p, 1, tiles, rest);
    if (side == 1) return;
    add_grid(l, *p, tiles / side, side, rest);
    if (side * side != tiles) add_grid(l, *p, side, tiles / side, rest);
}

static bool worth_tiles(int tiles, int roles) {
    const int rest = roles - tiles;
    if (tiles <= FEW_TILES && roles <= 2 * FEW_TILES) return true;
    const bool power = (tiles & (tiles - 1)) == 0;
    return power || rest == 0 || rest == 1 || rest == 2 || rest == 4 || 4 * rest == roles;
}

/* Clients are more data replicas (AccDP): on pipelines they only take each other's memory. */
static void add_replica(lister *l, const hp_point *p, int roles) {
    hp_point plain = *p;
    if (p->clients > 1 && roles > 1) return;
    plain.stages = roles;
    if (roles <= l->space->graph->n_unit)
        add_micros(l, &plain);
    else
        add_sched(l, plain, hp_sched_plain(1), 1, 1); /* one reject says it */
    if (p->clients > 1 || p->cp > 1 || p->tp > 1 || p->bp > 1) return;
    for (int tiles = 2; tiles <= roles; tiles++)
        if (worth_tiles(tiles, roles)) add_grids(l, p, tiles, roles - tiles);
}

static void add_degrees(lister *l, int clients, int cp, int tp, int bp) {
    const int devices = l->space->n_devices;
    for (int roles = 1; roles * cp * tp * bp <= devices && roles <= HP_MAX_STAGES; roles++) {
        if (devices % (roles * cp * tp * bp) != 0) continue;
        const hp_point p = {.prec = (uint8_t)l->space->graph->prec,
                            .dp = devices / (roles * cp * tp * bp),
                            .clients = (int16_t)clients,
                            .cp = (int16_t)cp,
                            .tp = (int16_t)tp,
                            .bp = (int16_t)bp,
                            .micro = 1,
                            .ldp = 1,
                            .gems = 1,
                            .chunks = 1,
                            .strips = 1,
                            .halo = 1};
        add_replica(l, &p, roles);
    }
}

/* Does a second rank per part have a good share of the layers to work on? */
static bool has_branches(const hp_graph *g) {
    hp_arena *scratch = hp_arena_new();
    const int32_t *branch = hp_branches(scratch, g, 2, 1, g->n_layer);
    int second = 0;
    for (int l = 1; l < g->n_layer; l++) second += branch[g->layer[l].out] == 1;
    hp_arena_free(scratch);
    return 5 * second >= g->n_layer;
}

int hp_space_list(hp_arena *arena, const hp_space *space, hp_point **list) {
    lister l = {.arena = arena, .space = space};
    l.n_depth = hp_graph_depths(space->graph, l.depth);
    add_degrees(&l, 1, 1, 1, 1);
    for (int clients = 2; clients <= space->most_clients; clients *= 2) add_degrees(&l, clients, 1, 1, 1);
    for (size_t i = 0; i < COUNT(channel_counts) && !space->graph->deployed; i++)
        add_degrees(&l, 1, channel_counts[i], 1, 1);
    for (size_t i = 0; i < COUNT(branch_counts) && has_branches(space->graph); i++)
        add_degrees(&l, 1, 1, 1, branch_counts[i]);
    for (size_t i = 0; i < COUNT(tensor_counts) && hp_graph_summands(space->graph); i++)
        add_degrees(&l, 1, 1, tensor_counts[i], 1);
    *list = l.list;
    return l.n;
}

hp_strategy hp_space_strategy(const hp_point *p) {
    hp_strategy s = hp_strategy_default();
    s.prec = p->prec;
    s.dp = p->dp;
    s.stages = p->stages;
    s.micro = p->micro;
    s.ldp = p->ldp;
    s.gems = p->gems;
    s.clients = p->clients;
    s.cp = p->cp;
    s.tp = p->tp;
    s.bp = p->bp;
    s.chunks = p->chunks;
    s.sp.halo = p->halo;
    s.strips.n = p->strips;
    s.strips.deep = p->deep;
    s.sp.n = p->n_sp;
    for (int i = 0; i < p->n_sp; i++) {
        s.sp.rows[i] = p->rows[i];
        s.sp.cols[i] = p->cols[i];
    }
    s.sp.tail = p->tail;
    s.sp.overlap = p->overlap;
    s.sched = p->sched;
    s.recompute = p->recompute;
    return s;
}

int64_t hp_space_tasks(const hp_space *space, const hp_point *p) {
    /* copies, sends, receives around the tasks of a tile: counted on residual nets */
    static const double strip = 1.7, grid = 2.9, slice = 1.2, streamed = 2.2;
    static const double peer = 0.8; /* and on transformers, for each rank that shares their layers */
    const int passes = space->mode == HP_MODE_INFER ? 1 : p->recompute == HP_RECOMPUTE_NONE ? 3 : 4;
    const int shared = p->cp * p->bp;
    double parts = shared > 1 ? shared * grid : p->tp * (1 + peer * (p->tp - 1));
    for (int i = 0; i < p->n_sp; i++) { /* most layers may lie on any of the spatial stages */
        const double factor = p->rows[i] > 1 && p->cols[i] > 1 ? grid : strip;
        parts = parts > p->rows[i] * p->cols[i] * factor ? parts : p->rows[i] * p->cols[i] * factor;
    }
    if (p->n_sp == 0 && p->ldp > 1) parts = p->ldp * slice;
    if (p->strips > 1) {
        const int unit = p->deep ? p->deep : space->graph->n_unit / p->stages;
        parts *= 1 + streamed * p->strips * space->graph->unit_first[unit] / space->graph->n_layer;
    }
    return (int64_t)(space->graph->n_layer * (double)passes * p->micro * p->gems * parts);
}
