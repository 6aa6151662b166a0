/* outfile.c - writes files under a temporary name, so that neither a full disk nor a kill leaves a partial
 * file under the final name. */
#include "traces/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static hp_status open_stdout(hp_outfile *o, hp_error *err) {
    const int flags = fcntl(STDOUT_FILENO, F_GETFL);
    strcpy(o->path, "stdout");
    /* SQLite puts a read-only /dev/null where a standard file is closed */
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
        return hp_fail(err, HP_EIO, "cannot write to stdout: it is closed");
    const int fd = dup(STDOUT_FILENO);
    o->f = fd >= 0 ? fdopen(fd, "w") : NULL;
    return o->f ? HP_OK : hp_fail(err, HP_EIO, "cannot write to stdout: %s", strerror(errno));
}

hp_status hp_outfile_open(const char *path, hp_outfile *o, hp_error *err) {
    memset(o, 0, sizeof *o);
    if (strcmp(path, "-") == 0) return open_stdout(o, err);
    int fd;
    HP_TRY(hp_new_file_check_plain(path, err));
    HP_TRY(hp_new_file_create(path, o->tmp, &fd, err));
    snprintf(o->path, sizeof o->path, "%s", path);
    o->f = fdopen(fd, "w");
    HP_ASSERT(o->f);
    return HP_OK;
}

hp_status hp_outfile_commit(hp_outfile *o, hp_error *err) {
    const bool file = o->tmp[0];
    bool good = !ferror(o->f) && fflush(o->f) == 0;
    good = fclose(o->f) == 0 && good;
    const int e = errno;
    o->f = NULL;
    const hp_status s = good && file ? hp_new_file_commit(o->tmp, o->path, err) : HP_OK;
    if (good && s == HP_OK) o->tmp[0] = '\0';
    hp_outfile_discard(o);
    if (good) return s;
    return hp_fail(err, HP_EIO, "%s: cannot write: %s; free some space or write elsewhere", o->path,
                   strerror(e ? e : EIO));
}

void hp_outfile_discard(hp_outfile *o) {
    if (o->f) fclose(o->f);
    o->f = NULL;
    if (o->tmp[0]) unlink(o->tmp);
    o->tmp[0] = '\0';
}
