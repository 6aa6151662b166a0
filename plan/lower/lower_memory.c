/* lower_memory.c - lifetimes to offsets: what a role's one allocation looks like.
 *
 * Walks the task list once, as an allocator would: a buffer takes the smallest free gap that holds it when
 * its first task comes, and gives it back after its last (best fit). Tasks that run beside the compute queue
 * may still use memory that the list has given back, so whoever reuses it depends on them. */
#include "plan/lower/lower_inside.h"

#include <string.h>

enum { ALIGN = 64 };

typedef struct gap {
    int64_t offset, bytes;
} gap;

/* Memory given back, and who may still be using it. */
typedef struct ghost {
    int64_t offset, end;
    int32_t compute; /* last compute task that used it, -1 */
    int32_t async;   /* messages and collectives that used it, a list */
} ghost;

typedef struct placer {
    hp_role_builder *c;
    gap *free; /* sorted by offset; the last one is open-ended */
    int n_free, room;
    ghost *ghost;
    int n_ghost, ghost_room;
    struct {
        int32_t compute, async; /* as of a ghost */
    } * user;                   /* per buffer */
    hp_lists users;
} placer;

static int64_t align_up(int64_t bytes) {
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static int64_t take(placer *p, int64_t bytes) {
    int best = p->n_free - 1;
    for (int i = 0; i < p->n_free; i++)
        if (p->free[i].bytes >= bytes && p->free[i].bytes < p->free[best].bytes) best = i;
    gap *g = &p->free[best];
    const int64_t at = g->offset;
    g->offset += bytes;
    g->bytes -= bytes;
    if (!g->bytes) memmove(g, g + 1, sizeof *g * (size_t)(--p->n_free - best));
    return at;
}

static void give_back(placer *p, int64_t offset, int64_t bytes) {
    int i = 0;
    while (p->free[i].offset < offset) i++;
    const bool joins_left = i > 0 && p->free[i - 1].offset + p->free[i - 1].bytes == offset;
    if (p->free[i].offset == offset + bytes) { /* joins the gap on its right */
        p->free[i].offset = offset;
        p->free[i].bytes += bytes;
        if (!joins_left) return;
        p->free[i - 1].bytes += p->free[i].bytes;
        memmove(&p->free[i], &p->free[i + 1], sizeof *p->free * (size_t)(--p->n_free - i));
    } else if (joins_left) {
        p->free[i - 1].bytes += bytes;
    } else {
        HP_ROOM(p->c->facts->arena, p->free, p->n_free, p->room);
        memmove(&p->free[i + 1], &p->free[i], sizeof *p->free * (size_t)(p->n_free++ - i));
        p->free[i] = (gap){offset, bytes};
    }
}

/* The task that first uses a buffer waits for everyone who used its memory before and may not be done. */
static void wait_for_ghosts(placer *p, const hp_buffer *b) {
    const bool async = hp_task_infos[p->c->r->task[b->first].op].queue != HP_QUEUE_COMPUTE;
    const int64_t end = b->offset + align_up(b->bytes);
    int kept = 0, compute = -1;
    for (int i = 0; i < p->n_ghost; i++) {
        const ghost g = p->ghost[i];
        if (g.offset < end && b->offset < g.end) {
            if (g.compute > compute) compute = g.compute;
            for (int32_t k = g.async; k >= 0; k = p->users.at[k].next)
                if (p->users.at[k].task < b->first) lower_dep(p->c, b->first, p->users.at[k].task);
            if (!async && b->offset <= g.offset && g.end <= end)
                continue; /* covered: later users wait through us */
        }
        p->ghost[kept++] = g;
    }
    p->n_ghost = kept;
    if (async && compute < b->first) lower_dep(p->c, b->first, compute);
}

static void leave_ghost(placer *p, int id) {
    const hp_buffer *b = &p->c->r->buffer[id];
    const ghost g = {b->offset, b->offset + align_up(b->bytes), p->user[id].compute, p->user[id].async};
    for (int i = 0; i < p->n_ghost;
         i++) { /* a newer compute-only ghost of the same place replaces the old one */
        ghost *old = &p->ghost[i];
        if (old->offset == g.offset && old->end == g.end && old->async < 0) {
            *old = g;
            return;
        }
    }
    HP_ROOM(p->c->facts->arena, p->ghost, p->n_ghost, p->ghost_room);
    p->ghost[p->n_ghost++] = g;
}

static void note_users(placer *p) {
    const hp_role *r = p->c->r;
    p->user = hp_arena_alloc(p->c->facts->arena, sizeof *p->user * (size_t)(r->n_buffer + 1));
    memset(p->user, -1, sizeof *p->user * (size_t)(r->n_buffer + 1));
    for (int t = 0; t < r->n_task; t++) {
        const bool compute = hp_task_infos[r->task[t].op].queue == HP_QUEUE_COMPUTE;
        int32_t used[HP_MAX_USES];
        for (int n = hp_task_uses(r, t, used), i = 0; i < n; i++) {
            if (compute)
                p->user[used[i]].compute = t;
            else if (used[i] >= HP_BUF_FIXED)
                p->user[used[i]].async =
                    lower_list_add(p->c->facts->arena, &p->users, t, p->user[used[i]].async);
        }
    }
}

/* Buffers of the whole program: fixed ones, in an order that training and evaluation share. */
static int64_t place_fixed(hp_role *r) {
    static const int order[HP_BUF_FIXED] = {HP_BUF_WEIGHTS, HP_BUF_STATE, HP_BUF_METRIC,
                                            HP_BUF_SCRATCH, HP_BUF_GRADS, HP_BUF_OPTIMIZER};
    int64_t at = 0;
    for (int i = 0; i < HP_BUF_FIXED; i++) {
        hp_buffer *b = &r->buffer[order[i]];
        b->first = 0;
        b->last = r->n_task;
        b->offset = b->bytes ? at : 0; /* what is empty lies in no arena's end */
        at += align_up(b->bytes);
    }
    return at;
}

static int64_t fixed_end(const hp_role *r) {
    int64_t end = 0;
    for (int b = 0; b < HP_BUF_FIXED; b++)
        if (r->buffer[b].offset + r->buffer[b].bytes > end) end = r->buffer[b].offset + r->buffer[b].bytes;
    return end;
}

/* Buffer ids by first (or last) task: counting sort. */
static int32_t *by_task(hp_role_builder *c, bool last) {
    const hp_role *r = c->r;
    int32_t *count = HP_NEW(c->facts->arena, int32_t, r->n_task + 2),
            *list = HP_NEW(c->facts->arena, int32_t, r->n_buffer);
    for (int b = HP_BUF_FIXED; b < r->n_buffer; b++)
        count[(last ? r->buffer[b].last : r->buffer[b].first) + 1]++;
    for (int t = 0; t < r->n_task; t++) count[t + 1] += count[t];
    for (int b = HP_BUF_FIXED; b < r->n_buffer; b++)
        list[count[last ? r->buffer[b].last : r->buffer[b].first]++] = b;
    return list;
}

/* Keeps what outlives a step: packs of a deployed graph hold constants, filled once; codecs keep values for
 * the next step. */
static void keep_constants(hp_role_builder *c) {
    for (int b = HP_BUF_FIXED; b < c->r->n_buffer; b++) {
        const uint8_t kind = c->r->buffer[b].kind;
        if (kind != HP_BUF_CARRY && !(kind == HP_BUF_PACK && c->facts->g->deployed)) continue;
        c->r->buffer[b].first = 0;
        c->r->buffer[b].last = c->r->n_task;
    }
}

/* Offsets as an allocator that walks the task list would give them. Returns the end. */
static int64_t place_in_order(placer *p, const int32_t *born, const int32_t *dead, int n) {
    hp_role *r = p->c->r;
    int64_t top = fixed_end(r);
    for (int t = 0, b = 0, d = 0; t < r->n_task; t++) {
        for (; b < n && r->buffer[born[b]].first == t; b++) {
            hp_buffer *buffer = &r->buffer[born[b]];
            buffer->offset = take(p, align_up(buffer->bytes));
            if (buffer->offset + buffer->bytes > top) top = buffer->offset + buffer->bytes;
        }
        for (; d < n && r->buffer[dead[d]].last == t; d++)
            give_back(p, r->buffer[dead[d]].offset, align_up(r->buffer[dead[d]].bytes));
    }
    return top;
}

/* The most bytes alive at once; with offsets known, what their reuse has to wait for. */
static void walk_lifetimes(placer *p, const int32_t *born, const int32_t *dead, int n, int64_t fixed) {
    hp_role *r = p->c->r;
    int64_t live = fixed;
    r->live_bytes = fixed;
    for (int t = 0, b = 0, d = 0; t < r->n_task; t++) {
        for (; b < n && r->buffer[born[b]].first == t; b++) {
            live += align_up(r->buffer[born[b]].bytes);
            if (p->c->facts->o->place) wait_for_ghosts(p, &r->buffer[born[b]]);
        }
        if (live > r->live_bytes) r->live_bytes = live;
        for (; d < n && r->buffer[dead[d]].last == t; d++) {
            live -= align_up(r->buffer[dead[d]].bytes);
            if (p->c->facts->o->place) leave_ghost(p, dead[d]);
        }
    }
}

void hp_memory_place(hp_role_builder *c) {
    hp_role *r = c->r;
    keep_constants(c);
    placer p = {.c = c};
    const int64_t fixed = place_fixed(r);
    HP_ROOM(c->facts->arena, p.free, 0, p.room);
    p.free[p.n_free++] = (gap){fixed, INT64_MAX / 2};
    const int n = r->n_buffer - HP_BUF_FIXED;
    const int32_t *born = by_task(c, false), *dead = by_task(c, true);
    int64_t top = 0;
    if (c->facts->o->place) {
        note_users(&p);
        top = place_in_order(&p, born, dead, n);
        if (c->facts->g->deployed) top = hp_memory_by_size(c->facts->arena, r, fixed, top);
    }
    walk_lifetimes(&p, born, dead, n, fixed);
    r->arena_bytes = c->facts->o->place ? top : r->live_bytes;
}
