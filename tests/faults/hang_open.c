/* hang_open.c - preloaded: opening a file whose name holds "hang" never ends, as on a file system that does not answer.
 * HANG=disk: the thread waits in the kernel as for a disk, which a vfork whose child does not go on is, too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

FILE *fopen(const char *path, const char *mode);

FILE *fopen(const char *path, const char *mode) {
    FILE *(*const next)(const char *, const char *) =
        (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
    const char *how = getenv("HANG");
    if (how && strstr(path, "hang.png")) {
        if (strcmp(how, "disk") == 0 && vfork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;) pause();
        }
        for (;;) pause();
    }
    return next(path, mode);
}
