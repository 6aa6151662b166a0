/* timeline.h - memory in use over simulated time: the lifetimes of buffers, mapped to the spans of their
 * tasks. */
#ifndef HP_TIMELINE_H
#define HP_TIMELINE_H

#include "plan/program/program.h"
#include "traces/trace_ring.h"

/* Samples of HP_COUNTER_MEMORY (bytes) of one rank, one per instant of change, sorted by time, from the spans
 * of all tasks of its role. Returns their number; the array lives in `arena`. */
int64_t hp_sim_memory_timeline(hp_arena *arena, const hp_role *r, const hp_span *span, int64_t n_span,
                               hp_sample **out);

#endif
