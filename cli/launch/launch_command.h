/* launch_command.h - the command line that starts a run's ranks. */
#ifndef HP_LAUNCH_COMMAND_H
#define HP_LAUNCH_COMMAND_H

#include "cli/launch/launch.h"

enum { COMMAND_WORDS = 128 };

typedef struct launch_command {
    char *word[COMMAND_WORDS]; /* NULL-terminated; each from malloc */
    int n;
} launch_command;

/* Errors: HP_EUNAVAIL (launcher or hplan-exec missing), HP_EPLAN (one process for a plan of several ranks),
 * HP_EUSAGE. */
hp_status launch_command_make(const cli_launch *l, launch_command *c, hp_error *err);
void launch_command_free(launch_command *c);
/* Sets the ranks' environment variables; called in the forked child. */
void launch_environment(const cli_launch *l);

#endif
