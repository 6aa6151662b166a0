/* launch_command.h - the command line that starts a run's ranks. */
#ifndef HP_LAUNCH_COMMAND_H
#define HP_LAUNCH_COMMAND_H

#include "cli/launch/launch.h"

enum { COMMAND_WORDS = 128 };

typedef struct launch_command {
    char *word[COMMAND_WORDS]; /* NULL-terminated; each from malloc */
    int n;
} launch_command;

/* Options of mpirun for keep-alives, which end a run 6 s after a node is cut off, instead of 480 s. */
#define LAUNCH_KEEP_ALIVE                                                                                    \
    "--mca", "oob_tcp_keepalive_time", "3", "--mca", "oob_tcp_keepalive_intvl", "1", "--mca",                \
        "oob_tcp_keepalive_probes", "3"

/* Errors: HP_EUNAVAIL (launcher or hplan-exec missing), HP_EPLAN (one process for a plan of several ranks),
 * HP_EUSAGE. */
hp_status launch_command_make(const cli_launch *l, launch_command *c, hp_error *err);
/* Is there such a launcher? Errors: HP_EUSAGE. */
hp_status launch_check_launcher(const char *name, hp_error *err);
void launch_command_free(launch_command *c);
/* A variable of the ranks' environment. If it is already set, it stays unless it must have this value. */
typedef struct launch_variable {
    const char *name, *value;
    bool must;
} launch_variable;
enum { LAUNCH_VARIABLES = 6 };
/* Variables of a run; `threads` holds the text of a number. Returns their number. */
int launch_variables(const cli_launch *l, char threads[16], launch_variable list[LAUNCH_VARIABLES]);
/* Sets them; called in the forked child. */
void launch_environment(const cli_launch *l);

#endif
