/* leftovers.h - what processes that were killed leave behind: Open MPI's session folders and shared memory, hplan's folders.
 * Only what belongs to a process that is gone is touched. */
#ifndef HP_LEFTOVERS_H
#define HP_LEFTOVERS_H

#include <glob.h>
#include <sys/types.h>

/* Removes the session folder of the mpirun of that number, and the segments of shared memory of its jobs, on this node: after it
 * has ended, where it did not do so itself. Returns how many files there were. */
int leftovers_sweep_mpirun(pid_t mpirun);

/* The folders of runs that lie beside a trace of that name, living ones too; to be freed by globfree. How many. */
size_t leftovers_beside(const char *trace, glob_t *found);

/* Says on stderr when runs that were killed have left folders beside that trace, and what picks them up. */
void leftovers_tell(const char *trace);

#endif
