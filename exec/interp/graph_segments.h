/* graph_segments.h - which compute tasks of a role can be launched on a device by one call.
 *
 * A segment is a longest run of tasks of the compute queue, in its order, of which only the first waits for
 * what is not of that queue: a message, a collective. Once that one may start, so may all, one after the
 * other. Loads and stores are the host's work as well and have segments of their own. */
#ifndef HP_GRAPH_SEGMENTS_H
#define HP_GRAPH_SEGMENTS_H

#include "plan/program/program.h"

/* Per task: how many the segment has that begins with it; 0: it is not a segment's first, or of another
 * queue. Cost: linear in tasks and dependencies. */
void hp_graph_segments(const hp_role *r, int32_t *length /* r->n_task */);

#endif
