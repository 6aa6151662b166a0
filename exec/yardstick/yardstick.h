/* yardstick.h - times fixed kernels (traces/yardsticks.def), so that the speed of this machine at this moment is known
 * beside everything that is measured on it. */
#ifndef HP_YARDSTICK_H
#define HP_YARDSTICK_H

#include "exec/yardstick/yardstick_kernel.h"
#include "traces/trace_ring.h"

typedef struct hp_yardsticks hp_yardsticks;

enum { HP_YARD_KERNELS = HP_YARD_DRAM + 1 }; /* yardsticks of one rank alone: arith, l2, dram */

/* Allocates the buffers and runs every kernel once. Collective: no. Never fails: without knowledge of the caches the
 * smallest common ones are assumed. */
hp_yardsticks *hp_yardsticks_open(void);
void hp_yardsticks_close(hp_yardsticks *y); /* NULL is fine */

/* Seconds of processor time that `kernel` takes now. Wall time: about 100 us, plus what its preparation takes. */
double hp_yardsticks_time_s(hp_yardsticks *y, hp_yardstick kernel);

/* What one sample is: its work, and the unit ("flops", "bytes"). */
double hp_yardsticks_work(const hp_yardsticks *y, hp_yardstick kernel, const char **unit);

/* Memory of the buffers: HP_YARDSTICK_BYTES where lines can be flushed (exec/yardstick/flush.h), more elsewhere. */
int64_t hp_yardsticks_bytes(const hp_yardsticks *y);

/* The buffer of the dram kernel, for messages between its samples. */
void *hp_yardsticks_scratch(hp_yardsticks *y, int64_t *bytes);

#endif
