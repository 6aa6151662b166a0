/* words.c - calls the command line in a fork, reads its output, and compares that with patterns. */
#define _GNU_SOURCE /* vasprintf */
#include "tests/support/words/words.h"

#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <regex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_ARGUMENTS = 64, HANG_S = 900, SHOWN = 1200, PATTERN = 1024 };

int words_open(void **state) {
    words *w = calloc(1, sizeof *w);
    snprintf(w->scratch, sizeof w->scratch, "/tmp/hplan-words-XXXXXX");
    if (!mkdtemp(w->scratch) || chdir(w->scratch)) {
        print_error("no scratch folder %s: %s\n", w->scratch, strerror(errno));
        free(w);
        return -1;
    }
    char path[sizeof w->scratch + sizeof "/cache"];
    snprintf(path, sizeof path, "%s/cache", w->scratch); /* ignores the user's calibration of this machine */
    setenv("XDG_CACHE_HOME", path, 1);
    snprintf(path, sizeof path, "%s/state", w->scratch); /* nor their history */
    setenv("XDG_STATE_HOME", path, 1);
    unsetenv("HPLAN_NO_HISTORY");
    *state = w;
    return 0;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void)status, (void)kind, (void)place;
    return remove(path);
}

static void forget_last(words *w) {
    json_decref(w->json);
    free(w->command);
    free(w->out);
    free(w->err);
    w->json = NULL;
    w->command = w->out = w->err = NULL;
}

int words_close(void **state) {
    words *w = *state;
    const bool failed = chdir("/") || nftw(w->scratch, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    forget_last(w);
    free(w);
    return failed ? -1 : 0;
}

#ifdef HPLAN_SANITIZED
static const bool fast = false;
#else
static const bool fast = true;
#endif

bool words_all(const char *title) {
    const char *tier = getenv("HPLAN_TIER");
    if (fast && tier && !strcmp(tier, "all")) return true;
    fprintf(stderr, "left for --all: %s\n", title);
    return false;
}

/* Splits in place. */
static int split(char *text, char **word) {
    int n = 0;
    for (char *p = text; *p && n < MAX_ARGUMENTS;) {
        while (*p == ' ') p++;
        if (!*p) break;
        const char end = *p == '\'' ? '\'' : ' ';
        if (end == '\'') p++;
        word[n++] = p;
        while (*p && *p != end) p++;
        if (*p) *p++ = 0;
    }
    word[n] = NULL;
    return n;
}

/* The last function at exit, even after argp's exit. What would follow belongs to the test: its leak check,
 * whose result would replace the exit code. Memory errors are detected before that. */
static void leave(int status, void *unused) {
    (void)unused;
    fflush(NULL);
    _exit(status);
}

static _Noreturn void be_hplan(const char *command, int out, int err) {
    char *text = strdup(command), *argv[MAX_ARGUMENTS + 2];
    argv[0] = text ? "hplan" : NULL;
    const int argc = 1 + split(text, argv + 1), in = open("/dev/null", O_RDONLY);
    const int to = out < 0 ? close(STDOUT_FILENO) : dup2(out, STDOUT_FILENO);
    if (in < 0 || to < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0) _exit(126);
    on_exit(leave, NULL);
    alarm(HANG_S);
    exit(cli_main(argc, argv));
}

static char *read_all(FILE *f) {
    struct stat s;
    if (fstat(fileno(f), &s)) return NULL;
    char *text = malloc((size_t)s.st_size + 1);
    const ssize_t n = pread(fileno(f), text, (size_t)s.st_size, 0);
    text[n > 0 ? n : 0] = 0;
    return text;
}

/* Forks and waits; false if that failed. */
static bool run(words *w) {
    FILE *out = tmpfile(), *err = tmpfile();
    int status = 0;
    fflush(NULL); /* otherwise the child would write what the test has buffered */
    const pid_t child = out && err ? fork() : -1;
    if (!child) be_hplan(w->command, w->stdout_fd ? w->stdout_fd : fileno(out), fileno(err));
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    w->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    w->out = out ? read_all(out) : NULL;
    w->err = err ? read_all(err) : NULL;
    if (out) fclose(out);
    if (err) fclose(err);
    return child > 0 && w->out && w->err;
}

static void describe(const words *w, const char *file, int line) {
    print_error("%s:%d: hplan %.*s: exit %d\n  stdout: %.*s\n  stderr: %.*s\n", file, line, SHOWN, w->command,
                w->status, SHOWN, w->out, SHOWN, w->err);
}

static bool sanitizer_complains(const char *err) {
    return strstr(err, "AddressSanitizer") || strstr(err, "runtime error: ");
}

void words_call(words *w, const char *file, int line, int status, const char *format, ...) {
    va_list arguments;
    forget_last(w);
    va_start(arguments, format);
    const int n = vasprintf(&w->command, format, arguments);
    va_end(arguments);
    if (n < 0 || !run(w)) {
        print_error("%s:%d: no fork or no file: %s\n", file, line, strerror(errno));
        _fail(file, line);
    }
    const bool complaint = sanitizer_complains(w->err);
    if ((w->status == status || (status == ANY_STATUS && w->status < 128)) && !complaint) return;
    if (complaint) print_error("%s\n", w->err);
    describe(w, file, line);
    print_error("expected exit %d\n", status); /* or one without a sanitizer's report */
    _fail(file, line);
}

static bool matches(const char *text, const char *pattern, regmatch_t *found, size_t n) {
    regex_t compiled;
    if (regcomp(&compiled, pattern, REG_EXTENDED | REG_NEWLINE)) fail_msg("no pattern: %s", pattern);
    const bool yes = !regexec(&compiled, text, n, found, 0);
    regfree(&compiled);
    return yes;
}

void words_says(const words *w, const char *file, int line, const char *text, bool wanted, const char *format,
                ...) {
    char pattern[PATTERN];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(pattern, sizeof pattern, format, arguments);
    va_end(arguments);
    if (matches(text, pattern, NULL, 0) == wanted) return;
    describe(w, file, line);
    print_error("std%s %s '%s'\n", text == w->out ? "out" : "err", wanted ? "lacks" : "holds", pattern);
    _fail(file, line);
}

void words_one_line(const words *w, const char *file, int line) {
    const char *end = strchr(w->err, '\n');
    if (end && !end[1]) return;
    describe(w, file, line);
    print_error("not one line on stderr\n");
    _fail(file, line);
}

void words_rows(words *w, const char *file, int line, const words_row *rows, size_t n) {
    for (size_t i = 0; i < n; i++) {
        words_call(w, file, line, rows[i].status, "%s", rows[i].command);
        if (rows[i].out) words_says(w, file, line, w->out, true, "%s", rows[i].out);
        if (rows[i].err) words_says(w, file, line, w->err, true, "%s", rows[i].err);
    }
}

const char *words_match(const char *text, const char *pattern, char *out, size_t size) {
    regmatch_t found[2];
    *out = 0;
    if (!matches(text, pattern, found, 2) || found[1].rm_so < 0) return out;
    const size_t n = (size_t)(found[1].rm_eo - found[1].rm_so), kept = n < size ? n : size - 1;
    memcpy(out, text + found[1].rm_so, kept);
    out[kept] = 0;
    return out;
}

int words_count(const char *text, const char *pattern) {
    regmatch_t found[1];
    int n = 0;
    while (*text && matches(text, pattern, found, 1)) {
        const char *end = strchr(text + found[0].rm_so, '\n');
        n++;
        if (!end) break;
        text = end + 1;
    }
    return n;
}

void words_near(const char *file, int line, double a, double b, double part) {
    const double apart = a > b ? a - b : b - a, most = part * (b < 0 ? -b : b);
    if (apart <= most) return;
    print_error("%.17g is not %.17g\n", a, b);
    _fail(file, line);
}
