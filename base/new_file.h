/* new_file.h - files that are either complete or absent: written under a unique temporary name beside the
 * final one, then renamed. */
#ifndef HP_NEW_FILE_H
#define HP_NEW_FILE_H

#include "base/status.h"

#include <stddef.h>

enum { HP_NEW_FILE_PATH = 4096, HP_NEW_FILE_TEMPORARY = HP_NEW_FILE_PATH + 12 /* ".tmp-XXXXXX" */ };

/* Checks that `path` can be written, before the work whose result it will hold. Fails if the path is empty,
 * too long, a directory or a device, or if its directory is missing or not writable. Errors: HP_ECREATE. */
hp_status hp_new_file_check(const char *path, hp_error *err);

/* The same check of an output that is no database: it must not take the place of one, as `--junit *.db` would
 * make it. Errors: HP_ECREATE. */
hp_status hp_new_file_check_plain(const char *path, hp_error *err);
/* The same check of an output that is a database: it must not take the place of anything else, as
 * `--onnx net.onnx --out net.onnx` would make it. An empty file is nothing. Errors: HP_ECREATE. */
hp_status hp_new_file_check_database(const char *path, hp_error *err);

/* hp_new_file_check; then creates a unique empty temporary file beside it, safe against concurrent processes,
 * with the default permissions of a new file. *fd is open for writing. Errors: HP_ECREATE. */
hp_status hp_new_file_create(const char *path, char temporary[HP_NEW_FILE_TEMPORARY], int *fd, hp_error *err);

/* Syncs the finished temporary file, then renames it to `path`. On an error, the temporary and an earlier
 * file remain. Errors: HP_EIO (sync failed), HP_ECREATE (rename failed). */
hp_status hp_new_file_commit(const char *temporary, const char *path, hp_error *err);

#endif
