/* lanes.h - the order of the messages that are a device's work: which of them move together, and which after
 * which.
 *
 * A rank's NCCL messages share one stream of the device, its NCCL all-reduces another. A stream is serial,
 * and what was given to it as one group starts together and holds the stream until every peer is there. So
 * two ranks that give two groups in different orders wait for each other forever, though no dependency says
 * so. Here the program says so: messages go in *lanes*. The members of a lane on one rank have the same
 * dependencies, hence may start at the same moment and go as one group; all of them depend on all of the
 * stream's lane before. Lanes come from one order of the tasks of all ranks together, in which both ends of a
 * message, and all calls of a collective, are one point: whoever comes first in it never waits for who comes
 * later. An all-reduce is a lane of its own, as kernels of several communicators in one group could start in
 * different orders on different ranks. Replicas run the same lists, so one replica's order holds for all.
 *
 * NCCL matches messages of a pair by their order alone: a lane's are of one channel, so they have one queue
 * on each end.
 *
 * MPI beside it needs no epochs: its data goes through page-locked memory, so that the host starts and polls
 * it without waiting for a stream, its copies run on a stream that waits for none of NCCL's, and NCCL's
 * kernels wait for other ranks' NCCL alone. So hosts must never wait within a call for another rank:
 * communicators are connected before the first step, not by their first messages. MPI that reads a device's
 * memory itself is not supported; it would need epochs, as its own copies may queue behind a kernel that
 * waits for a rank inside MPI. */
#ifndef HP_LANES_H
#define HP_LANES_H

#include "plan/program/program.h"

/* Streams of a device that carry messages. */
typedef enum hp_lane_stream { HP_LANE_MESSAGES, HP_LANE_SUMS, HP_LANE_STREAMS } hp_lane_stream;

/* The stream of a queue's tasks; -1: none. */
static inline int hp_lane_stream_of(const hp_queue *q) {
    if (q->kind == HP_QUEUE_COMPUTE || q->backend != HP_BACKEND_NCCL) return -1;
    return q->kind == HP_QUEUE_COLL ? HP_LANE_SUMS : HP_LANE_MESSAGES;
}

bool hp_has_lanes(const hp_program *p);

/* Orders a lowered program's NCCL tasks into lanes and renumbers tasks; programs without stay as
 * they are. Errors: HP_EPLAN when its ranks wait for each other already (hp_check_waits). Cost: linear in
 * tasks and dependencies, plus the members of each lane times those of the lane before. */
hp_status hp_lanes(hp_arena *arena, hp_program *p, const hp_graph *g, hp_error *err);

#endif
