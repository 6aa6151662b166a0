/* test_import_logs.c - output of nccl-tests and OSU as logs contain it: with prefixes, colours, carriage
 * returns, or without '#', it gives the same rows as without. Lines that begin differently from their table
 * are rejected. */
#include "costmodels/tuning/import.h"
#include "base/rng.h"
#include "tests/support/plan/law_cases.h"
#include "tests/support/sim/made_up_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define RANK(R, HOST)                                                                                        \
    "#  Rank  " R " Group  0 Pid  1887 on   " HOST " device  0 [0x8d] NVIDIA H100 80GB HBM3\n"
#define TITLE                                                                                                \
    "#                                                       out-of-place                       in-place\n"  \
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw " \
    "  busbw #wrong\n"                                                                                       \
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s) " \
    " (GB/s)\n"
#define ROW_8                                                                                                \
    "           8             2     float     sum      -1    20.00    0.00    0.00      0    21.00    0.00 " \
    "   0.00      0\n"
#define ROW_1M                                                                                               \
    "     1048576        262144     float     sum      -1   100.00   10.49   10.49      0   110.00    9.53 " \
    "   9.53      0\n"
#define NCCL_TESTS                                                                                           \
    "# nccl-tests version 2.17.6 nccl-headers=22602 nccl-library=22602\n"                                    \
    "# Collective test starting: all_reduce_perf\n"                                                          \
    "# nThread 1 nGpus 1 minBytes 8 maxBytes 1048576 step: 2(factor)\n#\n# Using devices\n" RANK("0", "a")   \
        RANK("1", "a") "#\n" TITLE

static const char nccl[] =
    NCCL_TESTS ROW_8 ROW_1M "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 5.0\n";
static const char osu[] = "\n# OSU MPI-CUDA Allreduce Latency Test v7.4\n# Datatype: MPI_CHAR.\n"
                          "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n"
                          "8                      12.50             11.00             14.00        1000\n"
                          "1048576               112.50            111.00            114.00        1000\n";
static const char barrier[] =
    "# OSU MPI-CUDA Barrier Latency Test v5.8\n# Avg Latency(us)\n             8.32\n";
static const char *const texts[] = {nccl, osu, barrier};

static hp_machine gpus(void) {
    hp_machine m;
    hp_error err = {HP_OK, ""};
    if (hp_machine_load("thetagpu", &m, &err) != HP_OK) fail_msg("%s", err.text);
    return m;
}

static hp_status take(hp_arena *a, const char *text, hp_cost_table **t, hp_error *err) {
    hp_machine *m = HP_NEW(a, hp_machine, 1);
    *m = gpus();
    const bool says_ranks = strstr(text, "Rank") != NULL;
    const hp_import_options o = {.machine = m, .ranks = says_ranks ? 0 : 2, .per_node = says_ranks ? 0 : 2};
    hp_import *i = hp_import_new(a, &o);
    *t = hp_rows_new(a, m->name, "2026-01-02");
    HP_TRY(hp_import_text(i, text, "log.txt", "2026-01-01", err));
    return hp_import_rows(i, *t, err);
}

static void same_rows(hp_arena *a, const char *text, const char *plain, const char *form) {
    hp_error err = {HP_OK, ""};
    hp_cost_table *t, *u;
    if (take(a, plain, &u, &err) != HP_OK) fail_msg("%s", err.text);
    if (take(a, text, &t, &err) != HP_OK) fail_msg("after '%s': %s in\n%s", form, err.text, text);
    assert_int_equal(t->n, 1);
    assert_int_equal(u->n, 1);
    if (t->row[0].n != u->row[0].n) fail_msg("after '%s': %d sizes of %d", form, t->row[0].n, u->row[0].n);
    assert_string_equal(t->row[0].where, u->row[0].where);
    assert_string_equal(t->row[0].key, u->row[0].key);
    assert_memory_equal(t->row[0].x, u->row[0].x, sizeof *t->row[0].x * (size_t)t->row[0].n);
    assert_memory_equal(t->row[0].y, u->row[0].y, sizeof *t->row[0].y * (size_t)t->row[0].n);
}

/* --- logs --- */

/* Prefixes written by schedulers and loggers; all formats get the line number five times. */
static const char *const before[] = {
    "[1,0]<stdout>:",
    " 0: ",
    "[0] ",
    "2025-03-01T10:%02d:%02d.%09dZ ",
    "2025-03-01T10:%02d:%02d.%09dZ stdout F ",
    "[2025-03-01 10:%02d:%02d] ",
    "Mar %2d 10:%02d:%02d node01 app[%d]: ",
    "%d.%03d ",
    "[%5d.%06d] ",
    "[pod/launcher-0-x7f2c/main] ",
    "node-a.example.org| ",
    "> ",
    "%6d\t",
    "INFO - ",
    "\x1b[32m",
    "",
};
enum { FORMS = sizeof before / sizeof *before };

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static const char *beginning(hp_arena *a, const char *form, int line) {
    return hp_arena_printf(a, form, line, line + 7, 3 * line, line, line);
}
#pragma GCC diagnostic pop

typedef struct log_form {
    const char *form[3]; /* one after the other */
    bool returns, lost;  /* lines end in \r\n; '#' is lost */
} log_form;

static const char *log_of(hp_arena *a, const char *plain, const log_form *f) {
    const char *text = "";
    char *rest = hp_arena_strdup(a, plain);
    int n = 0;
    for (char *line; (line = strsep(&rest, "\n")) != NULL && (rest || *line); n++) {
        const char *start = "";
        for (int i = 0; i < 3 && f->form[i]; i++)
            start = hp_arena_printf(a, "%s%s", start, beginning(a, f->form[i], n));
        text = hp_arena_printf(a, "%s%s%s%s\n", text, start, f->lost && *line == '#' ? line + 1 : line,
                               f->returns ? "\r" : "");
    }
    return text;
}

static void logs_give_the_rows_of_what_is_in_them(void **state) {
    (void)state;
    for (int i = 0; i < FORMS * 4 * 3; i++) {
        hp_arena *a = hp_arena_new();
        const log_form f = {{before[i % FORMS]}, i / FORMS & 1, i / FORMS & 2};
        const char *plain = texts[i / FORMS / 4];
        same_rows(a, log_of(a, plain, &f), plain, f.form[0]);
        hp_arena_free(a);
    }
    for (uint64_t i = 0; i < law_cases(600); i++) { /* one logger behind another */
        hp_arena *a = hp_arena_new();
        log_form f = {.returns = hp_rng_below(5, 1, i, 2) != 0, .lost = hp_rng_below(5, 2, i, 2) != 0};
        for (uint64_t k = 0; k < 3; k++) f.form[k] = before[hp_rng_below(5, 3 + k, i, FORMS)];
        const char *plain = texts[i % 3];
        same_rows(a, log_of(a, plain, &f), plain, f.form[0]);
        hp_arena_free(a);
    }
}

/* Other ranks' lines in between, with prefixes of the same form. */
static void lines_of_other_ranks_are_passed_over(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const char *text = "";
    char *rest = hp_arena_strdup(a, nccl);
    for (char *line; (line = strsep(&rest, "\n")) != NULL && rest;)
        text = hp_arena_printf(
            a,
            "%s[1,0]<stdout>:%s\n[1,1]<stderr>:node1:77:80 [1] NCCL INFO comm 0x7f rank 1 nranks "
            "2\n[1,1]<stdout>:\n",
            text, line);
    same_rows(a, text, nccl, "tags");
    hp_arena_free(a);
}

/* --- what is refused --- */

static void rows_that_begin_otherwise_are_refused(void **state) {
    static const struct {
        const char *text, *says;
    } cases[] = {
        {NCCL_TESTS ROW_8 "[0] " ROW_1M, "line 13: a row, but what stands before it"},
        {NCCL_TESTS "12:" ROW_8 "13:" ROW_1M, "expected 13 columns as in the title, there are 14"},
        {NCCL_TESTS "12 " ROW_8, "expected 13 columns as in the title, there are 14"},
        {"[0] # OSU MPI-CUDA Allreduce Latency Test v7.4\n[0] # Size  Avg Latency(us)\n[x] 1024  12.5\n",
         "holds no times: it has the title of a table"},
        {"12 # OSU MPI-CUDA Allreduce Latency Test v7.4\n13 # Size  Avg Latency(us) Min Latency(us)\n1024 "
         "12.50 11.00\n",
         "expected a size in bytes"},
        {"# OSU MPI-CUDA Allreduce Latency Test v7.4\n# Size  Avg Latency(us)  Min Latency(us)  Iterations\n"
         "8  12.50  11.00  1000\n1048576  11\n",
         "line 4: expected 4 columns as in the row before, not 2"},
        {"0: # OSU MPI-CUDA Allreduce Latency Test v7.4\n0: # Size  Avg Latency(us)\n0: 8  12.50\n"
         "0: 16  1.00  12.50\n",
         "line 4: expected 2 columns as in the row before, not 3"},
        {"# OSU MPI-CUDA Barrier Latency Test v7.4\n# Avg Latency(us)  Min Latency(us)\n8.32  8.00\n8.40\n",
         "line 4: expected 2 columns as in the row before, not 1"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hp_arena *a = hp_arena_new();
        hp_error err = {HP_OK, ""};
        hp_cost_table *t;
        assert_int_equal(take(a, cases[i].text, &t, &err), HP_EDATA);
        if (!strstr(err.text, cases[i].says)) fail_msg("no '%s' in %s", cases[i].says, err.text);
        hp_arena_free(a);
    }
}

/* One line in another form than the rest gives the rows of all lines, or an error; never other times. */
static void a_line_in_another_form_is_no_other_time(void **state) {
    (void)state;
    int taken = 0;
    for (uint64_t i = 0; i < law_cases(600); i++) {
        hp_arena *a = hp_arena_new();
        hp_error err = {HP_OK, ""};
        hp_cost_table *t, *u;
        const char *form = before[hp_rng_below(6, 1, i, FORMS)],
                   *other = before[hp_rng_below(6, 2, i, FORMS)];
        const char *plain = texts[i % 2];
        const char *text = log_of(a, plain, &(log_form){{form}, false, false}),
                   *odd = log_of(a, plain, &(log_form){{other}, false, false});
        const int at = (int)hp_rng_below(6, 3, i, 16);
        char *one = hp_arena_strdup(a, text), *two = hp_arena_strdup(a, odd);
        const char *mixed = "";
        for (int k = 0; one && two; k++) {
            const char *x = strsep(&one, "\n"), *y = strsep(&two, "\n");
            mixed = hp_arena_printf(a, "%s%s\n", mixed, k == at ? y : x);
        }
        assert_int_equal(take(a, plain, &u, &err), HP_OK);
        if (take(a, mixed, &t, &err) == HP_OK) {
            taken++;
            for (int k = 0; k < t->row[0].n; k++) {
                int same = 0;
                for (int l = 0; l < u->row[0].n; l++)
                    same += t->row[0].x[k] == u->row[0].x[l] && t->row[0].y[k] == u->row[0].y[l];
                if (same != 1) fail_msg("%g s at %g bytes of\n%s", t->row[0].y[k], t->row[0].x[k], mixed);
            }
        }
        hp_arena_free(a);
    }
    assert_true(taken > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logs_give_the_rows_of_what_is_in_them),
        cmocka_unit_test(lines_of_other_ranks_are_passed_over),
        cmocka_unit_test(rows_that_begin_otherwise_are_refused),
        cmocka_unit_test(a_line_in_another_form_is_no_other_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
