/* output_finish.c - turns PATH.part into PATH: converts it if necessary, syncs and renames it. */
#include "exec/data/output/output_kind.h"

#include "base/new_file.h"

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

static hp_status convert(const hp_output_spec *s, const char *part, const char *tmp, hp_error *err) {
    const hp_output_layout l = hp_output_layout_of(s);
    const int fd = open(part, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return hp_fail(err, HP_EIO, "cannot open %s: %s", part, strerror(errno));
    const hp_status status = hp_output_kind_of(s->path)->convert(&l, fd, tmp, err);
    close(fd);
    return status;
}

/* Converts into a separate file, which then becomes PATH. */
static hp_status convert_and_commit(const hp_output_spec *s, const char *part, hp_error *err) {
    char tmp[HP_NEW_FILE_TEMPORARY];
    int fd;
    HP_TRY(hp_new_file_create(s->path, tmp, &fd, err));
    close(fd);
    hp_status status = convert(s, part, tmp, err);
    if (status == HP_OK) status = hp_new_file_commit(tmp, s->path, err);
    if (status != HP_OK) unlink(tmp);
    return status;
}

hp_status hp_output_finish(const hp_output_spec *s, hp_error *err) {
    char part[4096];
    HP_TRY(hp_output_part_name(s, part, err));
    const bool converts = hp_output_kind_of(s->path)->convert != NULL;
    const hp_status status =
        converts ? convert_and_commit(s, part, err) : hp_new_file_commit(part, s->path, err);
    hp_output_discard(s);
    return status;
}
