/* import_osu.c - reads the output of the OSU micro-benchmarks: latency of collectives, latency and bandwidth
 * of messages. Sizes are those of one rank's contribution, or of its data for each other rank; for
 * all-reduce, reduce, broadcast and reduce-scatter, those of the whole data. */
#include "costmodels/tuning/import_text.h"

#include <ctype.h>
#include <string.h>

/* hp_import.column */
enum { FORM, HAS_SIZE, COLUMNS /* of the rows so far; 0: none yet */ };
enum { LATENCY, BANDWIDTH };
enum { MOST_WORDS = 24 };
/* From this size on, the rate of a window of messages in flight gives the time of one: its latency is small
 * compared with its bytes. */
enum { WINDOW_BYTES = 1 << 20 };

/* The words between "MPI-CUDA" and "Test". */
static const struct {
    const char *title;
    int op;
    bool per_rank; /* sizes are per rank's part */
} tests[] = {{"Allreduce Latency", HP_COLLECTIVE_ALLREDUCE, false},
             {"Reduce_scatter Latency", HP_COLLECTIVE_REDUCE_SCATTER, false},
             {"Allgather Latency", HP_COLLECTIVE_ALL_GATHER, true},
             {"All-to-All Personalized Exchange Latency", HP_COLLECTIVE_ALL_TO_ALL, true},
             {"Broadcast Latency", HP_COLLECTIVE_BROADCAST, false},
             {"Reduce Latency", HP_COLLECTIVE_REDUCE, false},
             {"Gather Latency", HP_COLLECTIVE_GATHER, true},
             {"Scatter Latency", HP_COLLECTIVE_SCATTER, true},
             {"Barrier Latency", HP_COLLECTIVE_BARRIER, false},
             {"Latency", IMPORT_MESSAGES, false},
             {"Bandwidth", IMPORT_MESSAGES, false}};
enum { TESTS = sizeof tests / sizeof *tests };

static bool is_per_rank(int op) {
    for (int t = 0; t < TESTS; t++)
        if (tests[t].op == op) return tests[t].per_rank;
    return false;
}

static bool osu_begins(const char *line) {
    return strncmp(line, "# OSU ", 6) == 0 && strstr(line, " Test");
}

/* "# OSU MPI-CUDA Allreduce Latency Test v7.3" */
static hp_status read_test(hp_import *i, const char *line, hp_error *err) {
    char library[24], version[24] = "";
    int after = 0;
    if (sscanf(line, "# OSU %23s %n", library, &after) != 1 || after == 0)
        return hp_import_bad(i, "expected '# OSU MPI ... Test vN'", line, err);
    const char *title = line + after, *end = strstr(title, " Test");
    if (!end) return hp_import_bad(i, "expected '# OSU MPI ... Test vN'", line, err);
    const size_t n = (size_t)(end - title);
    sscanf(end, " Test %23s", version);
    snprintf(i->s.tool, sizeof i->s.tool, "OSU%s%s", *version ? " " : "", version);
    i->s.by = strncmp(library, "MPI", 3) == 0 ? HP_WIRE_MPI : HP_WIRE_NCCL;
    i->s.gpus = i->s.by == HP_WIRE_NCCL || strchr(library, '-') != NULL; /* MPI-CUDA, MPI-ROCM */
    i->s.op = IMPORT_UNKNOWN;
    for (int t = 0; t < TESTS; t++)
        if (strlen(tests[t].title) == n && strncmp(tests[t].title, title, n) == 0) i->s.op = tests[t].op;
    i->s.left_out = i->s.op == IMPORT_UNKNOWN;
    if (i->s.left_out) hp_import_leave_out(i, hp_arena_printf(i->arena, "%.*s", (int)n, title));
    i->s.ranks = i->s.op == IMPORT_MESSAGES ? 2 : 0;
    return HP_OK;
}

/* "# Size       Avg Latency(us)"; other comments are irrelevant. */
static hp_status read_title(hp_import *i, const char *line, hp_error *err) {
    const char *begin = line + 1 + strspn(line + 1, " \t");
    const bool size = strncmp(begin, "Size", 4) == 0;
    const char *value = size ? begin + 4 + strspn(begin + 4, " \t") : begin;
    const bool latency =
                   strncmp(value, "Latency (us)", 12) == 0 || strncmp(value, "Avg Latency(us)", 15) == 0,
               bandwidth = strncmp(value, "Bandwidth (MB/s)", 16) == 0;
    if (!size && !latency && !bandwidth) return HP_OK;
    const bool barrier = i->s.op == HP_COLLECTIVE_BARRIER;
    if (latency == bandwidth || size == barrier)
        return hp_import_bad(i, "expected '# Size  Avg Latency(us)' or '# Size  Bandwidth (MB/s)'", line,
                             err);
    i->column[FORM] = latency ? LATENCY : BANDWIDTH;
    i->column[HAS_SIZE] = size;
    i->column[COLUMNS] = 0;
    i->table = true;
    return HP_OK;
}

/* Where the title begins: "Size   Avg Latency(us)", or "Avg Latency(us)" for a barrier. */
static const char *osu_title(const char *line) {
    static const char *const values[] = {"Avg Latency(us)", "Latency (us)", "Bandwidth (MB/s)"};
    for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
        const char *begin = strstr(line, values[k]), *end = begin;
        if (!begin) continue;
        while (end > line && isblank((unsigned char)end[-1])) end--;
        if (end - line >= 4 && strncmp(end - 4, "Size", 4) == 0) return end - 4;
        return k == 0 || (end > line && end[-1] == '#') ? begin : NULL;
    }
    return NULL;
}

/* Checks the words after the first ones of a row: numbers, or whether the results were right. */
static hp_status check_rest(const hp_import *i, char *const *word, int first, int n, hp_error *err) {
    double v;
    for (int w = first; w < n; w++) {
        if (strcmp(word[w], "Fail") == 0)
            return hp_import_bad(i, "results were wrong, so the times mean nothing", word[w], err);
        if (!hp_import_number(word[w], &v) && strcmp(word[w], "Pass") != 0)
            return hp_import_bad(i, "expected a number", word[w], err);
    }
    return HP_OK;
}

/* A row that was cut off, or where two ran together, has another number of words. */
static hp_status check_columns(hp_import *i, const char *line, int n, hp_error *err) {
    const int before = i->column[COLUMNS];
    i->column[COLUMNS] = n;
    if (before == 0 || before == n) return HP_OK;
    const char *what =
        hp_arena_printf(i->arena, "expected %d columns as in the row before, not %d", before, n);
    return hp_import_bad(i, what, line, err);
}

static hp_status read_row(hp_import *i, const char *line, hp_error *err) {
    char copy[400], *word[MOST_WORDS];
    double size = 0, value;
    const int at = i->column[HAS_SIZE];
    snprintf(copy, sizeof copy, "%s", line);
    const int n = hp_import_words(copy, word, MOST_WORDS);
    if (n <= at) return hp_import_bad(i, "expected a size and a value", line, err);
    if (at &&
        (!hp_import_number(word[0], &size) || size < 0 || strspn(word[0], "0123456789") != strlen(word[0])))
        return hp_import_bad(i, "expected a size in bytes", word[0], err);
    if (!hp_import_number(word[at], &value) || value <= 0)
        return hp_import_bad(i, "expected a value above 0", word[at], err);
    HP_TRY(check_rest(i, word, at + 1, n, err));
    HP_TRY(check_columns(i, line, n, err));
    int32_t ranks, per_node;
    HP_TRY(hp_import_ranks(i, &ranks, &per_node, err));
    const double bytes = is_per_rank(i->s.op) ? size * ranks : size;
    if (i->column[FORM] == LATENCY) return hp_import_add(i, bytes, 1e-6 * value, err);
    return bytes < WINDOW_BYTES ? HP_OK : hp_import_add(i, bytes, bytes / (1e6 * value), err);
}

static hp_status osu_line(hp_import *i, char *line, hp_error *err) {
    if (osu_begins(line)) return read_test(i, line, err);
    if (i->s.left_out) return HP_OK;
    if (*line == '#') return read_title(i, line, err);
    return i->table && isdigit((unsigned char)*line) ? read_row(i, line, err) : HP_OK;
}

static const char *const comments[] = {"OSU MPI", NULL};

const import_tool hp_import_osu = {osu_begins, osu_line, osu_title, comments};
