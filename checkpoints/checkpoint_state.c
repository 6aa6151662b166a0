/* checkpoint_state.c - the pieces of a rank's state, derived from where parameters are stored
 * and who updates them. */
#include "checkpoints/checkpoint_state.h"

#include "plan/program/update.h"

#include <string.h>

const char *const hp_state_names[HP_STATE_KINDS] = {
    "weights",
    "statistics",
    "carry",
#define STATE(id, name) name,
#define OPTIMIZER(...)
#include "networks/graph/optimizers.def"
};

typedef struct collector {
    hp_arena *arena;
    const hp_program *p;
    const hp_graph *g;
    const hp_role *r;
    int role, replica;
    hp_state_piece *piece;
    int n, room;
} collector;

static void add(collector *c, hp_state_piece piece) {
    if (piece.count <= 0) return;
    HP_ROOM(c->arena, c->piece, c->n, c->room);
    c->piece[c->n++] = piece;
}

/* Does this rank update the bucket? With sync=ps only the bucket's server does, and only it has the
 * optimiser's state. */
static bool updates(const collector *c, int bucket) {
    for (int t = 0; t < c->r->n_task; t++)
        if (c->r->task[t].op == HP_TASK_UPDATE && c->r->task[t].update.bucket == bucket)
            return hp_task_works(c->p, c->r, &c->r->task[t], c->replica);
    return true;
}

/* Does a parameter server update this bucket? */
static bool is_served(const collector *c, int bucket) {
    for (int t = 0; t < c->r->n_task; t++)
        if (c->r->task[t].op == HP_TASK_UPDATE && c->r->task[t].update.bucket == bucket)
            return c->r->task[t].update.call != 0;
    return false;
}

/* Replicas hold equal data and save equal shares of it in parallel. A range is saved by the replica whose
 * share of the role's parameters contains its middle. */
static int saving_replica(const collector *c, int64_t middle) {
    return (int)(middle * c->p->dp / c->r->trained_elems);
}

/* `middle`: position of the range's middle among the role's parameters. */
static bool is_home(const collector *c, int buffer, int bucket, const hp_param_place *at, int64_t middle) {
    if (c->p->local > 0) return true;
    if (hp_keeps_parts(c->p, buffer) && c->r->bucket[bucket].parts > 1) return true;
    if (buffer == HP_BUF_OPTIMIZER && is_served(c, bucket)) return updates(c, bucket);
    return (at->here & HP_HOME) && c->replica == saving_replica(c, middle);
}

/* Adds the part of a parameter in a bucket that this rank keeps. `from`: where this state
 * begins in the buffer. */
static void add_range(collector *c, int kind, int buffer, int64_t from, int param, int bucket) {
    const hp_param_place *at = &c->r->place[param];
    const hp_bucket *b = &c->r->bucket[bucket];
    const bool alone = hp_keeps_parts(c->p, buffer);
    const int64_t part = hp_bucket_part(b);
    const int member = alone && b->parts > 1 ? hp_group_member(c->p, b->group, c->role, c->replica) : 0;
    const int64_t begin = alone ? b->first + member * part : b->first,
                  end = alone ? begin + part : b->first + b->count;
    const int64_t lo = at->offset > begin ? at->offset : begin,
                  hi = at->offset + at->count < end ? at->offset + at->count : end;
    add(c, (hp_state_piece){.kind = kind,
                            .param = param,
                            .buffer = buffer,
                            .home = is_home(c, buffer, bucket, at, lo + (hi - lo) / 2),
                            .first = at->first + lo - at->offset,
                            .count = hi - lo,
                            .at = from + (alone ? b->shard + lo - begin : lo)});
}

static void add_trained(collector *c, int kind, int buffer, int64_t from) {
    for (int i = 0; i < c->g->n_param; i++)
        for (int b = 0; b < c->r->n_bucket; b++)
            if (hp_param_trained(&c->g->param[i]) && c->r->place[i].here)
                add_range(c, kind, buffer, from, i, b);
}

/* With bn=all every replica has the complete value, so only the first saves it. */
static void add_statistics(collector *c) {
    for (int i = 0; i < c->g->n_param; i++) {
        const hp_param_place *at = &c->r->place[i];
        if (hp_param_trained(&c->g->param[i]) || !at->here) continue;
        add(c, (hp_state_piece){.kind = HP_STATE_STATISTICS,
                                .param = i,
                                .buffer = HP_BUF_STATE,
                                .home = (at->here & HP_HOME) && (c->replica == 0 || c->p->bn != HP_BN_ALL),
                                .start = (at->here & HP_START) && c->replica == 0,
                                .first = at->first,
                                .count = at->count,
                                .at = at->offset});
    }
}

static void add_carried(collector *c) {
    int k = 0;
    for (int b = HP_BUF_FIXED; b < c->r->n_buffer; b++)
        if (c->r->buffer[b].kind == HP_BUF_CARRY)
            add(c, (hp_state_piece){.kind = HP_STATE_CARRY,
                                    .param = k++,
                                    .buffer = b,
                                    .home = true,
                                    .count = c->r->buffer[b].bytes / hp_dtype_bytes((hp_dtype)c->p->dtype)});
}

hp_state_piece *hp_state_pieces(hp_arena *arena, const hp_program *p, const hp_graph *g, int role,
                                int replica, int *n) {
    collector c = {.arena = arena, .p = p, .g = g, .r = &p->role[role], .role = role, .replica = replica};
    const hp_optimizer_info *o = hp_optimizer_of(g);
    add_trained(&c, HP_STATE_WEIGHTS, HP_BUF_WEIGHTS, 0);
    for (int k = 0; k < o->states; k++)
        add_trained(&c, HP_STATE_OPTIMIZER + (int)o->first + k, HP_BUF_OPTIMIZER,
                    k * hp_state_elems(p, g, c.r));
    add_statistics(&c);
    add_carried(&c);
    *n = c.n;
    return c.piece;
}

int64_t hp_state_bytes(const hp_program *p, const hp_state_piece *piece, int n) {
    int64_t bytes = 0;
    for (int i = 0; i < n; i++)
        if (piece[i].home) bytes += piece[i].count * hp_dtype_bytes((hp_dtype)p->dtype);
    return bytes;
}

const char *hp_state_name(hp_arena *arena, const hp_graph *g, const hp_state_piece *s) {
    if (s->kind == HP_STATE_CARRY)
        return hp_arena_printf(arena, "%s/0/%d", hp_state_names[s->kind], s->param);
    return hp_arena_printf(arena, "%s/%lld/%s", hp_state_names[s->kind], (long long)s->first,
                           g->param[s->param].name);
}

const char *hp_state_parse(const char *name, int32_t *kind, int64_t *first) {
    for (*kind = 0; *kind < HP_STATE_KINDS; ++*kind) {
        const size_t n = strlen(hp_state_names[*kind]);
        if (strncmp(name, hp_state_names[*kind], n) != 0 || name[n] != '/') continue;
        const char *digit = name + n + 1, *end = digit + strspn(digit, "0123456789");
        if (*end != '/' || end == digit || end - digit > 18) return NULL;
        *first = strtoll(digit, NULL, 10);
        return end + 1;
    }
    return NULL;
}
