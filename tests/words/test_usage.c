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

/* "help help" is help; a word after the last that help knows is not ignored. */
static void help_takes_one_command(void **state) {
    static const words_row rows[] = {{2, "help report extra", "", "hplan help report"},
                                     {2, "help strategies extra", "", "hplan help strategies"},
                                     {2, "help help extra", "", "'extra'"},
                                     {2, "help bench nosuch", "", "'nosuch'"},
                                     {2, "help bench comm extra", "", "'extra'"},
                                     {2, "hlp", "", "hplan help"}};
    words *w = *state;
    hplan(w, 0, "help");
    char *all = strdup(w->out);
    hplan(w, 0, "help help");
    assert_string_equal(w->out, all);
    free(all);
    hplan(w, 0, "help bench comm");
    out_says(w, "^Usage: hplan bench comm");
    each_row(w, rows);
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

/* An empty argument is a variable that a script has not set: no command takes it for a name. */
static void no_argument_is_empty(void **state) {
    words *w = *state;
    for (int i = 0; i < N_COMMAND; i++) {
        hplan(w, 2, "%s ''", commands[i]);
        err_line(w, "argument 1 is empty");
    }
    hplan(w, 2, "simulate --net cnn --out ''");
    err_line(w, "argument 4 is empty");
}

/* What status suggests works: no other command reads a file that is no run. */
static void status_of_what_is_no_run_says_so(void **state) {
    static const words_row rows[] = {{65, "status text", "", "text: not a file written by hplan"},
                                     {65, "status nofile", "", "no run is writing nofile"},
                                     {65, "status idle.db", "", "idle.db: holds no executed run"}};
    words *w = *state;
    words_write("text", "hello\n");
    hplan(w, 0, "simulate --net cnn --image 28 --machine thesis-a100 --gpus 1 --strategy dp=1 --out idle.db");
    each_row(w, rows);
}

/* Neither a page nor a table has gone anywhere. SQLite opens /dev/null where stdout was. */
static void a_closed_stdout_is_named(void **state) {
    words *w = *state;
    hplan(w, 0, "simulate --net cnn --image 28 --machine thesis-a100 --gpus 1 --strategy dp=1 --out idle.db");
    w->stdout_fd = -1;
    hplan(w, 74, "report idle.db -o -");
    err_line(w, "stdout: it is closed");
    hplan(w, 74, "explain idle.db");
    err_line(w, "stdout");
    w->stdout_fd = 0;
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
        cmocka_unit_test(help_takes_one_command),
        cmocka_unit_test(no_argument_is_empty),
        cmocka_unit_test(status_of_what_is_no_run_says_so),
        cmocka_unit_test(a_closed_stdout_is_named),
        cmocka_unit_test(wrong_words_are_answered_in_one_line),
        cmocka_unit_test(commands_on_a_file_want_one),
        cmocka_unit_test(a_full_disk_is_no_success),
        cmocka_unit_test(a_reader_that_goes_away_ends_it_quietly),
        cmocka_unit_test(doctor_says_what_to_do_next),
    };
    return cmocka_run_group_tests(tests, words_open, words_close);
}
