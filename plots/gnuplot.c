/* gnuplot.c - runs gnuplot in a sandbox: no shell, no start-up files, no environment, its own folder, limits
 * on time, memory and file size, a deadline. It is killed when hplan ends. */
#define _GNU_SOURCE /* execvpe, pidfd_open */
#include "plots/canvas.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_NOT_FOUND = 127, EXIT_NO_START = 126 };

typedef struct limit {
    int resource;
    rlim_t value;
} limit;

static const limit caps[] = {
    {RLIMIT_CPU, 60},
    {RLIMIT_AS, (rlim_t)4 << 30}, /* fonts and a large picture need some 200 MB */
    {RLIMIT_FSIZE, (rlim_t)512 << 20},
    {RLIMIT_CORE, 0},
    {RLIMIT_NOFILE, 64},
};

/* In the child: only async-signal-safe calls. */
static void exec_gnuplot(const hp_canvas *c, const char *program) {
    static char *const environment[] = {"LC_ALL=C.UTF-8", "HOME=/nonexistent", NULL};
    char *const argv[] = {(char *)(uintptr_t)program, "-d", "script", NULL};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (size_t i = 0; i < sizeof caps / sizeof caps[0]; i++) {
        const struct rlimit r = {caps[i].value, caps[i].value};
        setrlimit((__rlimit_resource_t)caps[i].resource, &r);
    }
    const bool ready =
        chdir(c->dir) == 0 && dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO) >= 0 &&
        dup2(open("messages", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), STDERR_FILENO) >= 0 &&
        dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
    if (!ready) _exit(EXIT_NO_START);
    execvpe(program, argv, environment);
    _exit(errno == ENOENT || errno == EACCES ? EXIT_NOT_FOUND : EXIT_NO_START);
}

/* Waits for the child, at most `limit_s`; *late: it had to be killed. */
static int wait_child(pid_t child, double limit_s, bool *late) {
    const int fd = pidfd_open(child, 0);
    struct pollfd p = {fd, POLLIN, 0};
    int n = 0;
    if (fd >= 0)
        while ((n = poll(&p, 1, (int)(limit_s * 1000))) < 0 && errno == EINTR) continue;
    *late = fd >= 0 && n == 0;
    if (*late) kill(child, SIGKILL);
    if (fd >= 0) close(fd);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return status;
}

/* The last line that gnuplot wrote, without control characters. */
static void last_error_line(const hp_canvas *c, char *out, size_t n) {
    char path[512], line[300];
    snprintf(path, sizeof path, "%s/messages", c->dir);
    snprintf(out, n, "no message");
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        for (char *s = line; *s; s++)
            if ((unsigned char)*s < 0x20 || (unsigned char)*s >= 0x7f) *s = '?';
        if (line[0]) snprintf(out, n, "%s", line);
    }
    if (f) fclose(f);
}

static hp_status check_exit(const hp_canvas *c, const char *program, int status, hp_error *err) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return HP_OK;
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NOT_FOUND)
        return hp_fail(err, HP_EUNAVAIL, "%s is not installed; on Debian: apt-get install gnuplot-nox",
                       program);
    char words[300];
    last_error_line(c, words, sizeof words);
    if (strstr(words, "unknown or ambiguous terminal"))
        return hp_fail(err, HP_EUNAVAIL,
                       "this gnuplot cannot write %s; give the output a name that ends in .svg",
                       c->format == HP_CANVAS_PDF ? "PDF (it lacks pdfcairo)" : "PNG (it lacks pngcairo)");
    if (WIFSIGNALED(status))
        return hp_fail(err, HP_EINTERNAL, "%s was ended by signal %d", program, WTERMSIG(status));
    return hp_fail(err, HP_EINTERNAL, "%s failed (exit %d): %s", program, WEXITSTATUS(status), words);
}

hp_status hp_canvas_run(hp_canvas *c, const char *program, double limit_s, hp_error *err) {
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) return hp_fail(err, HP_EINTERNAL, "cannot start %s: %s", program, strerror(errno));
    if (child == 0) exec_gnuplot(c, program);
    bool late = false;
    const int status = wait_child(child, limit_s, &late);
    if (late) return hp_fail(err, HP_ESTALL, "%s took longer than %g s and was ended", program, limit_s);
    return check_exit(c, program, status, err);
}
