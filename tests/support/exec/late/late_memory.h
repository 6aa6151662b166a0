/* late_memory.h - memory of a device whose work is done later: the host cannot reach it, copies are work of
 * its streams, work can be captured, and some ranks reach each other's. */
#ifndef HP_TESTS_LATE_MEMORY_H
#define HP_TESTS_LATE_MEMORY_H

#include "tests/support/exec/late/late_streams.h"

#include <stdatomic.h>
#include <sys/mman.h>

extern _Atomic int64_t late_relaunched; /* captured tasks, each time they are given */
;

extern uint64_t late_seed; /* set before the ranks start */
;
void *late_real(const void *at);
hp_status late_query(const hp_memory *m, hp_event *e, bool *yes, hp_error *err);

extern atomic_int late_straight, late_by_host, late_opened; /* copies and openings so far */
;

/* Work that waits for what is not captured cannot be. */
void late_capture_part(const hp_order *order, void (*work)(void *), void *self);

extern const hp_stream_ops LATE_STREAMS;

extern const hp_memory_ops LATE_MEMORY;

#endif
