/* dnn_ahead.c - compiles an operation's candidate kernels, a second of CPU each, in parallel. Only one thread
 * at a time may use a cuDNN handle, so each thread has its own. It returns its plan as text, and the caller's
 * handle makes the plan from that. Without a text the caller builds the plan again. Source: cuDNN's developer
 * guide, thread safety; the samples of its front end share graphs this way. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "exec/cuda/dnn/engine.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef struct pile {
    const hp_dnn *d;
    cudnnBackendDescriptor_t graph;
    hp_dnn_engine *const *engine;
    int n;
    _Atomic int next;
} pile;

static bool is_kept(const hp_dnn *d, const hp_dnn_engine *e) {
    char *text = d->cuda ? hp_dnn_kept_text(d, e) : NULL;
    const bool is = text != NULL;
    free(text);
    return is;
}

/* Builds from a fresh configuration: one that was already used for a plan does not work again (cuDNN 9.19:
 * its kernel then does not compile). */
static char *built(const hp_dnn *d, cudnnBackendDescriptor_t graph, const hp_dnn_engine *of) {
    hp_dnn_owner o = {0};
    hp_dnn_engine e = {.compiled = true};
    const cudnnBackendDescriptor_t config = hp_dnn_config_of(&o, graph, d, of->choice);
    if (o.status == CUDNN_STATUS_SUCCESS) hp_dnn_engine_build(d, &e, config);
    char *text = e.plan && e.own.status == CUDNN_STATUS_SUCCESS ? hp_dnn_plan_text(e.plan) : NULL;
    hp_dnn_release(&e.own);
    hp_dnn_release(&o);
    return text;
}

static void *work(void *of) {
    pile *p = of;
    hp_dnn own = {.cuda = p->d->cuda, .described = p->d->described, .compile = p->d->compile};
    hp_error none;
    if (own.cuda && (hp_cuda_use(own.cuda, &none) != HP_OK || cudnnCreate(&own.handle))) return NULL;
    for (int i; (i = atomic_fetch_add(&p->next, 1)) < p->n;)
        if (!is_kept(p->d, p->engine[i])) p->engine[i]->text = built(&own, p->graph, p->engine[i]);
    if (own.handle) cudnnDestroy(own.handle);
    return NULL;
}

/* Number of cores that this rank may use. */
static int cores(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

void hp_dnn_build_ahead(const hp_dnn *d, cudnnBackendDescriptor_t graph, hp_dnn_engine *const *engine,
                        int n) {
    enum { MOST = 16 };
    pthread_t thread[MOST];
    pile p = {.d = d, .graph = graph, .engine = engine, .n = n};
    int most = cores() < MOST ? cores() : MOST, started = 0;
    if (n < most) most = n;
    if ((!d->cuda && !d->compile) || most < 2) return;
    while (started < most && pthread_create(&thread[started], NULL, work, &p) == 0) started++;
    for (int i = 0; i < started; i++) pthread_join(thread[i], NULL);
}
