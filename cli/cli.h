/* cli.h - functions shared by all subcommands. One file per subcommand: cli/commands/cmd_NAME.c with `int
 * cmd_NAME(int argc, char **argv)` (argv[0] is "hplan NAME", for argp), listed in commands.def. Results go to
 * stdout, messages to stderr. */
#ifndef HP_CLI_H
#define HP_CLI_H

#include "base/status.h"

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>

#define COMMAND(name, summary) int cmd_##name(int argc, char **argv);
#include "cli/commands.def"
#undef COMMAND

/* Runs the program: finds the command that argv[1] names and calls it. Returns the exit code; --help and
 * wrong options end the process (argp). Call it once in a process: it sets how memory is kept, what SIGPIPE
 * does and what happens at exit. */
int cli_main(int argc, char **argv);

/* argp_parse for a command whose table is `argp`. Where the last word asks for it (manual.h), prints its page
 * or the words that complete its line, and ends the process, as --help does. */
void cli_parse(const struct argp *argp, unsigned flags, int argc, char **argv, void *input);

/* Prints "hplan: message" to stderr and returns the exit code. */
int cli_report(const hp_error *err);

/* `text` with control characters replaced by '?': all text from files is printed through this. */
const char *cli_plain(const char *text, char *out, size_t size);

/* Prints one JSON object and a newline to stdout, numbers with full precision; releases the object. HP_EIO
 * when stdout fails. */
hp_status cli_print_json(json_t *object, hp_error *err);

/* A number for a JSON object; null if it is not finite. */
json_t *cli_json_number(double v);
/* The same of a time; null if it is 0: not known, not measured. */
json_t *cli_json_known(double v);

/* Flushes stdout; HP_EIO if any write failed (/dev/full). Every command ends with it. */
hp_status cli_finish_stdout(hp_error *err);

/* Use colour and progress bars: a terminal, no NO_COLOR, TERM not dumb? */
bool cli_is_terminal(FILE *f);
int cli_width(void); /* columns of the terminal, 80 if there is none */

/* A progress bar in tqdm's style on a terminal's stderr ("step 12/20 [elapsed<remaining, rate]"), otherwise
 * one line every 30 s. */
typedef struct cli_progress {
    const char *what;
    long total;
    double started_s, shown_s;
} cli_progress;
/* `what` is counted up to `total`; `detail` is shown after the times. */
void cli_progress_start(cli_progress *p, const char *what, long total);
void cli_progress_update(cli_progress *p, long done, const char *detail);
void cli_progress_end(cli_progress *p);

/* "HxW" or "S". HP_EUSAGE. */
hp_status cli_parse_image(const char *text, int *h, int *w, hp_error *err);

/* Path of hplan-exec: in the folder of the running hplan binary. */
void cli_executor_path(char *path, size_t size);

#endif
