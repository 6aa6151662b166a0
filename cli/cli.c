/* cli.c - functions shared by all subcommands: messages, JSON, checked writes to stdout, the terminal. */
#include "cli/cli.h"

#include "cli/manual/manual.h"

#include "base/alloc.h"

#include <errno.h>
#include <signal.h>
#include <limits.h>
#include <math.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { DEFAULT_WIDTH = 80, MAX_SIDE = 1 << 20 };

/* Replaces control characters: C0, DEL, and C1 as UTF-8 (C2 80 .. C2 9F). */
const char *cli_plain(const char *text, char *out, size_t size) {
    size_t n = 0;
    for (const unsigned char *p = (const unsigned char *)text; *p && n + 1 < size; p++) {
        const bool c1 = p[0] == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f;
        if (c1) p++;
        out[n++] = c1 || *p < 0x20 || *p == 0x7f ? '?' : (char)*p;
    }
    out[n] = 0;
    return out;
}

int cli_report(const hp_error *err) {
    char text[sizeof err->text];
    fprintf(stderr, "hplan: %s\n", cli_plain(err->text, text, sizeof text));
    return (int)err->code;
}

/* A variable of a script that is not set, in quotes, is an empty argument; no option or file means one. */
static void refuse_empty(int argc, char **argv) {
    hp_error err;
    for (int i = 1; i < argc; i++)
        if (!*argv[i]) {
            hp_fail(&err, HP_EUSAGE, "%s: argument %d is empty; a shell variable that is not set?", argv[0],
                    i);
            exit(cli_report(&err));
        }
}

void cli_parse(const struct argp *argp, unsigned flags, int argc, char **argv, void *input) {
    const char *last = argc > 1 ? argv[argc - 1] : NULL;
    if (last == manual_ask_page) manual_print_page(argp, argv[0]);
    if (last == manual_ask_words) manual_print_words(argp, argv[0], argc - 2, argv + 1);
    if (last == manual_ask_page || last == manual_ask_words) exit(HP_OK);
    refuse_empty(argc, argv);
    if (argp_parse(argp, argc, argv, flags, NULL, input) == ENOMEM) hp_allocated(NULL);
}

hp_status cli_print_json(json_t *object, hp_error *err) {
    if (!object)
        return hp_fail(err, HP_EINTERNAL, "a JSON object could not be built (a number that is not finite?)");
    /* one line; 17 digits reproduce every double; ASCII so that no control character reaches a terminal */
    const int bad = json_dumpf(object, stdout, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(17));
    json_decref(object);
    if (!bad) putchar('\n');
    return cli_finish_stdout(err);
}

json_t *cli_json_number(double v) {
    return isfinite(v) ? json_real(v) : json_null();
}

json_t *cli_json_known(double v) {
    return v > 0 ? json_real(v) : json_null();
}

hp_status cli_finish_stdout(hp_error *err) {
    errno = 0;
    const bool failed = fflush(stdout) != 0 || ferror(stdout);
    if (!failed) return HP_OK;
    const int why = errno;
    __fpurge(stdout); /* reported once: do not retry the write at exit */
    clearerr(stdout);
    if (why == EPIPE) return hp_fail(err, (hp_status)(128 + SIGPIPE), "nobody reads stdout any more");
    return hp_fail(err, HP_EIO, "writing to stdout failed: %s",
                   why ? strerror(why) : "an earlier write had failed");
}

bool cli_is_terminal(FILE *f) {
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    if (no_color && *no_color) return false;
    return term && *term && strcmp(term, "dumb") != 0 && isatty(fileno(f));
}

int cli_width(void) {
    struct winsize size;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (isatty(fd) && !ioctl(fd, TIOCGWINSZ, &size) && size.ws_col > 0) return size.ws_col;
    return DEFAULT_WIDTH;
}

hp_status cli_parse_image(const char *text, int *h, int *w, hp_error *err) {
    int read = 0;
    const bool digit = *text >= '0' && *text <= '9';
    if (digit && sscanf(text, "%9dx%9d%n", h, w, &read) == 2 && !text[read])
        ;
    else if (digit && sscanf(text, "%9d%n", h, &read) == 1 && !text[read])
        *w = *h;
    else
        return hp_fail(err, HP_EUSAGE,
                       "--image: '%.40s' is not a size: write 224, or 480x640 (height x width)", text);
    if (*h < 1 || *w < 1 || *h > MAX_SIDE || *w > MAX_SIDE)
        return hp_fail(err, HP_EUSAGE, "--image: %dx%d is outside 1 to %d pixels a side", *h, *w,
                       (int)MAX_SIDE);
    return HP_OK;
}

void cli_executor_path(char *path, size_t size) {
    char dir[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", dir, sizeof dir - 1);
    dir[n > 0 ? n : 0] = 0;
    char *slash = strrchr(dir, '/');
    if (slash) *slash = 0;
    snprintf(path, size, "%s/hplan-exec", slash ? dir : ".");
}
