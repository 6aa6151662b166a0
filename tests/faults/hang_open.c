/* hang_open.c - preloaded: opening a file whose name contains "hang" never returns, as on a file system that
 * does not answer. HANG=disk: the thread waits in the kernel as for a disk, by a vfork whose child does not
 * go on; the filter that would refuse it to a decoder (exec/data/image/confine.c) is left out. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/prctl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

FILE *fopen(const char *path, const char *mode);
int prctl(int option, ...);

int prctl(int option, ...) {
    va_list ap;
    va_start(ap, option);
    long a[4];
    for (int i = 0; i < 4; i++) a[i] = va_arg(ap, long);
    va_end(ap);
    return option == PR_SET_SECCOMP ? 0 : (int)syscall(SYS_prctl, option, a[0], a[1], a[2], a[3]);
}

FILE *fopen(const char *path, const char *mode) {
    FILE *(*const next)(const char *, const char *) =
        (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
    const char *how = getenv("HANG");
    if (how && strstr(path, "hang.png")) {
        if (strcmp(how, "disk") == 0 && vfork() == 0) {
            prctl(PR_SET_PDEATHSIG, (long)SIGKILL, 0L, 0L, 0L);
            for (;;) pause();
        }
        for (;;) pause();
    }
    return next(path, mode);
}
