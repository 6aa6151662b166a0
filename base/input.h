/* input.h - opens files named by the user without blocking: a named pipe without a writer reads as empty.
 * Reads texts whole; recognises other kinds of files. */
#ifndef HP_INPUT_H
#define HP_INPUT_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Like open(path, O_RDONLY) and fopen(path, "r"), close-on-exec; -1 or NULL with errno. Reading from a pipe
 * with a writer waits for it. */
int hp_input_open(const char *path);
FILE *hp_input_fopen(const char *path);

/* Reads a whole text file. what: "cost table"; hint: appended to the error for a missing or unsuitable file,
 * "" or "; ...". Lives in `arena`. Errors: HP_EDATA (not a text file, or too large). */
hp_status hp_text_file(hp_arena *arena, const char *path, const char *what, const char *hint, char **text,
                       hp_error *err);

/* Identifies a file by its first bytes, for errors about a file of the wrong kind: "an SQLite database, as
 * plans, models and runs of hplan are". NULL if unknown. *weights: such files often hold weights in a
 * convertible form. */
const char *hp_file_kind(const unsigned char *data, size_t n, bool *weights);

#endif
