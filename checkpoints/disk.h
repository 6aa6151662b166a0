/* disk.h - files that are safe once they are said to be: written beside their place, hashed chunk by chunk while they are
 * written, synced with their folder, renamed. All that touches the disk goes through one table, so that a test can let
 * each call of a save fail, or be the last one. */
#ifndef HP_DISK_H
#define HP_DISK_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* As the calls of that name. */
typedef struct hp_disk_ops {
    int (*create)(const char *path); /* for writing; of a file that is not there yet */
    ssize_t (*write)(int fd, const void *data, size_t bytes);
    int (*fsync)(int fd);
    int (*mkdir)(const char *path, mode_t mode);
    int (*rename)(const char *from, const char *to);
    int (*unlink)(const char *path);
} hp_disk_ops;
extern const hp_disk_ops hp_disk;

enum { HP_DISK_CHUNK = 4 << 20 /* bytes that have a hash of their own */ };

typedef struct hp_chunks { /* what a file holds, as far as hashes say */
    int64_t bytes;
    int32_t n; /* all of HP_DISK_CHUNK bytes, but the last */
    uint64_t *hash;
} hp_chunks;
static inline int64_t hp_chunks_of(int64_t bytes) {
    return (bytes + HP_DISK_CHUNK - 1) / HP_DISK_CHUNK;
}

typedef struct hp_disk_file {
    const hp_disk_ops *disk;
    char path[4096];
    int fd;
    struct XXH3_state_s *state; /* of the last chunk */
    hp_chunks chunks;           /* hash: freed by hp_disk_close unless it is taken over */
} hp_disk_file;

/* A new file: what has that name, a link as well, is not touched. `bytes` it will have. Errors: HP_ECREATE. */
hp_status hp_disk_create(const hp_disk_ops *disk, const char *path, int64_t bytes, hp_disk_file *f,
                         hp_error *err);
/* Errors: HP_EIO. */
hp_status hp_disk_append(hp_disk_file *f, const void *data, size_t bytes, hp_error *err);
/* It is on the disk. Errors: HP_EIO. */
hp_status hp_disk_sync(hp_disk_file *f, hp_error *err);
void hp_disk_close(hp_disk_file *f); /* also a zeroed one */

/* A small file at once. */
hp_status hp_disk_put(const hp_disk_ops *disk, const char *path, const char *text, hp_error *err);
/* A folder that may be there already. Errors: HP_ECREATE. */
hp_status hp_disk_folder(const hp_disk_ops *disk, const char *path, hp_error *err);
/* The names in a folder are on the disk. Some network file systems cannot, which is not an error. */
hp_status hp_disk_sync_folder(const hp_disk_ops *disk, const char *path, hp_error *err);
hp_status hp_disk_rename(const hp_disk_ops *disk, const char *from, const char *to, hp_error *err);
/* A folder and the files in it, `first` (which may be NULL) before the others. */
void hp_disk_remove(const hp_disk_ops *disk, const char *path, const char *first);

/* Does a file hold exactly that? Errors: HP_EDATA says what is wrong: missing, another length, which chunk. */
hp_status hp_disk_verify(const char *path, const hp_chunks *want, hp_error *err);

#endif
