/* parallel.c - POSIX threads take work items from a shared counter. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>

enum { MOST_THREADS = 64 };

typedef struct team {
    void (*body)(void *self, int thread, int i);
    void *self;
    int n;
    atomic_int next;
} team;

typedef struct member {
    team *of;
    int thread;
    pthread_t id;
} member;

static void *work(void *arg) {
    const member *m = arg;
    for (int i; (i = atomic_fetch_add(&m->of->next, 1)) < m->of->n;) m->of->body(m->of->self, m->thread, i);
    return NULL;
}

void hp_parallel_for(int threads, int n, void (*body)(void *self, int thread, int i), void *self) {
    team t = {.body = body, .self = self, .n = n};
    member all[MOST_THREADS];
    int started = 0;
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    if (threads > n) threads = n;
    for (int k = 1; k < threads; k++) {
        member *m = &all[started];
        *m = (member){.of = &t, .thread = k};
        if (pthread_create(&m->id, NULL, work, m) == 0) started++;
    }
    work(&(member){.of = &t, .thread = 0});
    for (int k = 0; k < started; k++) pthread_join(all[k].id, NULL);
}

int hp_parallel_threads(void) {
    cpu_set_t set;
    const int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n < MOST_THREADS ? n : MOST_THREADS;
}
