/* import_nccl.c - reads the output of nccl-tests (all_reduce_perf and the others), versions 1.0 to 2.19:
 * columns by the names in the table's title, ranks and nodes from the lines "# Rank ...". Sizes are those of
 * the whole data. */
#include "costmodels/tuning/import_text.h"

#include <ctype.h>
#include <string.h>

/* In the title, the first group is out of place, the second in place. */
enum { SIZE, TIME, WRONG, TIME_IN_PLACE, WRONG_IN_PLACE, ALGBW, COLUMNS, MOST_WORDS = 24 };

static bool is_title(const char *line) {
    return line[0] == '#' && strstr(line, " size ") && strstr(line, " algbw") && strstr(line, " time");
}

/* The first word `name` at or after `line`; NULL if there is none. */
static const char *find_word(const char *line, const char *name) {
    const size_t n = strlen(name);
    for (const char *at = line; (at = strstr(at, name)); at += n)
        if ((at == line || (!isalnum((unsigned char)at[-1]) && at[-1] != '_')) &&
            (!at[n] || isspace((unsigned char)at[n])))
            return at;
    return NULL;
}

static bool follows_mark(const char *line, const char *at) {
    while (at > line && isblank((unsigned char)at[-1])) at--;
    return at > line && at[-1] == '#';
}

/* The title behind a '#'. If the '#' was lost, it must precede a count, so that it is not prose. */
static const char *nccl_title(const char *line) {
    const char *size = find_word(line, "size"), *time = size ? find_word(size, "time") : NULL;
    if (!time || !find_word(time, "algbw")) return NULL;
    const char *next = size + 4 + strspn(size + 4, " \t");
    return follows_mark(line, size) || strncmp(next, "count ", 6) == 0 ? size : NULL;
}

/* Finds a word that ends in "_perf" and removes that ending: "all_reduce"; false: none. */
static bool find_program(const char *line, char *out, size_t n) {
    const char *end = strstr(line, "_perf"), *begin = end;
    if (!end) return false;
    while (begin > line && (islower((unsigned char)begin[-1]) || begin[-1] == '_')) begin--;
    snprintf(out, n, "%.*s", (int)(end - begin), begin);
    return *out != 0;
}

static bool nccl_begins(const char *line) {
    return is_title(line) || strstr(line, "_perf") || strncmp(line, "# nThread ", 10) == 0 ||
           strncmp(line, "# nccl-tests ", 13) == 0;
}

/* --- before the table --- */

/* "22602", "2708": X*10000 + Y*100 + Z since 2.9, X*1000 + Y*100 + Z before. */
static void set_library(hp_import *i, int code) {
    const int major = code >= 10000 ? code / 10000 : code / 1000,
              minor = code >= 10000 ? code / 100 % 100 : code / 100 % 10;
    snprintf(i->s.library, sizeof i->s.library, "NCCL %d.%d.%d", major, minor, code % 100);
}

static void read_versions(hp_import *i, const char *line) {
    char version[24];
    int code;
    const char *library = strstr(line, "nccl-library="), *debug = strstr(line, "NCCL version ");
    if (sscanf(line, "# nccl-tests version %23s", version) == 1)
        snprintf(i->s.tool, sizeof i->s.tool, "nccl-tests %s", version);
    if (library && sscanf(library, "nccl-library=%d", &code) == 1 && code > 0) set_library(i, code);
    if (debug && sscanf(debug, "NCCL version %23[0-9.]", version) == 1)
        snprintf(i->s.library, sizeof i->s.library, "NCCL %s", version);
}

static int host_index(import_section *s, const char *host) {
    int h = 0;
    while (h < s->n_host && strcmp(s->host[h], host) != 0) h++;
    return h;
}

/* "#  Rank  0 Group  0 Pid  1887 on  worker-1 device  0 [0x8d] NVIDIA H100"; no group before 2.13. */
static hp_status read_rank(hp_import *i, const char *line, hp_error *err) {
    int rank;
    char host[64];
    import_section *s = &i->s;
    if (sscanf(line, "# Rank %d Group %*d Pid %*d on %63s", &rank, host) != 2 &&
        sscanf(line, "# Rank %d Pid %*d on %63s", &rank, host) != 2)
        return HP_OK;
    if (rank != s->ranks)
        return hp_fail(
            err, HP_EDATA,
            "%.200s line %d: rank %d, expected rank %d: runs of their own beside each other, or lines are "
            "missing; build nccl-tests with MPI=1",
            i->where, i->line, rank, s->ranks);
    const int h = host_index(s, host);
    if (h == (int)(sizeof s->host / sizeof *s->host))
        return hp_import_bad(
            i, "more than 64 nodes; say --ranks and --per-node and remove the lines '# Rank'", line, err);
    if (h == s->n_host) memcpy(s->host[s->n_host++], host, sizeof host);
    s->on_host[h]++;
    s->ranks++;
    return HP_OK;
}

static hp_status read_title(hp_import *i, char *line, hp_error *err) {
    char copy[400], *word[MOST_WORDS];
    snprintf(copy, sizeof copy, "%s", line + 1);
    const int n = hp_import_words(copy, word, MOST_WORDS);
    for (int c = 0; c < COLUMNS; c++) i->column[c] = -1;
    for (int w = n - 1; w >= 0; w--) {
        const bool wrong = strcmp(word[w], "#wrong") == 0 || strcmp(word[w], "error") == 0;
        const int c = strcmp(word[w], "time") == 0 ? TIME : wrong ? WRONG : -1;
        if (strcmp(word[w], "size") == 0) i->column[SIZE] = w;
        if (strcmp(word[w], "algbw") == 0) i->column[ALGBW] = w;
        if (c >= 0 && i->column[c] >= 0) i->column[c == TIME ? TIME_IN_PLACE : WRONG_IN_PLACE] = i->column[c];
        if (c >= 0) i->column[c] = w;
    }
    i->column[COLUMNS] = n;
    if (i->column[SIZE] != 0 || i->column[TIME] < 0 || i->column[WRONG] < 0)
        return hp_import_bad(i, "expected the columns size, time, algbw, busbw and #wrong", line, err);
    i->table = true;
    return HP_OK;
}

static hp_status read_comment(hp_import *i, char *line, hp_error *err) {
    long wrong;
    const char *bounds = strstr(line, "Out of bounds values :");
    if (bounds && sscanf(bounds, "Out of bounds values : %ld", &wrong) == 1 && wrong > 0)
        return hp_import_bad(i, "results were wrong, so the times mean nothing", line, err);
    read_versions(i, line);
    HP_TRY(hp_import_hplan(i, line, err));
    return read_rank(i, line, err);
}

/* --- the table --- */

/* A column of times; "N/A" for in-place times of operations that have none. */
static bool time_of(char *const *word, int column, double *us) {
    return column >= 0 && hp_import_number(word[column], us) && *us > 0;
}

static hp_status check_wrong(const hp_import *i, char *const *word, int column, hp_error *err) {
    double wrong;
    if (column < 0 || strcmp(word[column], "N/A") == 0) return HP_OK;
    if (!hp_import_number(word[column], &wrong))
        return hp_import_bad(i, "expected #wrong, a number", word[column], err);
    /* versions that count errors have their limit in the last line */
    if (wrong < 1) return HP_OK;
    return hp_import_bad(i, "#wrong is not 0: results were wrong, so the times mean nothing", word[column],
                         err);
}

/* Gradients are summed in place. Uses out-of-place times if only those were checked, and for an
 * all-to-all. */
static double choose_time(const hp_import *i, char *const *word, double out_us) {
    double in_us, n;
    const int wrong = i->column[WRONG_IN_PLACE];
    const bool unchecked =
        wrong >= 0 && !hp_import_number(word[wrong], &n) && hp_import_number(word[i->column[WRONG]], &n);
    if (i->s.op == HP_COLLECTIVE_ALL_TO_ALL || unchecked || !time_of(word, i->column[TIME_IN_PLACE], &in_us))
        return out_us;
    return in_us;
}

/* algbw is size / time in 1e9 bytes/s, printed with two digits. */
static bool columns_agree(const hp_import *i, char *const *word, double size, double us) {
    double rate;
    if (i->column[ALGBW] < 0 || !hp_import_number(word[i->column[ALGBW]], &rate)) return true;
    const double expected = 1e-3 * size / us, apart = rate > expected ? rate - expected : expected - rate;
    return apart <= 0.011 + 0.05 * expected;
}

static hp_status read_row(hp_import *i, char *line, hp_error *err) {
    char copy[400], *word[MOST_WORDS + 1];
    double size, us;
    snprintf(copy, sizeof copy, "%s", line);
    const int n = hp_import_words(copy, word, MOST_WORDS + 1);
    if (n != i->column[COLUMNS]) {
        const char *what = hp_arena_printf(i->arena, "expected %d columns as in the title, there are %d",
                                           i->column[COLUMNS], n);
        return hp_import_bad(i, what, line, err);
    }
    if (!hp_import_number(word[i->column[SIZE]], &size) || size < 0)
        return hp_import_bad(i, "expected a size in bytes", word[i->column[SIZE]], err);
    if (!time_of(word, i->column[TIME], &us))
        return hp_import_bad(i, "expected a time in microseconds", word[i->column[TIME]], err);
    if (!columns_agree(i, word, size, us)) return hp_import_bad(i, "algbw is not size / time", line, err);
    HP_TRY(check_wrong(i, word, i->column[WRONG], err));
    HP_TRY(check_wrong(i, word, i->column[WRONG_IN_PLACE], err));
    if (size <= 0 && i->s.op != HP_COLLECTIVE_BARRIER)
        return HP_OK; /* fewer elements than ranks: nothing was moved */
    return hp_import_add(i, size, 1e-6 * choose_time(i, word, us), err);
}

/* Determines the operation of a row. */
static hp_status find_op(hp_import *i, const char *line, hp_error *err) {
    const int asked = i->o.op ? hp_import_find(i->o.op) : IMPORT_UNKNOWN;
    if (i->s.op == IMPORT_UNKNOWN) i->s.op = asked;
    if (i->s.op != IMPORT_UNKNOWN && (!i->o.op || asked == i->s.op)) return HP_OK;
    if (i->s.op != IMPORT_UNKNOWN)
        return hp_fail(err, HP_EUSAGE,
                       "--op %.40s: %.200s line %d is of another operation; leave the option out", i->o.op,
                       i->where, i->line);
    return hp_fail(
        err, HP_EUSAGE,
        "%.200s line %d: the text does not say which program wrote this table: add --op, for example "
        "--op all_reduce: '%.60s'",
        i->where, i->line, line);
}

static void read_program(hp_import *i, const char *line) {
    char program[40];
    if (!find_program(line, program, sizeof program)) return;
    i->s.op = hp_import_find(program);
    i->s.left_out = i->s.op == IMPORT_UNKNOWN;
    if (i->s.left_out) hp_import_leave_out(i, program);
}

static void begin_section(hp_import *i) {
    i->s.by = HP_WIRE_NCCL;
    i->s.gpus = true;
    snprintf(i->s.tool, sizeof i->s.tool, "nccl-tests");
}

/* Is it a row, ignoring any prefix? */
static bool ends_in_row(const hp_import *i, const char *line) {
    char copy[400], *word[2 * MOST_WORDS];
    double size, us;
    snprintf(copy, sizeof copy, "%s", line);
    const int n = hp_import_words(copy, word, 2 * MOST_WORDS);
    if (n <= i->column[COLUMNS]) return false;
    char *const *own = &word[n - i->column[COLUMNS]];
    return hp_import_number(own[i->column[SIZE]], &size) && size > 0 && time_of(own, i->column[TIME], &us) &&
           i->column[ALGBW] >= 0 && columns_agree(i, own, size, us);
}

static hp_status nccl_line(hp_import *i, char *line, hp_error *err) {
    if (!*i->s.tool) begin_section(i);
    read_program(i, line);
    if (is_title(line)) return read_title(i, line, err);
    if (*line == '#' || strstr(line, "NCCL version ")) return read_comment(i, line, err);
    if (!i->table || i->s.left_out) return HP_OK;
    if (!isdigit((unsigned char)*line) && !ends_in_row(i, line)) return HP_OK;
    if (!isdigit((unsigned char)*line))
        return hp_import_bad(i, "a row, but what stands before it does not stand before its title", line,
                             err);
    HP_TRY(find_op(i, line, err));
    return read_row(i, line, err);
}

static const char *const comments[] = {
    "Rank ",         "nThread ",          "nccl-tests version ", "Out of bounds values ",
    "NCCL version ", "hplan bench comm ", "back end ",           NULL};

const import_tool hp_import_nccl_tests = {nccl_begins, nccl_line, nccl_title, comments};
