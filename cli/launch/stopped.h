/* stopped.h - processes of a run that were stopped (SIGSTOP), which neither end nor say anything, or have ended. */
#ifndef HP_STOPPED_H
#define HP_STOPPED_H

#include "traces/faults/process.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Numbers of the processes that it has started, with blanks between them; "": none. */
void launch_children(pid_t pid, char *list, size_t n);

/* Is the launcher of so many ranks or a process below it, on this node, in that state? Says which: the rank where it is one. *silent: no
 * rank is left that would notice it: all are halted, or their launcher is. */
bool launch_is_halted(pid_t child, int ranks, hp_process_state state, bool *silent, char *who, size_t n);

/* Have all processes that the launcher started on this node ended, and it has not taken notice yet? */
bool launch_is_left_alone(pid_t child);

#endif
