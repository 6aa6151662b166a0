/* segments.h - cleans up Open MPI's shared memory on a node after its ranks are gone. */
#ifndef HP_SEGMENTS_H
#define HP_SEGMENTS_H

/* If this is the node's first rank, starts a process that waits for this rank's end. Call before MPI_Init.
 * Returns a descriptor for hp_segments_tell; -1: none was started. */
int hp_segments_watch(void);

/* Tells that process what to remove: this job's segments, if it has any. Call after MPI_Init. The descriptor
 * stays open until the rank ends. */
void hp_segments_tell(int watch);

#endif
