/* run_ranks.h - runs a program on all its ranks, as threads, on random samples: losses, weights, spans. */
#ifndef HP_TESTS_RUN_RANKS_H
#define HP_TESTS_RUN_RANKS_H

#include "exec/data/weights.h"
#include "exec/interp.h"
#include "plan/base/rng.h"
#include "tests/thread_comm.h"

typedef struct ranks_job {
    const hp_graph *g;
    const hp_program *p;
    const hp_device_ops *ops;
    int steps;
    double lr, momentum, weight_decay;
    uint64_t seed;
    const double *start; /* per graph parameter element, all in order; NULL: drawn from the seed */
    const char *ring_dir; /* not NULL: spans go to ring_dir/rank-N.ring */
    /* results */
    double *loss;    /* steps */
    double *weights; /* every parameter of the graph, in order, from replica 0; running statistics summed */
    hp_status status;
    hp_error err;
    /* inside */
    thread_world world;
    pthread_mutex_t lock;
} ranks_job;

typedef struct ranks_rank {
    ranks_job *job;
    int rank;
    pthread_t thread;
    int32_t micro_base;
} ranks_rank;

typedef struct ranks_loader {
    const ranks_job *job;
    int replica;
} ranks_loader;

static inline int64_t ranks_param_elems(const hp_graph *g) {
    int64_t n = 0;
    for (int i = 0; i < g->n_param; i++) n += g->param[i].count;
    return n;
}

static inline double ranks_get(hp_dtype t, const void *p, int64_t i) {
    return t == HP_F64 ? ((const double *)p)[i] : (double)((const float *)p)[i];
}

static inline void ranks_put(hp_dtype t, void *p, int64_t i, double v) {
    if (t == HP_F64) {
        ((double *)p)[i] = v;
    } else {
        ((float *)p)[i] = (float)v;
    }
}

/* Sample s of step `iter` is a pure function of both: every strategy sees the same batch. */
static hp_status ranks_load(void *self, int32_t iter, int32_t micro, void *x, void *labels, hp_error *err) {
    const ranks_loader *l = self;
    const hp_program *p = l->job->p;
    const hp_graph *g = l->job->g;
    const int64_t pixels = (int64_t)g->image_h * g->image_w * g->image_c;
    (void)err;
    for (int64_t i = 0; i < p->micro_batch; i++) {
        const uint64_t sample = (uint64_t)(((int64_t)l->replica * p->micro + micro) * p->micro_batch + i);
        const uint64_t stream = (uint64_t)iter * 1000003u + sample;
        for (int64_t e = 0; x && e < pixels; e++)
            ranks_put((hp_dtype)p->dtype, x, i * pixels + e,
                      (float)(2 * hp_rng_uniform(l->job->seed, stream, (uint64_t)e) - 1));
        if (labels)
            ((int32_t *)labels)[i] =
                (int32_t)hp_rng_below(l->job->seed, stream, UINT64_MAX, (uint64_t)g->classes);
    }
    return HP_OK;
}

static void ranks_fill(const ranks_job *job, const hp_role *r, unsigned char *arena, int replica) {
    const hp_weights w = {job->g, r, job->p->dtype, arena + r->buffer[HP_BUF_WEIGHTS].offset,
                          arena + r->buffer[HP_BUF_STATE].offset};
    hp_weights_init(&w, job->seed, replica == 0);
    if (!job->start) return;
    const double *from = job->start;
    for (int i = 0; i < job->g->n_param; from += job->g->param[i].count, i++) {
        const bool trained = hp_param_trained(&job->g->param[i]);
        if (!r->place[i].here || (!trained && replica)) continue;
        for (int64_t e = 0; e < job->g->param[i].count; e++)
            ranks_put((hp_dtype)job->p->dtype, trained ? w.weights : w.state, r->place[i].offset + e,
                      from[e]);
    }
}

static void ranks_collect(ranks_job *job, const hp_role *r, const unsigned char *arena, int replica) {
    double *to = job->weights;
    pthread_mutex_lock(&job->lock);
    for (int i = 0; i < job->g->n_param; to += job->g->param[i].count, i++) {
        if (!r->place[i].here) continue;
        const bool trained = hp_param_trained(&job->g->param[i]);
        const void *from = arena + r->buffer[trained ? HP_BUF_WEIGHTS : HP_BUF_STATE].offset;
        for (int64_t e = 0; e < job->g->param[i].count; e++) {
            const double v = ranks_get((hp_dtype)job->p->dtype, from, r->place[i].offset + e);
            if (trained && replica == 0) to[e] = v;
            if (!trained) to[e] += v; /* the true statistics are the sum over the replicas */
        }
    }
    pthread_mutex_unlock(&job->lock);
}

static void *ranks_main(void *arg) {
    ranks_rank *me = arg;
    ranks_job *job = me->job;
    const int replica = me->rank / job->p->n_role;
    const hp_role *r = &job->p->role[me->rank % job->p->n_role];
    unsigned char *arena = aligned_alloc(64, (size_t)(r->arena_bytes + 63) / 64 * 64);
    HP_ASSERT(arena);
    memset(arena, 0x7f, (size_t)r->arena_bytes); /* nothing may depend on what was there */
    hp_error err = {HP_OK, ""};
    hp_device *device = NULL;
    hp_watch *watch = NULL;
    hp_ring *ring = NULL;
    hp_comm *comm = thread_comm_new(&job->world, me->rank);
    const hp_clock clock = {0};
    ranks_loader loader = {job, replica};
    comm->ops->join(comm, job->p, &err);
    memset(arena + r->buffer[HP_BUF_MOMENTUM].offset, 0, (size_t)r->buffer[HP_BUF_MOMENTUM].bytes);
    ranks_fill(job, r, arena, replica);
    const hp_device_config config = {job->p, job->g, r, arena, 1};
    hp_status s = job->ops->open(&config, &device, &err);
    if (s == HP_OK && job->ring_dir) {
        char path[512];
        snprintf(path, sizeof path, "%s/rank-%d.ring", job->ring_dir, me->rank);
        s = hp_ring_create(path, me->rank, r->stage, (int64_t)r->n_task * job->steps, 8, &ring, &err);
    }
    if (s == HP_OK) s = hp_watch_open(NULL, me->rank, job->world.size, &watch, &err);
    if (s == HP_OK) {
        const hp_interp_config ic = {.program = job->p,
                                     .graph = job->g,
                                     .role = r,
                                     .replica = replica,
                                     .arena = arena,
                                     .ops = job->ops,
                                     .device = device,
                                     .load = ranks_load,
                                     .loader = &loader,
                                     .comm = comm,
                                     .clock = &clock, .ring = ring,
                                     .watch = watch,
                                     .yield = true};
        hp_interp *in = hp_interp_new(&ic);
        for (int i = 0; i < job->steps && s == HP_OK; i++) {
            const hp_step step = {.step = i,
                                  .replica = replica,
                                  .seed = job->seed,
                                  .dropout = true,
                                  .lr = job->lr,
                                  .momentum = job->momentum,
                                  .weight_decay = job->weight_decay};
            s = hp_interp_step(in, &step, i, 60, &err);
            if (me->rank == 0 && s == HP_OK) job->loss[i] = hp_interp_metric(in)[0] / hp_interp_metric(in)[1];
        }
        if (s == HP_OK) HP_ASSERT(hp_interp_peak_bytes(in) == r->arena_bytes);
        hp_interp_free(in);
    }
    if (s == HP_OK) {
        ranks_collect(job, r, arena, replica);
    } else {
        pthread_mutex_lock(&job->world.lock);
        if (!job->world.failed) {
            job->status = s;
            job->err = err;
        }
        job->world.failed = true;
        pthread_mutex_unlock(&job->world.lock);
    }
    if (device) job->ops->close(device);
    if (watch) hp_watch_close(watch);
    if (ring) hp_ring_close(ring);
    comm->ops->close(comm);
    free(arena);
    return NULL;
}

static inline hp_status run_ranks(ranks_job *job) {
    const int n = hp_program_ranks(job->p);
    ranks_rank *rank = calloc((size_t)n, sizeof *rank);
    job->world = (thread_world){.size = n, .n_role = job->p->n_role};
    pthread_mutex_init(&job->world.lock, NULL);
    pthread_mutex_init(&job->lock, NULL);
    job->status = HP_OK;
    memset(job->weights, 0, sizeof(double) * (size_t)ranks_param_elems(job->g));
    for (int i = 0; i < n; i++) {
        rank[i] = (ranks_rank){.job = job, .rank = i};
        HP_ASSERT(pthread_create(&rank[i].thread, NULL, ranks_main, &rank[i]) == 0);
    }
    for (int i = 0; i < n; i++) pthread_join(rank[i].thread, NULL);
    thread_world_free(&job->world);
    pthread_mutex_destroy(&job->lock);
    free(rank);
    return job->status;
}

#endif
