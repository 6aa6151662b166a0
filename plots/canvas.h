/* canvas.h - a gnuplot picture under construction: a temporary folder with a script, data
 * files and the result.
 *
 * The script contains only compiled-in text and numbers. Other text goes into data files, from which gnuplot
 * reads it as string values: it is never parsed. gnuplot runs in that folder without a shell, without the
 * user's start-up files or environment, under resource limits and a deadline. */
#ifndef HP_CANVAS_H
#define HP_CANVAS_H

#include "base/status.h"

typedef enum hp_canvas_format {
    HP_CANVAS_SVG,
    HP_CANVAS_PNG,
    HP_CANVAS_PDF,
    HP_CANVAS_DUMB
} hp_canvas_format;

typedef struct hp_canvas {
    char dir[256];
    hp_canvas_format format;
    int width, height;
    int columns; /* characters of a title that fit on a line */
    FILE *script;
} hp_canvas;

/* The format of a file's name. Errors: HP_EUSAGE (it ends in none of .svg, .png and .pdf). */
hp_status hp_canvas_format_of(const char *path, hp_canvas_format *format, hp_error *err);

/* Size in pixels, for HP_CANVAS_PDF in points, for HP_CANVAS_DUMB in characters. Errors: HP_ECREATE (no
 * temporary folder; set TMPDIR). */
hp_status hp_canvas_open(hp_canvas_format format, int width, int height, hp_canvas *c, hp_error *err);
void hp_canvas_close(hp_canvas *c); /* removes the folder; safe on a zeroed canvas */

/* Opens a data file, tab separated; `name` is compiled in. Errors: HP_EIO (disk full). */
hp_status hp_canvas_data(hp_canvas *c, const char *name, FILE **f, hp_error *err);
/* Closes a data file. Errors: HP_EIO (disk full). */
hp_status hp_canvas_data_end(FILE *f, hp_error *err);
/* Writes one text cell of a data file, quoted; replaces control characters, quotes and backslashes. */
void hp_canvas_text(FILE *f, const char *text);
/* Sets the script's variable `name`. */
void hp_canvas_number(hp_canvas *c, const char *name, double value);
/* Sets the picture's title on as many lines as it needs, because gnuplot cuts off wider ones. */
hp_status hp_canvas_title(hp_canvas *c, const char *text, hp_error *err);

/* Appends `script` (compiled in) and runs gnuplot. Errors: HP_EUNAVAIL (no gnuplot, or it writes no such
 * format), HP_ESTALL, HP_EINTERNAL with gnuplot's message. */
hp_status hp_canvas_render(hp_canvas *c, const char *script, hp_error *err);
/* Copies the picture to `path` (by rename) or a stream. Errors: HP_ECREATE, HP_EIO. */
hp_status hp_canvas_save(const hp_canvas *c, const char *path, hp_error *err);
hp_status hp_canvas_print(const hp_canvas *c, FILE *f, hp_error *err);

/* hp_canvas_render with another program (found in PATH) and time limit. */
hp_status hp_canvas_run(hp_canvas *c, const char *program, double limit_s, hp_error *err);

#endif
