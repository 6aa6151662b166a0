/* late_comm.c - a communicator whose messages by HP_BACKEND_NCCL are work of the late device,
 * built on any other. */
#include "tests/support/exec/late/late_comm.h"

enum { LATE_TAG = 1 << 23 }; /* no channel's */

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

/* Like a kernel of messages, holds its stream until all peers have arrived. */
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
    if (op->kind != HP_COMM_COLLECTIVE)
        g->op[g->n].tag = LATE_TAG; /* a pair's messages match only by order */
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
    late_stream *s = late_stream_of(2 + (g->op[0].kind == HP_COMM_COLLECTIVE), 0, 0);
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
        s = late_query(NULL, f->done, done, err);
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

hp_comm *late_comm_new(hp_comm *inner, const hp_memory *memory) {
    hp_error err;
    late_comm *c = calloc(1, sizeof *c);
    HP_ASSERT(c);
    c->base = (hp_comm){.ops = &LATE_COMM, .rank = inner->rank, .size = inner->size};
    c->inner = inner;
    pthread_mutex_init(&c->lock, NULL);
    hp_comm *staged = hp_comm_staged(&c->base, memory), *comm;
    HP_ASSERT(hp_comm_peer(staged, memory, late_me->fake, (int64_t)late_me->bytes, &comm, &err) == HP_OK);
    return comm;
}
