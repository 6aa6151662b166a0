/* trace_lanes.h - assigns spans to lanes without overlap, as timeline viewers require. */
#ifndef HP_TRACE_LANES_H
#define HP_TRACE_LANES_H

#include "traces/query.h"

/* Lane of each span within (rank, queue kind), from 0: the lowest lane that is free when the span starts.
 * Sends to several peers may overlap; compute tasks never do and stay on lane 0. */
int32_t *hp_trace_lanes(hp_arena *arena, const hp_trace *t);

int hp_trace_span_queue(const hp_trace *t,
                        const hp_trace_span *s); /* hp_queue_kind; evaluation tasks: compute */

extern const char *const hp_queue_names[]; /* by hp_queue_kind: "compute", "send", "recv", "collective" */

#endif
