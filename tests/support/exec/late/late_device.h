/* late_device.h - a device that works asynchronously, simulated by threads on top of any other device. What
 * holds here holds for the executor's side of every device with streams. */
#ifndef HP_TESTS_LATE_DEVICE_H
#define HP_TESTS_LATE_DEVICE_H

#include "tests/support/exec/late/late_memory.h"

extern _Atomic int64_t late_given; /* tasks by themselves */
;

/* A device that runs `inner`'s tasks asynchronously. Only one per process at a time. */
hp_device_ops late_device(const hp_device_ops *inner, uint64_t seed);

#endif
