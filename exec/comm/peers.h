/* peers.h - which ranks of the node can read each other's memory: exchange of handles, mapping, trial. */
#ifndef HP_PEERS_H
#define HP_PEERS_H

#include "exec/comm/comm.h"
#include "exec/comm/notes.h"

/* A rank of this node, as another rank sees it. */
typedef struct hp_peer {
    unsigned char *memory; /* its memory as mapped here; NULL: messages take another route */
    hp_note_slot *inbox;   /* its inbox as mapped here */
    hp_note_queue in, out; /* notes from it and to it */
} hp_peer;

typedef struct hp_peers {
    int n;               /* number of ranks in the world */
    hp_peer *peer;       /* by rank */
    hp_note_slot *inbox; /* this rank's inbox: a queue from every rank */
} hp_peers;

/* Fills in peer[rank] for each rank where the pair can read each other's memory and write to each other's
 * inbox. `bytes` at `arena` are this rank's memory: no operation may be pending there, and its contents are
 * preserved. The caller closes *peers in every case. Collective: over all ranks. Errors: those of the calls
 * it passes on; HP_ESTALL (a trial copy did not complete). */
hp_status hp_peers_open(hp_comm *comm, const hp_memory *memory, unsigned char *arena, int64_t bytes,
                        hp_peers *peers, hp_error *err);
/* Call before any rank frees its arena. */
void hp_peers_close(hp_peers *peers, const hp_memory *memory);

#endif
