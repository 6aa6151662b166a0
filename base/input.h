/* input.h - files that a user names are opened without waiting: a named pipe that nobody writes to is empty. */
#ifndef HP_INPUT_H
#define HP_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* As open(path, O_RDONLY) and fopen(path, "r"), closed on exec; -1 or NULL with errno. Reading from a pipe that has a
 * writer waits for it. */
int hp_input_open(const char *path);
FILE *hp_input_fopen(const char *path);

/* What a file is that was given in another's place, by the bytes it begins with: "an SQLite database, as plans, models and
 * runs of hplan are"; NULL: not known. *weights: files of this kind often hold some, in a form that can be converted. */
const char *hp_file_kind(const unsigned char *data, size_t n, bool *weights);

#endif
