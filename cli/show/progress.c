/* progress.c - progress of a long command on stderr: a bar on a terminal, otherwise a line every 30 s. */
#include "cli/cli.h"
#include "base/clock.h"

#include <string.h>
#include <time.h>

static const double bar_every_s = 0.1, line_every_s = 30;

enum { BAR = 20, LINE = 512, CLOCK = 24 };

static const char *clock_text(double seconds, char out[CLOCK]) {
    const long s = seconds < 1e9 ? (long)(seconds + 0.5) : 0;
    if (s >= 3600)
        snprintf(out, CLOCK, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, CLOCK, "%02ld:%02ld", s / 60, s % 60);
    return out;
}

/* "step 12/20  [00:03<00:02, 4.1/s]  loss 2.30", on a terminal with a bar before the times. */
static void line_text(const cli_progress *p, long done, const char *detail, double elapsed_s, bool bar,
                      char *out) {
    char drawn[BAR + 4] = "", elapsed[CLOCK], left[CLOCK] = "?";
    const double rate = elapsed_s > 0 ? (double)done / elapsed_s : 0;
    if (bar && p->total > 0) {
        const int full = (int)(done >= p->total ? BAR : BAR * done / p->total);
        snprintf(drawn, sizeof drawn, "|%*s| ", BAR, "");
        memset(drawn + 1, '.', BAR);
        memset(drawn + 1, '#', (size_t)full);
    }
    if (rate > 0 && p->total >= done) clock_text((double)(p->total - done) / rate, left);
    snprintf(out, LINE, "%s %ld/%ld  %s[%s<%s, %.3g/s]%s%s", p->what, done, p->total, drawn,
             clock_text(elapsed_s, elapsed), left, rate, detail && *detail ? "  " : "", detail ? detail : "");
}

static void print_line(const cli_progress *p, long done, const char *detail, double elapsed_s,
                       bool terminal) {
    char raw[LINE], text[LINE];
    line_text(p, done, detail, elapsed_s, terminal, raw);
    cli_plain(raw, text, sizeof text);
    if (!terminal) {
        fprintf(stderr, "%s\n", text);
        return;
    }
    const int width = cli_width() - 1;
    fprintf(stderr, "\r%-*.*s", width, width, text);
    fflush(stderr);
}

void cli_progress_start(cli_progress *p, const char *what, long total) {
    const double now = hp_now_s();
    *p = (cli_progress){.what = what, .total = total, .started_s = now, .shown_s = now};
}

void cli_progress_update(cli_progress *p, long done, const char *detail) {
    const bool terminal = cli_is_terminal(stderr);
    const double now = hp_now_s();
    const bool last = terminal && done == p->total;
    if (!last && now - p->shown_s < (terminal ? bar_every_s : line_every_s)) return;
    p->shown_s = now;
    print_line(p, done, detail, now - p->started_s, terminal);
}

void cli_progress_end(cli_progress *p) {
    if (cli_is_terminal(stderr) && p->shown_s > p->started_s) fputc('\n', stderr);
}
