/* late_device.h - a device whose work is done later, played by threads over any other device: streams in
 * their order, events between them, random delays, and memory that the host cannot reach. What holds here
 * holds for the executor's side of every device with streams. */
#ifndef HP_TESTS_LATE_DEVICE_H
#define HP_TESTS_LATE_DEVICE_H

#include "exec/comm.h"
#include "exec/device.h"
#include "plan/base/rng.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct hp_event {
    int64_t recorded, happened; /* how often it was given to a stream, and reached there */
    struct timespec at;
};

typedef struct late_wait {
    const hp_event *event;
    int64_t count;
} late_wait;

typedef struct late_item {
    struct late_item *next;
    bool kept; /* self is a capture's */
    int n_wait;
    late_wait *wait;
    hp_event *done;
    int64_t count; /* of done */
    void (*work)(void *self);
    void *self;
} late_item;

typedef struct late_stream {
    struct late_stream *next;
    struct late_rank *rank;
    int key[3]; /* kind, peer or group, channel */
    pthread_t thread;
    late_item *first, **last;
    bool busy;
} late_stream;

typedef struct late_rank { /* what a process is to a real device; one per thread that plays a rank */
    pthread_mutex_t lock;
    pthread_cond_t moved;
    late_stream *stream;
    bool quit;
    unsigned char *fake, *real; /* the arena, as the host knows it and as it is */
    size_t bytes;
    int n_peer;
    struct late_rank **peer; /* whose memory was opened */
    uint64_t seed, draws;
    hp_status failed;
    hp_step step;         /* as the compute stream has it */
    hp_captured *capture; /* under way */
} late_rank;

struct hp_captured {
    int n;
    struct late_part {
        void (*work)(void *self);
        void *self;
        hp_event *done;
    } * part;
};

static _Thread_local late_rank *late_me;
static _Atomic int64_t late_given, late_again; /* tasks by themselves; captured ones, each time */
static const hp_device_ops *late_inner;        /* whose tasks are run; set before the ranks start */
static uint64_t late_seed;

/* --- streams --- */

static void late_pause(late_rank *r) {
    pthread_mutex_lock(&r->lock);
    const uint64_t draw = hp_rng_below(r->seed, 0, r->draws++, 8);
    pthread_mutex_unlock(&r->lock);
    if (draw < 2) usleep((useconds_t)(draw * 300));
}

static bool late_ready(const late_item *item) {
    for (int i = 0; i < item->n_wait; i++)
        if (item->wait[i].event->happened < item->wait[i].count) return false;
    return true;
}

static late_item *late_next(late_stream *s) {
    late_rank *r = s->rank;
    pthread_mutex_lock(&r->lock);
    while (!r->quit && (!s->first || !late_ready(s->first))) pthread_cond_wait(&r->moved, &r->lock);
    late_item *item = r->quit ? NULL : s->first;
    if (item) {
        s->first = item->next;
        if (!s->first) s->last = &s->first;
        s->busy = true;
    }
    pthread_mutex_unlock(&r->lock);
    return item;
}

static void late_finish(late_stream *s, late_item *item) {
    late_rank *r = s->rank;
    pthread_mutex_lock(&r->lock);
    if (item->done) {
        item->done->happened = item->count;
        clock_gettime(CLOCK_MONOTONIC, &item->done->at);
    }
    s->busy = false;
    pthread_cond_broadcast(&r->moved);
    pthread_mutex_unlock(&r->lock);
    if (!item->kept) free(item->self);
    free(item->wait);
    free(item);
}

static void *late_main(void *arg) {
    late_stream *s = arg;
    for (late_item *item; (item = late_next(s));) {
        late_pause(s->rank);
        if (item->work) item->work(item->self);
        late_finish(s, item);
    }
    return NULL;
}

static late_stream *late_stream_of(int kind, int peer, int channel) {
    const int key[3] = {kind, peer, channel};
    for (late_stream *s = late_me->stream; s; s = s->next)
        if (memcmp(s->key, key, sizeof key) == 0) return s;
    late_stream *s = calloc(1, sizeof *s);
    HP_ASSERT(s);
    memcpy(s->key, key, sizeof key);
    s->rank = late_me;
    s->last = &s->first;
    s->next = late_me->stream;
    late_me->stream = s;
    HP_ASSERT(pthread_create(&s->thread, NULL, late_main, s) == 0);
    return s;
}

static late_item *late_item_of(const hp_order *order, void (*work)(void *), void *self) {
    late_item *item = calloc(1, sizeof *item);
    HP_ASSERT(item && !late_me->capture);
    item->wait = calloc((size_t)order->n + 1, sizeof *item->wait);
    for (int i = 0; i < order->n; i++)
        item->wait[item->n_wait++] = (late_wait){order->after[i], order->after[i]->recorded};
    item->done = order->done;
    if (order->done) item->count = ++order->done->recorded;
    item->work = work;
    item->self = self;
    return item;
}

static void late_put_item(late_stream *s, late_item *item) {
    *s->last = item;
    s->last = &item->next;
    pthread_cond_broadcast(&s->rank->moved);
}

static void late_give(late_stream *s, const hp_order *order, void (*work)(void *), void *self) {
    pthread_mutex_lock(&s->rank->lock);
    late_put_item(s, late_item_of(order, work, self));
    pthread_mutex_unlock(&s->rank->lock);
}

/* Until the compute stream has nothing to do. */
static void late_drain(void) {
    const late_stream *s = late_stream_of(0, 0, 0);
    HP_ASSERT(!late_me->capture);
    pthread_mutex_lock(&late_me->lock);
    while (s->first || s->busy) pthread_cond_wait(&late_me->moved, &late_me->lock);
    pthread_mutex_unlock(&late_me->lock);
}

/* --- memory --- */

static bool late_holds(const late_rank *r, const void *at) {
    const unsigned char *p = at;
    return p >= r->fake && p < r->fake + r->bytes;
}

static const late_rank *late_peer_of(const void *at) {
    for (int i = 0; i < late_me->n_peer; i++)
        if (late_holds(late_me->peer[i], at)) return late_me->peer[i];
    return NULL;
}

static void *late_real(const void *at) {
    const late_rank *r = late_holds(late_me, at) ? late_me : late_peer_of(at);
    HP_ASSERT(r);
    return r->real + ((const unsigned char *)at - r->fake);
}

static hp_status late_alloc(int64_t bytes, void **at, hp_error *err) {
    (void)err;
    late_rank *r = late_me = calloc(1, sizeof *r);
    HP_ASSERT(r);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->moved, NULL);
    r->seed = late_seed;
    r->bytes = (size_t)(bytes + 4096) / 4096 * 4096;
    r->real = aligned_alloc(4096, r->bytes);
    r->fake = mmap(NULL, r->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    HP_ASSERT(r->real && r->fake != MAP_FAILED);
    memset(r->real, 0, r->bytes);
    *at = r->fake;
    return HP_OK;
}

static void late_free(void *at, int64_t bytes) {
    late_rank *r = late_me;
    (void)at, (void)bytes;
    pthread_mutex_lock(&r->lock);
    r->quit = true;
    pthread_cond_broadcast(&r->moved);
    pthread_mutex_unlock(&r->lock);
    for (late_stream *s = r->stream, *next; s; s = next) {
        next = s->next;
        pthread_join(s->thread, NULL);
        free(s);
    }
    munmap(r->fake, r->bytes);
    free(r->real);
    free(r->peer);
    free(r);
    late_me = NULL;
}

static hp_status late_put(void *to, const void *from, int64_t bytes, hp_error *err) {
    (void)err;
    late_drain();
    if (bytes) memcpy(late_real(to), from, (size_t)bytes);
    return HP_OK;
}

static hp_status late_get(void *to, const void *from, int64_t bytes, hp_error *err) {
    (void)err;
    late_drain();
    if (bytes) memcpy(to, late_real(from), (size_t)bytes);
    return HP_OK;
}

static hp_status late_zero(void *at, int64_t bytes, hp_error *err) {
    (void)err;
    late_drain();
    if (bytes) memset(late_real(at), 0, (size_t)bytes);
    return HP_OK;
}

static hp_status late_event_new(hp_event **e, hp_error *err) {
    (void)err;
    *e = calloc(1, sizeof **e);
    HP_ASSERT(*e);
    return HP_OK;
}

static void late_event_free(hp_event *e) {
    free(e);
}

static hp_status late_happened(hp_event *e, bool *yes, hp_error *err) {
    HP_ASSERT(!late_me->capture);
    pthread_mutex_lock(&late_me->lock);
    *yes = e->happened >= e->recorded;
    const hp_status failed = late_me->failed;
    pthread_mutex_unlock(&late_me->lock);
    return failed == HP_OK ? HP_OK : hp_fail(err, failed, "a task of the late device failed");
}

static hp_status late_apart(hp_event *from, hp_event *to, double *s, hp_error *err) {
    (void)err;
    *s = (double)(to->at.tv_sec - from->at.tv_sec) + 1e-9 * (double)(to->at.tv_nsec - from->at.tv_nsec);
    return HP_OK;
}

static hp_status late_mark(hp_event *e, hp_error *err) {
    (void)err;
    late_give(late_stream_of(0, 0, 0), &(hp_order){.done = e}, NULL, NULL);
    late_drain();
    return HP_OK;
}

typedef struct late_copy {
    void *to;
    const void *from;
    size_t bytes;
} late_copy;

static void late_do_copy(void *self) {
    const late_copy *c = self;
    if (c->bytes) memcpy(c->to, c->from, c->bytes);
}

static atomic_int late_straight, late_by_host; /* copies so far */

static hp_status late_copy_give(hp_stream stream, void *to, const void *from, int64_t bytes,
                                const hp_order *order, hp_error *err) {
    (void)err;
    late_copy *c = malloc(sizeof *c);
    const bool out = late_holds(late_me, from), in = late_holds(late_me, to), straight = late_peer_of(from);
    HP_ASSERT(c && out != in);
    (*(straight ? &late_straight : &late_by_host))++;
    *c = (late_copy){in ? late_real(to) : to, out || straight ? late_real(from) : from, (size_t)bytes};
    late_give(late_stream_of((int)stream, 0, 0), order, late_do_copy, c);
    return HP_OK;
}

static hp_status late_host_new(int64_t bytes, void **at, hp_error *err) {
    (void)err;
    *at = malloc((size_t)bytes + 1);
    HP_ASSERT(*at);
    return HP_OK;
}

/* --- captures --- */

static hp_status late_capture_begin(hp_error *err) {
    (void)err;
    late_drain();
    late_me->capture = calloc(1, sizeof *late_me->capture);
    HP_ASSERT(late_me->capture);
    return HP_OK;
}

static hp_status late_capture_end(hp_captured **captured, hp_error *err) {
    (void)err;
    HP_ASSERT(late_me->capture);
    *captured = late_me->capture;
    late_me->capture = NULL;
    return HP_OK;
}

/* Work that waits for what is not captured cannot be. */
static void late_capture_part(const hp_order *order, void (*work)(void *), void *self) {
    hp_captured *c = late_me->capture;
    HP_ASSERT(order->n == 0);
    c->part = realloc(c->part, sizeof *c->part * (size_t)(c->n + 1));
    HP_ASSERT(c->part);
    c->part[c->n++] = (struct late_part){work, self, order->done};
}

static hp_status late_capture_again(hp_captured *c, const hp_order *order, hp_error *err) {
    late_stream *s = late_stream_of(0, 0, 0);
    (void)err;
    HP_ASSERT(!order->done);
    pthread_mutex_lock(&late_me->lock);
    late_put_item(s, late_item_of(order, NULL, NULL));
    for (int i = 0; i < c->n; i++) {
        late_item *item =
            late_item_of(&(hp_order){.done = c->part[i].done}, c->part[i].work, c->part[i].self);
        item->kept = true;
        late_put_item(s, item);
    }
    pthread_mutex_unlock(&late_me->lock);
    late_again += c->n;
    return HP_OK;
}

static void late_capture_free(hp_captured *c) {
    late_drain();
    for (int i = 0; i < c->n; i++) free(c->part[i].self);
    free(c->part);
    free(c);
}

static const hp_capture_ops LATE_CAPTURE = {late_capture_begin, late_capture_end, late_capture_again,
                                            late_capture_free};
static const hp_stream_ops LATE_STREAMS = {late_event_new, late_event_free, late_happened, late_apart,
                                           late_mark,      late_copy_give,  late_host_new, free,
                                           &LATE_CAPTURE};

/* --- another rank's memory: one in three is out of reach, from one side at least --- */

static hp_status late_peer_name(void *at, hp_memory_name *name, hp_error *err) {
    (void)err;
    HP_ASSERT(at == late_me->fake);
    memcpy(name->bytes, &late_me, sizeof late_me);
    return HP_OK;
}

static hp_status late_peer_open(const hp_memory_name *name, void **at, hp_error *err) {
    late_rank *r = late_me, *peer;
    memcpy(&peer, name->bytes, sizeof peer);
    if (hp_rng_below(r->seed, 1, r->draws++, 3) == 0)
        return hp_fail(err, HP_EUNAVAIL, "the late device was told not to reach it");
    r->peer = realloc(r->peer, sizeof(late_rank *) * (size_t)(r->n_peer + 1));
    HP_ASSERT(r->peer);
    r->peer[r->n_peer++] = peer;
    *at = peer->fake;
    return HP_OK;
}

static void late_peer_close(void *at) {
    late_rank *r = late_me;
    int i = 0;
    while (r->peer[i]->fake != at) i++;
    r->peer[i] = r->peer[--r->n_peer];
}

static const hp_peer_ops LATE_PEERS = {late_peer_name, late_peer_open, late_peer_close};
static const hp_memory_ops LATE_MEMORY = {"late",    late_alloc,    late_free, late_put,   late_get,
                                          late_zero, &LATE_STREAMS, false,     &LATE_PEERS};

/* --- the device --- */

typedef struct late_task {
    late_rank *rank;
    hp_device *device;
    int task;
} late_task;

static void late_do_task(void *self) {
    const late_task *t = self;
    hp_error err;
    const hp_status s = late_inner->run(t->device, t->task, &t->rank->step, &err);
    if (s == HP_OK) return;
    pthread_mutex_lock(&t->rank->lock);
    t->rank->failed = s;
    pthread_mutex_unlock(&t->rank->lock);
}

typedef struct late_begun {
    late_rank *rank;
    hp_step step;
} late_begun;

static void late_do_begin(void *self) {
    const late_begun *b = self;
    b->rank->step = b->step;
}

static hp_status late_open(const hp_device_config *config, hp_device **device, hp_error *err) {
    hp_device_config real = *config;
    real.arena = late_me->real;
    return late_inner->open(&real, device, err);
}

static hp_status late_begin(hp_device *d, const hp_step *step, hp_error *err) {
    (void)d, (void)err;
    late_begun *b = malloc(sizeof *b);
    HP_ASSERT(b);
    *b = (late_begun){late_me, *step};
    late_give(late_stream_of(0, 0, 0), &(hp_order){0}, late_do_begin, b);
    return HP_OK;
}

static hp_status late_enqueue(hp_device *d, int task, const hp_order *order, hp_error *err) {
    (void)err;
    late_task *t = malloc(sizeof *t);
    HP_ASSERT(t);
    *t = (late_task){late_me, d, task};
    if (late_me->capture)
        late_capture_part(order, late_do_task, t);
    else
        late_give(late_stream_of(0, 0, 0), order, late_do_task, t);
    late_given += !late_me->capture;
    return HP_OK;
}

static void late_close(hp_device *d) {
    late_drain();
    late_inner->close(d);
}

/* The device that runs `inner`'s tasks later. One at a time in a process. */
static inline hp_device_ops late_device(const hp_device_ops *inner, uint64_t seed) {
    late_inner = inner;
    late_seed = seed;
    return (hp_device_ops){.name = "late",
                           .dtype = inner->dtype,
                           .open = late_open,
                           .close = late_close,
                           .memory = &LATE_MEMORY,
                           .begin = late_begin,
                           .enqueue = late_enqueue};
}

/* --- a communicator whose messages by HP_BACKEND_NCCL are the device's work --- */

enum { LATE_TAG = 1 << 23 }; /* no channel's */

typedef struct late_group { /* operations that move together */
    struct late_comm *comm;
    int n;
    hp_comm_op *op;
} late_group;

typedef struct late_comm {
    hp_comm base;
    hp_comm *inner;
    pthread_mutex_t lock; /* inner is no thread's own */
    int n_flight;
    struct late_flight {
        hp_event *done; /* NULL: inner's */
        int handle;
        bool used;
    } * flight;
    late_group *group; /* since the last end */
    late_wait *wait;
    int n_wait;
    hp_event **done;
} late_comm;

static hp_status late_start_all(late_group *g, int *handle) {
    hp_status s = HP_OK;
    hp_error err;
    for (int i = 0; i < g->n && s == HP_OK; i++)
        s = g->comm->inner->ops->start(g->comm->inner, &g->op[i], &handle[i], &err);
    return s;
}

static hp_status late_test_all(late_group *g, int *handle, int *left) {
    hp_status s = HP_OK;
    hp_error err;
    for (int i = 0; i < g->n && s == HP_OK; i++) {
        bool done = false;
        if (handle[i] >= 0) s = g->comm->inner->ops->test(g->comm->inner, handle[i], &done, &err);
        if (done) {
            handle[i] = -1;
            (*left)--;
        }
    }
    return s;
}

/* As a kernel of messages does: holds its stream until all the other sides are there. */
static void late_do_group(void *self) {
    late_group *g = self;
    int handle[g->n], left = g->n;
    pthread_mutex_lock(&g->comm->lock);
    hp_status s = late_start_all(g, handle);
    while (s == HP_OK && left > 0) {
        s = late_test_all(g, handle, &left);
        pthread_mutex_unlock(&g->comm->lock);
        usleep(20);
        pthread_mutex_lock(&g->comm->lock);
    }
    pthread_mutex_unlock(&g->comm->lock);
    free(g->op);
}

static hp_status late_comm_join(hp_comm *comm, const hp_program *p, hp_error *err) {
    hp_comm *inner = ((late_comm *)comm)->inner;
    return inner->ops->join(inner, p, err);
}

static bool late_comm_ordered(const hp_comm *comm, int backend) {
    (void)comm;
    return backend == HP_BACKEND_NCCL;
}

static int late_handle(late_comm *c) {
    int i = 0;
    while (i < c->n_flight && c->flight[i].used) i++;
    if (i == c->n_flight) {
        c->flight = realloc(c->flight, sizeof *c->flight * (size_t)++c->n_flight);
        HP_ASSERT(c->flight);
    }
    c->flight[i] = (struct late_flight){.used = true};
    return i;
}

static void late_keep(late_comm *c, const hp_comm_op *op) {
    if (!c->group) {
        c->group = calloc(1, sizeof *c->group);
        c->group->comm = c;
    }
    late_group *g = c->group;
    HP_ASSERT(op->device);
    g->op = realloc(g->op, sizeof *g->op * (size_t)(g->n + 1));
    c->done = realloc(c->done, sizeof *c->done * (size_t)(g->n + 1));
    c->wait = realloc(c->wait, sizeof *c->wait * (size_t)(c->n_wait + op->order->n + 1));
    HP_ASSERT(g->op && c->done && c->wait);
    c->done[g->n] = op->order->done;
    for (int i = 0; i < op->order->n; i++) c->wait[c->n_wait++].event = op->order->after[i];
    g->op[g->n] = *op;
    g->op[g->n].data = late_real(op->data);
    if (op->kind != HP_COMM_ALLREDUCE)
        g->op[g->n].tag = LATE_TAG; /* a pair's messages match by order alone */
    g->op[g->n++].order = NULL;
}

static hp_status late_comm_start(hp_comm *comm, const hp_comm_op *op, int *handle, hp_error *err) {
    late_comm *c = (late_comm *)comm;
    *handle = late_handle(c);
    struct late_flight *f = &c->flight[*handle];
    if (!op->order) {
        HP_ASSERT(!op->device); /* the host's alone */
        pthread_mutex_lock(&c->lock);
        const hp_status s = c->inner->ops->start(c->inner, op, &f->handle, err);
        pthread_mutex_unlock(&c->lock);
        return s;
    }
    late_keep(c, op);
    f->done = op->order->done;
    return HP_OK;
}

/* One stream for messages, one for all-reduces. */
static hp_status late_comm_end(hp_comm *comm, hp_error *err) {
    late_comm *c = (late_comm *)comm;
    late_group *g = c->group;
    (void)err;
    c->group = NULL;
    if (!g) return HP_OK;
    const int n = g->n;
    hp_event *after[c->n_wait + 1];
    for (int i = 0; i < c->n_wait; i++) after[i] = (hp_event *)(uintptr_t)c->wait[i].event;
    late_stream *s = late_stream_of(2 + (g->op[0].kind == HP_COMM_ALLREDUCE), 0, 0);
    late_give(s, &(hp_order){.n = c->n_wait, .after = after}, late_do_group, g);
    for (int i = 0; i < n; i++) late_give(s, &(hp_order){.done = c->done[i]}, NULL, NULL);
    c->n_wait = 0;
    return HP_OK;
}

static hp_status late_comm_test(hp_comm *comm, int handle, bool *done, hp_error *err) {
    late_comm *c = (late_comm *)comm;
    struct late_flight *f = &c->flight[handle];
    hp_status s;
    if (f->done) {
        s = late_happened(f->done, done, err);
    } else {
        pthread_mutex_lock(&c->lock);
        s = c->inner->ops->test(c->inner, f->handle, done, err);
        pthread_mutex_unlock(&c->lock);
    }
    if (*done) f->used = false;
    return s;
}

static void late_comm_close(hp_comm *comm) {
    late_comm *c = (late_comm *)comm;
    c->inner->ops->close(c->inner);
    pthread_mutex_destroy(&c->lock);
    free(c->wait);
    free(c->done);
    free(c->flight);
    free(c);
}

static const hp_comm_ops LATE_COMM = {.name = "late",
                                      .join = late_comm_join,
                                      .start = late_comm_start,
                                      .end = late_comm_end,
                                      .test = late_comm_test,
                                      .ordered = late_comm_ordered,
                                      .close = late_comm_close};

/* Straight where memory can be reached, staged else, over late over the rank's own. */
static inline hp_comm *late_comm_new(hp_comm *inner, const hp_device_ops *ops) {
    hp_error err;
    late_comm *c = calloc(1, sizeof *c);
    HP_ASSERT(c);
    c->base = (hp_comm){.ops = &LATE_COMM, .rank = inner->rank, .size = inner->size};
    c->inner = inner;
    pthread_mutex_init(&c->lock, NULL);
    hp_comm *staged = hp_comm_staged(&c->base, ops->memory), *comm;
    HP_ASSERT(hp_comm_peer(staged, ops->memory, late_me->fake, (int64_t)late_me->bytes, &comm, &err) ==
              HP_OK);
    return comm;
}

#endif
