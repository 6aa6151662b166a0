/* comm_law.c - the contract of comm.h over random programs of many groups. */
#include "tests/support/exec/comm_law.h"

#include "base/clock.h"
#include "base/hash.h"
#include "tests/support/exec/collective_case.h"

#include <math.h>
#include <string.h>

enum {
    MAX_QUEUES = 512,
    MAX_OPS = 24,
    SUMS = 8, /* maximum per group */
    TAGS = 3,
    MESSAGES = 100, /* names of groups are smaller */
    GUARD = 64      /* bytes before and after everything that an operation may write */
};
static const unsigned char GUARD_BYTE = 0x5b;

/* Operations that start in order; each rank chooses freely which queue goes next. */
typedef struct queue {
    int n, next;
    int group; /* group of an ordered back end; -1: its operations may start at any time */
    hp_comm_op op[MAX_OPS];
} queue;

typedef struct flight {
    int handle;
    const hp_comm_op *op;
    double expected; /* messages: value of element 0; element i is larger by i */
    int64_t source_bytes;
    collective_test test; /* collectives */
    int member;
    double begin_s, end_s;
    hp_event *done; /* for an ordered back end */
} flight;

typedef struct player {
    hp_comm *comm;
    const comm_room *room;
    int64_t used; /* bytes of it in use */
    const hp_program *p;
    hp_arena *arena;
    uint64_t seed;
    bool sums;         /* all-reduces beside messages */
    uint32_t backends; /* every collective in parallel with messages */
    int sweep;         /* first pair of a collective and an algorithm; -1: any */
    int n_queue, n_flight;
    queue queue[MAX_QUEUES];
    group_dice turns;  /* the same on all ranks: whose ordered operation is next */
    int left[MAX_OPS]; /* per group: ordered operations still to start, on whichever rank */
    flight flight[MAX_QUEUES * MAX_OPS];
} player;

/* First value that a rank puts into its k-th operation of a queue: integers, so that sums are exact. */
static double first_value(int rank, int name, int k) {
    return rank * 17 % 101 + name * 5 % 53 + k * 3;
}

static int64_t bytes_of(const hp_comm_op *op) {
    return op->count * hp_dtype_bytes((hp_dtype)op->dtype);
}

static bool lies_outside(const player *me) {
    group_dice d = {me->seed * 64 + (uint64_t)me->comm->rank, (1u << 21) + (uint64_t)me->n_flight};
    return me->room->outside && group_roll(&d, 0, 2) == 0;
}

static unsigned char *space(player *me, int64_t bytes) {
    if (lies_outside(me)) return hp_arena_alloc(me->arena, (size_t)bytes);
    unsigned char *at = me->room->at + me->used;
    me->used += bytes;
    HP_ASSERT(me->used <= me->room->bytes);
    return at;
}

/* Allocates memory with a guard on both sides and copies `data` there. */
static void *placed(player *me, const void *data, int64_t bytes) {
    const hp_memory *m = &me->room->memory;
    unsigned char *at = space(me, 2 * GUARD + (bytes + 63) / 64 * 64), guard[GUARD];
    memset(guard, GUARD_BYTE, sizeof guard);
    HP_ASSERT(m->ops->put(m, at, guard, GUARD, NULL) == HP_OK);
    HP_ASSERT(m->ops->put(m, at + GUARD, data, bytes, NULL) == HP_OK);
    HP_ASSERT(m->ops->put(m, at + GUARD + bytes, guard, GUARD, NULL) == HP_OK);
    return at + GUARD;
}

static bool guarded(const player *me, const void *data, int64_t bytes) {
    const hp_memory *m = &me->room->memory;
    const unsigned char *at = data;
    unsigned char guard[2 * GUARD];
    HP_ASSERT(m->ops->get(m, guard, at - GUARD, GUARD, NULL) == HP_OK);
    HP_ASSERT(m->ops->get(m, guard + GUARD, at + bytes, GUARD, NULL) == HP_OK);
    for (int i = 0; i < 2 * GUARD; i++)
        if (guard[i] != GUARD_BYTE) return false;
    return true;
}

static void give(player *me, hp_comm_op *op, double from) {
    void *data = HP_NEW(me->arena, double, op->count + 1);
    for (int64_t i = 0; i < op->count; i++) {
        if (op->dtype == HP_F64)
            ((double *)data)[i] = from + (double)(i % 1000);
        else
            ((float *)data)[i] = (float)(from + (double)(i % 1000));
    }
    op->device = !me->room->memory.ops->host;
    op->data = placed(me, data, bytes_of(op));
}

static double got(const hp_comm_op *op, const void *data, int64_t i) {
    return op->dtype == HP_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

/* Both sides derive a queue's operations from its name alone. */
static int queue_length(const player *me, int name, int most) {
    group_dice d = {me->seed * 1000 + (uint64_t)name, 0};
    return group_roll(&d, 0, most);
}

static hp_comm_op drawn(const player *me, int name, int k) {
    static const int64_t COUNTS[] = {0, 1, 2, 7, 500, 3000};
    group_dice d = {me->seed * 1000 + (uint64_t)name, 100 + 2 * (uint64_t)k};
    return (hp_comm_op){.count = COUNTS[group_roll(&d, 0, 5)], .dtype = group_roll(&d, HP_F32, HP_F64)};
}

static flight *expect(player *me, const hp_comm_op *op) {
    flight *f = &me->flight[me->n_flight++];
    *f = (flight){.handle = -1, .op = op};
    return f;
}

/* Draws the same collective on all members. */
static collective_test draw_collective(const player *me, int group, int k) {
    group_dice d = {me->seed * 1000 + (uint64_t)group, 100 * ((uint64_t)k + 1)};
    const int size = hp_group_size(me->p, group);
    if (me->sums) return collective_draw_sum(&d, size);
    const int which = me->sweep >= 0 ? me->sweep + k : group_roll(&d, 0, 1 << 20);
    return collective_draw(me->arena, &d, size, group_backend(me->p, group), which);
}

static void give_collective(player *me, flight *f, hp_comm_op *op) {
    const collective_test *t = &f->test;
    const int64_t bytes = collective_bytes(t), source_bytes = collective_source_bytes(t, f->member);
    unsigned char *data = hp_arena_alloc(me->arena, (size_t)bytes + 1),
                  *source = hp_arena_alloc(me->arena, (size_t)source_bytes + 1);
    collective_fill(t, f->member, data, t->apart ? source : NULL);
    op->device = !me->room->memory.ops->host;
    op->data = placed(me, data, bytes);
    if (!t->apart) return;
    op->source = placed(me, source, source_bytes);
    f->source_bytes = source_bytes;
}

static int member_of(const player *me, int group) {
    const int replica = me->comm->rank / me->p->n_role;
    int k = 0;
    while (hp_group_rank(me->p, group, replica, k) != me->comm->rank) k++;
    return k;
}

static bool is_ordered(const player *me, int backend) {
    return me->comm->ops->ordered && me->comm->ops->ordered(me->comm, backend);
}

static void add_group(player *me, int group) {
    queue *q = &me->queue[me->n_queue];
    const int n = me->sweep >= 0 ? MAX_OPS : queue_length(me, group, SUMS);
    const hp_memory *m = &me->room->memory;
    const bool ordered = is_ordered(me, group_backend(me->p, group));
    HP_ASSERT(group < MAX_OPS);
    me->left[group] = ordered ? n : 0;
    if (!hp_group_has_role(me->p, group, me->comm->rank % me->p->n_role)) return;
    for (q->n = 0; q->n < n; q->n++) {
        hp_comm_op *op = &q->op[q->n];
        flight *f = expect(me, op);
        f->test = draw_collective(me, group, q->n);
        f->member = member_of(me, group);
        *op = f->test.op;
        op->group = group;
        if (me->sums) op->backend = me->room->backend;
        give_collective(me, f, op);
        if (ordered) HP_ASSERT(m->ops->streams->event_new(m, &f->done, NULL) == HP_OK);
    }
    q->group = ordered ? group : -1;
    me->n_queue++;
}

static void add_messages(player *me, int from, int to, int tag) {
    queue *q = &me->queue[me->n_queue++];
    const int name = MESSAGES + (from * me->comm->size + to) * TAGS + tag, n = queue_length(me, name, 4);
    const bool send = from == me->comm->rank;
    q->group = -1;
    for (q->n = 0; q->n < n; q->n++) {
        hp_comm_op *op = &q->op[q->n];
        *op = drawn(me, name, q->n);
        op->kind = send ? HP_COMM_SEND : HP_COMM_RECV;
        op->peer = send ? to : from;
        op->tag = tag;
        op->backend = me->room->backend;
        give(me, op, send ? first_value(from, name, q->n) : -1);
        expect(me, op)->expected = first_value(from, name, q->n);
    }
}

static void add_queues(player *me) {
    const int rank = me->comm->rank;
    me->n_queue = me->n_flight = 0;
    for (int g = 0; g < me->p->n_group && (me->sums || me->backends); g++) add_group(me, g);
    for (int peer = 0; peer < me->comm->size; peer++)
        for (int tag = 0; tag < TAGS && peer != rank; tag++) {
            add_messages(me, rank, peer, tag);
            add_messages(me, peer, rank, tag);
        }
    HP_ASSERT(me->n_queue <= MAX_QUEUES);
    for (int q = 0; q < me->n_queue; q++) me->queue[q].next = 0;
}

static flight *flight_of(player *me, const hp_comm_op *op) {
    flight *f = me->flight;
    while (f->op != op) f++;
    return f;
}

static hp_status start(player *me, queue *q, hp_error *err) {
    hp_comm_op *op = &q->op[q->next++];
    flight *f = flight_of(me, op);
    const hp_order order = {.done = f->done};
    f->begin_s = hp_now_s();
    op->order = f->done ? &order : NULL;
    const hp_status s = me->comm->ops->start(me->comm, op, &f->handle, err);
    op->order = NULL;
    return s;
}

/* Operations ordered by streams must come in the same order and the same groups on all ranks: the next
 * operation of any group, and sometimes the end of those since the last end. False: none is left. */
static bool next_turn(player *me, int *group, bool *ends) {
    int left = 0;
    for (int g = 0; g < me->p->n_group; g++) left += me->left[g];
    if (left == 0) return false;
    int which = group_roll(&me->turns, 0, left - 1);
    for (*group = 0; which >= me->left[*group]; ++*group) which -= me->left[*group];
    me->left[*group]--;
    *ends = left == 1 || group_roll(&me->turns, 0, 2) == 0;
    return true;
}

static hp_status advance_ordered(player *me, hp_error *err) {
    int group;
    bool ends = false;
    while (!ends && next_turn(me, &group, &ends))
        for (int q = 0; q < me->n_queue; q++)
            if (me->queue[q].group == group) HP_TRY(start(me, &me->queue[q], err));
    return ends ? me->comm->ops->end(me->comm, err) : HP_OK;
}

/* Advances randomly: starts one more operation, or finishes some. Sent data is overwritten at once. */
static hp_status advance(player *me, group_dice *d, int *left, hp_error *err) {
    queue *q = &me->queue[group_roll(d, 0, me->n_queue - 1)];
    if (q->group < 0 && q->next < q->n) HP_TRY(start(me, q, err));
    if (group_roll(d, 0, 3) == 0) HP_TRY(advance_ordered(me, err));
    for (int i = 0; i < me->n_flight; i++) {
        bool done = false;
        flight *f = &me->flight[i];
        if (f->handle < 0) continue;
        HP_TRY(me->comm->ops->test(me->comm, f->handle, &done, err));
        if (!done) continue;
        if (f->op->kind == HP_COMM_SEND)
            HP_TRY(me->room->memory.ops->zero(&me->room->memory, f->op->data, bytes_of(f->op), err));
        if (f->done) me->room->memory.ops->streams->event_free(&me->room->memory, f->done);
        f->handle = -1;
        f->end_s = hp_now_s();
        --*left;
    }
    return HP_OK;
}

static hp_status check_message(const player *me, const flight *e, const void *data, hp_error *err) {
    for (int64_t i = 0; i < e->op->count; i++) {
        const double want = e->expected + (double)(i % 1000);
        if (got(e->op, data, i) != want)
            return hp_fail(err, HP_EINTERNAL,
                           "seed %d rank %d: kind %d peer %d tag %d, element %d of %d: %g, not %g",
                           (int)me->seed, me->comm->rank, e->op->kind, e->op->peer, e->op->tag, (int)i,
                           (int)e->op->count, got(e->op, data, i), want);
    }
    return HP_OK;
}

static hp_status wrong(const player *me, const flight *e, const char *why, hp_error *err) {
    char text[256];
    collective_text(&e->test, text, sizeof text);
    return hp_fail(err, HP_EINTERNAL, "seed %llu rank %d group %d member %d: %s: %s",
                   (unsigned long long)me->seed, me->comm->rank, e->op->group, e->member, text, why);
}

static hp_status check_source(const player *me, const flight *e, hp_error *err) {
    unsigned char *was = hp_arena_alloc(me->arena, (size_t)e->source_bytes + 1),
                  *is = hp_arena_alloc(me->arena, (size_t)e->source_bytes + 1),
                  *data = hp_arena_alloc(me->arena, (size_t)bytes_of(e->op) + 1);
    if (!e->op->source) return HP_OK;
    collective_fill(&e->test, e->member, data, was);
    HP_TRY(me->room->memory.ops->get(&me->room->memory, is, e->op->source, e->source_bytes, err));
    if (memcmp(was, is, (size_t)e->source_bytes) != 0) return wrong(me, e, "the source is another", err);
    return guarded(me, e->op->source, e->source_bytes) ? HP_OK
                                                       : wrong(me, e, "written beside the source", err);
}

static hp_status check_one(const player *me, const flight *e, hp_error *err) {
    char why[200];
    const bool collective = e->op->kind == HP_COMM_COLLECTIVE;
    void *data = HP_NEW(me->arena, double, e->op->count + 1);
    HP_TRY(me->room->memory.ops->get(&me->room->memory, data, e->op->data, bytes_of(e->op), err));
    if (!guarded(me, e->op->data, bytes_of(e->op)))
        return wrong(me, e, collective ? "written beside the data" : "a message beside its room", err);
    if (!collective) return check_message(me, e, data, err);
    if (!collective_right(&e->test, e->member, data, why, sizeof why)) return wrong(me, e, why, err);
    return check_source(me, e, err);
}

/* What members exchange about one of their collectives. */
typedef struct witness {
    uint64_t bits; /* hash of the data of an all-reduce with identical results on all members */
    double begin_s, end_s;
} witness;

/* Makes all NaNs equal, whatever their payload: a sum of two keeps that of the first. */
static void unify_nans(hp_dtype t, void *data, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        uint16_t *h = data;
        if (t == HP_F32 && isnan(((float *)data)[i])) ((float *)data)[i] = NAN;
        if (t == HP_F64 && isnan(((double *)data)[i])) ((double *)data)[i] = (double)NAN;
        if (t == HP_BF16 && (h[i] & 0x7fff) > 0x7f80) h[i] = 0x7fc0;
        if (t == HP_F16 && (h[i] & 0x7fff) > 0x7c00) h[i] = 0x7e00;
    }
}

static void testify(const player *me, const flight *e, witness *w) {
    const hp_memory *m = &me->room->memory;
    w->begin_s = e->begin_s;
    w->end_s = e->end_s;
    if (e->op->what != HP_COLLECTIVE_ALLREDUCE || e->op->backend == HP_BACKEND_MPI)
        return; /* MPI promises none */
    unsigned char *data = hp_arena_alloc(me->arena, (size_t)bytes_of(e->op) + 1);
    HP_ASSERT(m->ops->get(m, data, e->op->data, bytes_of(e->op), NULL) == HP_OK);
    unify_nans((hp_dtype)e->op->dtype, data, e->op->count);
    w->bits = hp_hash64(data, (size_t)bytes_of(e->op), 0);
}

static hp_status compare(const player *me, const flight *e, const witness *mine, const witness *other,
                         hp_error *err) {
    if (mine->bits != other->bits) return wrong(me, e, "another member has other bits", err);
    if (e->op->what == HP_COLLECTIVE_BARRIER && other->begin_s > mine->end_s)
        return wrong(me, e, "left before another member came", err);
    return HP_OK;
}

/* Compares members; row k has the k-th operation of each group. Collective: over all ranks. */
static hp_status compare_members(const player *me, hp_error *err) {
    const int rows = me->p->n_group * MAX_OPS, size = me->comm->size;
    witness *mine = HP_NEW(me->arena, witness, rows), *all = HP_NEW(me->arena, witness, rows * size);
    const flight **of = HP_NEW(me->arena, const flight *, rows);
    for (int f = 0, k = 0; f < me->n_flight; f++) {
        const flight *e = &me->flight[f];
        if (e->op->kind != HP_COMM_COLLECTIVE) continue;
        k = f > 0 && me->flight[f - 1].op->group == e->op->group ? k + 1 : 0;
        of[e->op->group * MAX_OPS + k] = e;
        testify(me, e, &mine[e->op->group * MAX_OPS + k]);
    }
    HP_TRY(hp_comm_share_bytes(me->comm, mine, (int64_t)sizeof *mine * rows, all, "the others", err));
    for (int row = 0; row < rows; row++)
        for (int m = 0; of[row] && m < of[row]->test.n; m++) {
            const int other = hp_group_rank(me->p, of[row]->op->group, me->comm->rank / me->p->n_role, m);
            HP_TRY(compare(me, of[row], &mine[row], &all[other * rows + row], err));
        }
    return HP_OK;
}

static hp_status check(const player *me, hp_error *err) {
    for (int f = 0; f < me->n_flight; f++)
        if (me->flight[f].op->kind != HP_COMM_SEND) HP_TRY(check_one(me, &me->flight[f], err));
    return me->backends ? compare_members(me, err) : HP_OK;
}

static hp_status play(player *me, hp_error *err) {
    group_dice own = {me->seed * 64 + (uint64_t)me->comm->rank, 1u << 20};
    HP_TRY(me->comm->ops->join(me->comm, me->p, err));
    add_queues(me);
    me->turns = (group_dice){me->seed, 1u << 22};
    for (int left = me->n_flight; left > 0;) {
        HP_TRY(advance(me, &own, &left, err));
        sched_yield();
    }
    HP_TRY(check(me, err));
    double all[64] = {0}; /* the world in parallel with the groups */
    HP_TRY(hp_comm_share(me->comm, me->comm->rank, all, "the others", err));
    for (int r = 0; r < me->comm->size; r++) HP_ASSERT(all[r] == r);
    return HP_OK;
}

/* --- laws --- */

static void count_messages(const player *me, int64_t *sent) {
    for (int f = 0; f < me->n_flight && sent; f++)
        if (me->flight[f].op->kind == HP_COMM_SEND)
            sent[me->flight[f].op->peer] += bytes_of(me->flight[f].op);
}

static hp_status law(const player *like, int64_t *sent, hp_error *err) {
    hp_arena *arena = hp_arena_new();
    player *me = HP_NEW(arena, player, 1);
    group_dice d = {like->seed, 0};
    hp_program *p[2];
    for (int i = 0; i < 2; i++) {
        p[i] = random_groups(arena, &d, like->comm->size, group_roll(&d, 0, 12));
        group_queues(arena, &d, p[i], like->backends);
    }
    hp_status s = HP_OK;
    for (int turn = 0; turn < 3 && s == HP_OK; turn++) {
        *me = *like;
        me->p = p[turn % 2];
        me->arena = arena;
        me->seed = like->seed * 3 + (uint64_t)turn;
        s = play(me, err);
        count_messages(me, sent);
    }
    hp_arena_free(arena);
    return s;
}

hp_status comm_law(hp_comm *comm, const comm_room *room, bool sums, uint64_t seed, int64_t *sent,
                   hp_error *err) {
    const player like = {.comm = comm, .room = room, .sums = sums, .seed = seed, .sweep = -1};
    return law(&like, sent, err);
}

hp_status comm_law_collectives(hp_comm *comm, const comm_room *room, uint32_t backends, uint64_t seed,
                               hp_error *err) {
    const player like = {.comm = comm, .room = room, .backends = backends, .seed = seed, .sweep = -1};
    return law(&like, NULL, err);
}

hp_status comm_law_sweep(hp_comm *comm, const comm_room *room, int backend, int times, uint64_t seed,
                         hp_error *err) {
    const int all = times * HP_DTYPES * collective_pairs(comm->size, backend);
    hp_status s = HP_OK;
    for (int first = 0; first < all && s == HP_OK; first += MAX_OPS) {
        hp_arena *arena = hp_arena_new();
        player *me = HP_NEW(arena, player, 1);
        group_dice d = {seed + (uint64_t)first, 0};
        hp_program *p = random_groups(arena, &d, comm->size, 0);
        *me = (player){.comm = comm,
                       .room = room,
                       .p = p,
                       .arena = arena,
                       .backends = 1u << backend,
                       .seed = seed + (uint64_t)first,
                       .sweep = first};
        group_queues(arena, &d, p, me->backends);
        s = play(me, err);
        hp_arena_free(arena);
    }
    return s;
}

comm_room comm_room_new(const hp_memory_ops *memory) {
    comm_room room = {.bytes = 64 << 20};
    HP_ASSERT(hp_memory_open(memory, NULL, &room.memory, NULL) == HP_OK);
    HP_ASSERT(memory->alloc(&room.memory, room.bytes, (void **)&room.at, NULL) == HP_OK);
    return room;
}

void comm_room_free(comm_room *room) {
    room->memory.ops->free(&room->memory, room->at, room->bytes);
    hp_memory_close(&room->memory);
}

int start_ranks(int n, const char *argument) {
    char self[1024], command[2048];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    HP_ASSERT(length > 0);
    self[length] = '\0';
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("ASAN_OPTIONS", "detect_leaks=0", 0); /* MPI's own */
    snprintf(command, sizeof command,
             "mpirun -n %d --oversubscribe --bind-to none --mca btl self,vader --mca pml ob1 --mca "
             "mpi_yield_when_idle 1 "
             "'%s' '%s'",
             n, self, argument);
    return system(command);
}
