/* exec_ahead.c - a queue of rooms, and the thread that fills them. */
#include "exec/interp/exec_ahead.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef enum room_state { IDLE, ASKED, FILLING, FILLED } room_state;

typedef struct room {
    room_state state;
    int32_t iter;
    hp_status status;
    hp_error err;
} room;

struct hp_ahead {
    hp_ahead_fill *fill;
    void *self;
    int32_t n, first, n_asked; /* size, first entry and length of the ring `asked` */
    room *room;
    int32_t *asked;
    bool stop;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

/* Under the lock, which the fill itself runs without. */
static void fill_next(hp_ahead *a) {
    const int32_t item = a->asked[a->first];
    room *r = &a->room[item];
    hp_error err = {HP_OK, ""};
    a->first = (a->first + 1) % a->n;
    a->n_asked--;
    r->state = FILLING;
    pthread_mutex_unlock(&a->lock);
    const hp_status s = a->fill(a->self, item, r->iter, &err);
    pthread_mutex_lock(&a->lock);
    r->status = s;
    r->err = err;
    r->state = FILLED;
    pthread_cond_broadcast(&a->changed);
}

static void *fill_all(void *arg) {
    hp_ahead *a = arg;
    pthread_mutex_lock(&a->lock);
    while (!a->stop) {
        if (a->n_asked > 0)
            fill_next(a);
        else
            pthread_cond_wait(&a->changed, &a->lock);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

hp_status hp_ahead_start(int32_t n, hp_ahead_fill *fill, void *self, hp_ahead **ahead, hp_error *err) {
    hp_ahead *a = calloc(1, sizeof *a);
    HP_ASSERT(a);
    *a = (hp_ahead){.fill = fill, .self = self, .n = n};
    a->room = calloc((size_t)n + 1, sizeof *a->room);
    a->asked = calloc((size_t)n + 1, sizeof *a->asked);
    HP_ASSERT(a->room && a->asked);
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    const int failed = pthread_create(&a->thread, NULL, fill_all, a);
    if (!failed) {
        *ahead = a;
        return HP_OK;
    }
    free(a->room);
    free(a->asked);
    free(a);
    return hp_fail(err, HP_EUNAVAIL, "no thread to read images ahead: %s", strerror(failed));
}

void hp_ahead_stop(hp_ahead *a) {
    if (!a) return;
    pthread_mutex_lock(&a->lock);
    a->stop = true;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->changed);
    free(a->room);
    free(a->asked);
    free(a);
}

/* Under the lock; the room is not being filled. */
static void ask(hp_ahead *a, int32_t item, int32_t iter) {
    HP_ASSERT(a->n_asked < a->n);
    a->room[item].state = ASKED;
    a->room[item].iter = iter;
    a->asked[(a->first + a->n_asked++) % a->n] = item;
    pthread_cond_broadcast(&a->changed);
}

static bool under_way(const room *r) {
    return r->state == ASKED || r->state == FILLING;
}

void hp_ahead_ask(hp_ahead *a, int32_t item, int32_t iter) {
    pthread_mutex_lock(&a->lock);
    if (!under_way(&a->room[item])) ask(a, item, iter);
    pthread_mutex_unlock(&a->lock);
}

hp_status hp_ahead_wait(hp_ahead *a, int32_t item, int32_t iter, hp_error *err) {
    room *r = &a->room[item];
    pthread_mutex_lock(&a->lock);
    while (under_way(r)) pthread_cond_wait(&a->changed, &a->lock);
    if (r->state == IDLE || r->iter != iter) ask(a, item, iter);
    while (under_way(r)) pthread_cond_wait(&a->changed, &a->lock);
    const hp_status s = r->status;
    if (s != HP_OK && err) *err = r->err;
    r->state = IDLE;
    pthread_mutex_unlock(&a->lock);
    return s;
}
