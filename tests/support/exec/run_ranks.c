/* run_ranks.c - runs a program on all its ranks, as threads, on random samples. */
#include "tests/support/exec/run_ranks.h"

#include "exec/checkpoint/checkpoint.h"
#include "exec/run/run_parts.h"

typedef struct ranks_rank {
    ranks_job *job;
    int rank, replica;
    const hp_role *role;
    pthread_t thread;
    hp_memory memory;
    unsigned char *arena;
    hp_comm *comm;
    hp_constants *constants;
    hp_device *device;
    hp_watch *watch;
    hp_ring *ring;
    hp_clock clock;
} ranks_rank;

/* --- samples: pure functions of their position in the batch, whichever rank asks for which box --- */

/* The sample's random stream; `i`: its index in the micro-batch. */
static uint64_t ranks_stream(const ranks_rank *me, int32_t iter, int32_t micro, int64_t i) {
    const hp_program *p = me->job->p;
    const int64_t joined = me->job->joined_replicas > 1 ? me->job->joined_replicas : 1;
    const int64_t each = p->micro_batch / joined, replica = me->replica * joined + i / each;
    return (uint64_t)iter * 1000003u +
           (uint64_t)(me->job->first_sample + (replica * p->micro + micro) * each + i % each);
}

static float ranks_pixel(const ranks_rank *me, uint64_t stream, int y, int x, int c) {
    const hp_graph *g = me->job->g;
    const uint64_t at =
        ((uint64_t)y * (uint64_t)g->image_w + (uint64_t)x) * (uint64_t)g->image_c + (uint64_t)c;
    const int32_t ids = hp_graph_ids(g);
    if (ids) return (float)hp_rng_below(me->job->seed, stream, at, (uint64_t)ids);
    return (float)(2 * hp_rng_uniform(me->job->seed, stream, at) - 1);
}

/* Label of a sample, or of a pixel if the network has a map of logits: then one in eight is ignored. */
static int32_t ranks_label(const ranks_rank *me, uint64_t stream, int y, int x) {
    const hp_graph *g = me->job->g;
    const hp_tensor *logits = &g->tensor[g->layer[g->n_layer - 1].out];
    const uint64_t at = UINT64_MAX - 2 * ((uint64_t)y * (uint64_t)logits->w + (uint64_t)x);
    const bool map = logits->h * logits->w > 1;
    if (map && hp_rng_below(me->job->seed, stream, at - 1, 8) == 0) return 255;
    return (int32_t)hp_rng_below(me->job->seed, stream, at, (uint64_t)g->classes);
}

/* Images of deployed networks are bytes, ids are numbers; where real numbers are wanted, (x /
 * 255 - 1/2) / (1/2). */
static uint8_t ranks_byte(const ranks_rank *me, uint64_t stream, int y, int x, int c) {
    return (uint8_t)(127.99f * (1 + ranks_pixel(me, stream, y, x, c)));
}

static void ranks_load_bytes(const ranks_rank *me, int32_t iter, int32_t micro, const hp_box *b,
                             hp_dtype dtype, void *to) {
    int64_t at = 0;
    for (int i = b->lo[HP_AXIS_N]; i < b->hi[HP_AXIS_N]; i++) {
        const uint64_t stream = ranks_stream(me, iter, micro, i);
        for (int y = b->lo[HP_AXIS_H]; y < b->hi[HP_AXIS_H]; y++)
            for (int x = b->lo[HP_AXIS_W]; x < b->hi[HP_AXIS_W]; x++)
                for (int c = b->lo[HP_AXIS_C]; c < b->hi[HP_AXIS_C]; c++, at++) {
                    const uint8_t byte = ranks_byte(me, stream, y, x, c);
                    if (dtype == HP_U8)
                        ((uint8_t *)to)[at] = byte;
                    else
                        ranks_put(dtype, to, at, ((float)byte / 255.0f - 0.5f) / 0.5f);
                }
    }
}

static void ranks_load_pixels(const ranks_rank *me, int32_t iter, int32_t micro, hp_dtype dtype,
                              const hp_box *b, void *to) {
    int64_t at = 0;
    for (int i = b->lo[HP_AXIS_N]; i < b->hi[HP_AXIS_N]; i++) {
        const uint64_t stream = ranks_stream(me, iter, micro, i);
        for (int y = b->lo[HP_AXIS_H]; y < b->hi[HP_AXIS_H]; y++)
            for (int x = b->lo[HP_AXIS_W]; x < b->hi[HP_AXIS_W]; x++)
                for (int c = b->lo[HP_AXIS_C]; c < b->hi[HP_AXIS_C]; c++)
                    ranks_put(dtype, to, at++, ranks_pixel(me, stream, y, x, c));
    }
}

static void ranks_load_labels(const ranks_rank *me, int32_t iter, int32_t micro, const hp_box *b,
                              int32_t *to) {
    for (int i = b->lo[HP_AXIS_N]; i < b->hi[HP_AXIS_N]; i++)
        for (int y = b->lo[HP_AXIS_H]; y < b->hi[HP_AXIS_H]; y++)
            for (int x = b->lo[HP_AXIS_W]; x < b->hi[HP_AXIS_W]; x++)
                *to++ = ranks_label(me, ranks_stream(me, iter, micro, i), y, x);
}

static hp_status ranks_load(void *self, int32_t iter, int32_t micro, void *x, hp_dtype x_dtype,
                            const hp_box *x_box, void *labels, const hp_box *label_box, hp_error *err) {
    const ranks_rank *me = self;
    (void)err;
    const bool bytes = me->job->g->deployed || me->job->bytes;
    if (x && bytes && !hp_graph_ids(me->job->g))
        ranks_load_bytes(self, iter, micro, x_box, x_dtype, x);
    else if (x)
        ranks_load_pixels(self, iter, micro, x_dtype, x_box, x);
    if (labels) ranks_load_labels(self, iter, micro, label_box, labels);
    return HP_OK;
}

/* --- results --- */

static double ranks_output_at(hp_dtype dtype, const void *from, int64_t i) {
    return dtype == HP_F64 ? ((const double *)from)[i] : (double)((const float *)from)[i];
}

static hp_status ranks_store(void *self, int32_t iter, int32_t micro, const void *data, const hp_box *b,
                             hp_dtype dtype, hp_error *err) {
    const ranks_rank *me = self;
    const hp_graph *g = me->job->g;
    const hp_program *p = me->job->p;
    const hp_tensor *y = &g->tensor[g->layer[g->n_layer - 1].out];
    (void)iter, (void)err;
    int64_t at = 0;
    for (int i = b->lo[HP_AXIS_N]; i < b->hi[HP_AXIS_N]; i++) {
        const int64_t sample = ((int64_t)me->replica * p->micro + micro) * p->micro_batch + i;
        for (int h = b->lo[HP_AXIS_H]; h < b->hi[HP_AXIS_H]; h++)
            for (int w = b->lo[HP_AXIS_W]; w < b->hi[HP_AXIS_W]; w++)
                for (int c = b->lo[HP_AXIS_C]; c < b->hi[HP_AXIS_C]; c++)
                    me->job->output[((sample * y->h + h) * y->w + w) * y->c + c] =
                        ranks_output_at(dtype, data, at++);
    }
    return HP_OK;
}

/* --- a rank --- */

static int ranks_role(const ranks_rank *me) {
    return (int)(me->role - me->job->p->role);
}

/* The rank's weights, with copies of its arrays; joined: also other ranks' parts, if it
 * keeps only its own. */
static hp_weights ranks_weights_of(const ranks_rank *me, bool joined) {
    const hp_buffer *weights = &me->role->buffer[HP_BUF_WEIGHTS], *state = &me->role->buffer[HP_BUF_STATE];
    const hp_memory *m = &me->memory;
    hp_weights w = {.graph = me->job->g,
                    .role = me->role,
                    .dtype = me->job->p->dtype,
                    .mode = me->job->p->mode,
                    .replica = me->replica,
                    .weights = malloc((size_t)me->role->trained_elems * 8 + 1),
                    .state = malloc((size_t)state->bytes + 1)};
    HP_ASSERT(w.weights && w.state);
    unsigned char *kept = malloc((size_t)weights->bytes + 1);
    HP_ASSERT(kept && m->ops->get(m, kept, me->arena + weights->offset, weights->bytes, NULL) == HP_OK);
    if (joined && hp_keeps_parts(me->job->p, HP_BUF_WEIGHTS))
        HP_ASSERT(hp_parts_join(me->comm, me->job->p, ranks_role(me), me->replica, kept, w.weights, 600,
                                NULL) == HP_OK);
    else
        memcpy(w.weights, kept, (size_t)weights->bytes);
    free(kept);
    HP_ASSERT(m->ops->get(m, w.state, me->arena + state->offset, state->bytes, NULL) == HP_OK);
    return w;
}

static void ranks_weights_put(const ranks_rank *me, hp_weights *w) {
    const hp_buffer *weights = &me->role->buffer[HP_BUF_WEIGHTS], *state = &me->role->buffer[HP_BUF_STATE];
    const hp_memory *m = &me->memory;
    unsigned char *kept = w->weights;
    if (hp_keeps_parts(me->job->p, HP_BUF_WEIGHTS)) {
        kept = malloc((size_t)weights->bytes + 1);
        HP_ASSERT(kept);
        hp_parts_split(me->job->p, ranks_role(me), me->replica, w->weights, kept);
    }
    HP_ASSERT(m->ops->put(m, me->arena + weights->offset, kept, weights->bytes, NULL) == HP_OK);
    if (kept != w->weights) free(kept);
    HP_ASSERT(m->ops->put(m, me->arena + state->offset, w->state, state->bytes, NULL) == HP_OK);
    free(w->weights);
    free(w->state);
}

static void ranks_fill(ranks_rank *me) {
    const hp_buffer *momentum = &me->role->buffer[HP_BUF_OPTIMIZER];
    const hp_memory *m = &me->memory;
    const int64_t bytes = me->role->arena_bytes;
    unsigned char *other = malloc((size_t)bytes + 1);
    HP_ASSERT(other);
    HP_ASSERT(hp_memory_open(me->job->ops->memory, NULL, &me->memory, NULL) == HP_OK);
    HP_ASSERT(m->ops->alloc(m, bytes, (void **)&me->arena, NULL) == HP_OK);
    memset(other, 0x7f, (size_t)bytes); /* nothing may depend on earlier contents */
    HP_ASSERT(m->ops->put(m, me->arena, other, bytes, NULL) == HP_OK);
    HP_ASSERT(m->ops->zero(m, me->arena + momentum->offset, momentum->bytes, NULL) == HP_OK);
    free(other);
    if (me->job->g->deployed) return;
    hp_weights w = ranks_weights_of(me, false);
    hp_weights_init(&w, me->job->seed);
    if (me->job->start) ranks_param_fill(&w, me->job->start);
    ranks_weights_put(me, &w);
}

static void ranks_hold(const ranks_rank *me) {
    if (!me->job->g->deployed) me->job->held[me->rank] = ranks_weights_of(me, true);
}

static hp_status ranks_constants(ranks_rank *me, hp_error *err) {
    const ranks_job *job = me->job;
    const hp_constants_options o = {.graph = job->g, .path = job->constants, .seed = job->seed};
    if (!job->g->deployed) return HP_OK;
    HP_TRY(hp_constants_open(&o, &me->constants, err));
    for (int t = 0; t < job->g->n_tensor; t++)
        if (hp_tensor_wants_qparam(job->g, t)) hp_constants_set_qparam(me->constants, t, job->qparam[t]);
    return HP_OK;
}

static hp_status ranks_open(ranks_rank *me, hp_error *err) {
    ranks_job *job = me->job;
    HP_TRY(ranks_constants(me, err));
    const hp_device_config config = {.program = job->p,
                                     .replica = me->replica,
                                     .graph = job->g,
                                     .role = me->role,
                                     .arena = me->arena,
                                     .threads = 1,
                                     .constants = me->constants,
                                     .memory = &me->memory};
    HP_TRY(me->comm->ops->join(me->comm, job->p, err));
    HP_TRY(job->ops->open(&config, &me->device, err));
    HP_TRY(hp_watch_open(NULL, me->rank, job->world->size, &me->watch, err));
    if (!job->ring_dir) return HP_OK;
    char path[512];
    snprintf(path, sizeof path, "%s/rank-%d.ring", job->ring_dir, me->rank);
    return hp_ring_create(path, me->rank, me->role->stage, (int64_t)me->role->n_task * job->steps, 8,
                          &me->ring, err);
}

/* --- checkpoint and resume --- */

static hp_status ranks_checkpoint_open(const ranks_rank *me, hp_checkpoint **c, hp_error *err) {
    static const volatile sig_atomic_t NO_SIGNAL;
    const ranks_job *job = me->job;
    bool speaker = true;
    if (!job->checkpoint) return HP_OK;
    const hp_checkpoint_config config = {.dir = job->checkpoint,
                                         .resume = job->resume,
                                         .every_steps = job->steps,
                                         .keep = 1,
                                         .comm = me->comm,
                                         .memory = &me->memory,
                                         .arena = me->arena,
                                         .program = job->p,
                                         .graph = job->g,
                                         .role = ranks_role(me),
                                         .replica = me->replica,
                                         .run = {.net = "random",
                                                 .model = "",
                                                 .seed = "",
                                                 .dtype = job->p->dtype == HP_F64 ? "F64" : "F32",
                                                 .data_hash = "",
                                                 .data = "",
                                                 .layout = job->layout,
                                                 .strategy = "",
                                                 .ranks = job->world->size,
                                                 .local = job->p->local},
                                         .stop = &NO_SIGNAL,
                                         .leave = &NO_SIGNAL};
    HP_TRY(hp_checkpoint_open(&config, c, &speaker, err));
    return hp_checkpoint_load(*c, &speaker, err);
}

static hp_status ranks_checkpoint_visit(const ranks_rank *me, hp_checkpoint *c, const hp_interp *in, int done,
                                        hp_error *err) {
    bool leave;
    const hp_checkpoint_now now = {
        .done = done, .last = done == me->job->steps, .asked = hp_interp_metric(in)[HP_METRIC_ASKED]};
    return hp_checkpoint_visit(c, &now, &leave, err);
}

static hp_status ranks_step(ranks_rank *me, hp_interp *in, int iter, hp_error *err) {
    ranks_job *job = me->job;
    const hp_step step = {.step = iter,
                          .replica = me->replica,
                          .seed = job->seed,
                          .dropout = true,
                          .lr = job->lr - iter * job->lr_falls,
                          .momentum = job->momentum,
                          .weight_decay = job->weight_decay,
                          .beta1 = 0.9,
                          .beta2 = 0.999,
                          .eps = 1e-6, /* well above the rounding error of a zero gradient */
                          .clip_norm = RANKS_CLIP_NORM,
                          .updates = iter,
                          .loss_scale = job->loss_scale};
    HP_TRY(hp_interp_step(in, &step, iter, 600, err));
    if (me->rank == 0 && job->loss)
        job->loss[iter] = hp_interp_metric(in)[HP_METRIC_LOSS] / hp_interp_metric(in)[HP_METRIC_COUNTED];
    return HP_OK;
}

static hp_status ranks_steps(ranks_rank *me, hp_error *err) {
    const hp_interp_config config = {.program = me->job->p,
                                     .graph = me->job->g,
                                     .role = me->role,
                                     .replica = me->replica,
                                     .memory = &me->memory,
                                     .arena = me->arena,
                                     .ops = me->job->ops,
                                     .device = me->device,
                                     .load = ranks_load,
                                     .loader = me,
                                     .store = me->job->output ? ranks_store : NULL,
                                     .sink = me,
                                     .comm = me->comm,
                                     .clock = &me->clock,
                                     .ring = me->ring,
                                     .watch = me->watch,
                                     .yield = true,
                                     .n_steps = me->job->steps};
    hp_interp *in = NULL;
    hp_checkpoint *c = NULL;
    hp_status s = hp_interp_new(&config, &in, err);
    if (s == HP_OK) s = ranks_checkpoint_open(me, &c, err);
    const int first = hp_checkpoint_resumed(c) ? (int)hp_checkpoint_resumed(c)->step : 0;
    for (int i = first; i < me->job->steps && s == HP_OK; i++) {
        s = ranks_step(me, in, i, err);
        if (s == HP_OK) s = ranks_checkpoint_visit(me, c, in, i + 1, err);
    }
    hp_checkpoint_close(c);
    if (s == HP_OK && me->job->steps > 0) HP_ASSERT(hp_interp_peak_bytes(in) == me->role->arena_bytes);
    hp_interp_free(in);
    return s;
}

static void ranks_close(ranks_rank *me) {
    if (me->device) me->job->ops->close(me->device);
    hp_constants_close(me->constants);
    if (me->watch) hp_watch_close(me->watch);
    if (me->ring) hp_ring_close(me->ring);
    me->comm->ops->close(me->comm);
    me->memory.ops->free(&me->memory, me->arena, me->role->arena_bytes);
    hp_memory_close(&me->memory);
}

static void *ranks_main(void *arg) {
    ranks_rank *me = arg;
    hp_error err = {HP_OK, ""};
    ranks_fill(me);
    me->comm = hp_comm_own(thread_comm_new(me->job->world, me->rank));
    if (me->job->comm) me->comm = me->job->comm(me->comm, &me->memory);
    hp_status s = ranks_open(me, &err);
    if (s == HP_OK) s = ranks_steps(me, &err);
    if (s == HP_OK) ranks_hold(me);
    if (s != HP_OK && thread_world_fail(me->job->world)) {
        me->job->status = s;
        me->job->err = err;
    }
    ranks_close(me);
    return NULL;
}

/* --- all ranks --- */

static void ranks_run_threads(ranks_job *job, int n) {
    ranks_rank *rank = calloc((size_t)n, sizeof *rank);
    HP_ASSERT(rank);
    for (int i = 0; i < n; i++) {
        rank[i] = (ranks_rank){
            .job = job, .rank = i, .replica = i / job->p->n_role, .role = &job->p->role[i % job->p->n_role]};
        HP_ASSERT(pthread_create(&rank[i].thread, NULL, ranks_main, &rank[i]) == 0);
    }
    for (int i = 0; i < n; i++) pthread_join(rank[i].thread, NULL);
    free(rank);
}

hp_status run_ranks(ranks_job *job) {
    const int n = hp_program_ranks(job->p);
    job->world = thread_world_new(n);
    job->held = calloc((size_t)n, sizeof *job->held);
    HP_ASSERT(job->held);
    job->status = HP_OK;
    ranks_run_threads(job, n);
    if (job->status == HP_OK && !job->g->deployed && job->weights)
        job->status = ranks_param_whole(job->p, job->g, job->held, job->weights, &job->err);
    for (int i = 0; i < n; i++) {
        free(job->held[i].weights);
        free(job->held[i].state);
    }
    free(job->held);
    thread_world_free(job->world);
    return job->status;
}
