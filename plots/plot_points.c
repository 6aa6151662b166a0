/* plot_points.c - other people's measurements for the scaling plot, as a text: "source: TEXT", then the
 * devices and images/s of one point per line; # begins a comment line. */
#include "plots/plots.h"

#include "base/input.h"
#include "traces/trace_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_POINTS = 1000, LINE = 1024 };

/* Database files begin with these words (SQLite, "Database File Format"). */
static bool is_text(const char *path) {
    char head[16] = "";
    FILE *f = hp_input_fopen(path);
    const size_t n = f ? fread(head, 1, sizeof head, f) : 0;
    if (f) fclose(f);
    return n > 0 && memcmp(head, "SQLite format 3", n < sizeof head ? n : sizeof head) != 0 &&
           !memchr(head, '\0', n);
}

static hp_status read_point(const char *line, const char *path, int number, hp_plot_source *s,
                            hp_error *err) {
    char *rest, *end;
    const double gpus = strtod(line, &rest), rate = strtod(rest, &end);
    end += strspn(end, " \t\r\n");
    const bool good = rest != line && end != rest && !*end && gpus >= 1 && gpus <= 1e9 &&
                      gpus == floor(gpus) && isfinite(rate) && rate > 0;
    if (!good)
        return hp_fail(err, HP_EDATA,
                       "%s line %d: expected devices and images/s, for example 8 2048: '%.60s'", path, number,
                       line);
    if (s->points.n == MOST_POINTS)
        return hp_fail(err, HP_EDATA, "%s line %d: more than %d points", path, number, MOST_POINTS);
    s->points.at[s->points.n++] = (hp_plot_point){gpus, rate};
    return HP_OK;
}

static hp_status read_line(hp_arena *arena, char *line, int number, hp_plot_source *s, hp_error *err) {
    static const char key[] = "source:";
    line[strcspn(line, "\r\n")] = '\0';
    line += strspn(line, " \t");
    if (!*line || *line == '#') return HP_OK;
    if (strncmp(line, key, strlen(key)) != 0) return read_point(line, s->path, number, s, err);
    s->points.from = hp_text_clean(arena, line + strlen(key) + strspn(line + strlen(key), " \t"));
    return HP_OK;
}

static hp_status load_points(hp_arena *arena, const char *path, hp_plot_source *s, hp_error *err) {
    char line[LINE];
    hp_status status = HP_OK;
    FILE *f = hp_input_fopen(path);
    if (!f) return hp_fail(err, HP_EDATA, "%s: cannot be read", path);
    *s = (hp_plot_source){.net = "", .path = path, .points.at = HP_NEW(arena, hp_plot_point, MOST_POINTS)};
    for (int n = 1; status == HP_OK && fgets(line, sizeof line, f); n++)
        status = read_line(arena, line, n, s, err);
    fclose(f);
    if (status == HP_OK && !s->points.from)
        return hp_fail(err, HP_EDATA,
                       "%s: neither a plan.db nor points: these begin with where they are from, source: TEXT",
                       path);
    if (status == HP_OK && s->points.n == 0) return hp_fail(err, HP_EDATA, "%s: holds no points", path);
    return status;
}

hp_status hp_plot_load_scaling(hp_arena *arena, const char *path, hp_plot_source *s, hp_error *err) {
    return is_text(path) ? load_points(arena, path, s, err) : hp_plot_load(arena, path, s, err);
}
