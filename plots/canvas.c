/* canvas.c - a picture's temporary folder and files, and copying the result out. */
#include "plots/canvas.h"

#include <stdbool.h>
#include "traces/outfile.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

enum {
    PIXELS_PER_LETTER = 8, /* width of DejaVu Sans at 13 points, approximately */
    MARGINS = 60           /* a title is centred over the axes, not over the picture */
};

/* What gnuplot draws with. Sizes are pixels, in PDF points of 1/72 inch, on a terminal characters. */
typedef struct output {
    const char *suffix, *terminal;
    double scale; /* from the picture's size to the terminal's unit */
} output;
static const output outputs[] = {
    [HP_CANVAS_SVG] =
        {".svg",
         "set terminal svg rounded size %g,%g noenhanced font 'DejaVu Sans,13' background '#ffffff'\n", 1},
    [HP_CANVAS_PNG] =
        {".png",
         "set terminal pngcairo rounded size %g,%g noenhanced font 'DejaVu Sans,11' background '#ffffff'\n",
         1},
    [HP_CANVAS_PDF] =
        {".pdf",
         "set terminal pdfcairo rounded size %gin,%gin noenhanced font 'DejaVu Sans,13' fontscale 1 "
         "background '#ffffff'\n",
         1.0 / 72},
    [HP_CANVAS_DUMB] = {NULL, "set terminal dumb noenhanced size %g,%g\n", 1},
};

/* Every script starts with this: text columns are values, markup is disabled, all kinds look alike. */
static const char preamble[] = "set encoding utf8\n"
                               "set output 'out'\n"
                               "set datafile separator '\\t'\n"
                               "set datafile missing 'NaN'\n"
                               "set border 3 lc rgb '#444444'\n"
                               "set tics nomirror out textcolor rgb '#222222'\n"
                               "set grid lc rgb '#dddddd' lw 1 dt 1\n"
                               "set key noenhanced\n"
                               "picture_title = ''\n"
                               /* 1, 2 or 5 times a power of ten: the next above r */
                               "power(r) = 10.0 ** floor(log10(r))\n"
                               "nice(r) = power(r) * (r > 5 * power(r) ? 10 : r > 2 * power(r) ? 5 : 2)\n";

static const char read_title[] =
    "set table $ignored\n"
    "join(a, b) = strlen(a) ? a.\"\\n\".b : b\n"
    "plot 'title' using (picture_title = join(picture_title, strcol(1)), 0):(0) with table\n"
    "unset table\n";

static void path_in(const hp_canvas *c, const char *name, char out[512]) {
    snprintf(out, 512, "%s/%s", c->dir, name);
}

static FILE *open_in(const hp_canvas *c, const char *name, const char *mode) {
    char path[512];
    path_in(c, name, path);
    return fopen(path, mode);
}

static hp_status make_dir(hp_canvas *c, hp_error *err) {
    const char *tmp = getenv("TMPDIR");
    if (!tmp || tmp[0] != '/' || strlen(tmp) > 200) tmp = "/tmp";
    snprintf(c->dir, sizeof c->dir, "%s/hplan-plot-XXXXXX", tmp);
    if (mkdtemp(c->dir)) return HP_OK;
    c->dir[0] = '\0';
    return hp_fail(err, HP_ECREATE,
                   "cannot make a temporary folder in %s: %s; set TMPDIR to a folder with space", tmp,
                   strerror(errno));
}

hp_status hp_canvas_format_of(const char *path, hp_canvas_format *format, hp_error *err) {
    const char *dot = strrchr(path, '.');
    for (int i = 0; dot && outputs[i].suffix; i++) {
        *format = (hp_canvas_format)i;
        if (strcmp(dot, outputs[i].suffix) == 0) return HP_OK;
    }
    return hp_fail(err, HP_EUSAGE, "the output's name must end in .svg, .png or .pdf");
}

hp_status hp_canvas_open(hp_canvas_format format, int width, int height, hp_canvas *c, hp_error *err) {
    memset(c, 0, sizeof *c);
    c->format = format;
    c->width = width;
    c->height = height;
    c->columns = format == HP_CANVAS_DUMB ? width - 2 : (width - MARGINS) / PIXELS_PER_LETTER;
    HP_TRY(make_dir(c, err));
    c->script = open_in(c, "script", "we");
    if (!c->script) {
        hp_fail(err, HP_ECREATE, "%s: cannot create a file: %s", c->dir, strerror(errno));
        hp_canvas_close(c);
        return HP_ECREATE;
    }
    const output *o = &outputs[format];
    fprintf(c->script, o->terminal, width * o->scale, height * o->scale);
    fputs(preamble, c->script);
    if (format == HP_CANVAS_DUMB) fputs("unset grid\n", c->script);
    hp_canvas_number(c, "is_dumb", format == HP_CANVAS_DUMB);
    hp_canvas_number(c, "width", width);
    hp_canvas_number(c, "height", height);
    return HP_OK;
}

void hp_canvas_close(hp_canvas *c) {
    if (c->script) fclose(c->script);
    c->script = NULL;
    DIR *d = c->dir[0] ? opendir(c->dir) : NULL;
    if (!d) return;
    for (struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    rmdir(c->dir);
    c->dir[0] = '\0';
}

hp_status hp_canvas_data(hp_canvas *c, const char *name, FILE **f, hp_error *err) {
    *f = open_in(c, name, "we");
    if (*f) return HP_OK;
    return hp_fail(err, HP_EIO, "%s/%s: cannot create: %s", c->dir, name, strerror(errno));
}

hp_status hp_canvas_data_end(FILE *f, hp_error *err) {
    const int bad = ferror(f);
    if (fclose(f) == 0 && !bad) return HP_OK;
    return hp_fail(err, HP_EIO,
                   "cannot write the plot's data: no space left? set TMPDIR to a folder with space");
}

void hp_canvas_text(FILE *f, const char *text) {
    fputc('"', f);
    for (const unsigned char *s = (const unsigned char *)text; *s; s++)
        fputc(*s < 0x20 || *s == 0x7f ? '?' : *s == '"' ? '\'' : *s == '\\' ? '/' : *s, f);
    fputc('"', f);
}

void hp_canvas_number(hp_canvas *c, const char *name, double value) {
    fprintf(c->script, "%s = %.17g\n", name, value);
}

/* Length in bytes of the next line of a title: up to a space or a comma if there is one. */
static int line_length(const char *text, int columns) {
    const int most = columns < 255 ? columns : 255, all = (int)strlen(text);
    if (all <= most) return all;
    int n = most;
    while (n > 0 && text[n - 1] != ' ' && text[n - 1] != ',') n--;
    if (n == 0) n = most;
    while (n > 1 && ((unsigned char)text[n] & 0xc0) == 0x80) n--; /* do not split a character */
    return n;
}

hp_status hp_canvas_title(hp_canvas *c, const char *text, hp_error *err) {
    FILE *f = NULL;
    HP_TRY(hp_canvas_data(c, "title", &f, err));
    for (int n; *text; text += n) {
        char line[256];
        n = line_length(text, c->columns);
        snprintf(line, sizeof line, "%.*s", n, text);
        hp_canvas_text(f, line);
        fputc('\n', f);
    }
    fputs(read_title, c->script);
    return hp_canvas_data_end(f, err);
}

static hp_status close_script(hp_canvas *c, hp_error *err) {
    const int bad = ferror(c->script);
    const int failed = fclose(c->script) != 0 || bad;
    c->script = NULL;
    if (!failed) return HP_OK;
    return hp_fail(err, HP_EIO, "%s: cannot write: no space left? set TMPDIR to a folder with space", c->dir);
}

hp_status hp_canvas_render(hp_canvas *c, const char *script, hp_error *err) {
    fputs(script, c->script);
    fputs("\nunset output\n", c->script);
    HP_TRY(close_script(c, err));
    return hp_canvas_run(c, "gnuplot", 60,
                         err); /* a plot takes about a second; after a minute something is wrong */
}

static hp_status copy_out(const hp_canvas *c, FILE *to, hp_error *err) {
    FILE *from = open_in(c, "out", "re");
    if (!from) return hp_fail(err, HP_EINTERNAL, "gnuplot made no picture");
    char buffer[65536];
    size_t n;
    while ((n = fread(buffer, 1, sizeof buffer, from)) > 0)
        fwrite(buffer, 1, n, to); /* checked by the caller */
    fclose(from);
    return HP_OK;
}

hp_status hp_canvas_print(const hp_canvas *c, FILE *f, hp_error *err) {
    return copy_out(c, f, err);
}

hp_status hp_canvas_save(const hp_canvas *c, const char *path, hp_error *err) {
    hp_outfile o;
    HP_TRY(hp_outfile_open(path, &o, err));
    const hp_status s = copy_out(c, o.f, err);
    if (s == HP_OK) return hp_outfile_commit(&o, err);
    hp_outfile_discard(&o);
    return s;
}
