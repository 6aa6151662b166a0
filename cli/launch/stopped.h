/* stopped.h - processes of a run that were stopped (SIGSTOP), which neither end nor say anything. */
#ifndef HP_STOPPED_H
#define HP_STOPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Is a process of the tree below hplan's child stopped? `who`: "rank 1 (process 123)", "the launcher (process 120)"; of
 * several the first, and how many more. One under a debugger is not. */
bool launch_is_stopped(pid_t child, char *who, size_t n);

#endif
