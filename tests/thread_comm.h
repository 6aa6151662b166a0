/* thread_comm.h - ranks as threads of one process: the communicator of the law tests, so that sixteen ranks
 * need no launcher. Messages match by (from, to, tag) in order; sends are synchronous: done once the receive
 * took them. */
#ifndef HP_TESTS_THREAD_COMM_H
#define HP_TESTS_THREAD_COMM_H

#include "exec/comm.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct message {
    struct message *next;
    int from, to, tag;
    int64_t bytes;
    void *data; /* the sender's buffer, or the receiver's */
    bool send, done;
} message;

typedef struct meeting { /* one all-reduce of a group */
    struct meeting *next;
    int key, sequence, arrived, left, size;
    int64_t count;
    int dtype;
    void *data[64]; /* by member, so that the order of the sum is fixed */
    bool done;
} meeting;

typedef struct thread_world {
    pthread_mutex_t lock;
    int size, n_role;
    const hp_program *program;
    message *message;
    meeting *meeting;
    bool failed;
} thread_world;

typedef struct thread_comm {
    hp_comm base;
    thread_world *world;
    int sequence[1024]; /* per group */
    struct {
        message *m;
        meeting *t;
    } handle[4096];
} thread_comm;

static hp_status thread_join(hp_comm *comm, const hp_program *p, hp_error *err) {
    (void)err;
    ((thread_comm *)comm)->world->program = p;
    return HP_OK;
}

static void thread_sum(meeting *t) {
    for (int64_t i = 0; i < t->count; i++) {
        double sum = 0;
        for (int m = 0; m < t->size; m++)
            sum += t->dtype == HP_F64 ? ((double *)t->data[m])[i] : (double)((float *)t->data[m])[i];
        for (int m = 0; m < t->size; m++) {
            if (t->dtype == HP_F64) ((double *)t->data[m])[i] = sum;
            if (t->dtype == HP_F32) ((float *)t->data[m])[i] = (float)sum;
        }
    }
    t->done = true;
}

static meeting *thread_meet(thread_comm *c, const hp_comm_op *op) {
    thread_world *w = c->world;
    const hp_program *p = w->program;
    const bool world = op->group == HP_COMM_WORLD;
    const int replica = c->base.rank / w->n_role;
    const bool all = world || p->group[op->group].all_replicas;
    const int group = world ? 0 : 1 + op->group, sequence = c->sequence[group]++;
    const int key = group * 64 + (all ? 0 : replica); /* every replica has its own such group */
    const int size = world ? w->size : hp_group_size(p, op->group);
    int me = c->base.rank;
    for (int k = 0; !world && k < size; k++)
        if (hp_group_rank(p, op->group, replica, k) == c->base.rank) me = k;
    meeting *t = w->meeting;
    while (t && (t->key != key || t->sequence != sequence)) t = t->next;
    if (!t) {
        t = calloc(1, sizeof *t);
        *t = (meeting){.next = w->meeting,
                       .key = key,
                       .sequence = sequence,
                       .count = op->count,
                       .dtype = op->dtype,
                       .size = size};
        w->meeting = t;
    }
    HP_ASSERT(t->count == op->count && t->dtype == op->dtype);
    t->data[me] = op->data;
    if (++t->arrived == t->size) thread_sum(t);
    return t;
}

static message *thread_post(thread_comm *c, const hp_comm_op *op) {
    thread_world *w = c->world;
    message *m = calloc(1, sizeof *m), **at = &w->message;
    const bool send = op->kind == HP_COMM_SEND;
    *m = (message){.from = send ? c->base.rank : op->peer,
                   .to = send ? op->peer : c->base.rank,
                   .tag = op->tag,
                   .bytes = op->count * hp_dtype_bytes((hp_dtype)op->dtype),
                   .data = op->data,
                   .send = send};
    for (; *at; at = &(*at)->next) { /* the oldest counterpart */
        message *o = *at;
        if (o->done || o->send == send || o->from != m->from || o->to != m->to || o->tag != m->tag) continue;
        HP_ASSERT(o->bytes == m->bytes);
        memcpy(send ? o->data : m->data, send ? m->data : o->data, (size_t)m->bytes);
        o->done = m->done = true;
        break;
    }
    while (*at) at = &(*at)->next;
    *at = m;
    return m;
}

static hp_status thread_start(hp_comm *comm, const hp_comm_op *op, int *handle, hp_error *err) {
    thread_comm *c = (thread_comm *)comm;
    (void)err;
    pthread_mutex_lock(&c->world->lock);
    for (*handle = 0; c->handle[*handle].m || c->handle[*handle].t;) ++*handle;
    if (op->kind == HP_COMM_ALLREDUCE) {
        c->handle[*handle].t = thread_meet(c, op);
    } else {
        c->handle[*handle].m = thread_post(c, op);
    }
    pthread_mutex_unlock(&c->world->lock);
    return HP_OK;
}

static hp_status thread_test(hp_comm *comm, int handle, bool *done, hp_error *err) {
    thread_comm *c = (thread_comm *)comm;
    pthread_mutex_lock(&c->world->lock);
    *done = c->handle[handle].m ? c->handle[handle].m->done : c->handle[handle].t->done;
    const bool failed = c->world->failed;
    pthread_mutex_unlock(&c->world->lock);
    if (*done) {
        c->handle[handle].m = NULL;
        c->handle[handle].t = NULL;
    }
    return failed ? hp_fail(err, HP_EDEAD, "another rank failed") : HP_OK;
}

static void thread_close(hp_comm *comm) {
    free(comm);
}

static void thread_abort(hp_comm *comm, int code) {
    (void)comm;
    exit(code);
}

static const hp_comm_ops THREADS = {"threads",   thread_join,  thread_start,
                                    thread_test, thread_close, thread_abort};

static inline hp_comm *thread_comm_new(thread_world *w, int rank) {
    thread_comm *c = calloc(1, sizeof *c);
    c->base = (hp_comm){.ops = &THREADS, .rank = rank, .size = w->size};
    c->world = w;
    return &c->base;
}

static inline void thread_world_free(thread_world *w) {
    for (message *m = w->message; m;) {
        message *next = m->next;
        free(m);
        m = next;
    }
    for (meeting *t = w->meeting; t;) {
        meeting *next = t->next;
        free(t);
        t = next;
    }
    pthread_mutex_destroy(&w->lock);
}

#endif
