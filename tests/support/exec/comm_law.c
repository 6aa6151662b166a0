/* comm_law.c - the contract of comm.h over random programs of many groups. */
#include "tests/support/exec/comm_law.h"

enum { MAX_QUEUES = 512, MAX_OPS = 24, TAGS = 3, MESSAGES = 100 /* names of groups are below */ };

/* Operations that start in order; which queue goes next is every rank's own affair. */
typedef struct queue {
    int n, next;
    hp_comm_op op[MAX_OPS];
} queue;

typedef struct flight {
    int handle;
    const hp_comm_op *op;
    double expected; /* of element 0; element i has i more per rank that took part */
    int ranks;
} flight;

typedef struct player {
    hp_comm *comm;
    const comm_room *room;
    int64_t used; /* of it */
    const hp_program *p;
    hp_arena *arena;
    uint64_t seed;
    bool sums; /* all-reduces beside messages */
    int n_queue, n_flight;
    queue queue[MAX_QUEUES];
    flight flight[MAX_QUEUES * MAX_OPS];
} player;

/* What a rank puts into its k-th operation of a queue, element i: whole numbers, so that sums are exact. */
static double first_value(int rank, int name, int k) {
    return rank * 17 % 101 + name * 5 % 53 + k * 3;
}

static int64_t bytes_of(const hp_comm_op *op) {
    return op->count * hp_dtype_bytes((hp_dtype)op->dtype);
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
    op->data = me->room->at + me->used;
    me->used += (bytes_of(op) + 63) / 64 * 64;
    HP_ASSERT(me->used <= me->room->bytes);
    HP_ASSERT(me->room->memory.ops->put(&me->room->memory, op->data, data, bytes_of(op), NULL) == HP_OK);
}

static double got(const hp_comm_op *op, const void *data, int64_t i) {
    return op->dtype == HP_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

/* Both sides know a queue's operations from its name alone. */
static int queue_length(const player *me, int name, int most) {
    group_dice d = {me->seed * 1000 + (uint64_t)name, 0};
    return group_roll(&d, 0, most);
}

static hp_comm_op drawn(const player *me, int name, int k) {
    static const int64_t COUNTS[] = {0, 1, 2, 7, 500, 3000, 30000}; /* short and long: every algorithm */
    group_dice d = {me->seed * 1000 + (uint64_t)name, 100 + 2 * (uint64_t)k};
    return (hp_comm_op){.count = COUNTS[group_roll(&d, 0, name < MESSAGES ? 6 : 5)],
                        .dtype = group_roll(&d, HP_F32, HP_F64)};
}

static void expect(player *me, const hp_comm_op *op, double first, int ranks) {
    me->flight[me->n_flight++] = (flight){.handle = -1, .op = op, .expected = first, .ranks = ranks};
}

static void add_group(player *me, int group) {
    const int replica = me->comm->rank / me->p->n_role;
    queue *q = &me->queue[me->n_queue];
    const int n = queue_length(me, group, 8), size = hp_group_size(me->p, group);
    if (!hp_group_has_role(me->p, group, me->comm->rank % me->p->n_role)) return;
    for (q->n = 0; q->n < n; q->n++) {
        hp_comm_op *op = &q->op[q->n];
        double sum = 0;
        *op = drawn(me, group, q->n);
        op->kind = HP_COMM_ALLREDUCE;
        op->group = group;
        give(me, op, first_value(me->comm->rank, group, q->n));
        for (int k = 0; k < size; k++)
            sum += first_value(hp_group_rank(me->p, group, replica, k), group, q->n);
        expect(me, op, sum, size);
    }
    me->n_queue++;
}

static void add_messages(player *me, int from, int to, int tag) {
    queue *q = &me->queue[me->n_queue++];
    const int name = MESSAGES + (from * me->comm->size + to) * TAGS + tag, n = queue_length(me, name, 4);
    const bool send = from == me->comm->rank;
    for (q->n = 0; q->n < n; q->n++) {
        hp_comm_op *op = &q->op[q->n];
        *op = drawn(me, name, q->n);
        op->kind = send ? HP_COMM_SEND : HP_COMM_RECV;
        op->peer = send ? to : from;
        op->tag = tag;
        give(me, op, send ? first_value(from, name, q->n) : -1);
        expect(me, op, first_value(from, name, q->n), 1);
    }
}

static void add_queues(player *me) {
    const int rank = me->comm->rank;
    me->n_queue = me->n_flight = 0;
    for (int g = 0; g < me->p->n_group && me->sums; g++) add_group(me, g);
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

/* Something may go on: one more operation under way, or some less. What was sent is gone at once. */
static hp_status advance(player *me, group_dice *d, int *left, hp_error *err) {
    queue *q = &me->queue[group_roll(d, 0, me->n_queue - 1)];
    if (q->next < q->n) {
        const hp_comm_op *op = &q->op[q->next++];
        HP_TRY(me->comm->ops->start(me->comm, op, &flight_of(me, op)->handle, err));
    }
    for (int i = 0; i < me->n_flight; i++) {
        bool done = false;
        flight *f = &me->flight[i];
        if (f->handle < 0) continue;
        HP_TRY(me->comm->ops->test(me->comm, f->handle, &done, err));
        if (!done) continue;
        if (f->op->kind == HP_COMM_SEND)
            HP_TRY(me->room->memory.ops->zero(&me->room->memory, f->op->data, bytes_of(f->op), err));
        f->handle = -1;
        --*left;
    }
    return HP_OK;
}

static hp_status check_one(const player *me, const flight *e, hp_error *err) {
    void *data = HP_NEW(me->arena, double, e->op->count + 1);
    HP_TRY(me->room->memory.ops->get(&me->room->memory, data, e->op->data, bytes_of(e->op), err));
    for (int64_t i = 0; i < e->op->count; i++) {
        const double want = e->expected + (double)(i % 1000) * e->ranks;
        if (got(e->op, data, i) != want)
            return hp_fail(err, HP_EINTERNAL,
                           "seed %d rank %d: kind %d group %d peer %d tag %d, element %d of %d: %g, not %g",
                           (int)me->seed, me->comm->rank, e->op->kind, e->op->group, e->op->peer, e->op->tag,
                           (int)i, (int)e->op->count, got(e->op, data, i), want);
    }
    return HP_OK;
}

static hp_status check(const player *me, hp_error *err) {
    for (int f = 0; f < me->n_flight; f++)
        if (me->flight[f].op->kind != HP_COMM_SEND) HP_TRY(check_one(me, &me->flight[f], err));
    return HP_OK;
}

static hp_status play(player *me, hp_error *err) {
    group_dice own = {me->seed * 64 + (uint64_t)me->comm->rank, 1u << 20};
    HP_TRY(me->comm->ops->join(me->comm, me->p, err));
    add_queues(me);
    for (int left = me->n_flight; left > 0;) {
        HP_TRY(advance(me, &own, &left, err));
        sched_yield();
    }
    HP_TRY(check(me, err));
    double all[64] = {0}; /* and the world beside the groups */
    HP_TRY(hp_comm_share(me->comm, me->comm->rank, all, "the others", err));
    for (int r = 0; r < me->comm->size; r++) HP_ASSERT(all[r] == r);
    return HP_OK;
}

hp_status comm_law(hp_comm *comm, const comm_room *room, bool sums, uint64_t seed, int64_t *sent,
                   hp_error *err) {
    hp_arena *arena = hp_arena_new();
    player *me = HP_NEW(arena, player, 1);
    group_dice d = {seed, 0};
    const hp_program *train = random_groups(arena, &d, comm->size, group_roll(&d, 0, 12));
    const hp_program *eval = random_groups(arena, &d, comm->size, group_roll(&d, 0, 12));
    hp_status s = HP_OK;
    for (int turn = 0; turn < 3 && s == HP_OK; turn++) {
        *me = (player){.comm = comm,
                       .room = room,
                       .p = turn % 2 ? eval : train,
                       .arena = arena,
                       .seed = seed * 3 + (uint64_t)turn,
                       .sums = sums};
        s = play(me, err);
        for (int f = 0; f < me->n_flight && sent; f++)
            if (me->flight[f].op->kind == HP_COMM_SEND)
                sent[me->flight[f].op->peer] += bytes_of(me->flight[f].op);
    }
    hp_arena_free(arena);
    return s;
}

comm_room comm_room_new(const hp_memory_ops *memory) {
    comm_room room = {.bytes = 32 << 20};
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
             "mpirun -n %d --oversubscribe --bind-to none --mca btl self,vader --mca mpi_yield_when_idle 1 "
             "'%s' '%s'",
             n, self, argument);
    return system(command);
}
