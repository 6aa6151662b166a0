/* table_text.c - parses and prints the text of a cost table, strictly: a malformed line is an error with its
 * number and is never skipped.
 *
 *   file   = "hplan-cost 2" NL "machine " NAME NL "date " DATE NL
 *            ["processor " TEXT NL] ["driver " TEXT NL] ["status " STATUS NL]
 *            ["speed " ARITH " " L2 " " DRAM NL] { comment | row }
 *   row    = KIND " " CLASS [" " KEY] " | " SOURCE " " RESIDUAL " " SAMPLES [" " WHERE] " |"
 *            { " " X ":" Y } NL
 *
 * speed: the slowdowns to which the costs apply; without the line, the usual ones. Comments start with '#'.
 * Rows are strictly sorted by kind, class and key; numbers are finite and not negative. */
#include "costmodels/cost_rows.h"
#include "costmodels/cost_speed.h"
#include "traces/outfile.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum { MAX_POINTS = 256 };

/* Beyond all sizes, rates and times, so that no product or quotient of a few is infinite. */
static const double LEAST = 1e-30, MOST = 1e30;

typedef struct parser {
    hp_arena *arena;
    const char *where;
    int line;
    hp_error *err;
    hp_cost_table *table;
} parser;

static hp_status bad(const parser *p, const char *what, const char *text) {
    return hp_fail(
        p->err, HP_EDATA,
        "%s line %d: %s: '%.60s'; if an older hplan wrote it, move it away: hplan calibrate writes a new one",
        p->where, p->line, what, text);
}

/* Cuts the text at the next newline; returns the line, NULL at the end. */
static char *next_line(char **rest, int *line) {
    char *s = *rest;
    if (!*s) return NULL;
    char *end = strchr(s, '\n');
    *rest = end ? end + 1 : s + strlen(s);
    if (end) *end = 0;
    (*line)++;
    return s;
}

static hp_status parse_number(const parser *p, char **s, char end, double *value) {
    char *stop;
    errno = 0;
    *value = strtod(*s, &stop);
    if (stop == *s || (*stop != end && *stop != 0) || !isfinite(*value) || *value < 0)
        return bad(p, "not a number that is finite and not negative", *s);
    if (*value != 0 && (*value < LEAST || *value > MOST))
        return bad(p, "neither 0 nor a number from 1e-30 to 1e30", *s);
    *s = *stop ? stop + 1 : stop;
    return HP_OK;
}

static hp_status parse_provenance(const parser *p, char *text, hp_row *row) {
    char *space = strchr(text, ' ');
    if (!space) return bad(p, "expected 'source residual samples'", text);
    *space = 0;
    int source = 0;
    while (source <= HP_SOURCE_GUESS && strcmp(text, hp_source_names[source]) != 0) source++;
    if (source > HP_SOURCE_GUESS) return bad(p, "source is not measured, paper, datasheet or guess", text);
    row->source = (hp_source)source;
    char *rest = space + 1;
    double samples;
    HP_TRY(parse_number(p, &rest, ' ', &row->residual));
    HP_TRY(parse_number(p, &rest, ' ', &samples));
    if (samples > 1e15) return bad(p, "too many samples", text);
    row->samples = (int64_t)samples;
    row->where = rest;
    return HP_OK;
}

static hp_status parse_field_name(const parser *p, const hp_row_info *info, char **text, int i, double *x) {
    const char *name = i < HP_ROW_FIELDS ? info->field[i] : NULL;
    const size_t n = name ? strlen(name) : 0;
    if (!name || strncmp(*text, name, n) != 0 || (*text)[n] != ':')
        return bad(p, name ? "expected another value here" : "more values than this kind of row has", *text);
    *text += n + 1;
    *x = i;
    return HP_OK;
}

static hp_status parse_points(const parser *p, char *text, hp_row *row, double *x, double *y) {
    const hp_row_info *info = &hp_row_infos[row->kind];
    row->n = 0;
    while (*text) {
        if (row->n == MAX_POINTS) return bad(p, "more than 256 points", text);
        double *at = &x[row->n];
        if (info->field[0])
            HP_TRY(parse_field_name(p, info, &text, row->n, at));
        else
            HP_TRY(parse_number(p, &text, ':', at));
        if (row->n && *at <= at[-1]) return bad(p, "sizes must increase", text);
        const char *value = text;
        HP_TRY(parse_number(p, &text, ' ', &y[row->n]));
        if (y[row->n] <= 0 && info->field[0] && info->positive & 1u << row->n)
            return bad(p, "must be more than 0", value);
        row->n++;
    }
    int wanted = 0;
    while (wanted < HP_ROW_FIELDS && info->field[wanted]) wanted++;
    const int required = info->required ? info->required : wanted;
    if (row->n == 0 || (wanted && row->n != wanted && row->n != required))
        return bad(p, "values are missing", info->name);
    for (; row->n < wanted; row->n++) { /* fields missing in an older version */
        x[row->n] = row->n;
        y[row->n] = 0;
    }
    row->x = x;
    row->y = y;
    return HP_OK;
}

static hp_status parse_name(const parser *p, char *text, hp_row *row) {
    char *class = strchr(text, ' ');
    if (!class) return bad(p, "expected 'KIND CLASS KEY'", text);
    *class ++ = 0;
    int kind = 0;
    while (kind < HP_ROW_KINDS && strcmp(text, hp_row_infos[kind].name) != 0) kind++;
    if (kind == HP_ROW_KINDS) return bad(p, "unknown kind of row", text);
    row->kind = (hp_row_kind)kind;
    char *key = strchr(class, ' ');
    if (key) *key++ = 0;
    row->class = class;
    row->key = key ? key : "";
    if (!*class) return bad(p, "the class is missing", text);
    hp_collective_call call;
    return kind != HP_ROW_COLLECTIVE || hp_collective_of_key(row->key, &call)
               ? HP_OK
               : bad(p, "expected an operation, BACKEND.ALGORITHM, rRANKS and nPER_NODE", row->key);
}

/* Is it an all-reduce of an older version, which did not name its back end? Such rows are left out. */
static bool is_outdated(const char *text) {
    return strncmp(text, "allreduce ", 10) == 0;
}

static hp_status parse_row(parser *p, char *text) {
    double x[MAX_POINTS], y[MAX_POINTS];
    hp_row row = {0};
    char *provenance = strstr(text, " | ");
    char *points = provenance ? strstr(provenance + 3, " | ") : NULL;
    if (!points) return bad(p, "expected 'KIND CLASS KEY | source residual samples | x:y ...'", text);
    *provenance = *points = 0;
    HP_TRY(parse_name(p, text, &row));
    HP_TRY(parse_provenance(p, provenance + 3, &row));
    HP_TRY(parse_points(p, points + 3, &row, x, y));
    if (p->table->n && hp_row_order(&p->table->row[p->table->n - 1], &row) >= 0)
        return bad(p, "rows must be sorted, each once", row.key);
    hp_rows_add(p->table, &row);
    return HP_OK;
}

static hp_status parse_header(parser *p, char **rest) {
    char *line = next_line(rest, &p->line);
    if (!line || strcmp(line, "hplan-cost 2") != 0)
        return bad(p, "not a cost table of this version, expected 'hplan-cost 2'", line ? line : "");
    char *machine = next_line(rest, &p->line);
    if (!machine || strncmp(machine, "machine ", 8) != 0)
        return bad(p, "expected 'machine NAME'", machine ? machine : "");
    char *date = next_line(rest, &p->line);
    if (!date || strncmp(date, "date ", 5) != 0) return bad(p, "expected 'date DATE'", date ? date : "");
    p->table = hp_rows_new(p->arena, machine + 8, date + 5);
    return HP_OK;
}

/* The rest of the next line if it starts with "WORD "; otherwise "", and the line is not consumed. */
static const char *optional_line(parser *p, char **rest, const char *word) {
    const size_t n = strlen(word);
    if (strncmp(*rest, word, n) != 0 || (*rest)[n] != ' ') return "";
    return next_line(rest, &p->line) + n + 1;
}

static hp_status parse_provenance_lines(parser *p, char **rest) {
    const char *const *known = hp_gpu_statuses;
    snprintf(p->table->processor, sizeof p->table->processor, "%s", optional_line(p, rest, "processor"));
    snprintf(p->table->driver, sizeof p->table->driver, "%s", optional_line(p, rest, "driver"));
    const char *status = optional_line(p, rest, "status");
    while (*known && strcmp(*known, status) != 0) known++;
    if (*status && !*known) return bad(p, "status is not never run, one GPU or cluster", status);
    snprintf(p->table->status, sizeof p->table->status, "%s", status);
    return HP_OK;
}

/* Reads the speed of the costs from its line; without one, it is the usual speed. */
static hp_status parse_speed(const parser *p, const char *line) {
    hp_cost_table *t = p->table;
    char text[128], *s = text;
    if (!*line) {
        t->speed = hp_speed_usual(t);
        return HP_OK;
    }
    snprintf(text, sizeof text, "%s", line);
    for (int y = 0; y < HP_SPEED_CLASSES; y++) {
        HP_TRY(parse_number(p, &s, ' ', &t->speed.slowdown[y]));
        if (t->speed.slowdown[y] <= 0) return bad(p, "a slowdown must be positive", line);
    }
    return HP_OK;
}

hp_status hp_rows_parse(hp_arena *arena, const char *text, const char *where, hp_cost_table **t,
                        hp_error *err) {
    parser p = {.arena = arena, .where = where, .err = err};
    char *rest = hp_arena_strdup(arena, text);
    HP_TRY(parse_header(&p, &rest));
    HP_TRY(parse_provenance_lines(&p, &rest));
    const char *speed = optional_line(&p, &rest, "speed");
    for (char *line; (line = next_line(&rest, &p.line)) != NULL;) {
        if (is_outdated(line))
            p.table->outdated++;
        else if (*line && *line != '#')
            HP_TRY(parse_row(&p, line));
    }
    HP_TRY(parse_speed(&p, speed));
    *t = p.table;
    return HP_OK;
}

static void print_row(FILE *f, const hp_row *r, bool exact) {
    const hp_row_info *info = &hp_row_infos[r->kind];
    const int digits = exact ? 17 : 9;
    fprintf(f, "%s %s%s%s | %s %.*g %lld%s%s |", info->name, r->class, *r->key ? " " : "", r->key,
            hp_source_names[r->source], exact ? 17 : 3, r->residual, (long long)r->samples,
            *r->where ? " " : "", r->where);
    for (int i = 0; i < r->n; i++) {
        if (info->field[0])
            fprintf(f, " %s:%.*g", info->field[i], digits, r->y[i]);
        else
            fprintf(f, " %.17g:%.*g", r->x[i], digits, r->y[i]);
    }
    fputc('\n', f);
}

hp_status hp_rows_print(FILE *f, const hp_cost_table *t, bool exact, hp_error *err) {
    fprintf(f, "hplan-cost 2\nmachine %s\ndate %s\n", t->machine, t->date);
    if (*t->processor) fprintf(f, "processor %s\n", t->processor);
    if (*t->driver) fprintf(f, "driver %s\n", t->driver);
    if (*t->status) fprintf(f, "status %s\n", t->status);
    if (exact) {
        fprintf(f, "speed");
        for (int y = 0; y < HP_SPEED_CLASSES; y++) fprintf(f, " %.17g", t->speed.slowdown[y]);
        fputc('\n', f);
    }
    for (int i = 0; i < t->n; i++) print_row(f, &t->row[i], exact);
    return ferror(f) ? hp_fail(err, HP_EIO, "writing a cost table failed: %s", strerror(errno)) : HP_OK;
}

hp_status hp_rows_write(const hp_cost_table *t, const char *path, hp_error *err) {
    hp_outfile o;
    HP_TRY(hp_outfile_open(path, &o, err));
    const hp_status status = hp_rows_print(o.f, t, false, err);
    if (status == HP_OK) return hp_outfile_commit(&o, err);
    hp_outfile_discard(&o);
    return status;
}
