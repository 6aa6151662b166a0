/* peers.h - which ranks of the node can read each other's memory: named, opened, and tried. */
#ifndef HP_EXEC_PEERS_H
#define HP_EXEC_PEERS_H

#include "exec/comm/comm.h"

/* peer[rank]: that rank's memory as it is reached from here, where it is reached both ways, else NULL. The
 * `bytes` at `arena` are this rank's; nothing is under way there, and what they hold they hold again at the
 * end. Collective: over all ranks. Errors: those of the calls it passes on; HP_ESTALL, a trial has no end. */
hp_status hp_peers_meet(hp_comm *comm, const hp_memory *memory, unsigned char *arena, int64_t bytes,
                        unsigned char **peer, hp_error *err);

#endif
