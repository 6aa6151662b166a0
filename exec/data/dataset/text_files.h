/* text_files.h - the files of text data, read one after another in the same order on every rank. */
#ifndef HP_TEXT_FILES_H
#define HP_TEXT_FILES_H

#include "base/arena.h"
#include "base/status.h"

#include <stdint.h>

/* A file's bytes; valid during the call. */
typedef hp_status hp_text_fn(void *self, const char *path, const uint8_t *bytes, int64_t n, hp_error *err);

/* Calls `fn` for each file of a comma-separated list of paths. A folder stands for all regular files in it
 * and its subfolders, in bytewise order of their names. It skips symbolic links, hidden files, and binary
 * files: as in git, those with a zero among their first 8000 bytes. A file named explicitly must be text.
 * Total: at most 16 GiB. Errors: HP_EDATA with path, reason and fix. */
hp_status hp_text_files(hp_arena *a, const char *list, hp_text_fn *fn, void *self, hp_error *err);

#endif
