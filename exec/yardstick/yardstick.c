/* yardstick.c - buffers, instruction set and timing of the kernels; see yardstick.h. */
#include "exec/yardstick/yardstick.h"
#include "base/alloc.h"

#include "exec/device/kernels/kernels.h"
#include "exec/yardstick/flush.h"
#include "machines/here.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const hp_yard_kernel *const kernels[HP_YARD_KERNELS] = {
    [HP_YARD_ARITH] = &hp_yard_arith, [HP_YARD_L2] = &hp_yard_l2, [HP_YARD_DRAM] = &hp_yard_dram};

const hp_yard_loops *hp_yard_loops_pick(void) {
    static const hp_yard_loops *const ALL[] = {&hp_yard_loops_avx512, &hp_yard_loops_avx2};
    const char *isa = hp_kernels_pick()->f32->isa;
    for (size_t i = 0; i < sizeof ALL / sizeof *ALL; i++)
        if (strcmp(ALL[i]->isa, isa) == 0) return ALL[i];
    return &hp_yard_loops_base;
}

/* Slices to rotate through where lines cannot be flushed: 64 MiB. A process cannot keep that much in its
 * share of the last-level cache over 128 samples and the steps in between. */
enum { SLICES = HP_FLUSH_WORKS ? 1 : 128, PAGE = 4096 };

/* Half of the cache that this core sees; if unknown, of the smallest among current processors. */
static int64_t near_bytes(void) {
    static const int64_t SMALL_L2 = 256 << 10;
    hp_here here;
    int64_t l2 = SMALL_L2, bytes = HP_YARDSTICK_NEAR_BYTES;
    if (hp_here_read(&hp_here_system, &here, NULL) == HP_OK && here.l2_bytes > 0) l2 = here.l2_bytes;
    while (bytes > l2 / 2 && bytes > PAGE) bytes /= 2;
    return bytes;
}

struct hp_yardsticks {
    hp_yard_buffers buffers;
};

/* Writes to the memory, so that the pages are the process's own. */
static unsigned char *allocate(int64_t bytes) {
    unsigned char *p = aligned_alloc(PAGE, (size_t)bytes);
    HP_ASSERT(p);
    memset(p, 1, (size_t)bytes);
    return p;
}

hp_yardsticks *hp_yardsticks_open(void) {
    hp_yardsticks *y = hp_zeroed(1, sizeof *y);
    hp_yard_buffers *b = &y->buffers;
    b->loops = hp_yard_loops_pick();
    b->near_bytes = near_bytes();
    b->far_bytes = (int64_t)SLICES * HP_YARDSTICK_FAR_BYTES;
    b->near = allocate(HP_YARDSTICK_NEAR_BYTES);
    b->far = allocate(b->far_bytes);
    for (int k = 0; k < HP_YARD_KERNELS; k++) hp_yardsticks_time_s(y, (hp_yardstick)k);
    return y;
}

void hp_yardsticks_close(hp_yardsticks *y) {
    if (!y) return;
    free(y->buffers.near);
    free(y->buffers.far);
    free(y);
}

static int64_t thread_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

double hp_yardsticks_time_s(hp_yardsticks *y, hp_yardstick kernel) {
    const hp_yard_kernel *k = kernels[kernel];
    int64_t sum_ns = 0;
    for (int p = 0; p < k->passes; p++) {
        if (k->prepare) k->prepare(&y->buffers);
        const int64_t t0 = thread_ns();
        k->run(&y->buffers);
        sum_ns += thread_ns() - t0;
    }
    return 1e-9 * (double)sum_ns;
}

double hp_yardsticks_work(const hp_yardsticks *y, hp_yardstick kernel, const char **unit) {
    if (unit) *unit = kernels[kernel]->unit;
    return kernels[kernel]->work(&y->buffers);
}

int64_t hp_yardsticks_bytes(const hp_yardsticks *y) {
    return HP_YARDSTICK_NEAR_BYTES + y->buffers.far_bytes;
}

void *hp_yardsticks_scratch(hp_yardsticks *y, int64_t *bytes) {
    *bytes = HP_YARDSTICK_FAR_BYTES;
    return y->buffers.far;
}
