/* input.h - files that a user names are opened without waiting: a named pipe that nobody writes to is empty. */
#ifndef HP_INPUT_H
#define HP_INPUT_H

#include <stdio.h>

/* As open(path, O_RDONLY) and fopen(path, "r"), closed on exec; -1 or NULL with errno. Reading from a pipe that has a
 * writer waits for it. */
int hp_input_open(const char *path);
FILE *hp_input_fopen(const char *path);

#endif
