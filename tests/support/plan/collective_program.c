/* collective_program.c - first draws ranks and places for data, then one call after another. A call's members
 * wait only for earlier uses of the same data. */
#include "tests/support/plan/collective_program.h"

#include "tests/support/plan/random_net.h"

#include <string.h>

enum {
    ALIGN = 64,
    GAP = 64,              /* bytes between two buffers, which nobody may write */
    PARTS = 4,             /* parts of the gradients' buffer */
    PLACES = 4,            /* maximum per role and kind of data */
    KINDS = HP_DTYPES + 1, /* types, and the gradients */
    GRADIENTS = HP_DTYPES,
    MAX_CALLS = 24,
    TRIES = 20,   /* until a chosen algorithm can do the collective */
    MAX_DEPS = 64 /* maximum per task */
};

/* A place for data: a buffer, or a part of the gradients; and who has used it since it was written. */
typedef struct place {
    int32_t buffer;
    int64_t first, room; /* elements */
    int32_t write, n_read, read[MAX_CALLS];
} place;

/* Where the calls of a group or messages of a pair go. */
typedef struct lane {
    int32_t group, from, to, channel, backend;
} lane;

typedef struct maker {
    hp_arena *arena;
    group_dice d;
    hp_program *p;
    uint32_t backends;
    int n_lane;
    lane *lane;
    int32_t (*n_place)[KINDS]; /* per role */
    place (*place)[KINDS][PLACES];
    int32_t dep[MAX_DEPS], n_dep; /* dependencies of the task under construction */
    collective_program *out;
} maker;

static int roll_of(maker *m, const int *list, int n) {
    return list[group_roll(&m->d, 0, n - 1)];
}

/* --- who --- */

static int32_t draw_backend(maker *m) {
    int b = group_roll(&m->d, 0, HP_BACKENDS - 1);
    while (!(m->backends >> b & 1)) b = (b + 1) % HP_BACKENDS;
    return b;
}

static void draw_lanes(maker *m) {
    const hp_program *p = m->p;
    m->lane = HP_NEW(m->arena, lane, p->n_group + 2 * p->n_role * p->n_role);
    for (int g = 0; g < p->n_group; g++)
        m->lane[m->n_lane++] = (lane){.group = g, .from = -1, .to = -1, .backend = draw_backend(m)};
    for (int from = 0; from < p->n_role; from++)
        for (int to = 0; to < p->n_role; to++)
            for (int n = from == to ? 0 : group_roll(&m->d, 0, 2); n > 0; n--)
                m->lane[m->n_lane++] =
                    (lane){.group = -1, .from = from, .to = to, .channel = n - 1, .backend = draw_backend(m)};
}

static void add_queue(const hp_program *p, int role, const lane *l) {
    hp_role *r = &p->role[role];
    hp_queue *q = &r->queue[r->n_queue];
    *q = (hp_queue){.channel = l->channel, .backend = l->backend};
    if (l->group >= 0 && !hp_group_has_role(p, l->group, role)) return;
    if (l->group < 0 && role != l->from && role != l->to) return;
    q->kind = l->group >= 0 ? HP_QUEUE_COLL : role == l->from ? HP_QUEUE_SEND : HP_QUEUE_RECV;
    q->peer = l->group >= 0 ? l->group : role == l->from ? l->to : l->from;
    r->n_queue++;
}

/* Queues of a role, in an order of its own, which is the order in which it starts operations. */
static void add_queues(maker *m, int role) {
    hp_role *r = &m->p->role[role];
    r->queue = HP_NEW(m->arena, hp_queue, m->n_lane + 2);
    r->queue[r->n_queue++] = (hp_queue){.kind = HP_QUEUE_COMPUTE, .peer = -1, .channel = -1};
    const int first = group_roll(&m->d, 0, m->n_lane - 1);
    for (int i = 0; i < m->n_lane; i++) add_queue(m->p, role, &m->lane[(first + i) % m->n_lane]);
}

static int queue_of(const hp_role *r, int kind, int peer, int channel) {
    int q = 1;
    while (r->queue[q].kind != kind || r->queue[q].peer != peer || r->queue[q].channel != channel) q++;
    return q;
}

/* --- where --- */

static int32_t add_buffer(hp_role *r, hp_buffer_kind kind, hp_dtype dtype, int64_t bytes) {
    r->buffer[r->n_buffer] = (hp_buffer){
        .kind = (uint8_t)kind, .dtype = (uint8_t)dtype, .what = -1, .micro = -1, .first = -1, .bytes = bytes};
    return r->n_buffer++;
}

static void add_place(maker *m, int role, int kind, int32_t buffer, int64_t first, int64_t room) {
    m->place[role][kind][m->n_place[role][kind]++] =
        (place){.buffer = buffer, .first = first, .room = room, .write = -1};
}

/* Room for short data, sometimes for several slices of every algorithm. */
static int64_t draw_room(maker *m, bool large, hp_dtype t) {
    return large ? group_roll(&m->d, 400 << 10, 900 << 10) / hp_dtype_bytes(t) : group_roll(&m->d, 20, 700);
}

static void add_places(maker *m, int role, int large) {
    hp_role *r = &m->p->role[role];
    const int64_t part = group_roll(&m->d, 20, 400);
    r->buffer = HP_NEW(m->arena, hp_buffer, HP_BUF_FIXED + KINDS * PLACES);
    add_buffer(r, HP_BUF_WEIGHTS, HP_F32, 0);
    add_buffer(r, HP_BUF_GRADS, HP_F32, PARTS * part * 4);
    add_buffer(r, HP_BUF_OPTIMIZER, HP_F32, 0);
    add_buffer(r, HP_BUF_STATE, HP_F32, 0);
    add_buffer(r, HP_BUF_METRIC, HP_F64, HP_METRICS * 8);
    add_buffer(r, HP_BUF_SCRATCH, HP_U8, 0);
    for (int i = 0; i < PARTS; i++) add_place(m, role, GRADIENTS, HP_BUF_GRADS, i * part, part);
    for (int t = 0; t < HP_DTYPES; t++)
        for (int n = group_roll(&m->d, 2, PLACES); n > 0; n--) {
            const int64_t room = draw_room(m, t == large, (hp_dtype)t);
            const int32_t b = add_buffer(r, HP_BUF_TENSOR, (hp_dtype)t, room * hp_dtype_bytes((hp_dtype)t));
            add_place(m, role, t, b, 0, room);
        }
}

/* Unused buffers get no memory; between the others there are gaps that nobody may write. */
static void lay_out(hp_role *r) {
    r->arena_bytes = 0;
    for (int i = 0; i < r->n_buffer; i++) {
        hp_buffer *b = &r->buffer[i];
        if (i < HP_BUF_FIXED) b->first = 0, b->last = r->n_task;
        if (b->first < 0) b->bytes = b->first = b->last = 0;
        if (b->bytes == 0) continue;
        b->offset = r->arena_bytes ? (r->arena_bytes + GAP + ALIGN - 1) / ALIGN * ALIGN : 0;
        r->arena_bytes = b->offset + b->bytes;
    }
    r->live_bytes = r->arena_bytes;
}

static void start_role(maker *m, int role, int large) {
    hp_role *r = &m->p->role[role];
    *r = (hp_role){.n_slot = 1,
                   .slot = HP_NEW(m->arena, hp_slot, 1),
                   .stage = role,
                   .task = HP_NEW(m->arena, hp_task, MAX_CALLS + 2),
                   .operand = HP_NEW(m->arena, int32_t, 2 * (MAX_CALLS + 2)),
                   .dep_first = HP_NEW(m->arena, int32_t, MAX_CALLS + 3),
                   .dep = HP_NEW(m->arena, int32_t, (MAX_CALLS + 2) * MAX_DEPS),
                   .place = HP_NEW(m->arena, hp_param_place, m->out->g->n_param),
                   .pack_forward = HP_NEW(m->arena, int32_t, m->out->g->n_layer),
                   .pack_backward = HP_NEW(m->arena, int32_t, m->out->g->n_layer)};
    for (int l = 0; l < m->out->g->n_layer; l++) r->pack_forward[l] = r->pack_backward[l] = -1;
    r->slot[0].stage = role;
    add_queues(m, role);
    add_places(m, role, large);
}

/* --- tasks --- */

static void wait_for(maker *m, int32_t task) {
    if (task < 0) return;
    for (int i = 0; i < m->n_dep; i++)
        if (m->dep[i] == task) return;
    HP_ASSERT(m->n_dep < MAX_DEPS);
    m->dep[m->n_dep++] = task;
}

static void use(maker *m, hp_role *r, place *at, bool write) {
    hp_buffer *b = &r->buffer[at->buffer];
    if (b->first < 0) b->first = r->n_task;
    b->last = r->n_task;
    wait_for(m, at->write);
    for (int i = 0; write && i < at->n_read; i++) wait_for(m, at->read[i]);
    if (write) {
        at->write = r->n_task;
        at->n_read = 0;
    } else {
        at->read[at->n_read++] = r->n_task;
    }
    r->operand[r->n_operand++] = at->buffer;
}

/* Adds a task that depends on the uses noted since n_dep was cleared; sometimes on another one, too. */
static int32_t add_task(maker *m, hp_role *r, hp_task t) {
    t.operand = r->n_operand - t.n_operand;
    t.layer = t.micro = -1;
    if (r->n_task > 0 && group_roll(&m->d, 0, 9) == 0) wait_for(m, group_roll(&m->d, 0, r->n_task - 1));
    for (int i = 0; i < m->n_dep; i++) r->dep[r->n_dep++] = m->dep[i];
    m->n_dep = 0;
    r->task[r->n_task] = t;
    r->dep_first[r->n_task + 1] = r->n_dep;
    return r->n_task++;
}

static made_call *add_call(maker *m) {
    made_call *c = &m->out->call[m->out->n_call++];
    *c = (made_call){.group = -1, .task = HP_NEW(m->arena, int32_t, m->p->n_role)};
    for (int r = 0; r < m->p->n_role; r++) c->task[r] = -1;
    return c;
}

static place *draw_place(maker *m, int role, int kind) {
    return &m->place[role][kind][group_roll(&m->d, 0, m->n_place[role][kind] - 1)];
}

/* Mostly short counts, around the number of members; sometimes as many as fit. */
static int64_t draw_count(maker *m, int members, int64_t room) {
    const int few[] = {0, 1, 2, 3, members - 1, members, members + 1, 7, 13, 64, 501};
    const int64_t n = roll_of(m, few, (int)(sizeof few / sizeof *few));
    if (group_roll(&m->d, 0, 5) == 0) return room;
    return n < room ? n : room;
}

/* --- messages --- */

static void add_message(maker *m, const lane *l, int32_t tag) {
    made_call *c = add_call(m);
    const int kind = group_roll(&m->d, 0, HP_DTYPES - 1);
    place *from = draw_place(m, l->from, kind), *to = draw_place(m, l->to, kind);
    hp_role *a = &m->p->role[l->from], *b = &m->p->role[l->to];
    hp_task t = {.op = HP_TASK_SEND,
                 .dtype = (uint8_t)kind,
                 .queue = (int16_t)queue_of(a, HP_QUEUE_SEND, l->to, l->channel),
                 .n_operand = 1,
                 .message = {tag, draw_count(m, 1, from->room < to->room ? from->room : to->room)}};
    c->from = l->from, c->to = l->to;
    use(m, a, from, false);
    c->task[l->from] = add_task(m, a, t);
    t.op = HP_TASK_RECV;
    t.queue = (int16_t)queue_of(b, HP_QUEUE_RECV, l->from, l->channel);
    use(m, b, to, true);
    c->task[l->to] = add_task(m, b, t);
}

/* --- collectives --- */

int32_t made_call_add(hp_arena *arena, hp_program *p, hp_call call, const int64_t *part) {
    hp_call *calls = HP_NEW(arena, hp_call, p->n_call + 1);
    int64_t *parts = HP_NEW(arena, int64_t, p->n_part + call.n + 1);
    if (p->n_call) memcpy(calls, p->call, sizeof *calls * (size_t)p->n_call);
    if (p->n_part) memcpy(parts, p->part, sizeof *parts * (size_t)p->n_part);
    if (call.n) memcpy(parts + p->n_part, part, sizeof *parts * (size_t)call.n);
    call.first = p->n_part;
    p->call = calls;
    p->part = parts;
    p->n_part += call.n;
    p->call[p->n_call++] = call;
    return p->n_call;
}

bool made_algorithm_fits(const hp_program *p, const hp_role *r, const hp_task *t, int algorithm) {
    const hp_collective_case c = hp_task_case(p, r, t);
    if (!hp_backend_steps(r->queue[t->queue].backend)) return algorithm == HP_ALGORITHM_LIBRARY;
    return algorithm != HP_ALGORITHM_LIBRARY &&
           hp_algorithm_does((hp_algorithm)algorithm, &c, hp_task_data(p, t).part == NULL);
}

static int64_t contribution(const hp_program *p, const hp_role *r, const hp_task *t, int member) {
    const hp_collective_case c = hp_task_case(p, r, t);
    const hp_blocks_of begins = hp_collective_infos[c.what].begins;
    const int64_t *part = hp_task_data(p, t).part, each = (t->collective.elems + c.size - 1) / c.size,
                  left = t->collective.elems - member * each;
    int64_t sum = 0;
    if (c.what == HP_COLLECTIVE_BARRIER) return 0;
    if (begins == HP_BLOCKS_ROOT) return member == c.root ? t->collective.elems : 0;
    if (begins == HP_BLOCKS_OWN) return part ? part[member] : left < 0 ? 0 : left < each ? left : each;
    for (int i = 0; begins == HP_BLOCKS_EACH && part && i < c.size; i++) sum += part[member * c.size + i];
    return begins == HP_BLOCKS_EACH && part ? sum : t->collective.elems;
}

/* The most that a replica of the role contributes. */
static int64_t most_contributed(const hp_program *p, int role, const hp_task *t) {
    const hp_role *r = &p->role[role];
    const int group = r->queue[t->queue].peer;
    int64_t most = 0;
    for (int k = 0; k < hp_group_size(p, group); k++) {
        const int64_t n = contribution(p, r, t, k);
        if (hp_group_rank(p, group, 0, k) % p->n_role == role && n > most) most = n;
    }
    return most;
}

/* Draws parts for members, or from each member to each, that fit into `most` elements. Returns the count. */
static int64_t draw_parts(maker *m, int64_t *part, int n, bool exchange, int64_t most) {
    int64_t count = 0;
    for (int i = 0; i < (exchange ? n * n : n); i++) {
        const int64_t each = most / n;
        part[i] = group_roll(&m->d, 0, 3) == 0 ? 0 : group_roll(&m->d, 0, (int)each);
        count += exchange ? 0 : part[i];
    }
    for (int i = 0; exchange && i < n; i++) {
        int64_t out = 0, in = 0;
        for (int k = 0; k < n; k++) out += part[i * n + k], in += part[k * n + i];
        count = out > count ? out : count;
        count = in > count ? in : count;
    }
    return count;
}

/* Members per node that some algorithm supports. */
static int draw_nodes(maker *m, int n) {
    const int few[] = {0, n, 1, n % 2 ? n : n / 2, n % 3 ? n : n / 3};
    return roll_of(m, few, 5);
}

/* Draws root, reduction, nodes, parts and count, limited by the room of the members' data. */
static void draw_call(maker *m, hp_task *t, int n, int64_t room) {
    const hp_collective what = hp_task_collective(t);
    const bool exchange = what == HP_COLLECTIVE_ALL_TO_ALL, rooted = hp_collective_rooted(what);
    int64_t *part = HP_NEW(m->arena, int64_t, n * n);
    hp_call call = {.reduction = hp_collective_infos[what].adds ? group_roll(&m->d, 0, HP_REDUCTIONS - 1) : 0,
                    .root = rooted ? group_roll(&m->d, 0, n - 1) : 0,
                    .per_node = draw_nodes(m, n)};
    t->collective.elems = what == HP_COLLECTIVE_BARRIER ? 0 : draw_count(m, n, room);
    if (hp_collective_parts(what) && group_roll(&m->d, 0, 1)) {
        call.n = exchange ? n * n : n;
        t->collective.elems =
            draw_parts(m, part, n, exchange, t->collective.elems > n ? t->collective.elems : room);
    } else if (exchange) {
        t->collective.elems -= t->collective.elems % n;
    }
    const bool plain = !call.reduction && !call.root && !call.per_node && !call.n;
    t->collective.call = plain ? 0 : made_call_add(m->arena, m->p, call, part);
}

/* The first algorithm from `wanted` on that can do it. */
static int fitting_algorithm(const hp_program *p, const hp_role *r, const hp_task *t, int wanted) {
    int a = wanted, left = HP_ALGORITHMS;
    while (left-- > 0 && !made_algorithm_fits(p, r, t, a)) a = (a + 1) % HP_ALGORITHMS;
    return left < 0 ? -1 : a;
}

/* A collective under construction: where its members' data is. */
typedef struct members {
    const lane *lane;
    int32_t kind;   /* kind of data */
    place **data;   /* per role; NULL: not a member */
    place **source; /* NULL: the contribution is in the data */
} members;

static int64_t least_room(const maker *m, const members *x) {
    int64_t room = INT64_MAX;
    for (int r = 0; r < m->p->n_role; r++)
        if (x->data[r] && x->data[r]->room < room) room = x->data[r]->room;
    return room;
}

static bool draw_source(maker *m, members *x, int role, hp_task t) {
    place *from = draw_place(m, role, t.dtype);
    t.queue = (int16_t)queue_of(&m->p->role[role], HP_QUEUE_COLL, x->lane->group, 0);
    const bool fits = from != x->data[role] && from->room >= most_contributed(m->p, role, &t);
    x->source[role] = fits ? from : NULL;
    return fits;
}

/* Makes it out of place if all that contribute have room for it: all members, or any, where
 * only one root does. */
static void draw_sources(maker *m, members *x, const hp_task *t) {
    const bool root = hp_collective_infos[hp_task_collective(t)].begins == HP_BLOCKS_ROOT;
    bool all = group_roll(&m->d, 0, 1);
    for (int r = 0; r < m->p->n_role; r++)
        if (x->data[r] && (all || (root && group_roll(&m->d, 0, 1)))) all &= draw_source(m, x, r, *t);
    for (int r = 0; r < m->p->n_role && !root && !all; r++) x->source[r] = NULL;
}

static hp_task draw_task(maker *m, const members *x, const hp_role *r) {
    const int n = hp_group_size(m->p, x->lane->group);
    hp_task t = {.dtype = (uint8_t)(x->kind == GRADIENTS ? HP_F32 : x->kind),
                 .collective = {.bucket = m->out->n_call}};
    t.queue = (int16_t)queue_of(r, HP_QUEUE_COLL, x->lane->group, 0);
    const bool steps = hp_backend_steps(x->lane->backend);
    const int wanted = steps ? group_roll(&m->d, 1, HP_ALGORITHMS - 1) : HP_ALGORITHM_LIBRARY;
    const int32_t n_call = m->p->n_call, n_part = m->p->n_part;
    for (int a = -1, left = TRIES; a < 0 || (a != wanted && left > 0); left--) {
        m->p->n_call = n_call, m->p->n_part = n_part; /* those of the last try */
        t.op = (uint8_t)hp_task_of_collective((hp_collective)group_roll(&m->d, 0, HP_COLLECTIVES - 1));
        draw_call(m, &t, n, least_room(m, x));
        a = fitting_algorithm(m->p, r, &t, wanted);
        t.algorithm = (uint8_t)(a < 0 ? 0 : a);
    }
    return t;
}

static int32_t add_member(maker *m, const members *x, int role, hp_task t) {
    hp_role *r = &m->p->role[role];
    place *data = x->data[role], *source = x->source[role];
    const int64_t left = data->room - t.collective.elems;
    t.queue = (int16_t)queue_of(r, HP_QUEUE_COLL, x->lane->group, 0);
    t.collective.first = data->first + (group_roll(&m->d, 0, 1) ? group_roll(&m->d, 0, (int)left) : 0);
    t.n_operand = source ? 2 : 1;
    use(m, r, data, true);
    if (source) use(m, r, source, false);
    return add_task(m, r, t);
}

static void add_collective(maker *m, const lane *l) {
    const int n = m->p->n_role;
    members x = {l, group_roll(&m->d, 0, KINDS - 1), HP_NEW(m->arena, place *, n),
                 HP_NEW(m->arena, place *, n)};
    made_call *c = add_call(m);
    c->group = l->group;
    for (int r = 0; r < n; r++)
        if (hp_group_has_role(m->p, l->group, r)) x.data[r] = draw_place(m, r, x.kind);
    const hp_task t = draw_task(m, &x, &m->p->role[m->p->member[m->p->group[l->group].first]]);
    draw_sources(m, &x, &t);
    for (int r = 0; r < n; r++)
        if (x.data[r]) c->task[r] = add_member(m, &x, r, t);
}

/* --- all of it --- */

static void start_program(maker *m, int ranks) {
    hp_program *p = m->p = random_groups(m->arena, &m->d, ranks, group_roll(&m->d, 1, 5));
    const int large = group_roll(&m->d, 0, 7) == 0 ? group_roll(&m->d, 0, HP_DTYPES - 1) : -1;
    p->mode = HP_MODE_INFER;
    p->dtype = HP_F32;
    p->device = HP_DEVICE_NOTHING;
    p->batch = p->dp;
    p->micro = p->clients = 1;
    p->micro_batch = 1;
    m->n_place = hp_arena_alloc(m->arena, sizeof *m->n_place * (size_t)p->n_role);
    m->place = hp_arena_alloc(m->arena, sizeof *m->place * (size_t)p->n_role);
    draw_lanes(m);
    for (int r = 0; r < p->n_role; r++) start_role(m, r, large);
}

collective_program collective_program_draw(hp_arena *arena, uint64_t seed, int ranks, uint32_t backends) {
    collective_program made = {.g = random_net(arena, 1, 1), .call = HP_NEW(arena, made_call, MAX_CALLS)};
    maker m = {.arena = arena, .d = {seed, 0}, .backends = backends, .out = &made};
    start_program(&m, ranks);
    int32_t *sent = HP_NEW(arena, int32_t, m.n_lane);
    add_collective(&m, &m.lane[0]); /* no role is without a task */
    for (int n = group_roll(&m.d, 3, MAX_CALLS - 1); n > 0; n--) {
        const int l = group_roll(&m.d, 0, 2) ? group_roll(&m.d, 0, m.p->n_group - 1)
                                             : group_roll(&m.d, 0, m.n_lane - 1);
        if (m.lane[l].group >= 0)
            add_collective(&m, &m.lane[l]);
        else
            add_message(&m, &m.lane[l], sent[l]++);
    }
    for (int r = 0; r < m.p->n_role; r++) lay_out(&m.p->role[r]);
    made.p = m.p;
    return made;
}
