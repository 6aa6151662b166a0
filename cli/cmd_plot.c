/* cmd_plot.c - pictures from plan and run databases, to a file or into the terminal. */
#include "cli/cli.h"
#include "plots/plots.h"

#include <string.h>

enum { MAX_FILES = 16 };

typedef struct options {
    const char *kind, *path[MAX_FILES], *output;
    int n_path;
    bool dumb, json;
} options;

static error_t parse_option(int key, char *arg, struct argp_state *state) {
    options *o = state->input;
    switch (key) {
    case 'o':
        o->output = arg;
        return 0;
    case 'd':
        o->dumb = true;
        return 0;
    case 'j':
        o->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (!o->kind)
            o->kind = arg;
        else if (o->n_path < MAX_FILES)
            o->path[o->n_path++] = arg;
        else
            argp_error(state, "at most %d files", MAX_FILES);
        return 0;
    case ARGP_KEY_END:
        if (!o->kind)
            argp_error(state,
                       "which plot of which file? For example: hplan plot timeline run.db -o timeline.svg");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static hp_status find_kind(const options *o, const hp_plot_kind **kind, hp_error *err) {
    *kind = hp_plot_find(o->kind);
    if (!*kind)
        return hp_fail(err, HP_EUSAGE, "there is no plot '%.40s'; there are timeline, scaling, memory, error",
                       o->kind);
    if (!(*kind)->draw)
        return hp_fail(err, HP_EUNAVAIL,
                       "this version does not have the plot '%s'; it has timeline, scaling, memory, error",
                       (*kind)->name);
    if (o->n_path == 0)
        return hp_fail(err, HP_EUSAGE, "%s of which file? For example: hplan plot %s run.db", o->kind,
                       o->kind);
    if (o->n_path > (*kind)->max_files)
        return hp_fail(err, HP_EUSAGE, "%s takes %d file%s, there are %d", o->kind, (*kind)->max_files,
                       (*kind)->max_files == 1 ? "" : "s", o->n_path);
    return HP_OK;
}

/* The terminal's format without -o, else by the suffix. */
static hp_status find_format(const options *o, hp_canvas_format *format, hp_error *err) {
    *format = HP_CANVAS_DUMB;
    if (!o->output) return HP_OK;
    if (o->dumb) return hp_fail(err, HP_EUSAGE, "--dumb prints to the terminal and takes no -o");
    const char *dot = strrchr(o->output, '.');
    if (dot && strcmp(dot, ".svg") == 0)
        *format = HP_CANVAS_SVG;
    else if (dot && strcmp(dot, ".png") == 0)
        *format = HP_CANVAS_PNG;
    else
        return hp_fail(err, HP_EUSAGE, "the output's name must end in .svg or .png");
    return HP_OK;
}

enum { DUMB_LINES = 40, DUMB_COLUMNS_MAX = 160 };

static hp_status open_canvas(const hp_plot_kind *kind, hp_canvas_format format, hp_canvas *c, hp_error *err) {
    if (format != HP_CANVAS_DUMB) return hp_canvas_open(format, kind->width, kind->height, c, err);
    const int columns = cli_width() < DUMB_COLUMNS_MAX ? cli_width() : DUMB_COLUMNS_MAX;
    return hp_canvas_open(format, columns - 1, DUMB_LINES, c, err);
}

static hp_status plot(hp_arena *arena, const options *o, hp_canvas *canvas, hp_error *err) {
    const hp_plot_kind *kind = NULL;
    hp_canvas_format format;
    HP_TRY(find_kind(o, &kind, err));
    HP_TRY(find_format(o, &format, err));
    hp_plot_source *s = HP_NEW(arena, hp_plot_source, o->n_path);
    for (int i = 0; i < o->n_path; i++) HP_TRY(hp_plot_load(arena, o->path[i], &s[i], err));
    HP_TRY(open_canvas(kind, format, canvas, err));
    HP_TRY(kind->draw(arena, s, o->n_path, canvas, err));
    if (o->output) {
        HP_TRY(hp_canvas_save(canvas, o->output, err));
        if (o->json) return cli_print_json(json_pack("{s:i, s:s}", "schema", 1, "kind", kind->name), err);
        char plain[4096];
        fprintf(stderr, "wrote %s\n", cli_plain(o->output, plain, sizeof plain));
        return HP_OK;
    }
    HP_TRY(hp_canvas_print(canvas, stdout, err));
    return cli_finish_stdout(err);
}

int cmd_plot(int argc, char **argv) {
    static const struct argp_option list[] = {
        {"output", 'o', "FILE", 0, "FILE.svg or FILE.png; without it the plot is printed to the terminal", 0},
        {"dumb", 'd', NULL, 0, "print it to the terminal", 0},
        {"json", 'j', NULL, 0, "with -o: say as JSON what was written", 0},
        {0}};
    static const struct argp argp = {
        list,
        parse_option,
        "KIND DB...",
        "Draws with gnuplot. KIND: timeline (one step of every rank), scaling (images/s by devices, from one "
        "or several plans), "
        "memory (planned and observed, by rank), error (predicted against measured, task by task).",
        NULL,
        NULL,
        NULL};
    options o = {0};
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    hp_error err = {0};
    hp_canvas canvas = {0};
    hp_arena *arena = hp_arena_new();
    const hp_status status = plot(arena, &o, &canvas, &err);
    hp_canvas_close(&canvas);
    hp_arena_free(arena);
    return status == HP_OK ? HP_OK : cli_report(&err);
}
