/* cuda_ranges.c - registers a name per task, so that a range costs no text. */
#include "exec/cuda/runtime/cuda_ranges.h"
#include "plan/program/print.h"

#include <nvtx3/nvToolsExt.h>

struct hp_cuda_ranges {
    nvtxDomainHandle_t domain;
    nvtxEventAttributes_t *task; /* of the role, by number */
};

/* 0 is NVTX's default category. */
static uint32_t category_of(const hp_task *t) {
    return (uint32_t)hp_task_infos[t->op].phase + 1;
}

static nvtxEventAttributes_t name_task(const hp_device_config *c, nvtxDomainHandle_t domain, int task) {
    char label[256];
    nvtxEventAttributes_t a = {.version = NVTX_VERSION,
                               .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                               .category = category_of(&c->role->task[task]),
                               .messageType = NVTX_MESSAGE_TYPE_REGISTERED};
    hp_task_label(c->program, c->graph, c->role, task, label, sizeof label);
    a.message.registered = nvtxDomainRegisterStringA(domain, label);
    return a;
}

hp_cuda_ranges *hp_cuda_ranges_open(hp_arena *arena, const hp_device_config *config) {
    const nvtxDomainHandle_t domain = nvtxDomainCreateA("hplan");
    if (!domain) return NULL;
    hp_cuda_ranges *r = HP_NEW(arena, hp_cuda_ranges, 1);
    r->domain = domain;
    for (uint32_t i = 0; i < HP_PHASES; i++) nvtxDomainNameCategoryA(domain, i + 1, hp_phase_names[i]);
    r->task = HP_NEW(arena, nvtxEventAttributes_t, config->role->n_task);
    for (int i = 0; i < config->role->n_task; i++) r->task[i] = name_task(config, domain, i);
    return r;
}

void hp_cuda_ranges_close(hp_cuda_ranges *r) {
    if (r) nvtxDomainDestroy(r->domain);
}

void hp_cuda_range_begin(const hp_cuda_ranges *r, int task) {
    if (r) nvtxDomainRangePushEx(r->domain, &r->task[task]);
}

void hp_cuda_range_end(const hp_cuda_ranges *r) {
    if (r) nvtxDomainRangePop(r->domain);
}
