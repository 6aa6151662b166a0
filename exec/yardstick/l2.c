/* l2.c - the yardstick of the second-level cache: reads 4 MiB from a buffer that fits into half of
 * it. One untimed reading first brings back the buffer, which a step may have evicted. 40 to 120 us
 * at 100 to 35 GB/s. */
#include "exec/yardstick/yardstick_kernel.h"

enum { BYTES = 4 << 20 };

static int64_t times(const hp_yard_buffers *b) {
    return BYTES / b->near_bytes;
}

static void prepare(hp_yard_buffers *b) {
    b->kept = b->kept + b->loops->read(b->near, b->near_bytes);
}

static void run(hp_yard_buffers *b) {
    for (int64_t i = times(b); i > 0; i--) b->kept = b->kept + b->loops->read(b->near, b->near_bytes);
}

static double work(const hp_yard_buffers *b) {
    return (double)(times(b) * b->near_bytes);
}

const hp_yard_kernel hp_yard_l2 = {
    .unit = "bytes", .passes = 1, .prepare = prepare, .run = run, .work = work};
