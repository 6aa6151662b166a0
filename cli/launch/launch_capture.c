/* launch_capture.c - runs a program with posix_spawn, a pipe and a deadline. */
#define _GNU_SOURCE /* pipe2 */
#include "cli/launch/launch_capture.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* Starts argv with stdout on `out_fd`, in its own process group, so that its children can be killed too. */
static bool spawn_program(const char *const *argv, int out_fd, pid_t *pid) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attr);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out_fd, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
    const int bad = posix_spawnp(pid, argv[0], &files, &attr, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    return !bad;
}

/* Appends what the pipe holds now; drops output beyond `size`. Returns false at its end. */
static bool read_some(int fd, char *out, size_t size, size_t *used) {
    char chunk[4096];
    ssize_t n;
    while ((n = read(fd, chunk, sizeof chunk)) > 0) {
        const size_t keep = (size_t)n < size - 1 - *used ? (size_t)n : size - 1 - *used;
        memcpy(out + *used, chunk, keep);
        *used += keep;
        out[*used] = 0;
    }
    return n < 0 && errno == EAGAIN;
}

/* Reads until the pipe ends or the child has ended: a process that it left behind may hold the pipe open.
 * `fd` does not block. Returns false at the deadline. */
static bool read_all(int fd, int child, double deadline_s, char *out, size_t size) {
    size_t used = 0;
    for (;;) {
        const double left_s = deadline_s - hp_now_s();
        struct pollfd p[] = {{.fd = fd, .events = POLLIN}, {.fd = child, .events = POLLIN}};
        if (left_s <= 0 || poll(p, 2, (int)(left_s * 1e3) + 1) <= 0) return false;
        if (!read_some(fd, out, size, &used) || p[1].revents) return true;
    }
}

/* Waits for the child until the deadline, then kills its group. */
static bool wait_child(pid_t pid, double deadline_s) {
    int status = 0;
    while (hp_now_s() < deadline_s) {
        const pid_t done = waitpid(pid, &status, WNOHANG);
        if (done == pid) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (done < 0) return false;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    kill(-pid, SIGKILL);
    waitpid(pid, &status, 0);
    return false;
}

bool cli_capture(const char *const *argv, double limit_s, char *out, size_t size) {
    int ends[2];
    pid_t pid;
    out[0] = 0;
    if (pipe2(ends, O_CLOEXEC)) return false;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    const double deadline_s = hp_now_s() + limit_s;
    const bool started = spawn_program(argv, ends[1], &pid);
    close(ends[1]);
    const int child =
        started ? (int)syscall(SYS_pidfd_open, pid, 0) : -1; /* poll leaves out what is negative */
    const bool whole = started && read_all(ends[0], child, deadline_s, out, size);
    close(ends[0]);
    if (child >= 0) close(child);
    return started && wait_child(pid, whole ? deadline_s : 0) && whole;
}

bool cli_in_path(const char *program) {
    const char *path = getenv("PATH");
    for (const char *p = path ? path : ""; *p;) {
        const size_t n = strcspn(p, ":");
        char file[PATH_MAX];
        snprintf(file, sizeof file, "%.*s/%s", n ? (int)n : 1, n ? p : ".", program);
        if (!access(file, X_OK)) return true;
        p += n + (p[n] == ':');
    }
    return false;
}
