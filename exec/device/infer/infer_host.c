/* infer_host.c - a deployed graph on a processor; see infer_host.h. */
#include "exec/device/infer/infer_host.h"
#include "exec/device/metric.h"
#include "exec/device/device_move.h"
#include "networks/deploy/deploy.h"

#include <math.h>
#include <stdlib.h>

struct hp_device {
    hp_device_config config;
    hp_infer infer;
    hp_bound *bound;         /* per task */
    hp_infer_kernel *kernel; /* per task; set for forward tasks */
};

/* --- the loss: scores the network if the classes are known --- */

static double logit(const hp_device *d, const hp_bound *b, int64_t i) {
    return d->config.program->dtype == HP_F64 ? ((const double *)b->x[0])[i]
                                              : (double)((const float *)b->x[0])[i];
}

static void score_row(const hp_device *d, const hp_bound *b, int64_t row) {
    const int classes = b->map.in_c[0], label = b->step.labels[row];
    const int64_t first = row * classes;
    int top = 0;
    double sum = 0;
    if (!hp_metric_counts(label, classes)) return;
    for (int c = 1; c < classes; c++)
        if (logit(d, b, first + c) > logit(d, b, first + top)) top = c;
    const double most = logit(d, b, first + top);
    for (int c = 0; c < classes; c++) sum += exp(logit(d, b, first + c) - most);
    hp_metric_add(b->step.metric, log(sum) + most - logit(d, b, first + label), label, top);
}

/* --- tasks --- */

static hp_status run_forward(hp_device *d, int task, hp_error *err) {
    const hp_infer_kernel *k = &d->kernel[task];
    return k->run(k->self, &d->bound[task], err);
}

static hp_status run_copy(hp_device *d, int task, hp_error *err) {
    (void)err;
    hp_move_copy(&d->bound[task], NULL);
    return HP_OK;
}

static hp_status run_zero(hp_device *d, int task, hp_error *err) {
    (void)err;
    hp_move_zero(&d->bound[task]);
    return HP_OK;
}

static hp_status run_loss(hp_device *d, int task, hp_error *err) {
    (void)err;
    for (int64_t row = 0; row < d->bound[task].count; row++) score_row(d, &d->bound[task], row);
    return HP_OK;
}

typedef hp_status run_fn(hp_device *d, int task, hp_error *err);
static run_fn *const runs[HP_TASK_OPS] = {
    [HP_TASK_FWD] = run_forward,
    [HP_TASK_COPY] = run_copy,
    [HP_TASK_ZERO] = run_zero,
    [HP_TASK_LOSS] = run_loss,
};

hp_status hp_infer_host_run(hp_device *d, int task, const hp_step *step, hp_error *err) {
    (void)step;
    return runs[d->config.role->task[task].op](d, task, err);
}

void hp_infer_host_close(hp_device *d) {
    hp_arena_free(d->infer.arena);
    free(d);
}

/* --- layers other than matrix products --- */

static hp_status run_loop(void *self, const hp_bound *b, hp_error *err) {
    (void)err;
    const hp_infer_task *p = self;
    if (b->out_elems > 0) p->loop(&p->op, b);
    return HP_OK;
}

static bool any_f64(const hp_bound *b) {
    bool any = b->stored.y == HP_F64;
    for (int k = 0; k < b->n_in; k++) any |= b->x[k] && b->stored.x[k] == HP_F64;
    return any;
}

/* The first task of the layer fills in the constants. */
static hp_status set_factors(hp_infer *in, const hp_bound *b, hp_infer_op *o, hp_error *err) {
    const int64_t n = hp_infer_factor_count(b);
    if (n == 0) return HP_OK;
    if (!in->packed[b->layer_id]) HP_TRY(hp_infer_factors(in, b, b->pack.forward, err));
    in->packed[b->layer_id] = true;
    o->factor = b->pack.forward;
    o->bias = o->factor + n / 2;
    return HP_OK;
}

static hp_status prepare_loop(const hp_infer_host *host, hp_infer *in, const hp_bound *b, hp_infer_kernel *k,
                              hp_error *err) {
    const hp_infer_loops *loops = any_f64(b) ? host->wide : host->loops;
    hp_infer_task *p = HP_NEW(in->arena, hp_infer_task, 1);
    HP_TRY(hp_infer_op_of(in, b, &p->op, err));
    HP_TRY(set_factors(in, b, &p->op, err));
    p->loop = loops->run[b->layer->op];
    *k = (hp_infer_kernel){run_loop, p,
                           hp_arena_printf(in->arena, "own %s %s %s", hp_layer_infos[b->layer->op].name,
                                           hp_dtype_names[b->stored.y], loops->isa)};
    return HP_OK;
}

/* --- layers that run as trained --- */

static hp_status prepare_trained(const hp_infer_host *host, hp_infer *in, const hp_bound *b,
                                 hp_infer_kernel *k, hp_error *err) {
    const hp_layer *l = b->layer;
    const hp_dtype real = (hp_dtype)in->config->program->dtype;
    for (int i = 0; i < l->n_param && !in->packed[b->layer_id]; i++)
        HP_TRY(hp_constants_param(in->config->constants, l->param[i], real, b->param[i], err));
    in->packed[b->layer_id] = true;
    return host->trained(in, b, k, err);
}

/* --- opening --- */

static bool is_matrix(const hp_layer *l) {
    return l->op == HP_CONV || l->op == HP_CONVT || l->op == HP_LINEAR;
}

hp_status hp_infer_prepare(const hp_infer_host *host, hp_infer *in, const hp_bound *b, hp_infer_kernel *k,
                           hp_error *err) {
    if (is_matrix(b->layer)) return host->matrix(in, b, k, err);
    if (hp_layer_as_trained(b->layer)) return prepare_trained(host, in, b, k, err);
    if (host->loops->run[b->layer->op]) return prepare_loop(host, in, b, k, err);
    return hp_fail(err, HP_EUNAVAIL, "layer %s: this device runs no %s in inference", b->layer->name,
                   hp_layer_infos[b->layer->op].name);
}

static hp_status prepare_all(hp_device *d, const hp_infer_host *host, hp_error *err) {
    const hp_role *r = d->config.role;
    for (int t = 0; t < r->n_task; t++) {
        const int op = r->task[t].op;
        if (hp_task_infos[op].queue != HP_QUEUE_COMPUTE || hp_task_of_executor((int)op)) continue;
        if (!runs[op])
            return hp_fail(err, HP_EDATA, "task %d (%s) does not belong in inference", t,
                           hp_task_infos[op].name);
        d->bound[t] = hp_bind(&d->config, t);
        if (op == HP_TASK_FWD) HP_TRY(hp_infer_prepare(host, &d->infer, &d->bound[t], &d->kernel[t], err));
    }
    return HP_OK;
}

static hp_device *device_new(const hp_device_config *config) {
    hp_device *d = calloc(1, sizeof *d);
    HP_ASSERT(d != NULL);
    d->config = *config;
    d->infer = (hp_infer){.config = &d->config, .arena = hp_arena_new()};
    d->infer.packed = HP_NEW(d->infer.arena, bool, config->graph->n_layer);
    d->bound = HP_NEW(d->infer.arena, hp_bound, config->role->n_task);
    d->kernel = HP_NEW(d->infer.arena, hp_infer_kernel, config->role->n_task);
    return d;
}

hp_status hp_infer_host_open(const hp_infer_host *host, const hp_device_config *config, hp_device **device,
                             hp_error *err) {
    hp_device *d = device_new(config);
    const hp_status status = prepare_all(d, host, err);
    if (status == HP_OK)
        *device = d;
    else
        hp_infer_host_close(d);
    return status;
}
