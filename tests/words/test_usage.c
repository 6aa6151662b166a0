/* test_usage.c - the command line's common behaviour: help, wrong words, exit codes, a full disk and a closed
 * pipe on stdout, doctor. */
#include "tests/support/words/words.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const commands[] = {
#define COMMAND(name, summary) #name,
#include "cli/commands.def"
#undef COMMAND
};
enum { N_COMMAND = (int)(sizeof commands / sizeof commands[0]) };

/* Users' scripts depend on these; they must stay. */
static const char *const promised[] = {"doctor", "calibrate", "machine", "simulate", "explain",
                                       "why",    "run",       "bench",   "eval",     "compare",
                                       "check",  "plot",      "export",  "report"};

/* A copy of PATH, which a test changes. */
static char *search_path(void) {
    const char *path = getenv("PATH");
    return strdup(path ? path : "");
}

static void help_says_what_there_is(void **state) {
    words *w = *state;
    hplan(w, 0, "%s", "");
    assert_true(words_count(w->out, "^") <= 12);
    out_says(w, "hplan simulate");
    hplan(w, 0, "--version");
    out_says(w, "^hplan [0-9]+\\.[0-9]+\\.[0-9]+ ");
    hplan(w, 0, "help");
    for (size_t i = 0; i < sizeof promised / sizeof promised[0]; i++) out_says(w, "^  %s ", promised[i]);
    for (int i = 0; i < N_COMMAND; i++) out_says(w, "^  %s ", commands[i]);
    char *help = strdup(w->out);
    hplan(w, 0, "--help");
    assert_string_equal(w->out, help);
    free(help);
}

static void every_command_has_its_help(void **state) {
    words *w = *state;
    for (int i = 0; i < N_COMMAND; i++) {
        hplan(w, 0, "help %s", commands[i]);
        char *help = strdup(w->out);
        hplan(w, 0, "%s --help", commands[i]);
        assert_string_equal(w->out, help);
        free(help);
        assert_int_equal(strncmp(w->out, "Usage: hplan ", 13), 0);
        out_says(w, "^Usage: hplan %s", commands[i]);
        out_lacks(w, "^( {9,}|  -.,  +)--[a-z=-]+  "); /* an option where its description belongs */
    }
}

static void wrong_words_are_answered_in_one_line(void **state) {
    words *w = *state;
    char many[5001];
    memset(many, 'x', sizeof many - 1);
    many[sizeof many - 1] = 0;
    hplan(w, 2, "simulat");
    err_line(w, "hplan simulate");
    hplan(w, 2, "zzzzzzzz");
    err_line(w, "hplan help");
    hplan(w, 2, "--gpus 2");
    err_line(w, "hplan simulate --gpus");
    hplan(w, 2, "help zzzzzzzz");
    hplan(w, 2, "%s", many);
    hplan(w, 2, "''");
    hplan(w, 2, "'a\033[31mb'");
    err_lacks(w, "\033"); /* no escape sequence on the terminal */
    for (int i = 0; i < N_COMMAND; i++) {
        hplan(w, 2, "%s --no-such-option", commands[i]);
        err_says(w, "--no-such-option");
    }
}

static void commands_on_a_file_want_one(void **state) {
    static const words_row rows[] = {{2, "explain", NULL, "."}, {2, "why", NULL, "."},
                                     {2, "run", NULL, "."},     {2, "compare", NULL, "."},
                                     {2, "check", NULL, "."},   {2, "plot", NULL, "."},
                                     {2, "export", NULL, "."},  {2, "report", NULL, "."}};
    each_row(*state, rows);
}

static void a_full_disk_is_no_success(void **state) {
    static const char *const writing[] = {
        "", "help", "--version", "doctor", "doctor --json", "help simulate", "run --help"};
    words *w = *state;
    char *path = search_path();
    setenv("PATH", "/nonexistent", 1); /* doctor cannot query anything */
    w->stdout_fd = open("/dev/full", O_WRONLY);
    assert_true(w->stdout_fd > 0);
    for (size_t i = 0; i < sizeof writing / sizeof writing[0]; i++) {
        hplan(w, 74, "%s", writing[i]);
        err_line(w, "stdout");
    }
    close(w->stdout_fd);
    w->stdout_fd = 0;
    setenv("PATH", path, 1);
    free(path);
}

static void a_reader_that_goes_away_ends_it_quietly(void **state) {
    words *w = *state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    w->stdout_fd = ends[1];
    hplan(w, 128 + SIGPIPE, "help");
    w->stdout_fd = 0;
    close(ends[1]);
    err_empty(w);
}

static void doctor_says_what_to_do_next(void **state) {
    words *w = *state;
    hplan(w, 0, "doctor");
    out_says(w, "^ next: ");
    hplan(w, 0, "doctor --json");
    near_to(words_number(w, "schema"), 1, 0);
    assert_true(words_length(w, "checks") > 3 && words_length(w, "next") > 0);
    assert_true(words_number(w, "cores") >= 1 && words_number(w, "memory_bytes") > 1e6);
    hplan(w, 2, "doctor something");
    char *path = search_path();
    setenv("PATH", "/nonexistent", 1);
    hplan(w, 0, "doctor");
    setenv("PATH", path, 1);
    free(path);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_says_what_there_is),
        cmocka_unit_test(every_command_has_its_help),
        cmocka_unit_test(wrong_words_are_answered_in_one_line),
        cmocka_unit_test(commands_on_a_file_want_one),
        cmocka_unit_test(a_full_disk_is_no_success),
        cmocka_unit_test(a_reader_that_goes_away_ends_it_quietly),
        cmocka_unit_test(doctor_says_what_to_do_next),
    };
    return cmocka_run_group_tests(tests, words_open, words_close);
}
