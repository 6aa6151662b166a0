/* nvtx.c - one domain, its categories and its open ranges. */
#include "tests/standin/nvtx3/nvToolsExt.h"

#include <stdlib.h>
#include <string.h>

enum { CATEGORIES = 32 };

struct nvtx_standin_domain {
    char name[32];
    char category[CATEGORIES][32];
};

static struct {
    nvtx_listener *listener;
    int calls, depth;
} state;

void nvtx_standin_attach(nvtx_listener *f) {
    state.listener = f;
}

int nvtx_standin_calls(void) {
    return state.calls;
}

int nvtx_standin_depth(void) {
    return state.depth;
}

nvtxDomainHandle_t nvtxDomainCreateA(const char *name) {
    if (!state.listener) return NULL;
    nvtxDomainHandle_t d = calloc(1, sizeof *d);
    strncpy(d->name, name, sizeof d->name - 1);
    return d;
}

void nvtxDomainDestroy(nvtxDomainHandle_t domain) {
    state.calls++;
    free(domain);
}

void nvtxDomainNameCategoryA(nvtxDomainHandle_t domain, uint32_t category, const char *name) {
    state.calls++;
    if (category < CATEGORIES) strncpy(domain->category[category], name, sizeof domain->category[0] - 1);
}

nvtxStringHandle_t nvtxDomainRegisterStringA(nvtxDomainHandle_t domain, const char *text) {
    (void)domain;
    state.calls++;
    return strdup(text);
}

int nvtxDomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a) {
    state.calls++;
    state.depth++;
    if (a->version == NVTX_VERSION && a->size == sizeof *a && a->messageType == NVTX_MESSAGE_TYPE_REGISTERED)
        state.listener(domain->name, domain->category[a->category % CATEGORIES], a->message.registered,
                       state.depth);
    return state.depth - 1;
}

int nvtxDomainRangePop(nvtxDomainHandle_t domain) {
    (void)domain;
    state.calls++;
    return --state.depth;
}
