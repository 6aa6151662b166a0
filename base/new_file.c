/* new_file.c - checks output paths early and creates unique temporary names. */
#define _GNU_SOURCE /* mkostemp */
#include "base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static hp_status cannot_create(const char *path, hp_error *err) {
    return hp_fail(err, HP_ECREATE, "%s: cannot create: %s; give a path in an existing, writable folder",
                   path, strerror(errno));
}

hp_status hp_new_file_check(const char *path, hp_error *err) {
    struct stat st;
    char copy[HP_NEW_FILE_PATH];
    if (!*path) return hp_fail(err, HP_ECREATE, "the output's name is empty: give a file name");
    if (snprintf(copy, sizeof copy, "%s", path) >= (int)sizeof copy)
        return hp_fail(err, HP_ECREATE, "the output's name '%.64s...' is longer than %zu bytes", path,
                       sizeof copy - 1);
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return hp_fail(err, HP_ECREATE, "%s is %s: give a file name", path,
                       S_ISDIR(st.st_mode) ? "a folder" : "not a regular file");
    return access(dirname(copy), W_OK | X_OK) == 0 ? HP_OK : cannot_create(path, err);
}

/* SQLite's file format, section 1.3.1: the header's string, with its terminating zero */
static bool is_database(const char *path) {
    static const char magic[16] = "SQLite format 3";
    char head[sizeof magic];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const ssize_t n = read(fd, head, sizeof head);
    close(fd);
    return n == (ssize_t)sizeof head && memcmp(head, magic, sizeof head) == 0;
}

hp_status hp_new_file_check_plain(const char *path, hp_error *err) {
    HP_TRY(hp_new_file_check(path, err));
    if (!is_database(path)) return HP_OK;
    return hp_fail(err, HP_ECREATE, "%s is a database, which this would overwrite: give another name", path);
}

hp_status hp_new_file_check_database(const char *path, hp_error *err) {
    struct stat st;
    HP_TRY(hp_new_file_check(path, err));
    if (stat(path, &st) != 0 || st.st_size == 0 || is_database(path)) return HP_OK;
    return hp_fail(err, HP_ECREATE, "%s is no database, and this would overwrite it: give another name",
                   path);
}

hp_status hp_new_file_create(const char *path, char temporary[HP_NEW_FILE_TEMPORARY], int *fd,
                             hp_error *err) {
    HP_TRY(hp_new_file_check(path, err));
    snprintf(temporary, HP_NEW_FILE_TEMPORARY, "%s.tmp-XXXXXX", path);
    *fd = mkostemp(temporary, O_CLOEXEC);
    if (*fd < 0) {
        temporary[0] = '\0';
        return cannot_create(path, err);
    }
    const mode_t mask = umask(0);
    umask(mask);
    fchmod(*fd, 0666 & ~mask);
    return HP_OK;
}

/* Some network file systems cannot sync a directory; that is not an error. */
static void sync_folder(const char *path) {
    char copy[HP_NEW_FILE_PATH];
    if (snprintf(copy, sizeof copy, "%s", path) >= (int)sizeof copy) return;
    const int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

hp_status hp_new_file_commit(const char *temporary, const char *path, hp_error *err) {
    const int fd = open(temporary, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    const bool synced = fd >= 0 && fsync(fd) == 0;
    const int why = errno;
    if (fd >= 0) close(fd);
    if (!synced) return hp_fail(err, HP_EIO, "%s: cannot finish writing: %s", path, strerror(why));
    if (rename(temporary, path) != 0)
        return hp_fail(err, HP_ECREATE, "cannot rename %s to %s: %s; give another name", temporary, path,
                       strerror(errno));
    sync_folder(path);
    return HP_OK;
}
