/* host.c - host and processor names from Linux (uname(2), /proc/cpuinfo), its boot id; the home directory
 * from the environment or the user database. */
#include "base/host.h"

#include "base/hash.h"

#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static const char *set(char *out, size_t n, const char *text) {
    snprintf(out, n, "%s", text);
    out[strcspn(out, "\n")] = 0;
    return out;
}

const char *hp_host_name(char *out, size_t n) {
    struct utsname u;
    return set(out, n, uname(&u) == 0 && u.nodename[0] ? u.nodename : "unknown");
}

/* Some architectures have no "model name" line. */
const char *hp_host_processor(char *out, size_t n) {
    static const char key[] = "model name";
    struct utsname u;
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "re");
    set(out, n, uname(&u) == 0 ? u.machine : "unknown");
    while (f && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, key, strlen(key)) != 0 || !colon) continue;
        set(out, n, colon + 1 + strspn(colon + 1, " \t"));
        break;
    }
    if (f) fclose(f);
    return out;
}

uint64_t hp_node_id(void) {
    char text[HOST_NAME_MAX + 64] = "";
    gethostname(text, HOST_NAME_MAX);
    const size_t n = strlen(text);
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t more = fd < 0 ? 0 : read(fd, text + n, sizeof text - n - 1);
    if (fd >= 0) close(fd);
    return hp_hash64(text, n + (more > 0 ? (size_t)more : 0), 0);
}

bool hp_host_avx512(void) {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f");
#else
    return false;
#endif
}

/* Jobs and services may have no HOME. "" yields a path in /, where only root can write. */
static const char *home_of_user(void) {
    const char *home = getenv("HOME");
    if (home && home[0] == '/') return home;
    const struct passwd *user = getpwuid(geteuid());
    return user && user->pw_dir && user->pw_dir[0] == '/' ? user->pw_dir : "";
}

const char *hp_user_path(const char *variable, const char *below, const char *file, char *out, size_t n) {
    const char *folder = getenv(variable);
    if (folder && folder[0] == '/')
        snprintf(out, n, "%s/hplan/%s", folder, file);
    else
        snprintf(out, n, "%s/%s/hplan/%s", home_of_user(), below, file);
    return out;
}
