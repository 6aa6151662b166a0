/* run_room.h - checks that a node has memory for the arenas of all its ranks. Runs before shared memory is
 * reserved, because a rank that takes the last page is killed without a message. */
#ifndef HP_RUN_ROOM_H
#define HP_RUN_ROOM_H

#include "exec/comm/comm.h"

/* What a rank wants, and what it sees. */
typedef struct hp_room {
    uint64_t node;
    int64_t need_bytes;
    int64_t free_bytes; /* on its node, before any rank has taken something */
} hp_room;

/* Do the ranks of all[rank]'s node together fit in what the poorest of them sees? Errors: HP_EPLAN. */
hp_status hp_room_fits(const hp_room *all, int n, int rank, hp_error *err);

/* Collective: over all ranks. Errors: HP_EPLAN, HP_EUNAVAIL (the system does not say what is free). */
hp_status hp_room_check(hp_comm *comm, int64_t bytes, hp_error *err);

#endif
