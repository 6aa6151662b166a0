/* segments.c - removes Open MPI's shared memory files after a crash.
 *
 * Ranks of a node share files in /dev/shm, {vader,sm}_segment.HOST.UID.JOB.RANK (Open MPI,
 * opal/mca/btl/vader). Ranks remove them in MPI_Finalize, and the node's daemon does when ranks die. If the
 * daemon is killed, or loses its connection to mpirun, nobody does. So the first rank of every node starts a
 * process that detects its end through a pipe and then removes whatever no process maps any more. */
#define _GNU_SOURCE
#include "exec/comm/segments.h"

#include "base/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char FOLDER[] = "/dev/shm";

/* Other ranks exit within the deadline of the first that notices, plus its 10 s. What is still mapped after
 * this time is left. */
static const double PATIENCE_S = 60;

/* Copies the first mapping of `pid` that begins with `prefix`. */
static bool find_mapping(const char *pid, const char *prefix, char *out, size_t n) {
    char path[64], line[PATH_MAX + 128];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%.20s/maps", pid);
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        const char *file = strchr(line, '/');
        found = file && strncmp(file, prefix, strlen(prefix)) == 0;
        if (found) snprintf(out, n, "%.*s", (int)strcspn(file, " \n"), file);
    }
    if (f) fclose(f);
    return found;
}

/* --- the process that waits --- */

static bool is_mapped(const char *prefix) {
    char path[PATH_MAX];
    bool mapped = false;
    DIR *d = opendir("/proc");
    for (const struct dirent *e; d && !mapped && (e = readdir(d));)
        mapped =
            e->d_name[0] >= '1' && e->d_name[0] <= '9' && find_mapping(e->d_name, prefix, path, sizeof path);
    if (d) closedir(d);
    return mapped;
}

/* Returns how many there are. */
static int visit_segments(const char *prefix, bool removes) {
    const char *name = prefix + sizeof FOLDER;
    int n = 0;
    DIR *d = opendir(FOLDER);
    for (const struct dirent *e; d && (e = readdir(d));) {
        struct stat st;
        if (strncmp(e->d_name, name, strlen(name)) != 0) continue;
        if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_uid != geteuid()) continue;
        n++;
        if (removes) unlinkat(dirfd(d), e->d_name, 0);
    }
    if (d) closedir(d);
    return n;
}

static void clear(const char *prefix) {
    const double start_s = hp_now_s();
    while (visit_segments(prefix, false) > 0 && hp_now_s() - start_s < PATIENCE_S) {
        if (!is_mapped(prefix)) visit_segments(prefix, true);
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
}

/* Leaves the process group, whose end would end this process too, and closes the outputs, which a
 * launcher waits for. */
static void leave_rank(int keep) {
    const int most = (int)sysconf(_SC_OPEN_MAX), null = open("/dev/null", O_RDWR | O_CLOEXEC);
    setsid();
    prctl(PR_SET_NAME, "hplan-sweep");
    for (int fd = 0; fd < 3 && null >= 0; fd++) dup2(null, fd);
    for (int fd = 3; fd < most && fd < 4096; fd++)
        if (fd != keep) close(fd);
    for (int s = 1; s < NSIG; s++) signal(s, s == SIGTERM || s == SIGINT || s == SIGHUP ? SIG_IGN : SIG_DFL);
}

_Noreturn static void wait_for_end(int pipe) {
    char prefix[PATH_MAX];
    size_t used = 0;
    leave_rank(pipe);
    for (ssize_t n;
         used < sizeof prefix - 1 && (n = read(pipe, prefix + used, sizeof prefix - 1 - used)) > 0;)
        used += (size_t)n;
    prefix[used] = '\0';
    if (used > sizeof FOLDER) clear(prefix);
    _exit(0);
}

/* --- the rank --- */

static bool is_first_of_node(void) {
    static const char *const NAMES[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"};
    for (int i = 0; i < 2; i++)
        if (getenv(NAMES[i])) return strcmp(getenv(NAMES[i]), "0") == 0;
    return true;
}

int hp_segments_watch(void) {
    int end[2];
    if (!is_first_of_node() || pipe2(end, O_CLOEXEC) != 0) return -1;
    const pid_t pid = fork();
    if (pid == 0) wait_for_end(end[0]);
    close(end[0]);
    if (pid > 0) return end[1];
    close(end[1]);
    return -1;
}

void hp_segments_tell(int watch) {
    static const char *const KINDS[] = {"vader", "sm"}; /* Open MPI 4, 5 */
    char path[PATH_MAX], prefix[64];
    bool found = false;
    for (int i = 0; i < 2 && !found; i++) {
        snprintf(prefix, sizeof prefix, "%s/%s_segment.", FOLDER, KINDS[i]);
        found = find_mapping("self", prefix, path, sizeof path);
    }
    if (watch < 0 || !found) return;
    const size_t n = (size_t)(strrchr(path, '.') - path) + 1; /* prefix of all ranks' files */
    if (write(watch, path, n) != (ssize_t)n) close(watch);
}
