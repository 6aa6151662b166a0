/* nvToolsExt.h - what exec/cuda/runtime/cuda_ranges.c needs of NVTX, and a profiler for tests that listens.
 * As with the real one there is no domain while nobody is attached. */
#ifndef HP_TESTS_NVTOOLSEXT_H
#define HP_TESTS_NVTOOLSEXT_H

#include <stdint.h>

typedef struct nvtx_standin_domain *nvtxDomainHandle_t;
typedef const char *nvtxStringHandle_t;
typedef union nvtxMessageValue_t {
    const char *ascii;
    nvtxStringHandle_t registered;
} nvtxMessageValue_t;
typedef struct nvtxEventAttributes_t {
    uint16_t version, size;
    uint32_t category;
    int32_t messageType;
    nvtxMessageValue_t message;
} nvtxEventAttributes_t;
enum { NVTX_VERSION = 3, NVTX_MESSAGE_TYPE_REGISTERED = 3 };
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE ((uint16_t)sizeof(nvtxEventAttributes_t))

nvtxDomainHandle_t nvtxDomainCreateA(const char *name);
void nvtxDomainDestroy(nvtxDomainHandle_t domain);
void nvtxDomainNameCategoryA(nvtxDomainHandle_t domain, uint32_t category, const char *name);
nvtxStringHandle_t nvtxDomainRegisterStringA(nvtxDomainHandle_t domain, const char *text);
int nvtxDomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes);
int nvtxDomainRangePop(nvtxDomainHandle_t domain);

/* --- the listener --- */

/* Called for each range that begins; the depth is that with it. */
typedef void nvtx_listener(const char *domain, const char *category, const char *name, int depth);
/* Attaches before a device is opened. */
void nvtx_standin_attach(nvtx_listener *f);
int nvtx_standin_calls(void); /* of all functions above but nvtxDomainCreateA */
int nvtx_standin_depth(void); /* ranges that have not ended */

#endif
