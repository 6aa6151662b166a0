/* disk.c - see disk.h. */
#include "checkpoints/disk.h"
#include "base/alloc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

static int create_new(const char *path) {
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}

const hp_disk_ops hp_disk = {
    .create = create_new, .write = write, .fsync = fsync, .mkdir = mkdir, .rename = rename, .unlink = unlink};

static hp_status failed(hp_status status, const char *what, const char *path, hp_error *err) {
    return hp_fail(err, status, "cannot %s %s: %s%s", what, path, strerror(errno),
                   errno == ENOSPC || errno == EDQUOT ? "; free some space or give another folder" : "");
}

/* --- writing --- */

hp_status hp_disk_create(const hp_disk_ops *disk, const char *path, int64_t bytes, hp_disk_file *f,
                         hp_error *err) {
    *f = (hp_disk_file){.disk = disk, .fd = -1};
    if (snprintf(f->path, sizeof f->path, "%s", path) >= (int)sizeof f->path)
        return hp_fail(err, HP_ECREATE, "the path %.64s... is too long", path);
    f->fd = disk->create(path);
    if (f->fd < 0) return failed(HP_ECREATE, "create", path, err);
    f->state = XXH3_createState();
    f->chunks.hash = calloc((size_t)hp_chunks_of(bytes) + 1, sizeof *f->chunks.hash);
    HP_ASSERT(f->state && f->chunks.hash);
    return HP_OK;
}

/* Hashes data that lies within one chunk. */
static void hash_part(hp_disk_file *f, const unsigned char *data, size_t bytes) {
    if (f->chunks.bytes % HP_DISK_CHUNK == 0) {
        XXH3_64bits_reset(f->state);
        f->chunks.n++;
    }
    XXH3_64bits_update(f->state, data, bytes);
    f->chunks.bytes += (int64_t)bytes;
    f->chunks.hash[f->chunks.n - 1] = XXH3_64bits_digest(f->state);
}

static hp_status write_part(hp_disk_file *f, const unsigned char *data, size_t bytes, hp_error *err) {
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = f->disk->write(f->fd, data + done, bytes - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return failed(HP_EIO, "write", f->path, err);
        done += (size_t)n;
    }
    hash_part(f, data, bytes);
    return HP_OK;
}

hp_status hp_disk_append(hp_disk_file *f, const void *data, size_t bytes, hp_error *err) {
    for (const unsigned char *at = data; bytes > 0;) {
        const size_t room = (size_t)(HP_DISK_CHUNK - f->chunks.bytes % HP_DISK_CHUNK),
                     n = bytes < room ? bytes : room;
        HP_TRY(write_part(f, at, n, err));
        at += n;
        bytes -= n;
    }
    return HP_OK;
}

hp_status hp_disk_sync(hp_disk_file *f, hp_error *err) {
    return f->disk->fsync(f->fd) == 0 ? HP_OK : failed(HP_EIO, "sync", f->path, err);
}

void hp_disk_close(hp_disk_file *f) {
    if (f->state) XXH3_freeState(f->state);
    if (f->state) close(f->fd);
    free(f->chunks.hash);
    *f = (hp_disk_file){.fd = -1};
}

hp_status hp_disk_put(const hp_disk_ops *disk, const char *path, const char *text, hp_error *err) {
    hp_disk_file f;
    hp_status s = hp_disk_create(disk, path, (int64_t)strlen(text), &f, err);
    if (s == HP_OK) s = hp_disk_append(&f, text, strlen(text), err);
    if (s == HP_OK) s = hp_disk_sync(&f, err);
    hp_disk_close(&f);
    return s;
}

/* --- folders --- */

hp_status hp_disk_folder(const hp_disk_ops *disk, const char *path, hp_error *err) {
    struct stat st;
    if (disk->mkdir(path, 0777) == 0) return HP_OK;
    const int why = errno;
    if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) return HP_OK;
    errno = why;
    return failed(HP_ECREATE, "make the folder", path, err);
}

hp_status hp_disk_sync_folder(const hp_disk_ops *disk, const char *path, hp_error *err) {
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return failed(HP_EIO, "open", path, err);
    const int result = disk->fsync(fd), why = errno;
    close(fd);
    errno = why;
    return result == 0 || why == EINVAL || why == ENOTSUP ? HP_OK : failed(HP_EIO, "sync", path, err);
}

hp_status hp_disk_rename(const hp_disk_ops *disk, const char *from, const char *to, hp_error *err) {
    return disk->rename(from, to) == 0 ? HP_OK : failed(HP_EIO, "rename", from, err);
}

void hp_disk_remove(const hp_disk_ops *disk, const char *path, const char *first) {
    char name[4096 + 256];
    if (first && snprintf(name, sizeof name, "%s/%s", path, first) < (int)sizeof name) disk->unlink(name);
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    for (struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            snprintf(name, sizeof name, "%s/%s", path, e->d_name) < (int)sizeof name)
            disk->unlink(name);
    if (d) closedir(d);
    rmdir(path);
}

/* --- reading --- */

static hp_status check_chunk(int fd, const char *path, const hp_chunks *want, int32_t i, unsigned char *room,
                             hp_error *err) {
    const int64_t at = (int64_t)i * HP_DISK_CHUNK,
                  n = want->bytes - at < HP_DISK_CHUNK ? want->bytes - at : HP_DISK_CHUNK;
    for (int64_t done = 0; done < n;) {
        const ssize_t got = pread(fd, room + done, (size_t)(n - done), at + done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return hp_fail(err, HP_EDATA, "%s: cannot read from byte %lld on", path, (long long)at);
        done += got;
    }
    if (XXH3_64bits(room, (size_t)n) == want->hash[i]) return HP_OK;
    return hp_fail(err, HP_EDATA, "%s: bytes %lld to %lld are not what was written", path, (long long)at,
                   (long long)(at + n - 1));
}

hp_status hp_disk_verify(const char *path, const hp_chunks *want, hp_error *err) {
    struct stat st;
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return hp_fail(err, HP_EDATA, "%s: %s", path, strerror(errno));
    hp_status s = fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size != want->bytes
                      ? hp_fail(err, HP_EDATA, "%s is not a file of %lld bytes", path, (long long)want->bytes)
                      : HP_OK;
    unsigned char *room = hp_alloc(HP_DISK_CHUNK);
    for (int32_t i = 0; i < want->n && s == HP_OK; i++) s = check_chunk(fd, path, want, i, room, err);
    free(room);
    close(fd);
    return s;
}
