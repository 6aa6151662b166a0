/* frame.h - common frame of the commands that read databases: parses options from a table, checks the number
 * of words, opens the first one, closes what was opened and reports the error. A command's file contains only
 * its table and its work.
 *
 * static const frame_option list[] = {{"json", 'j', NULL, offsetof(options, json), 0, "one JSON object"},
 * {0}}; */
#ifndef HP_FRAME_H
#define HP_FRAME_H

#include "cli/cli.h"
#include "base/arena.h"
#include "base/db.h"

#include <stddef.h>

enum { FRAME_WORDS = 64 };

/* An option stores at byte `at` of the command's own options: its argument as const char *; without an
 * argument, `value` as int, or true as bool if `value` is 0. Two that store different values at one place
 * exclude each other. A list ends with {0}. */
typedef struct frame_option {
    const char *name;
    int letter; /* 0: no short form */
    const char *arg;
    size_t at;
    int value;
    const char *doc;
} frame_option;

/* Passed to the command's work. */
typedef struct frame {
    hp_arena *arena;
    hp_db db; /* the first word's, if the command opens it */
    const char *word[FRAME_WORDS];
    int n_word;
    int n_first; /* words before the first `collects` option, if the command has one and it was given */
    bool collected[FRAME_WORDS]; /* the word was that option's own argument */
    const void *options;         /* the command's own struct */
} frame;

typedef struct frame_command {
    const frame_option *option;
    const char *usage, *doc; /* argp's */
    int min_word, max_word;
    const char *too_few;                   /* message for missing words or options */
    const char *too_many;                  /* printf format for an excess word; NULL: argp's message */
    bool (*complete)(const void *options); /* are the required options present? NULL: none is required */
    /* An option that may be repeated and is followed by files, as in NEW... --baseline OLD...: its argument
     * is a word, too, in the order of the command line. NULL: none. */
    const char *collects;
    bool opens; /* the first word is a database to open for reading */
    /* Prints its results; HP_DIFF is a result and needs no message. */
    hp_status (*run)(frame *f, hp_error *err);
} frame_command;

/* Parses the command line into `options` (zeroed by the caller), does the work and returns the exit code. A
 * wrong command line ends the process, like argp. */
int frame_run(const frame_command *c, void *options, int argc, char **argv);

/* Refuses an output that would take the place of one of the command's files. Errors: HP_EUSAGE. */
hp_status frame_keep_words(const frame *f, const char *output, hp_error *err);

#endif
