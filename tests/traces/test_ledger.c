/* test_ledger.c - a history loses no run, whoever appends concurrently; its figures equal a hand calculation,
 * and damage is reported. */
#include "base/rng.h"
#include "tests/support/traces/trace_fixture.h"
#include "traces/ledger.h"

#include <pwd.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[200], path[256];

static hp_ledger_entry entry_of(double predicted_s, double measured_s) {
    return (hp_ledger_entry){.started = "2026-01-02T03:04:05Z",
                             .plan_hash = "abc",
                             .net = "cnn",
                             .image = "28x28",
                             .mode = "train",
                             .batch = 64,
                             .strategy = "dp=2",
                             .ranks = 2,
                             .steps = 19,
                             .device = "cpu",
                             .machine = "local",
                             .host = "here",
                             .processor = "P",
                             .cost = "local.cost",
                             .cost_hash = "def",
                             .cost_processor = "P",
                             .predicted_s = predicted_s,
                             .low_s = NAN,
                             .high_s = NAN,
                             .quiet_s = NAN,
                             .measured_s = measured_s,
                             .equal_speed_s = NAN,
                             .arith = NAN,
                             .l2 = NAN,
                             .dram = NAN,
                             .availability = NAN,
                             .version = "1"};
}

static void near_to(double have, double want) {
    if (!(fabs(have - want) <= 1e-12 * fmax(1, fabs(want)))) fail_msg("%.15g is not %.15g", have, want);
}

/* --- storage --- */

static void what_is_appended_is_read(void **state) {
    (void)state;
    hp_error err = {0};
    hp_arena *arena = hp_arena_new();
    hp_ledger_entry *e = NULL, first = entry_of(0.5, 0.25), second = entry_of(2, 3);
    int n = -1;
    fixture_ok(hp_ledger_read(arena, path, &e, &n, &err), &err);
    assert_int_equal(n, 0); /* no file, no runs */
    first.low_s = 0.4, first.high_s = 0.75, first.equal_speed_s = 0.48, first.availability = 0;
    first.strategy = "a\033[31mb'; DROP TABLE run; --";
    fixture_ok(hp_ledger_append(path, &first, &err), &err);
    second.host = NULL;
    fixture_ok(hp_ledger_append(path, &second, &err), &err);
    fixture_ok(hp_ledger_read(arena, path, &e, &n, &err), &err);
    assert_int_equal(n, 2);
    assert_true(e[0].predicted_s == 0.5 && e[0].measured_s == 0.25 && e[0].low_s == 0.4 &&
                e[0].high_s == 0.75 && e[0].equal_speed_s == 0.48 && e[0].availability == 0);
    assert_string_equal(e[0].strategy, "a?[31mb'; DROP TABLE run; --");
    assert_true(isnan(e[0].arith) && isnan(e[1].low_s));
    assert_int_equal(e[0].batch, 64);
    assert_int_equal(e[0].steps, 19);
    assert_string_equal(e[1].host, "");
    assert_true(e[1].predicted_s == 2 && e[1].measured_s == 3);
    hp_arena_free(arena);
}

/* A row that no run can produce is refused when it is written. */
static void impossible_rows_are_refused(void **state) {
    (void)state;
    hp_error err = {0};
    hp_arena *arena = hp_arena_new();
    hp_ledger_entry *e = NULL, good = entry_of(1, 1);
    const hp_ledger_entry bad[] = {entry_of(0, 1), entry_of(1, 0), entry_of(1, -1), entry_of(1, INFINITY),
                                   entry_of(NAN, 1)};
    int n = 0;
    fixture_ok(hp_ledger_append(path, &good, &err), &err);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_not_equal(hp_ledger_append(path, &bad[i], &err), HP_OK);
    fixture_ok(hp_ledger_read(arena, path, &e, &n, &err), &err);
    assert_int_equal(n, 1);
    hp_arena_free(arena);
}

enum { PROCESSES = 8, APPENDS = 12 };

static int append_all(int process) {
    hp_error err = {0};
    for (int i = 0; i < APPENDS; i++) {
        hp_ledger_entry e = entry_of(1 + process, 1 + i);
        hp_status s = hp_ledger_append(path, &e, &err);
        while (s == HP_EIO && strstr(err.text, "keep it locked")) /* a slow disk; the row was not written */
            s = hp_ledger_append(path, &e, &err);
        if (s != HP_OK) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
    }
    return 0;
}

/* The file does not exist at first: the processes also create it. */
static void processes_that_append_together_lose_nothing(void **state) {
    (void)state;
    hp_error err = {0};
    hp_arena *arena = hp_arena_new();
    hp_ledger_entry *e = NULL;
    pid_t child[PROCESSES];
    int n = 0, seen[PROCESSES][APPENDS] = {{0}};
    for (int p = 0; p < PROCESSES; p++) {
        child[p] = fork();
        assert_true(child[p] >= 0);
        if (child[p] == 0) _exit(append_all(p));
    }
    for (int p = 0; p < PROCESSES; p++) {
        int status = -1;
        assert_int_equal(waitpid(child[p], &status, 0), child[p]);
        assert_int_equal(status, 0);
    }
    fixture_ok(hp_ledger_read(arena, path, &e, &n, &err), &err);
    assert_int_equal(n, PROCESSES * APPENDS);
    for (int i = 0; i < n; i++) seen[(int)e[i].predicted_s - 1][(int)e[i].measured_s - 1]++;
    for (int p = 0; p < PROCESSES; p++)
        for (int i = 0; i < APPENDS; i++) assert_int_equal(seen[p][i], 1);
    hp_arena_free(arena);
}

static void write_bytes(const char *bytes, size_t n, long at) {
    FILE *f = fopen(path, at ? "r+" : "w");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static void refused(const char *why) {
    hp_error err = {0};
    hp_arena *arena = hp_arena_new();
    hp_ledger_entry *e = NULL, good = entry_of(1, 1);
    int n = 0;
    assert_int_equal(hp_ledger_read(arena, path, &e, &n, &err), HP_EDATA);
    assert_int_equal(n, 0);
    assert_non_null(strstr(err.text, why));
    assert_non_null(strstr(err.text, path));
    err.text[0] = '\0';
    assert_int_equal(hp_ledger_append(path, &good, &err), HP_EDATA);
    assert_non_null(strstr(err.text, why));
    hp_arena_free(arena);
}

static void other_files_are_refused_and_left_alone(void **state) {
    (void)state;
    hp_error err = {0};
    hp_db db;
    hp_ledger_entry good = entry_of(1, 1);
    char text[32] = "", garbage[2000];
    memset(garbage, 'x', sizeof garbage);
    write_bytes(garbage, sizeof garbage, 0);
    refused("damaged");
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_true(fread(text, 1, 31, f) == 31 && strspn(text, "x") == 31);
    fclose(f);
    unlink(path);
    fixture_ok(hp_db_create(path, &db, &err), &err); /* a plan */
    fixture_ok(hp_db_commit(&db, &err), &err);
    hp_db_close(&db);
    refused("not a history");
    unlink(path);
    fixture_ok(hp_ledger_append(path, &good, &err), &err);
    write_bytes("\0\0\0\7", 4, 60); /* user_version: sqlite.org/fileformat2.html */
    refused("format 7");
}

/* A damaged byte in a page of rows: reading reports it. */
static void damage_is_said(void **state) {
    (void)state;
    hp_error err = {0};
    hp_arena *arena = hp_arena_new();
    hp_ledger_entry *e = NULL;
    int n = 0;
    for (int i = 0; i < 100; i++) {
        hp_ledger_entry good = entry_of(1, 1);
        fixture_ok(hp_ledger_append(path, &good, &err), &err);
    }
    char garbage[600];
    memset(garbage, 0x7f, sizeof garbage);
    write_bytes(garbage, sizeof garbage, 4096 + 4); /* the head of the second page */
    assert_int_equal(hp_ledger_read(arena, path, &e, &n, &err), HP_EDATA);
    assert_non_null(strstr(err.text, path));
    hp_arena_free(arena);
}

static void a_place_that_cannot_be_written_is_an_error(void **state) {
    (void)state;
    hp_error err = {0};
    hp_ledger_entry good = entry_of(1, 1);
    char below[300];
    write_bytes("x", 1, 0);
    snprintf(below, sizeof below, "%s/hplan/history.db", path); /* a file where a folder must be */
    assert_int_equal(hp_ledger_append(below, &good, &err), HP_ECREATE);
    assert_non_null(strstr(err.text, below));
}

static void the_path_follows_the_environment(void **state) {
    (void)state;
    char out[300], *home = getenv("HOME"), *state_home = getenv("XDG_STATE_HOME");
    setenv("HOME", "/h", 1);
    setenv("XDG_STATE_HOME", "/s", 1);
    assert_string_equal(hp_ledger_path(out, sizeof out), "/s/hplan/history.db");
    setenv("XDG_STATE_HOME", "relative", 1); /* must be ignored: XDG base directory specification 0.8 */
    assert_string_equal(hp_ledger_path(out, sizeof out), "/h/.local/state/hplan/history.db");
    unsetenv("XDG_STATE_HOME");
    assert_string_equal(hp_ledger_path(out, sizeof out), "/h/.local/state/hplan/history.db");
    unsetenv("HOME");
    const struct passwd *user = getpwuid(geteuid()); /* not /tmp, to which anybody can write */
    char want[300];
    snprintf(want, sizeof want, "%s/.local/state/hplan/history.db", user ? user->pw_dir : "");
    assert_string_equal(hp_ledger_path(out, sizeof out), want);
    setenv("HOME", "relative", 1);
    assert_string_equal(hp_ledger_path(out, sizeof out), want);
    unsetenv("HOME");
    if (home) setenv("HOME", home, 1);
    if (state_home) setenv("XDG_STATE_HOME", state_home, 1);
}

/* --- figures --- */

/* Predicted 1.00 s each time. Errors for 1/0.8, 1, 1/1.25 and 1/2: 25 %, 0, 20 % and 50 %; their median is
 * 22.5 %. Two of the three intervals contain the measurement. */
static void figures_are_those_of_a_hand_calculation(void **state) {
    (void)state;
    hp_ledger_entry e[] = {entry_of(1, 0.8), entry_of(1, 1), entry_of(1, 1.25), entry_of(1, 2)};
    const double a = log(1.25), b = log(2);
    e[0].low_s = 0.8, e[0].high_s = 1.2; /* the end belongs to the interval */
    e[1].low_s = 0.9, e[1].high_s = 1.1;
    e[3].low_s = 0.9, e[3].high_s = 1.5;
    hp_ledger_figures f = hp_ledger_sum(e, 4, NULL, false);
    assert_int_equal(f.n, 4);
    near_to(f.median_error, 0.225);
    near_to(f.bias_log, (a - a - b) / 4);
    near_to(f.rms_log, sqrt((a * a + a * a + b * b) / 4));
    assert_int_equal(f.n_interval, 3);
    near_to(f.covered, 2.0 / 3);
    const bool use[] = {true, false, false, true};
    f = hp_ledger_sum(e, 4, use, false);
    assert_int_equal(f.n, 2);
    near_to(f.median_error, 0.375);
    near_to(f.covered, 0.5);
    f = hp_ledger_sum(e, 4, NULL, true);
    assert_true(f.n == 0 && isnan(f.median_error) && isnan(f.covered)); /* no run's speed is known */
    e[3].equal_speed_s = 1.25;
    f = hp_ledger_sum(e, 4, NULL, true);
    assert_int_equal(f.n, 1);
    near_to(f.median_error, 0.2);
    near_to(f.covered, 1);
}

/* With log-normal errors of standard deviation s, intervals exp(-+ 1.645 s) contain 90 % of the
 * runs, rms_log is s, and the median of |ln| is 0.6745 s. Tolerances: four standard deviations of
 * estimates from 4000 runs. */
static void coverage_of_known_errors(void **state) {
    (void)state;
    enum { RUNS = 4000 };
    const double s = 0.1;
    static hp_ledger_entry e[RUNS];
    for (int i = 0; i < RUNS; i++) {
        e[i] = entry_of(3, 3 * exp(s * hp_rng_normal(11, 0, (uint64_t)i)));
        e[i].low_s = 3 * exp(-1.645 * s), e[i].high_s = 3 * exp(1.645 * s);
    }
    const hp_ledger_figures f = hp_ledger_sum(e, RUNS, NULL, false);
    assert_true(fabs(f.covered - 0.9) < 4 * sqrt(0.9 * 0.1 / RUNS));
    assert_true(fabs(f.rms_log - s) < 4 * s / sqrt(2.0 * RUNS));
    assert_true(fabs(f.bias_log) < 4 * s / sqrt(RUNS));
    assert_true(fabs(f.median_error / 0.06745 - 1) < 0.08);
}

static void only_this_processor_s_own_runs_compare(void **state) {
    (void)state;
    hp_ledger_entry e = entry_of(1, 1);
    assert_true(hp_ledger_comparable(&e, "P"));
    assert_false(hp_ledger_comparable(&e, "Q"));
    e.cost_processor = ""; /* its table was not measured on this machine */
    assert_false(hp_ledger_comparable(&e, "P"));
    e.cost_processor = "Q";
    assert_false(hp_ledger_comparable(&e, "P"));
    e.cost_processor = "P", e.machine = "thesis-a100"; /* --force */
    assert_false(hp_ledger_comparable(&e, "P"));
}

static int set_up(void **state) {
    (void)state;
    fixture_path(folder, sizeof folder, "ledger");
    snprintf(path, sizeof path, "%s/state/hplan/history.db", folder);
    char part[256];
    mkdir(folder, 0777);
    snprintf(part, sizeof part, "%s/state", folder);
    mkdir(part, 0777);
    snprintf(part, sizeof part, "%s/state/hplan", folder);
    mkdir(part, 0777);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    char part[256];
    unlink(path);
    snprintf(part, sizeof part, "%s/state/hplan", folder);
    rmdir(part);
    snprintf(part, sizeof part, "%s/state", folder);
    rmdir(part);
    return rmdir(folder);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(what_is_appended_is_read),
        IN_FOLDER(impossible_rows_are_refused),
        IN_FOLDER(processes_that_append_together_lose_nothing),
        IN_FOLDER(other_files_are_refused_and_left_alone),
        IN_FOLDER(damage_is_said),
        IN_FOLDER(a_place_that_cannot_be_written_is_an_error),
        cmocka_unit_test(the_path_follows_the_environment),
        cmocka_unit_test(figures_are_those_of_a_hand_calculation),
        cmocka_unit_test(coverage_of_known_errors),
        cmocka_unit_test(only_this_processor_s_own_runs_compare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
