/* stopped.h - processes of a run that were stopped (SIGSTOP), and so neither end nor report anything, or have
 * ended. */
#ifndef HP_STOPPED_H
#define HP_STOPPED_H

#include "traces/faults/process.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Ids of the process's children, separated by blanks; "": none. */
void launch_children(pid_t pid, char *list, size_t n);

/* Is the launcher of this many ranks, or a process below it on this node, in that state? Names it, by rank if
 * it has one. *silent: no rank is left to notice, because all are halted or their launcher is. */
bool launch_is_halted(pid_t child, int ranks, hp_process_state state, bool *silent, char *who, size_t n);

/* Have all processes that the launcher started on this node ended without it noticing? */
bool launch_is_left_alone(pid_t child);

#endif
