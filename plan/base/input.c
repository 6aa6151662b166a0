/* input.c - open does not wait for the other end of a pipe, reading does. */
#include "plan/base/input.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int hp_input_open(const char *path) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const int flags = fd < 0 ? -1 : fcntl(fd, F_GETFL);
    if (flags >= 0) fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    return fd;
}

FILE *hp_input_fopen(const char *path) {
    const int fd = hp_input_open(path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    if (fd >= 0 && !f) {
        const int why = errno;
        close(fd);
        errno = why;
    }
    return f;
}
