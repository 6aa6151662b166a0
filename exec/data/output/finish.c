/* finish.c - turns PATH.part into PATH: converts it if necessary, syncs and renames it. */
#include "exec/data/output/kind.h"

#include "plan/base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

hp_status hp_output_read(int part, void *to, size_t bytes, int64_t offset, hp_error *err) {
    char *at = to;
    while (bytes) {
        const ssize_t n = pread(part, at, bytes, offset);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return hp_fail(err, HP_EIO,
                           "cannot read the results back: %s; leave the files alone during a run",
                           n < 0 ? strerror(errno) : "the file ends early");
        at += n;
        offset += n;
        bytes -= (size_t)n;
    }
    return HP_OK;
}

/* The data must reach the disk before the file is renamed. */
static hp_status sync_file(const char *path, hp_error *err) {
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    const bool ok = fd >= 0 && fsync(fd) == 0;
    const hp_status s = ok ? HP_OK : hp_output_failed(path, err);
    if (fd >= 0) close(fd);
    return s;
}

static hp_status convert(const hp_output_spec *s, const char *part, const char *tmp, hp_error *err) {
    const hp_output_layout l = hp_output_layout_of(s);
    const int fd = open(part, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return hp_fail(err, HP_EIO, "cannot open %s: %s", part, strerror(errno));
    const hp_status status = hp_output_kind_of(s->path)->convert(&l, fd, tmp, err);
    close(fd);
    return status;
}

/* Syncs `from` and renames it to PATH. */
static hp_status commit(const hp_output_spec *s, const char *from, hp_error *err) {
    HP_TRY(sync_file(from, err));
    if (rename(from, s->path) != 0)
        return hp_fail(err, HP_ECREATE, "cannot rename %s to %s: %s; give another name", from, s->path,
                       strerror(errno));
    hp_new_file_sync_folder(s->path);
    return HP_OK;
}

hp_status hp_output_finish(const hp_output_spec *s, hp_error *err) {
    char part[4096], tmp[4096];
    HP_TRY(hp_output_part_name(s, part, err));
    snprintf(tmp, sizeof tmp, "%.*s.tmp", (int)(strlen(part) - strlen(".part")), part);
    const bool converts = hp_output_kind_of(s->path)->convert != NULL;
    hp_status status = converts ? convert(s, part, tmp, err) : HP_OK;
    if (status == HP_OK) status = commit(s, converts ? tmp : part, err);
    if (status != HP_OK && converts) unlink(tmp);
    hp_output_discard(s);
    return status;
}
