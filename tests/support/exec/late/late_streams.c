/* late_streams.c - asynchronous work. */
#include "tests/support/exec/late/late_streams.h"

_Thread_local late_rank *late_me;

static void late_pause(late_rank *r) {
    pthread_mutex_lock(&r->lock);
    const uint64_t draw = hp_rng_below(r->seed, 0, r->draws++, 8);
    pthread_mutex_unlock(&r->lock);
    if (draw < 2) usleep((useconds_t)(draw * 300));
}

static bool late_ready(const late_item *item) {
    for (int i = 0; i < item->n_wait; i++)
        if (item->wait[i].event->query < item->wait[i].count) return false;
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
        item->done->query = item->count;
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

late_stream *late_stream_of(int kind, int peer, int channel) {
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

late_item *late_item_of(const hp_order *order, void (*work)(void *), void *self) {
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

void late_put_item(late_stream *s, late_item *item) {
    *s->last = item;
    s->last = &item->next;
    pthread_cond_broadcast(&s->rank->moved);
}

void late_give(late_stream *s, const hp_order *order, void (*work)(void *), void *self) {
    pthread_mutex_lock(&s->rank->lock);
    late_put_item(s, late_item_of(order, work, self));
    pthread_mutex_unlock(&s->rank->lock);
}

void late_drain(void) {
    const late_stream *s = late_stream_of(0, 0, 0);
    HP_ASSERT(!late_me->capture);
    pthread_mutex_lock(&late_me->lock);
    while (s->first || s->busy) pthread_cond_wait(&late_me->moved, &late_me->lock);
    pthread_mutex_unlock(&late_me->lock);
}
