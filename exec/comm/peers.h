/* peers.h - which ranks of the node can read each other's memory: exchange of handles, mapping, trial. */
#ifndef HP_PEERS_H
#define HP_PEERS_H

#include "exec/comm/comm.h"
#include "exec/comm/notes.h"

/* A rank of this node, as seen from another. */
typedef struct hp_peer {
    unsigned char *memory; /* its memory as mapped here; NULL: messages go another way */
    hp_note_slot *inbox;   /* its inbox as mapped here */
    hp_note_queue in, out; /* notes from it and to it */
} hp_peer;

typedef struct hp_peers {
    int n;               /* ranks of the world */
    hp_peer *peer;       /* by rank */
    hp_note_slot *inbox; /* this rank's: a queue from every rank */
} hp_peers;

/* Sets peer[rank] where that rank and this one can read each other's memory and leave notes in each other's inbox.
 * `bytes` at `arena` are this rank's memory; no operation may be pending there; their contents are the same
 * afterwards. The caller closes *peers in every case. Collective: over all ranks. Errors: those of the calls it passes
 * on; HP_ESTALL, a trial copy did not complete. */
hp_status hp_peers_open(hp_comm *comm, const hp_memory *memory, unsigned char *arena, int64_t bytes,
                        hp_peers *peers, hp_error *err);
/* Before any rank frees its arena. */
void hp_peers_close(hp_peers *peers, const hp_memory *memory);

#endif
