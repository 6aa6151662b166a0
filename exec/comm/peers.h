/* peers.h - which ranks of the node can read each other's memory: exchange of handles, mapping, trial. */
#ifndef HP_EXEC_PEERS_H
#define HP_EXEC_PEERS_H

#include "exec/comm/comm.h"

/* Sets peer[rank] to that rank's memory as mapped here, where both ranks can read each other's, else to NULL.
 * `bytes` at `arena` are this rank's; no operation may be pending there; their contents are the same
 * afterwards. Collective: over all ranks. Errors: those of the calls it passes on; HP_ESTALL, a trial copy did
 * not complete. */
hp_status hp_peers_open(hp_comm *comm, const hp_memory *memory, unsigned char *arena, int64_t bytes,
                        unsigned char **peer, hp_error *err);

#endif
