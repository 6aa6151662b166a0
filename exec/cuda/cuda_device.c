/* cuda_device.c - a GPU as a device: prepares one launch per task and enqueues them. */
#include "exec/cuda/runtime/cuda_runtime_device.h"
#include "exec/cuda/runtime/cuda_ranges.h"
#include "exec/cuda/dnn/dnn.h"
#include "exec/cuda/dnn/lt.h"

#include <stdlib.h>
#include <string.h>

/* --- opening --- */

typedef struct tables {
    hp_cuda_prepare_fn *const *task;
    hp_cuda_prepare_fn *const *layer[HP_TASK_OPS]; /* by the layer's operator */
} tables;

static const tables training = {.task = hp_cuda_tasks,
                                .layer = {[HP_TASK_FWD] = hp_cuda_forward,
                                          [HP_TASK_BWD] = hp_cuda_backward,
                                          [HP_TASK_BWDW] = hp_cuda_backward_weights,
                                          [HP_TASK_STATS] = hp_cuda_stats,
                                          [HP_TASK_BSTATS] = hp_cuda_backward_stats}};
static const tables inference = {.task = hp_cuda_infer_tasks, .layer = {[HP_TASK_FWD] = hp_cuda_infer}};

static bool is_mine(const hp_task *t) {
    return hp_task_infos[t->op].queue == HP_QUEUE_COMPUTE && !hp_task_of_executor(t->op);
}

static hp_status prepare(hp_device *d, const tables *of, int task, hp_error *err) {
    hp_bound *b = &d->bound[task];
    *b = hp_bind(&d->config, task);
    const int op = b->task->op;
    hp_cuda_prepare_fn *fn = of->layer[op] && b->layer ? of->layer[op][b->layer->op] : of->task[op];
    if (!fn)
        return hp_fail(err, HP_EUNAVAIL, "the cuda device has no kernel for %s of %s", hp_task_infos[op].name,
                       b->layer ? b->layer->name : "this program");
    return fn(d, b, &d->launch[task], err);
}

static hp_status prepare_all(hp_device *d, const tables *of, hp_error *err) {
    const hp_role *r = d->config.role;
    for (int t = 0; t < r->n_task; t++)
        if (is_mine(&r->task[t])) HP_TRY(prepare(d, of, t, err));
    return hp_cuda_checked(cudaDeviceSynchronize(), "cudaDeviceSynchronize", err);
}

static hp_status open_step(hp_device *d, hp_error *err) {
    HP_CUDA(cudaMalloc((void **)&d->step, sizeof *d->step));
    HP_CUDA(cudaHostAlloc((void **)&d->host_step, sizeof *d->host_step, cudaHostAllocPortable));
    *d->host_step = (hp_cuda_step){.step = -1}; /* belongs to no step */
    return HP_OK;
}

static void cuda_close(hp_device *d) {
    cudaDeviceSynchronize();
    hp_dnn_close(d->dnn);
    hp_lt_close(d->lt);
    for (int l = 0; l < d->config.graph->n_layer; l++) cudaFree(d->angles[l]);
    cudaFree(d->step);
    cudaFreeHost(d->host_step);
    hp_cuda_ranges_close(d->ranges);
    hp_arena_free(d->arena);
    free(d);
}

static hp_status open_tables(const hp_device_config *config, const tables *of, hp_device **device,
                             hp_error *err) {
    hp_device *d = calloc(1, sizeof *d);
    HP_ASSERT(d);
    d->config = *config;
    d->arena = hp_arena_new();
    d->bound = HP_NEW(d->arena, hp_bound, config->role->n_task);
    d->launch = HP_NEW(d->arena, hp_cuda_launch, config->role->n_task);
    d->packed = HP_NEW(d->arena, bool, config->graph->n_layer);
    d->angles = HP_NEW(d->arena, float *, config->graph->n_layer);
    d->cuda = hp_cuda_of(config->memory);
    hp_status s = hp_dnn_open(d->cuda, &d->dnn, err);
    if (s == HP_OK) s = hp_lt_open(d->cuda, &d->lt, err);
    if (s == HP_OK) s = open_step(d, err);
    if (s == HP_OK) s = prepare_all(d, of, err);
    d->ranges = hp_cuda_ranges_open(d->arena, &d->config);
    if (s == HP_OK)
        *device = d;
    else
        cuda_close(d);
    return s;
}

static hp_status open_training(const hp_device_config *config, hp_device **device, hp_error *err) {
    return open_tables(config, &training, device, err);
}

static hp_status open_inference(const hp_device_config *config, hp_device **device, hp_error *err) {
    return open_tables(config, &inference, device, err);
}

/* --- running --- */

/* The previous step is over when this one begins (exec/interp/exec_interp.h), so the page-locked copy is free
 * again. It holds what the GPU was given last. */
static hp_status cuda_begin(hp_device *d, const hp_step *step, hp_error *err) {
    const hp_cuda_step s = {.step = step->step,
                            .replica = step->replica,
                            .dropout = step->dropout,
                            .seed = step->seed,
                            .loss_scale = hp_step_loss_scale(step),
                            .clip_norm = step->clip_norm,
                            .rates = hp_step_rates(step)};
    if (memcmp(&s, d->host_step, sizeof s) == 0) return HP_OK;
    *d->host_step = s;
    HP_CUDA(cudaMemcpyAsync(d->step, d->host_step, sizeof s, cudaMemcpyHostToDevice, d->cuda->compute));
    return HP_OK;
}

static hp_status cuda_enqueue(hp_device *d, int task, const hp_order *order, hp_error *err) {
    const hp_cuda_launch *l = &d->launch[task];
    HP_TRY(hp_cuda_wait(d->cuda->compute, order, err));
    hp_cuda_range_begin(d->ranges, task);
    const hp_status s = l->run(d, &d->bound[task], l->self, err);
    hp_cuda_range_end(d->ranges);
    HP_TRY(s);
    return hp_cuda_record(d->cuda, d->cuda->compute, order, err);
}

static hp_status cuda_run(hp_device *d, int task, const hp_step *step, hp_error *err) {
    HP_TRY(cuda_begin(d, step, err));
    HP_TRY(cuda_enqueue(d, task, NULL, err));
    return hp_cuda_checked(cudaStreamSynchronize(d->cuda->compute), "cudaStreamSynchronize", err);
}

static char *export_choices(const hp_device *d) {
    return hp_dnn_choices_export(d->dnn);
}

/* Existing launches keep their plans; only the engines inside change. */
static hp_status import_choices(hp_device *d, const char *text, hp_error *err) {
    return hp_dnn_choices_import(d->dnn, text, err);
}

static const hp_tuning_ops tuning = {export_choices, import_choices};

const hp_device_ops hp_device_cuda = {.name = "cuda",
                                      .dtype = HP_F32,
                                      .open = open_training,
                                      .run = cuda_run,
                                      .close = cuda_close,
                                      .memory = &hp_memory_cuda,
                                      .begin = cuda_begin,
                                      .enqueue = cuda_enqueue,
                                      .tuning = &tuning};
const hp_device_ops hp_device_cuda_infer = {.name = "cuda",
                                            .dtype = HP_F32,
                                            .open = open_inference,
                                            .run = cuda_run,
                                            .close = cuda_close,
                                            .memory = &hp_memory_cuda,
                                            .begin = cuda_begin,
                                            .enqueue = cuda_enqueue,
                                            .tuning = &tuning};
