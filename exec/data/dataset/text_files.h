/* text_files.h - the files of text data, read one after another in the same order on every rank. */
#ifndef HP_TEXT_FILES_H
#define HP_TEXT_FILES_H

#include "base/arena.h"
#include "base/status.h"

#include <stdint.h>

/* A file's bytes; valid during the call. */
typedef hp_status hp_text_fn(void *self, const char *path, const uint8_t *bytes, int64_t n, hp_error *err);

/* Calls for each file of a list of paths with commas between them. A folder is all regular files in it and in its
 * folders, in the order of their names, bytewise; without symbolic links, hidden files, and files that are no text: as in
 * git, those with a byte of 0 among their first 8000. A file that is named must be text. At most 16 GiB in all.
 * Errors: HP_EDATA with path, reason and fix. */
hp_status hp_text_files(hp_arena *a, const char *list, hp_text_fn *fn, void *self, hp_error *err);

#endif
