/* device.c - the processor running a deployed graph: float32 or quantised with the fast kernels, or
 * float64 and the same quantised arithmetic from its definition (ref). Every kernel and constant is prepared
 * at open.
 */
#include "exec/device/infer/infer.h"
#include "exec/device/metric.h"
#include "exec/device/move.h"

#include <math.h>
#include <stdlib.h>

struct hp_device {
    hp_device_config config;
    hp_infer infer;
    hp_bound *bound;         /* per task */
    hp_infer_kernel *kernel; /* per task; of forward tasks */
};

/* --- the loss: of classes that are known, to score the network --- */

static double logit(const hp_device *d, const hp_bound *b, int64_t i) {
    return d->config.program->dtype == HP_F64 ? ((const double *)b->x[0])[i]
                                              : (double)((const float *)b->x[0])[i];
}

static void score_row(const hp_device *d, const hp_bound *b, int64_t row) {
    const int classes = b->in_c[0], label = b->labels[row];
    const int64_t first = row * classes;
    int top = 0;
    double sum = 0;
    if (!hp_metric_counts(label, classes)) return;
    for (int c = 1; c < classes; c++)
        if (logit(d, b, first + c) > logit(d, b, first + top)) top = c;
    const double most = logit(d, b, first + top);
    for (int c = 0; c < classes; c++) sum += exp(logit(d, b, first + c) - most);
    hp_metric_add(b->metric, log(sum) + most - logit(d, b, first + label), label, top);
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

static hp_status infer_run(hp_device *d, int task, const hp_step *step, hp_error *err) {
    (void)step;
    return runs[d->config.role->task[task].op](d, task, err);
}

static void infer_close(hp_device *d) {
    if (d->infer.library) hp_onednn_close(d->infer.library);
    hp_arena_free(d->infer.arena);
    free(d);
}

/* --- opening --- */

static hp_status prepare(hp_device *d, hp_infer_prepare_fn *const *table, int task, hp_error *err) {
    hp_bound *b = &d->bound[task];
    *b = hp_bind(&d->config, task);
    if (b->task->op != HP_TASK_FWD) return HP_OK;
    hp_infer_prepare_fn *fn = table[b->layer->op];
    if (!fn)
        return hp_fail(err, HP_EUNAVAIL, "layer %s: this device runs no %s in inference", b->layer->name,
                       hp_layer_infos[b->layer->op].name);
    return fn(&d->infer, b, &d->kernel[task], err);
}

static hp_status prepare_all(hp_device *d, hp_infer_prepare_fn *const *table, hp_error *err) {
    const hp_role *r = d->config.role;
    for (int t = 0; t < r->n_task; t++) {
        const int op = r->task[t].op;
        if (hp_task_infos[op].queue != HP_QUEUE_COMPUTE || op == HP_TASK_LOAD || op == HP_TASK_STORE)
            continue;
        if (!runs[op])
            return hp_fail(err, HP_EDATA, "task %d (%s) does not belong in inference", t,
                           hp_task_infos[op].name);
        HP_TRY(prepare(d, table, t, err));
    }
    return HP_OK;
}

static hp_device *device_new(const hp_device_config *config) {
    hp_device *d = calloc(1, sizeof *d);
    HP_ASSERT(d != NULL);
    d->config = *config;
    d->infer = (hp_infer){.config = &d->config, .constants = config->constants, .arena = hp_arena_new()};
    d->infer.packed = HP_NEW(d->infer.arena, bool, config->graph->n_layer);
    d->bound = HP_NEW(d->infer.arena, hp_bound, config->role->n_task);
    d->kernel = HP_NEW(d->infer.arena, hp_infer_kernel, config->role->n_task);
    return d;
}

static hp_status finish_open(hp_device *d, hp_status status, hp_device **device) {
    if (status == HP_OK)
        *device = d;
    else
        infer_close(d);
    return status;
}

static hp_status open_cpu(const hp_device_config *config, hp_device **device, hp_error *err) {
    hp_device *d = device_new(config);
    d->infer.kernels = hp_kernels_pick();
    hp_status status = hp_onednn_open(config->threads > 0 ? config->threads : 1, &d->infer.library, err);
    if (status == HP_OK) status = prepare_all(d, hp_infer_cpu, err);
    return finish_open(d, status, device);
}

static hp_status open_ref(const hp_device_config *config, hp_device **device, hp_error *err) {
    hp_device *d = device_new(config);
    return finish_open(d, prepare_all(d, hp_infer_ref, err), device);
}

const hp_device_ops hp_device_infer_cpu = {"onednn",    HP_F32,          open_cpu, infer_run,
                                           infer_close, &hp_memory_host, NULL};
const hp_device_ops hp_device_infer_ref = {"ref",       HP_F64,          open_ref, infer_run,
                                           infer_close, &hp_memory_host, NULL};
