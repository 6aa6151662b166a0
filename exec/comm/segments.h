/* segments.h - Open MPI's shared memory on a node does not outlive its ranks. */
#ifndef HP_SEGMENTS_H
#define HP_SEGMENTS_H

/* Starts a process that waits for this rank's end, where it is the node's first rank. Before MPI_Init. Returns a descriptor for
 * hp_segments_tell; -1: none was started. */
int hp_segments_watch(void);

/* Says what is to be removed: this job's segments, if it has any. After MPI_Init. The descriptor is kept until the
 * rank ends. */
void hp_segments_tell(int watch);

#endif
