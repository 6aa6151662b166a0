/* cmd_plot.c - pictures from plan and run databases, to a file or into the terminal. */
#include "cli/history/history_line.h"
#include "cli/report/memory_bars.h"
#include "cli/show/comm_panels.h"
#include "cli/show/frame.h"
#include "base/host.h"
#include "base/nearest.h"
#include "base/text.h"
#include "plots/plots.h"
#include "traces/trace_text.h"

#include <string.h>

enum { PLOT_FILES = 16 };

typedef struct options {
    const char *output, *size;
    bool dumb, json, history;
} options;

/* `error` of no file is that of the history. */
static bool is_of_history(const options *o, const hp_plot_kind *kind, int n_path) {
    return kind->draw == hp_plot_error && (o->history || n_path == 0);
}

static hp_status check_history(const options *o, const hp_plot_kind *kind, int n_path, hp_error *err) {
    if (!o->history) return HP_OK;
    if (kind->draw != hp_plot_error)
        return hp_fail(err, HP_EUSAGE, "--history is of the plot error; there is no %s of the history",
                       kind->name);
    return n_path == 0 ? HP_OK : hp_fail(err, HP_EUSAGE, "--history takes no file; leave out one of them");
}

static hp_status fail_unknown(const char *name, hp_error *err) {
    enum { MOST = 16 };
    const char *names[MOST];
    char text[200] = "";
    int n = 0;
    for (const hp_plot_kind *k = hp_plot_kinds; k->name && n < MOST; k++) {
        hp_text_add((hp_text){text, sizeof text}, "%s%s", n ? ", " : "", k->name);
        names[n++] = k->name;
    }
    const char *near = hp_nearest(name, names, n);
    if (near) return hp_fail(err, HP_EUSAGE, "there is no plot '%.40s': did you mean '%s'?", name, near);
    return hp_fail(err, HP_EUSAGE, "there is no plot '%.40s'; there are %s", name, text);
}

/* first: the first file; NULL: there is none. */
static hp_status find_kind(const char *name, const char *first, const options *o, int n_path,
                           const hp_plot_kind **kind, hp_error *err) {
    *kind = hp_plot_find(name);
    if (!*kind && first && hp_plot_find(first))
        return hp_fail(err, HP_EUSAGE, "the kind comes before the files: hplan plot %s %.200s", first, name);
    if (!*kind) return fail_unknown(name, err);
    HP_TRY(check_history(o, *kind, n_path, err));
    if (n_path == 0 && !is_of_history(o, *kind, n_path))
        return hp_fail(err, HP_EUSAGE, "%s of which file? For example: hplan plot %s run.db", name, name);
    if (n_path > (*kind)->max_files)
        return hp_fail(err, HP_EUSAGE, "%s takes %d file%s, there are %d", name, (*kind)->max_files,
                       (*kind)->max_files == 1 ? "" : "s", n_path);
    return HP_OK;
}

static bool is_stdout(const options *o) {
    return o->output && strcmp(o->output, "-") == 0;
}

/* The terminal's format without -o, else by the suffix; stdout takes SVG. */
static hp_status find_format(const options *o, hp_canvas_format *format, hp_error *err) {
    *format = HP_CANVAS_DUMB;
    if (!o->output) return HP_OK;
    if (o->dumb) return hp_fail(err, HP_EUSAGE, "--dumb prints to the terminal and takes no -o");
    if (is_stdout(o) && o->json)
        return hp_fail(err, HP_EUSAGE, "-o -: stdout cannot take the plot and --json: give a file name");
    *format = HP_CANVAS_SVG;
    return is_stdout(o) ? HP_OK : hp_canvas_format_of(o->output, format, err);
}

enum { DUMB_LINES = 40, DUMB_COLUMNS_MAX = 160 };

/* Of --size WxH, else the kind's. */
static hp_status find_size(const options *o, const hp_plot_kind *kind, int *width, int *height,
                           hp_error *err) {
    enum { LEAST = 200, MOST = 10000 }; /* fewer pixels have no room for axes; gnuplot takes more, slowly */
    char end = 0;
    *width = kind->width;
    *height = kind->height;
    if (!o->size) return HP_OK;
    if (!o->output) return hp_fail(err, HP_EUSAGE, "--size is of a picture in a file: add -o FILE.svg");
    const bool good = strspn(o->size, "0123456789x") == strlen(o->size) && strlen(o->size) <= 11 &&
                      sscanf(o->size, "%dx%d%c", width, height, &end) == 2;
    if (!good) return hp_fail(err, HP_EUSAGE, "--size %.40s: not WIDTHxHEIGHT, as in 600x400", o->size);
    if (*width < LEAST || *height < LEAST || *width > MOST || *height > MOST)
        return hp_fail(err, HP_EUSAGE, "--size %s: width and height are between %d and %d pixels", o->size,
                       LEAST, MOST);
    return HP_OK;
}

static hp_status open_canvas(const options *o, const hp_plot_kind *kind, hp_canvas_format format,
                             hp_canvas *c, hp_error *err) {
    int width, height;
    HP_TRY(find_size(o, kind, &width, &height, err));
    if (format != HP_CANVAS_DUMB) return hp_canvas_open(format, width, height, c, err);
    const int columns = cli_width() < DUMB_COLUMNS_MAX ? cli_width() : DUMB_COLUMNS_MAX;
    return hp_canvas_open(format, columns - 1, DUMB_LINES, c, err);
}

static hp_status draw_history(hp_arena *arena, hp_canvas *canvas, hp_error *err) {
    hp_ledger_entry *e = NULL;
    int n = 0;
    char path[4096], here[128], line[HISTORY_LINE];
    HP_TRY(hp_ledger_read(arena, hp_ledger_path(path, sizeof path), &e, &n, err));
    bool *use = HP_NEW(arena, bool, n);
    const history_figures figures = history_sum(e, n, hp_host_processor(here, sizeof here), use);
    return hp_plot_history(e, use, n, history_line(&figures, line), canvas, err);
}

static hp_status draw_costs(const frame *f, hp_canvas *canvas, hp_error *err) {
    hp_plot_comm_source s;
    HP_TRY(comm_panels_read(f->arena, f->word[1], &s, err));
    return hp_plot_comm(&s, canvas, err);
}

static hp_status draw_files(const frame *f, const hp_plot_kind *kind, int n_path, hp_canvas *canvas,
                            hp_error *err) {
    if (!kind->draw) return draw_costs(f, canvas, err);
    hp_plot_source *s = HP_NEW(f->arena, hp_plot_source, n_path);
    for (int i = 0; i < n_path; i++) HP_TRY(kind->load(f->arena, f->word[i + 1], &s[i], err));
    if (kind->draw == hp_plot_memory) memory_bars_read(f->arena, f->word[1], s);
    return kind->draw(f->arena, s, n_path, canvas, err);
}

static hp_status draw(const frame *f, hp_canvas *canvas, hp_error *err) {
    const options *o = f->options;
    const int n_path = f->n_word - 1; /* after the kind */
    const hp_plot_kind *kind = NULL;
    hp_canvas_format format;
    HP_TRY(find_kind(f->word[0], n_path ? f->word[1] : NULL, o, n_path, &kind, err));
    HP_TRY(find_format(o, &format, err));
    HP_TRY(open_canvas(o, kind, format, canvas, err));
    HP_TRY(is_of_history(o, kind, n_path) ? draw_history(f->arena, canvas, err)
                                          : draw_files(f, kind, n_path, canvas, err));
    if (o->output) {
        HP_TRY(hp_canvas_save(canvas, o->output, err));
        if (o->json)
            return cli_print_json(json_pack("{s:i, s:s, s:s}", "schema", 1, "kind", kind->name, "file",
                                            hp_text_clean(f->arena, o->output)),
                                  err);
        char plain[4096];
        fprintf(stderr, "wrote %s\n", cli_plain(o->output, plain, sizeof plain));
        return HP_OK;
    }
    HP_TRY(hp_canvas_print(canvas, stdout, err));
    return cli_finish_stdout(err);
}

static hp_status plot(frame *f, hp_error *err) {
    hp_canvas canvas = {0};
    const hp_status status = draw(f, &canvas, err);
    hp_canvas_close(&canvas);
    return status;
}

int cmd_plot(int argc, char **argv) {
    static const frame_option list[] = {
        {"output", 'o', "FILE", offsetof(options, output), 0,
         "FILE.svg, .png or .pdf; - is stdout, as SVG; without it the plot is printed to the terminal"},
        {"size", 0, "WxH", offsetof(options, size), 0,
         "with -o: width and height in pixels, of PDF in points"},
        {"dumb", 'd', NULL, offsetof(options, dumb), 0, "print it to the terminal"},
        {"history", 0, NULL, offsetof(options, history), 0,
         "error of the runs of the history, without a file"},
        {"json", 'j', NULL, offsetof(options, json), 0, "with -o: say as JSON what was written"},
        {0}};
    static const frame_command command = {
        .option = list,
        .usage = "KIND DB...\nerror",
        .doc = "Draws with gnuplot. KIND: timeline (one step of every rank), scaling (images/s by devices, "
               "from one or several plans, a line per strategy that was swept, runs beside them as points), "
               "memory (planned by what it is for, and observed, by rank), error (predicted against "
               "measured, task by task; without a file run by run of the history), comm (time of collectives "
               "by size, of "
               "a cost table or of the one in a plan or run, and which back end and algorithm is the "
               "fastest), precision "
               "(throughput, "
               "memory and latency by precision and image "
               "size, from one or several bench databases), pareto (images/s against memory and device hours "
               "of the "
               "strategies of one "
               "or several plans, and which of them nothing beats), size (time of a step and memory by the "
               "length of a text or the side of an image, of plans of several, a line per strategy).",
        .min_word = 1,
        .max_word = 1 + PLOT_FILES,
        .too_few = "which plot of which file? For example: hplan plot timeline run.db -o timeline.svg",
        .too_many = "at most 16 files",
        .run = plot};
    options o = {0};
    return frame_run(&command, &o, argc, argv);
}
