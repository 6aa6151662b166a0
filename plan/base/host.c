/* host.c - host and processor as Linux names them: uname(2), /proc/cpuinfo. */
#include "plan/base/host.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

static const char *set(char *out, size_t n, const char *text) {
    snprintf(out, n, "%s", text);
    out[strcspn(out, "\n")] = 0;
    return out;
}

const char *hp_host_name(char *out, size_t n) {
    struct utsname u;
    return set(out, n, uname(&u) == 0 && u.nodename[0] ? u.nodename : "unknown");
}

/* Not every architecture has the line "model name". */
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
