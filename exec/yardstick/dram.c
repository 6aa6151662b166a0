/* dram.c - the yardstick of memory: reads 512 KiB twice, after flushing it out of all caches; or reads the
 * next slice of a buffer larger than the caches. 30 to 100 us at 32 to 10 GB/s. */
#include "exec/yardstick/flush.h"
#include "exec/yardstick/yardstick_kernel.h"

enum { PASSES = 2 };

static void prepare(hp_yard_buffers *b) {
    b->slice = (b->slice + HP_YARDSTICK_FAR_BYTES) % b->far_bytes;
    const char *from = (const char *)b->far + b->slice;
    if (!HP_FLUSH_WORKS) return;
    for (int64_t i = 0; i < HP_YARDSTICK_FAR_BYTES; i += HP_FLUSH_LINE) hp_flush_line(from + i);
    hp_flush_end();
}

static void run(hp_yard_buffers *b) {
    b->kept = b->kept + b->loops->read(b->far + b->slice, HP_YARDSTICK_FAR_BYTES);
}

static double work(const hp_yard_buffers *b) {
    (void)b;
    return (double)PASSES * HP_YARDSTICK_FAR_BYTES;
}

const hp_yard_kernel hp_yard_dram = {
    .unit = "bytes", .passes = PASSES, .prepare = prepare, .run = run, .work = work};
