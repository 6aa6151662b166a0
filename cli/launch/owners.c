/* owners.c - one line per process: its role, host, number and start time. */
#include "cli/launch/owners.h"

#include "traces/faults/board.h"
#include "traces/faults/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH = 4300 };

static void this_host(char host[256]) {
    memset(host, 0, 256);
    gethostname(host, 255);
    if (!host[0]) strcpy(host, "-");
}

hp_status owners_note(const char *dir, const char *what, pid_t pid, hp_error *err) {
    char path[PATH], host[256], line[512];
    this_host(host);
    snprintf(path, sizeof path, "%s/processes", dir);
    const int n =
        snprintf(line, sizeof line, "%s %s %d %" PRIu64 "\n", what, host, (int)pid, hp_process_begin(pid));
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    const bool whole = fd >= 0 && write(fd, line, (size_t)n) == n;
    const int why = errno;
    if (fd >= 0) close(fd);
    return whole ? HP_OK : hp_fail(err, HP_EIO, "cannot write %s: %s", path, strerror(why));
}

int owners_read(const char *dir, owner list[OWNERS]) {
    char path[PATH], line[512];
    int n = 0;
    snprintf(path, sizeof path, "%s/processes", dir);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
    while (f && n < OWNERS && fgets(line, sizeof line, f)) {
        owner *o = &list[n];
        n += sscanf(line, "%15s %255s %" SCNd32 " %" SCNu64, o->what, o->host, &o->pid, &o->begin) == 4 &&
             o->pid > 1 && o->begin > 0;
    }
    if (f)
        fclose(f);
    else if (fd >= 0)
        close(fd);
    return n;
}

/* Ranks end with their launcher, but not immediately. */
static int32_t living_rank(const char *dir) {
    char path[PATH];
    struct stat st;
    hp_error ignored;
    int32_t pid = 0;
    snprintf(path, sizeof path, "%s/board", dir);
    const int n = stat(path, &st) == 0 ? (int)(st.st_size / (off_t)sizeof(hp_board_row)) - 1 : 0;
    hp_board_entry *entry = calloc((size_t)(n > 0 ? n : 1), sizeof *entry);
    HP_ASSERT(entry);
    if (n > 0 && hp_board_read(path, n, entry, &ignored) == HP_OK)
        for (int r = 0; r < n && !pid; r++)
            if (entry[r].pid > 1 && entry[r].begin > 0 && hp_process_begin(entry[r].pid) == entry[r].begin &&
                hp_process_state_of(entry[r].pid) != HP_PROCESS_GONE)
                pid = entry[r].pid;
    free(entry);
    return pid;
}

ownership owners_of(const char *dir, owner *who) {
    owner list[OWNERS];
    char host[256];
    const int n = owners_read(dir, list);
    this_host(host);
    for (int i = 0; i < n; i++) {
        *who = list[i];
        if (strcmp(list[i].host, host) != 0) return OWNED_ELSEWHERE;
        if (hp_process_begin(list[i].pid) == list[i].begin &&
            hp_process_state_of(list[i].pid) != HP_PROCESS_GONE)
            return OWNED_BY_RUN;
    }
    if (n == 0) return OWNED_UNKNOWN;
    const int32_t rank = living_rank(dir);
    if (!rank) return OWNED_BY_NOBODY;
    *who = (owner){.what = "a rank", .pid = rank};
    return OWNED_BY_RUN;
}
