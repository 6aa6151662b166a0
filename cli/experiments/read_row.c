/* read_row.c - parses one row: name | options, or the rows that it refers to | measure value | kind, words |
 * note. */
#include "cli/experiments/experiments.h"

#include "base/units.h"

#include <math.h>
#include <string.h>

const char *const experiment_measure_names[] = {
#define MEASURE(name) #name,
#define WORD(name)    #name,
#include "cli/experiments/measures.def"
#undef MEASURE
#undef WORD
    NULL};

const char *const experiment_kind_names[] = {"", "exact", "point", "band", "sign", NULL};

enum { NAME, HOW, FIGURE, KIND, NOTE, FIELDS };

static int find_name(const char *const *names, const char *name) {
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0) return i;
    return -1;
}

static int find_row(const experiment_file *f, const char *name) {
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->row[i].name, name) == 0) return i;
    return -1;
}

/* --- how: options, "ROW", "ROW / ROW", "not simulated: why" --- */

static hp_status parse_reference(char *how, experiment_row *r, const experiment_file *f, hp_error *err) {
    char *slash = strstr(how, " / ");
    if (slash) *slash = 0;
    const char *names[] = {experiment_trim(how), slash ? experiment_trim(slash + 3) : NULL};
    int *rows[] = {&r->first, &r->second};
    for (int i = 0; i < 2 && names[i]; i++) {
        *rows[i] = find_row(f, names[i]);
        if (*rows[i] < 0)
            return hp_fail(err, HP_EDATA, "'%.40s' is no row above; options start with --", names[i]);
        if (!f->row[*rows[i]].runs)
            return hp_fail(err, HP_EDATA, "row '%.40s' has no options of its own", names[i]);
    }
    return HP_OK;
}

enum { MOST_WORDS = 64 };

/* Splits `text` at blanks outside double quotes, and removes the quotes. Returns the number of words; -1: too
 * many, or an open quote. */
static int split(char *text, char **word) {
    int n = 0;
    for (char *from = text; *from;) {
        from += strspn(from, " \t");
        if (!*from) break;
        if (n == MOST_WORDS) return -1;
        const bool quoted = *from == '"';
        word[n++] = from += quoted;
        from += strcspn(from, quoted ? "\"" : " \t");
        if (quoted && !*from) return -1;
        if (*from) *from++ = 0;
    }
    return n;
}

/* Parses options as on a command line. Errors: HP_EUSAGE. */
static hp_status parse_options(hp_arena *arena, const char *text, experiment_row *row, hp_error *err) {
    char **word = HP_NEW(arena, char *, MOST_WORDS + 2);
    static char command[] = "simulate";
    word[0] = command;
    const int n = split(hp_arena_strdup(arena, text), word + 1);
    if (n < 0) return hp_fail(err, HP_EUSAGE, "an open quote, or more than %d words of options", MOST_WORDS);
    word[n + 1] = NULL;
    for (int i = 1; i <= n; i += 2)
        if (strncmp(word[i], "--", 2) != 0 || i == n)
            return hp_fail(err, HP_EUSAGE, "'%.40s' is no option with its value", word[i]);
    for (int i = 1; i <= n; i += 2) { /* one at a time, to name the wrong one */
        char *pair[] = {command, word[i], word[i + 1], NULL};
        if (argp_parse(&simulate_argp, 3, pair, ARGP_NO_EXIT | ARGP_NO_ERRS | ARGP_NO_HELP, NULL,
                       &row->options) != 0)
            return hp_fail(err, HP_EUSAGE, "hplan simulate has no option %.40s with a value", word[i]);
    }
    return HP_OK;
}

static hp_status parse_how(hp_arena *arena, char *how, experiment_row *r, const experiment_file *f,
                           hp_error *err) {
    static const char none[] = "not simulated:";
    if (strncmp(how, none, strlen(none)) == 0) {
        r->missing = experiment_trim(how + strlen(none));
        return *r->missing ? HP_OK : hp_fail(err, HP_EDATA, "it is not said why it is not simulated");
    }
    if (*how && strncmp(how, "--", 2) != 0) return parse_reference(how, r, f, err);
    r->runs = true;
    return parse_options(arena, hp_arena_printf(arena, "%s %s", f->all ? f->all : "", how), r, err);
}

/* --- figure: "-", "measure 3.5", "measure 1..1.6", "measure 1.33..", "measure above", "outcome oom" --- */

static hp_status parse_range(char *value, experiment_row *r, hp_error *err) {
    char *dots = strstr(value, "..");
    if (dots) *dots = 0;
    HP_TRY(hp_parse_double(value, "the published value", 0, 1e300, &r->low, err));
    r->high = r->low;
    if (!dots) return HP_OK;
    r->high = INFINITY;
    if (dots[2]) HP_TRY(hp_parse_double(dots + 2, "the end of the band", 0, 1e300, &r->high, err));
    return r->high > r->low ? HP_OK : hp_fail(err, HP_EDATA, "the band is empty");
}

static hp_status parse_figure(char *figure, experiment_row *r, hp_error *err) {
    if (strcmp(figure, "-") == 0) return HP_OK;
    char *blank = strchr(figure, ' ');
    if (!blank) return hp_fail(err, HP_EDATA, "figure '%.40s' is not 'measure value', nor -", figure);
    *blank = 0;
    char *value = experiment_trim(blank + 1);
    const int m = find_name(experiment_measure_names, figure);
    if (m < 0) return hp_fail(err, HP_EDATA, "measure '%.40s' is unknown", figure);
    r->has_figure = true;
    r->measure = (experiment_measure)m;
    r->low = r->high = NAN;
    if (m < EXPERIMENT_FIRST_WORD && strcmp(value, "above") != 0 && strcmp(value, "below") != 0)
        return parse_range(value, r, err);
    r->word = value;
    return HP_OK;
}

/* --- kind and words: "point, used, of GROUP", "point, best GROUP" --- */

static hp_status parse_word(char *word, experiment_row *r, hp_error *err) {
    const int kind = find_name(experiment_kind_names, word);
    if (kind > 0)
        r->kind = (experiment_kind)kind;
    else if (strcmp(word, "used") == 0)
        r->used = true;
    else if (strncmp(word, "of ", 3) == 0 || strncmp(word, "best ", 5) == 0) {
        r->best = *word == 'b';
        r->group = experiment_trim(strchr(word, ' '));
    } else if (*word)
        return hp_fail(err, HP_EDATA,
                       "'%.40s' is not one of exact, point, band, sign, used, of GROUP, best GROUP", word);
    return HP_OK;
}

static hp_status parse_words(char *words, experiment_row *r, hp_error *err) {
    for (char *word; (word = strsep(&words, ","));) HP_TRY(parse_word(experiment_trim(word), r, err));
    return HP_OK;
}

/* --- what does not go together --- */

static const char *mistake(const experiment_row *r) {
    const bool word = r->has_figure && r->measure >= EXPERIMENT_FIRST_WORD, ratio = r->second >= 0;
    if (r->has_figure && r->kind == EXPERIMENT_NONE) return "it has a figure and no kind";
    if (!r->has_figure && r->kind != EXPERIMENT_NONE && !r->missing) return "it has a kind and no figure";
    if (!r->has_figure) return r->used ? "without a figure nothing can be used" : NULL;
    if (word && r->kind != EXPERIMENT_EXACT && r->kind != EXPERIMENT_SIGN)
        return "a word is exact, or a sign";
    if (word && ratio) return "words have no ratio";
    if (!word && r->kind == EXPERIMENT_SIGN && !ratio && !r->missing)
        return "a sign is of a ratio: ROW / ROW";
    if (!word && r->word && r->kind != EXPERIMENT_SIGN) return "above and below are signs";
    if (!word && r->kind != EXPERIMENT_BAND && r->high > r->low) return "two values are a band";
    if (!word && r->kind == EXPERIMENT_BAND && !(r->high > r->low) && !r->missing)
        return "a band has two values: LOW..HIGH";
    if (!word && !r->word && r->low <= 0 && r->kind != EXPERIMENT_BAND) return "the value must be above 0";
    return NULL;
}

static hp_status parse_fields(hp_arena *arena, char *const *field, experiment_row *r,
                              const experiment_file *f, hp_error *err) {
    if (!*r->name || strpbrk(r->name, " /")) return hp_fail(err, HP_EDATA, "its name is not one word");
    if (find_row(f, r->name) >= 0) return hp_fail(err, HP_EDATA, "there are two rows of that name");
    HP_TRY(parse_how(arena, field[HOW], r, f, err));
    HP_TRY(parse_figure(field[FIGURE], r, err));
    if (field[KIND]) HP_TRY(parse_words(field[KIND], r, err));
    r->note = field[NOTE] ? field[NOTE] : "";
    const char *wrong = mistake(r);
    return wrong ? hp_fail(err, HP_EDATA, "%s", wrong) : HP_OK;
}

hp_status experiment_parse_row(hp_arena *arena, char *line, int number, experiment_file *f, hp_error *err) {
    char *field[FIELDS] = {NULL}, *rest = line;
    for (int i = 0; i < FIELDS && rest; i++) field[i] = experiment_trim(strsep(&rest, "|"));
    if (rest || !field[FIGURE])
        return hp_fail(err, HP_EDATA, "%s:%d: a row is: name | options | measure value | kind | note",
                       f->path, number);
    experiment_row r = {.line = number, .name = field[NAME], .first = -1, .second = -1};
    if (parse_fields(arena, field, &r, f, err) != HP_OK) {
        const char *where = hp_arena_printf(arena, "%s:%d: row '%.40s'", f->path, number, r.name);
        hp_fail_in(err, where);
        err->code = HP_EDATA;
        return HP_EDATA;
    }
    HP_ROOM(arena, f->row, f->n, f->capacity);
    f->row[f->n++] = r;
    return HP_OK;
}
