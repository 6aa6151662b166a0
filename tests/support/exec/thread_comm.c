/* thread_comm.c - ranks as threads of one process. */
#include "tests/support/exec/thread_comm.h"

static hp_status thread_join(hp_comm *comm, const hp_program *p, hp_error *err) {
    thread_comm *c = (thread_comm *)comm;
    (void)err;
    free(c->sequence);
    c->sequence = calloc((size_t)p->n_group + 1, sizeof *c->sequence);
    HP_ASSERT(c->sequence);
    c->program = p;
    c->n_joined++;
    return HP_OK;
}

/* --- collectives: sums give every member the full result, even if only a part was requested --- */

static void thread_sum(instance *t) {
    for (int64_t i = 0; i < t->count; i++) {
        double sum = 0;
        for (int m = 0; m < t->size; m++)
            sum += t->dtype == HP_F64 ? ((double *)t->data[m])[i] : (double)((float *)t->data[m])[i];
        for (int m = 0; m < t->size; m++) {
            if (t->dtype == HP_F64) ((double *)t->data[m])[i] = sum;
            if (t->dtype == HP_F32) ((float *)t->data[m])[i] = (float)sum;
        }
    }
}

/* Copies elements [from, to) of a member's data to all others. */
static void thread_spread(instance *t, int member, int64_t from, int64_t to) {
    const int64_t size = hp_dtype_bytes((hp_dtype)t->dtype);
    for (int m = 0; m < t->size && from < to; m++)
        if (m != member)
            memcpy((char *)t->data[m] + from * size, (const char *)t->data[member] + from * size,
                   (size_t)((to - from) * size));
}

static void thread_gather(instance *t) {
    const int64_t each = (t->count + t->size - 1) / t->size;
    for (int m = 0; m < t->size; m++)
        thread_spread(t, m, m * each, (m + 1) * each < t->count ? (m + 1) * each : t->count);
}

static void thread_do(instance *t) {
    if (t->what == HP_COLLECTIVE_ALL_GATHER)
        thread_gather(t);
    else if (t->what == HP_COLLECTIVE_BROADCAST)
        thread_spread(t, t->root, 0, t->count);
    else
        thread_sum(t);
    atomic_store(&t->done, true);
}

static instance_key thread_key(thread_comm *c, int group) {
    if (group == HP_COMM_WORLD) return (instance_key){.group = group, .sequence = c->world_sequence++};
    const bool all = c->program->group[group].all_replicas;
    return (instance_key){.program = c->n_joined,
                          .group = group,
                          .replica = all ? 0 : c->base.rank / c->program->n_role,
                          .sequence = c->sequence[group]++};
}

static int thread_member(const thread_comm *c, int group) {
    int k = 0;
    if (group == HP_COMM_WORLD) return c->base.rank;
    const int replica = c->base.rank / c->program->n_role;
    while (hp_group_rank(c->program, group, replica, k) != c->base.rank) k++;
    return k;
}

static instance *thread_new_instance(thread_comm *c, const hp_comm_op *op, instance_key key) {
    const int size = op->group == HP_COMM_WORLD ? c->base.size : hp_group_size(c->program, op->group);
    instance *t = calloc(1, sizeof *t + (size_t)size * sizeof *t->data);
    HP_ASSERT(t);
    t->next = c->world->instance;
    t->key = key;
    t->size = size;
    t->count = op->count;
    t->dtype = op->dtype;
    t->what = op->what;
    t->root = op->root;
    return c->world->instance = t;
}

/* Is it a collective that networks use? */
static bool does(const hp_comm_op *op) {
    const bool sums = op->what == HP_COLLECTIVE_ALLREDUCE || op->what == HP_COLLECTIVE_REDUCE_SCATTER ||
                      op->what == HP_COLLECTIVE_REDUCE;
    const bool moves = op->what == HP_COLLECTIVE_ALL_GATHER || op->what == HP_COLLECTIVE_BROADCAST;
    return (sums || moves) && op->reduction == HP_REDUCE_SUM && !op->source && !op->part;
}

static instance *thread_meet(thread_comm *c, const hp_comm_op *op) {
    const instance_key key = thread_key(c, op->group);
    instance *t = c->world->instance;
    while (t && memcmp(&t->key, &key, sizeof key) != 0) t = t->next;
    if (!t) t = thread_new_instance(c, op, key);
    HP_ASSERT(t->count == op->count && t->dtype == op->dtype);
    HP_ASSERT(does(op) && t->what == op->what && t->root == op->root);
    t->data[thread_member(c, op->group)] = op->data;
    if (++t->arrived == t->size) thread_do(t);
    return t;
}

static void thread_leave(thread_world *w, instance *t) {
    if (++t->left < t->size) return;
    instance **at = &w->instance;
    while (*at != t) at = &(*at)->next;
    *at = t->next;
    free(t);
}

/* --- messages --- */

static message **thread_bucket(thread_world *w, const message *m) {
    const uint32_t key = ((uint32_t)m->from * 131u + (uint32_t)m->to) * 8191u + (uint32_t)m->tag;
    return &w->bucket[key % THREAD_BUCKETS];
}

static message *thread_post(thread_comm *c, const hp_comm_op *op) {
    message *m = calloc(1, sizeof *m);
    HP_ASSERT(m);
    m->send = op->kind == HP_COMM_SEND;
    m->from = m->send ? c->base.rank : op->peer;
    m->to = m->send ? op->peer : c->base.rank;
    m->tag = op->tag;
    m->bytes = op->count * hp_dtype_bytes((hp_dtype)op->dtype);
    m->data = op->data;
    message **at = thread_bucket(c->world, m);
    for (; *at; at = &(*at)->next) { /* the oldest counterpart */
        message *o = *at;
        if (o->send == m->send || o->from != m->from || o->to != m->to || o->tag != m->tag) continue;
        HP_ASSERT(o->bytes == m->bytes);
        if (m->bytes) memcpy(m->send ? o->data : m->data, m->send ? m->data : o->data, (size_t)m->bytes);
        *at = o->next;
        atomic_store(&m->done, true);
        atomic_store(&o->done, true); /* its rank may free it from here on */
        return m;
    }
    *at = m;
    return m;
}

/* --- the vtable --- */

static int thread_handle(thread_comm *c) {
    for (int i = 0; i < c->n_flight; i++)
        if (!c->flight[i].m && !c->flight[i].t) return i;
    c->flight = realloc(c->flight, sizeof *c->flight * (size_t)(c->n_flight + 1));
    HP_ASSERT(c->flight);
    c->flight[c->n_flight] = (thread_flight){NULL, NULL};
    return c->n_flight++;
}

static hp_status thread_start(hp_comm *comm, const hp_comm_op *op, int *handle, hp_error *err) {
    thread_comm *c = (thread_comm *)comm;
    *handle = thread_handle(c);
    pthread_mutex_lock(&c->world->lock);
    const bool failed = atomic_load(&c->world->failed);
    if (!failed && op->kind == HP_COMM_COLLECTIVE) c->flight[*handle].t = thread_meet(c, op);
    if (!failed && op->kind != HP_COMM_COLLECTIVE) c->flight[*handle].m = thread_post(c, op);
    pthread_mutex_unlock(&c->world->lock);
    return failed ? hp_fail(err, HP_EDEAD, "another rank failed") : HP_OK;
}

static void thread_release(thread_comm *c, int handle) {
    thread_flight *f = &c->flight[handle];
    if (f->t) {
        pthread_mutex_lock(&c->world->lock);
        thread_leave(c->world, f->t);
        pthread_mutex_unlock(&c->world->lock);
    }
    free(f->m);
    *f = (thread_flight){NULL, NULL};
}

static hp_status thread_test(hp_comm *comm, int handle, bool *done, hp_error *err) {
    thread_comm *c = (thread_comm *)comm;
    const thread_flight *f = &c->flight[handle];
    *done = atomic_load(f->m ? &f->m->done : &f->t->done);
    if (*done)
        thread_release(c, handle);
    else if (atomic_load(&c->world->failed))
        return hp_fail(err, HP_EDEAD, "another rank failed");
    return HP_OK;
}

/* What is still in flight remains because a rank failed; the buckets are not read again. */
static void thread_close(hp_comm *comm) {
    thread_comm *c = (thread_comm *)comm;
    for (int i = 0; i < c->n_flight; i++) {
        if (!c->flight[i].m && !c->flight[i].t) continue;
        HP_ASSERT(atomic_load(&c->world->failed));
        thread_release(c, i);
    }
    free(c->flight);
    free(c->sequence);
    free(c);
}

static void thread_abort(hp_comm *comm, int code) {
    (void)comm;
    exit(code);
}

static const hp_comm_ops THREADS = {.name = "threads",
                                    .join = thread_join,
                                    .start = thread_start,
                                    .test = thread_test,
                                    .close = thread_close,
                                    .abort = thread_abort};

hp_comm *thread_comm_new(thread_world *w, int rank) {
    thread_comm *c = calloc(1, sizeof *c);
    HP_ASSERT(c);
    c->base = (hp_comm){.ops = &THREADS, .rank = rank, .size = w->size};
    c->world = w;
    return &c->base;
}

thread_world *thread_world_new(int size) {
    thread_world *w = calloc(1, sizeof *w);
    HP_ASSERT(w);
    w->size = size;
    pthread_mutex_init(&w->lock, NULL);
    return w;
}

bool thread_world_fail(thread_world *w) {
    pthread_mutex_lock(&w->lock);
    const bool was = atomic_exchange(&w->failed, true);
    pthread_mutex_unlock(&w->lock);
    return !was;
}

void thread_world_free(thread_world *w) {
    for (instance *t = w->instance; t;) {
        instance *next = t->next;
        free(t);
        t = next;
    }
    pthread_mutex_destroy(&w->lock);
    free(w);
}
