/* next.h - suggests commands to follow, as lines "next: hplan ..." that can be pasted into a shell. */
#ifndef HP_NEXT_H
#define HP_NEXT_H

#include "base/arena.h"
#include "base/status.h"

#include <stdio.h>

enum { NEXT_WORDS = 48 };

typedef struct next_command {
    int n;
    const char *word[NEXT_WORDS];
} next_command;

/* `verb` is a subcommand, or several words of hplan's own. */
next_command next_start(const char *verb);
/* A file, or another word that is no option. */
void next_word(next_command *c, const char *word);
/* Nothing where `value` is NULL. */
void next_option(next_command *c, const char *name, const char *value);
/* One line. */
void next_print(FILE *f, const next_command *c);

#endif
