/* frame.h - one frame around the commands that read databases: options by table, words counted, the first one
 * opened, whatever was opened closed, the error reported. A command file holds its table and its work.
 *
 * static const frame_option list[] = {{"json", 'j', NULL, offsetof(options, json), 0, "one JSON object"},
 * {0}}; */
#ifndef HP_CLI_FRAME_H
#define HP_CLI_FRAME_H

#include "cli/cli.h"
#include "plan/base/arena.h"
#include "plan/base/db.h"

#include <stddef.h>

enum { FRAME_WORDS = 17 }; /* a kind of plot and 16 files */

/* What an option stores at byte `at` of the command's own options: its argument as const char *; without an
 * argument `value` as int, or true as bool where `value` is 0. A list ends with {0}. */
typedef struct frame_option {
    const char *name;
    int letter; /* 0: no short form */
    const char *arg;
    size_t at;
    int value;
    const char *doc;
} frame_option;

/* What the work finds. */
typedef struct frame {
    hp_arena *arena;
    hp_db db; /* the first word's, if the command opens it */
    const char *word[FRAME_WORDS];
    int n_word;
    const void *options; /* the command's own struct */
} frame;

typedef struct frame_command {
    const frame_option *option;
    const char *usage, *doc; /* argp's */
    int min_word, max_word;
    const char *too_few;                   /* said for words or options that are missing */
    const char *too_many;                  /* printf format of the word too many; NULL: argp says it */
    bool (*complete)(const void *options); /* are the required options there? NULL: none is required */
    bool opens;                            /* the first word is a database to open for reading */
    /* Prints its results; HP_DIFF is an answer and needs no message. */
    hp_status (*run)(frame *f, hp_error *err);
} frame_command;

/* Parses the command line into `options` (zeroed by the caller), does the work and returns the exit code. A
 * wrong command line ends the process, as argp does. */
int frame_run(const frame_command *c, void *options, int argc, char **argv);

#endif
