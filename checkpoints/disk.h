/* disk.h - durable files: written under a temporary name, hashed in chunks while they are written, synced
 * with their folder, then renamed. All disk access goes through one table, so that a test can make any call
 * of a save fail or be the last. */
#ifndef HP_DISK_H
#define HP_DISK_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* System calls by these names. */
typedef struct hp_disk_ops {
    int (*create)(const char *path); /* opens for writing; fails if the file exists */
    ssize_t (*write)(int fd, const void *data, size_t bytes);
    int (*fsync)(int fd);
    int (*mkdir)(const char *path, mode_t mode);
    int (*rename)(const char *from, const char *to);
    int (*unlink)(const char *path);
} hp_disk_ops;
extern const hp_disk_ops hp_disk;

enum { HP_DISK_CHUNK = 4 << 20 /* bytes per hash */ };

typedef struct hp_chunks { /* a file's length and hashes */
    int64_t bytes;
    int32_t n; /* number of chunks; all but the last have HP_DISK_CHUNK bytes */
    uint64_t *hash;
} hp_chunks;
static inline int64_t hp_chunks_of(int64_t bytes) {
    return (bytes + HP_DISK_CHUNK - 1) / HP_DISK_CHUNK;
}

typedef struct hp_disk_file {
    const hp_disk_ops *disk;
    char path[4096];
    int fd;
    struct XXH3_state_s *state; /* hash of the last chunk so far */
    hp_chunks chunks;           /* hashes: freed by hp_disk_close unless the caller takes them over */
} hp_disk_file;

/* Creates a file and never replaces an existing one or a link. `bytes`: its final size.
 * Errors: HP_ECREATE. */
hp_status hp_disk_create(const hp_disk_ops *disk, const char *path, int64_t bytes, hp_disk_file *f,
                         hp_error *err);
/* Errors: HP_EIO. */
hp_status hp_disk_append(hp_disk_file *f, const void *data, size_t bytes, hp_error *err);
/* Waits until the file is on the disk. Errors: HP_EIO. */
hp_status hp_disk_sync(hp_disk_file *f, hp_error *err);
void hp_disk_close(hp_disk_file *f); /* accepts a zeroed struct */

/* Writes a small file in one call. */
hp_status hp_disk_put(const hp_disk_ops *disk, const char *path, const char *text, hp_error *err);
/* Creates a folder unless it exists. Errors: HP_ECREATE. */
hp_status hp_disk_folder(const hp_disk_ops *disk, const char *path, hp_error *err);
/* Waits until the folder's entries are on the disk. Some network file systems cannot do
 * that: not an error. */
hp_status hp_disk_sync_folder(const hp_disk_ops *disk, const char *path, hp_error *err);
hp_status hp_disk_rename(const hp_disk_ops *disk, const char *from, const char *to, hp_error *err);
/* Removes a folder and its files. `first`, if not NULL, goes first. */
void hp_disk_remove(const hp_disk_ops *disk, const char *path, const char *first);

/* Checks that a file holds exactly `want`. Errors: HP_EDATA: the file is missing, has another length,
 * or a chunk differs. */
hp_status hp_disk_verify(const char *path, const hp_chunks *want, hp_error *err);

#endif
