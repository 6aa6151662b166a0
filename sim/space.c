/* space.c - nested loops over the degrees; the search, not the space, knows what is good. */
#include "sim/space.h"

typedef struct lister {
    hp_arena *arena;
    const hp_space *space;
    hp_strategy *list;
    int n, capacity;
} lister;

static const int chunk_counts[] = {2, 4}; /* Narayanan et al. 2021 see most of the gain by 4 */
static const int probing_micros[] = {1, 2, 4,
                                     8}; /* also tried where they do not divide: their reject is a hint */

static void add(lister *l, hp_strategy s, hp_sched sched, int chunks, int micro, hp_recompute recompute) {
    s.sched = sched;
    s.chunks = chunks;
    s.micro = micro;
    s.recompute = recompute;
    HP_ROOM(l->arena, l->list, l->n, l->capacity);
    l->list[l->n++] = s;
}

/* Recomputation exists in training; `except-last` differs from `full` only when there are several
 * micro-batches. */
static void add_recompute(lister *l, const hp_strategy *s, hp_sched sched, int chunks, int micro) {
    add(l, *s, sched, chunks, micro, HP_RECOMPUTE_NONE);
    if (l->space->mode == HP_MODE_INFER) return;
    add(l, *s, sched, chunks, micro, HP_RECOMPUTE_BOUNDARY);
    add(l, *s, sched, chunks, micro, HP_RECOMPUTE_FULL);
    if (micro > 1) add(l, *s, sched, chunks, micro, HP_RECOMPUTE_EXCEPT_LAST);
}

static bool has_batch_norm(const hp_graph *g) {
    for (int l = 0; l < g->n_layer; l++)
        if (g->layer[l].op == HP_BN) return true;
    return false;
}

/* Fewer samples in a batch-norm group although no pipeline asks for it? */
static bool shrinks_groups(const hp_space *space, const hp_strategy *s, int64_t micro) {
    return space->mode == HP_MODE_TRAIN && s->stages == 1 && micro > 1 && has_batch_norm(space->graph);
}

/* One stage, one micro-batch or inference: the schedules are one and the same. */
static void add_schedules(lister *l, const hp_strategy *s, int micro) {
    if (shrinks_groups(l->space, s, micro) != l->space->small_groups) return;
    add_recompute(l, s, micro == 1 ? HP_SCHED_LP : HP_SCHED_GPIPE, 1, micro);
    if (s->stages == 1 || micro == 1) return;
    if (l->space->mode == HP_MODE_TRAIN) add_recompute(l, s, HP_SCHED_1F1B, 1, micro);
    for (size_t i = 0; i < sizeof chunk_counts / sizeof chunk_counts[0]; i++) {
        const int chunks = chunk_counts[i];
        if (s->stages * chunks > l->space->graph->n_unit || micro % s->stages != 0) continue;
        add_recompute(l, s, HP_SCHED_INTERLEAVED, chunks, micro);
    }
}

static void add_micros(lister *l, const hp_strategy *s) {
    const int64_t share = l->space->batch / s->dp;
    for (size_t i = 0; i < sizeof probing_micros / sizeof probing_micros[0]; i++) {
        if (share < probing_micros[i] || share % probing_micros[i] != 0)
            add_schedules(l, s, probing_micros[i]);
    }
    for (int64_t micro = 1; micro <= share && micro < INT32_MAX; micro++) {
        if (share % micro == 0) add_schedules(l, s, (int)micro);
    }
}

int hp_space_list(hp_arena *arena, const hp_space *space, hp_strategy **list) {
    lister l = {.arena = arena, .space = space};
    for (int stages = 1; stages <= space->n_devices && stages <= HP_MAX_STAGES; stages++) {
        if (space->n_devices % stages != 0) continue;
        hp_strategy s = hp_strategy_default();
        s.dp = space->n_devices / stages;
        s.stages = stages;
        if (stages > space->graph->n_unit && !space->small_groups)
            add(&l, s, HP_SCHED_LP, 1, 1, HP_RECOMPUTE_NONE); /* one reject says it */
        else if (stages <= space->graph->n_unit)
            add_micros(&l, &s);
    }
    *list = l.list;
    return l.n;
}

int64_t hp_space_tasks(const hp_space *space, const hp_strategy *s) {
    const int passes = space->mode == HP_MODE_INFER ? 1 : s->recompute == HP_RECOMPUTE_NONE ? 3 : 4;
    return (int64_t)space->graph->n_layer * passes * s->micro;
}
