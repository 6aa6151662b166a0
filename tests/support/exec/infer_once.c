/* infer_once.c - runs a deployed network on one device, one rank, one image at a time. */
#include "tests/support/exec/infer_once.h"

hp_status infer_once_open_as(infer_once *r, const hp_graph *graph, const hp_deploy_options *deploy,
                             const char *device, const char *weights, hp_error *err) {
    enum { LINE = 64 };
    hp_strategy s = hp_strategy_default();
    s.prec = deploy->prec;
    const hp_device_info *info = NULL;
    HP_TRY(hp_device_find(device, &info, err));
    *r = (infer_once){.memory = hp_arena_new(), .ops = hp_device_built_in(info, true)};
    const hp_lower_options o = {.mode = HP_MODE_INFER, .dtype = r->ops->dtype, .batch = 1, .place = true};
    HP_TRY(hp_graph_deploy(r->memory, graph, deploy, &r->g, err));
    HP_TRY(hp_lower(r->memory, r->g, &s, &o, &r->program, err));
    const hp_constants_options c = {.graph = r->g, .path = weights};
    HP_TRY(hp_constants_open(&c, &r->constants, err));
    const hp_role *role = &r->program->role[0];
    const size_t bytes = ((size_t)role->arena_bytes + LINE) / LINE * LINE;
    r->arena = aligned_alloc(LINE, bytes);
    HP_ASSERT(r->arena);
    memset(r->arena, 0x7f, bytes); /* nothing may depend on earlier contents */
    const hp_device_config config = {.program = r->program,
                                     .graph = r->g,
                                     .role = role,
                                     .arena = r->arena,
                                     .threads = 1,
                                     .constants = r->constants};
    return r->ops->open(&config, &r->device, err);
}

hp_status infer_once_open(infer_once *r, const hp_graph *graph, const char *device, const char *weights,
                          hp_error *err) {
    const hp_deploy_options deploy = {.prec = HP_PREC_FP32};
    return infer_once_open_as(r, graph, &deploy, device, weights, err);
}

static void infer_once_move(const infer_once *r, const hp_buffer *b, double *value, bool out) {
    void *at = r->arena + b->offset;
    const int64_t n = hp_box_elems(&b->box);
    for (int64_t i = 0; i < n; i++) {
        double *wide = (double *)at + i;
        float *narrow = (float *)at + i;
        if (b->dtype == HP_F64 && out) value[i] = *wide;
        if (b->dtype == HP_F64 && !out) *wide = value[i];
        if (b->dtype != HP_F64 && out) value[i] = (double)*narrow;
        if (b->dtype != HP_F64 && !out) *narrow = (float)value[i];
    }
}

hp_status infer_once_run(infer_once *r, double *image, double *out, hp_error *err) {
    const hp_role *role = &r->program->role[0];
    for (int t = 0; t < role->n_task; t++) {
        const hp_task *task = &role->task[t];
        const hp_buffer *first = &role->buffer[role->operand[task->operand]];
        if (hp_task_infos[task->op].queue != HP_QUEUE_COMPUTE) continue;
        if (task->op == HP_TASK_LOAD)
            infer_once_move(r, first, image, false);
        else if (task->op == HP_TASK_STORE)
            infer_once_move(r, first, out, true);
        else
            HP_TRY(r->ops->run(r->device, t, &(hp_step){0}, err));
    }
    return HP_OK;
}

void infer_once_close(infer_once *r) {
    if (r->device) r->ops->close(r->device);
    hp_constants_close(r->constants);
    free(r->arena);
    hp_arena_free(r->memory);
}
