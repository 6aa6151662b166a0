/* leftovers.h - what killed processes leave behind: Open MPI's session directories and shared memory, hplan's
 * directories. Touches only what belongs to a dead process. */
#ifndef HP_LEFTOVERS_H
#define HP_LEFTOVERS_H

#include <glob.h>
#include <sys/types.h>

/* Removes the session directory of that mpirun, and its jobs' shared-memory segments, on this node: after it
 * has ended, if it did not do so itself. Returns the number of files. */
int leftovers_sweep_mpirun(pid_t mpirun);

/* Finds the directories of runs beside a trace of that name, including running ones; free them with globfree.
 * Returns their number. */
size_t leftovers_beside(const char *trace, glob_t *found);

/* Reports on stderr if killed runs have left directories beside that trace, and how to recover them. */
void leftovers_tell(const char *trace);

#endif
