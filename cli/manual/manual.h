/* manual.h - what the tables of help give beside --help: manual pages, and the words that may complete a
 * command line in a shell. hplan prints both (`hplan help --man simulate`, `hplan help --complete WORD...`):
 * cmake --install writes the pages, and the scripts beside this file ask for the words. */
#ifndef HP_MANUAL_H
#define HP_MANUAL_H

#include <argp.h>

/* The last word of a command's argv, by its address, which no user can type: the command then prints its
 * page, or the words that may stand in place of the one before, and ends (cli_parse). */
extern char manual_ask_page[], manual_ask_words[];

/* A command's page in roff; name: "hplan bench comm". */
void manual_print_page(const struct argp *argp, const char *name);
void manual_print_overview(void);   /* hplan(1) */
void manual_print_strategies(void); /* hplan-strategies(7) */

/* Completes word[n - 1]; the words before it are the command's, without its name. Prints a line for each word
 * that may stand there: the word, a tab, what it means. No line: a file's name may stand there. */
void manual_print_words(const struct argp *argp, const char *name, int n, char **word);
void manual_print_commands(const char *begin);

/* The text after the first newline; NULL: there is none. */
const char *manual_next_line(const char *text);

/* Rows of cli/commands.def, and one with a name of NULL. command: whose subcommand it is; "": none's. */
typedef struct manual_command {
    const char *command, *name, *summary;
} manual_command;
extern const manual_command manual_commands[];

/* The exit codes in words: 'code', 'meaning', ...; ends with a code of NULL. */
typedef struct manual_exit {
    const char *code, *meaning;
} manual_exit;
extern const manual_exit manual_exits[];

#endif
