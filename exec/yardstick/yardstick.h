/* yardstick.h - times fixed kernels (traces/yardsticks.def), so that everything measured on this machine
 * comes with its speed at that moment. */
#ifndef HP_YARDSTICK_H
#define HP_YARDSTICK_H

#include "exec/yardstick/yardstick_kernel.h"
#include "traces/trace_ring.h"

typedef struct hp_yardsticks hp_yardsticks;

enum { HP_YARD_KERNELS = HP_YARD_DRAM + 1 }; /* yardsticks that a rank runs alone: arith, l2, dram */

/* Allocates the buffers and runs every kernel once. Collective: no. Never fails: if the caches are unknown,
 * the smallest common ones are assumed. */
hp_yardsticks *hp_yardsticks_open(void);
void hp_yardsticks_close(hp_yardsticks *y); /* NULL is fine */

/* Processor time that `kernel` takes now, in seconds. Wall time: about 100 us, plus its preparation. */
double hp_yardsticks_time_s(hp_yardsticks *y, hp_yardstick kernel);

/* Work of one sample, and its unit ("flops", "bytes"). */
double hp_yardsticks_work(const hp_yardsticks *y, hp_yardstick kernel, const char **unit);

/* Size of the buffers in bytes: HP_YARDSTICK_BYTES where lines can be flushed
 * (exec/yardstick/flush.h), more elsewhere. */
int64_t hp_yardsticks_bytes(const hp_yardsticks *y);

/* The buffer of the dram kernel, for messages between its samples. */
void *hp_yardsticks_scratch(hp_yardsticks *y, int64_t *bytes);

#endif
