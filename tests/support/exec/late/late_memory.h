/* late_memory.h - memory of a device that works asynchronously: the host cannot access it, copies are work of
 * its streams, work can be captured, and some ranks can reach each other's. */
#ifndef HP_TESTS_LATE_MEMORY_H
#define HP_TESTS_LATE_MEMORY_H

#include "tests/support/exec/late/late_streams.h"

#include <stdatomic.h>
#include <sys/mman.h>

extern _Atomic int64_t late_relaunched; /* number of captured tasks launched */
;

extern uint64_t late_seed; /* set before the ranks start */
;
void *late_real(const void *at);
hp_status late_query(const hp_memory *m, hp_event *e, bool *yes, hp_error *err);

extern atomic_int late_straight, late_by_host, late_opened; /* number of copies and openings so far */
;

/* Captures work; that fails if it waits for work outside the capture. */
void late_capture_part(const hp_order *order, void (*work)(void *), void *self);

extern const hp_stream_ops LATE_STREAMS;

extern const hp_memory_ops LATE_MEMORY;

#endif
