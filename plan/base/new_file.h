/* new_file.h - files that are complete or absent: written under a name of their own beside the final one, then renamed. */
#ifndef HP_NEW_FILE_H
#define HP_NEW_FILE_H

#include "plan/base/status.h"

#include <stddef.h>

enum { HP_NEW_FILE_PATH = 4096, HP_NEW_FILE_TEMPORARY = HP_NEW_FILE_PATH + 12 /* ".tmp-XXXXXX" */ };

/* Could `path` be written? Not if it is empty, too long, the name of a folder or a device, or of a file in a folder that is
 * missing or not writable. Asked before the work whose result it will hold. Errors: HP_ECREATE. */
hp_status hp_new_file_check(const char *path, hp_error *err);

/* The same, and makes an empty file beside it that nobody else has, whatever runs at the same time; its permissions are
 * those of any new file. *fd: open for writing. Errors: HP_ECREATE. */
hp_status hp_new_file_create(const char *path, char temporary[HP_NEW_FILE_TEMPORARY], int *fd, hp_error *err);

/* Brings a file that was just renamed to `path` to the disk under that name. Some network file systems cannot sync a folder,
 * which is not an error. */
void hp_new_file_sync_folder(const char *path);

#endif
