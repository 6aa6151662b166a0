/* run_calibrate.c - calibrates on a small float run of the network; see run_calibrate.h. */
#include "exec/run/run_calibrate.h"

#include "exec/base/streams.h"
#include "exec/device/device.h"
#include "exec/run/observe.h"
#include "base/rng.h"
#include "networks/deploy/deploy.h"
#include "networks/graph/graph_json.h"
#include "networks/graph/graph_resize.h"
#include "plan/lower/lower.h"

#include <stdlib.h>
#include <string.h>

enum { SIDE = 256, IMAGES = 2, STRIDES = 64 /* common to all layers, or a divisor */ };

typedef struct small_run {
    hp_arena *memory;
    hp_graph *g;
    hp_program *program;
    hp_constants *constants;
    const hp_device_ops *ops;
    hp_device *device;
    hp_observer *observer;
    hp_comm *comm;
    unsigned char *arena;
    uint64_t seed;
} small_run;

/* --- the float program --- */

/* Builds the network in float at that size. */
static hp_status build_program(small_run *r, const hp_plan *plan, int h, int w, hp_error *err) {
    hp_plan p = *plan;
    p.strategy.prec = HP_PREC_FP32;
    p.float_layers = NULL;
    p.image_h = h;
    p.image_w = w;
    if (plan->model && (h != plan->image_h || w != plan->image_w)) {
        hp_graph *read = NULL;
        HP_TRY(hp_graph_from_json(r->memory, plan->model, &read, err));
        HP_TRY(hp_graph_resize(r->memory, read, h, w, &read, err));
        p.model = hp_graph_json(r->memory, read);
    }
    return hp_plan_graph(r->memory, &p, &r->g, err);
}

/* At most SIDE. An imported model keeps its size's remainder modulo whole strides, so that maps of different
 * depth still match. */
static int small_side(const hp_plan *plan, int side) {
    if (side <= SIDE) return side;
    return plan->model ? side - (side - SIDE + STRIDES - 1) / STRIDES * STRIDES : SIDE;
}

/* Refuses networks for which calibration would take more than seconds. */
static hp_status check_work(const small_run *r, const hp_plan *plan, hp_error *err) {
    static const double MOST_MACS = 5e11;
    double macs = 0;
    for (int l = 0; l < r->g->n_layer; l++) macs += (double)hp_layer_macs(r->g, l);
    if (macs <= MOST_MACS) return HP_OK;
    return hp_fail(err, HP_EDATA,
                   "int8 needs the scales of every tensor, and %s works at %d x %d only, too large to "
                   "calibrate at the start: run hplan quantize and give its file with --init",
                   plan->net, r->g->image_h, r->g->image_w);
}

/* A network may need a larger image than the small size. */
static hp_status open_graph(small_run *r, const hp_plan *plan, hp_error *err) {
    const int h = small_side(plan, plan->image_h), w = small_side(plan, plan->image_w);
    hp_error ignored;
    if (build_program(r, plan, h, w, &ignored) == HP_OK) return HP_OK;
    HP_TRY(build_program(r, plan, plan->image_h, plan->image_w, err));
    return check_work(r, plan, err);
}

/* The host's device for any plan: a few small images. */
static const hp_device_info *device_of(const hp_plan *plan) {
    return plan->device->plugin ? &hp_devices[HP_DEVICE_CPU] : plan->device;
}

static hp_status open_program(small_run *r, const hp_plan *plan, hp_constants *c, hp_error *err) {
    const hp_strategy s = hp_strategy_default();
    const hp_lower_options o = {.mode = HP_MODE_INFER,
                                .dtype = (hp_dtype)plan->dtype,
                                .batch = 1,
                                .device = device_of(plan),
                                .place = true};
    HP_TRY(open_graph(r, plan, err));
    HP_TRY(hp_lower(r->memory, r->g, &s, &o, &r->program, err));
    HP_TRY(hp_constants_open_as(c, r->g, &r->constants, err));
    HP_TRY(hp_observer_new(r->g, plan->graph, &r->observer, err));
    return hp_comm_self_open(&r->comm, err);
}

static hp_status open_device(small_run *r, const hp_plan *plan, hp_error *err) {
    enum { LINE = 64 };
    const hp_role *role = &r->program->role[0];
    r->ops = hp_device_built_in(device_of(plan), true);
    HP_ASSERT(r->ops);
    r->arena = aligned_alloc(LINE, ((size_t)role->arena_bytes + LINE) / LINE * LINE);
    if (!r->arena)
        return hp_fail(err, HP_EPLAN, "no memory to calibrate %s: give scales with --init", plan->net);
    const hp_device_config config = {.program = r->program,
                                     .graph = r->g,
                                     .role = role,
                                     .arena = r->arena,
                                     .threads = 1,
                                     .constants = r->constants};
    HP_TRY(r->ops->open(&config, &r->device, err));
    hp_constants_release(r->constants);
    return HP_OK;
}

/* --- running it --- */

/* Random ids, or bytes, normalised like those of an image. */
static void fill_image(const small_run *r, int image, const hp_buffer *x) {
    float scale[4], zero[4];
    hp_constants_pixels(r->constants, scale, zero);
    const int64_t n = hp_box_elems(&x->box);
    const int c = r->g->image_c;
    const int32_t ids = hp_graph_ids(r->g);
    const uint64_t stream = HP_STREAM_PIXELS | (uint64_t)image;
    void *data = r->arena + x->offset;
    hp_rng4 words = {0};
    for (int64_t i = 0; i < n; i++) {
        if (i % 16 == 0) words = hp_philox(r->seed, stream, (uint64_t)i / 16);
        const int k = (int)(i % c) % 4;
        const float v = ids ? (float)hp_rng_below(r->seed, stream, (uint64_t)i, (uint64_t)ids)
                            : scale[k] * ((float)((const uint8_t *)words.v)[i % 16] - zero[k]);
        if (x->dtype == HP_F64)
            ((double *)data)[i] = (double)v;
        else
            ((float *)data)[i] = v;
    }
}

/* A single rank has one compute queue, and its order of tasks satisfies the dependencies. */
static hp_status run_image(small_run *r, int image, hp_error *err) {
    const hp_role *role = &r->program->role[0];
    for (int t = 0; t < role->n_task; t++) {
        const hp_task *task = &role->task[t];
        const bool scores = task->op == HP_TASK_LOSS || task->op == HP_TASK_STORE;
        if (hp_task_infos[task->op].queue != HP_QUEUE_COMPUTE || scores) continue;
        if (task->op == HP_TASK_LOAD)
            fill_image(r, image, &role->buffer[role->operand[task->operand]]);
        else
            HP_TRY(r->ops->run(r->device, t, &(hp_step){0}, err));
        hp_observe_task(r->observer, role, t, r->arena, NULL);
    }
    return HP_OK;
}

static hp_status run_images(small_run *r, const hp_plan *plan, hp_constants *c, hp_error *err) {
    HP_TRY(open_program(r, plan, c, err));
    HP_TRY(open_device(r, plan, err));
    for (int i = 0; i < IMAGES; i++) HP_TRY(run_image(r, i, err));
    HP_TRY(hp_observer_next(r->observer, r->comm, err));
    hp_observer_quantise(r->observer, &(hp_clip_options){.kind = HP_OBSERVE_MINMAX}, c);
    return HP_OK;
}

hp_status hp_calibrate_small(const hp_plan *plan, hp_constants *c, hp_error *err) {
    small_run r = {.memory = hp_arena_new(), .seed = plan->seed};
    const hp_status s = run_images(&r, plan, c, err);
    if (r.device) r.ops->close(r.device);
    if (r.comm) r.comm->ops->close(r.comm);
    free(r.arena);
    hp_observer_free(r.observer);
    hp_constants_close(r.constants);
    hp_arena_free(r.memory);
    return s;
}

hp_status hp_qparams_broadcast(hp_constants *c, hp_comm *comm, hp_error *err) {
    const hp_graph *g = hp_constants_graph(c);
    double *value = calloc((size_t)g->n_tensor * 2, sizeof *value);
    HP_ASSERT(value);
    for (int t = 0; comm->rank == 0 && t < g->n_tensor; t++) {
        if (!hp_tensor_wants_qparam(g, t)) continue;
        const hp_qparam q = hp_constants_qparam(c, t);
        value[2 * t] = (double)q.scale;
        value[2 * t + 1] = q.zero;
    }
    const hp_comm_op op = {.kind = HP_COMM_COLLECTIVE,
                           .group = HP_COMM_WORLD,
                           .dtype = HP_F64,
                           .count = 2 * (int64_t)g->n_tensor,
                           .data = value};
    const hp_status s = hp_comm_run(comm, &op, 120, "rank 0's calibration", err);
    for (int t = 0; s == HP_OK && t < g->n_tensor; t++)
        if (hp_tensor_wants_qparam(g, t))
            hp_constants_set_qparam(c, t, (hp_qparam){(float)value[2 * t], (int32_t)value[2 * t + 1]});
    free(value);
    return s;
}
