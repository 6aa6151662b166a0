/* facts.c - a GPU's figures for planning: clocks times widths, as in data sheets. */
#include "exec/cuda/facts.h"

#include "exec/cuda/runtime/cuda.h"

/* float32 multiply-adds per cycle and multiprocessor (CUDA C++ Programming Guide, "Arithmetic Instructions");
 * the first row at or below the capability applies. */
static const struct {
    int major, minor, lanes;
} LANES[] = {{9, 0, 128}, {8, 6, 128}, {8, 0, 64}, {7, 0, 64}, {6, 1, 128}, {6, 0, 64}};

static int lanes_of(const hp_gpu_facts *f) {
    for (size_t i = 0; i < sizeof LANES / sizeof *LANES; i++)
        if (f->major > LANES[i].major || (f->major == LANES[i].major && f->minor >= LANES[i].minor))
            return LANES[i].lanes;
    return 0;
}

/* 0: the driver does not tell. */
static double attribute(enum cudaDeviceAttr which, int gpu) {
    int value = 0;
    if (cudaDeviceGetAttribute(&value, which, gpu) == cudaSuccess) return value;
    cudaGetLastError();
    return 0;
}

static hp_status ask(const hp_cuda *c, hp_gpu_facts *f, hp_error *err) {
    *f = (hp_gpu_facts){.major = c->properties.major,
                        .minor = c->properties.minor,
                        .processors = c->properties.multiProcessorCount,
                        .memory_bytes = (int64_t)c->properties.totalGlobalMem};
    snprintf(f->name, sizeof f->name, "%.127s", c->properties.name);
    HP_CUDA(cudaGetDeviceCount(&f->count));
    /* kHz; memory transfers on both clock edges; widths in bits */
    const double core_hz = 1e3 * attribute(cudaDevAttrClockRate, c->id),
                 memory_hz = 1e3 * attribute(cudaDevAttrMemoryClockRate, c->id);
    f->flops_per_s = 2.0 * lanes_of(f) * f->processors * core_hz;
    f->bytes_per_s = 2 * memory_hz * attribute(cudaDevAttrGlobalMemoryBusWidth, c->id) / 8;
    return HP_OK;
}

hp_status hp_cuda_facts(hp_gpu_facts *f, hp_error *err) {
    hp_cuda *c = NULL;
    HP_TRY(hp_cuda_open(NULL, &c, err));
    const hp_status s = ask(c, f, err);
    hp_cuda_close(c);
    return s;
}
