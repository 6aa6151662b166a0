/* new_file.h - files that are complete or absent: written under a name of their own beside the final one, then renamed. */
#ifndef HP_NEW_FILE_H
#define HP_NEW_FILE_H

#include "base/status.h"

#include <stddef.h>

enum { HP_NEW_FILE_PATH = 4096, HP_NEW_FILE_TEMPORARY = HP_NEW_FILE_PATH + 12 /* ".tmp-XXXXXX" */ };

/* Could `path` be written? Not if it is empty, too long, the name of a folder or a device, or of a file in a folder that is
 * missing or not writable. Asked before the work whose result it will hold. Errors: HP_ECREATE. */
hp_status hp_new_file_check(const char *path, hp_error *err);

/* The same, and makes an empty file beside it that nobody else has, whatever runs at the same time; its permissions are
 * those of any new file. *fd: open for writing. Errors: HP_ECREATE. */
hp_status hp_new_file_create(const char *path, char temporary[HP_NEW_FILE_TEMPORARY], int *fd, hp_error *err);

/* Makes the finished temporary `path`: its bytes reach the disk before the name does, then the name. On an error the
 * temporary and an earlier file stay. Errors: HP_EIO (its bytes cannot be synced), HP_ECREATE (it cannot be renamed). */
hp_status hp_new_file_commit(const char *temporary, const char *path, hp_error *err);

#endif
