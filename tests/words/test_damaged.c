/* test_damaged.c - the reaction of every command that reads a database to foreign or damaged files: exit 65,
 * one line that names the file, and the file unchanged. For the undamaged plan, `explain` is consistent. */
#include "tests/support/words/words.h"

#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOISE = 100000, ZEROS = 512 };

static void make_foreign_database(const char *name) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open(name, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db, "CREATE TABLE recipe(name TEXT); INSERT INTO recipe VALUES(1);", NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(db);
}

static void make_noise(const char *name) {
    unsigned char bytes[NOISE];
    uint32_t x = 1;
    for (int i = 0; i < NOISE; i++) { /* xorshift, Marsaglia 2003 */
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        bytes[i] = (unsigned char)x;
    }
    words_write_bytes(name, bytes, sizeof bytes);
}

/* Truncates the plan; writes zeros over its header, over its schema. */
static void damage(const char *plan) {
    size_t n;
    char *bytes = words_read(plan, &n), *changed = malloc(n);
    assert_true(bytes && n > 10 * ZEROS);
    words_write_bytes("cut10.db", bytes, n / 10);
    words_write_bytes("cut50.db", bytes, n / 2);
    words_write_bytes("cut90.db", bytes, n / 10 * 9);
    for (size_t at = 0; at <= 100; at += 100) {
        char name[32];
        snprintf(name, sizeof name, "zeroed%d.db", (int)at);
        memcpy(changed, bytes, n);
        memset(changed + at, 0, ZEROS);
        words_write_bytes(name, changed, n);
    }
    free(changed);
    free(bytes);
}

static int make_files(void **state) {
    if (words_open(state)) return -1;
    words_write("text.db", "this is not a database\n");
    words_write_bytes("empty.db", "", 0);
    make_noise("noise.db");
    make_foreign_database("foreign.db");
    if (mkdir("folder.db", 0700)) return -1;
    hplan(*state, 0,
          "simulate --net cnn --image 28 --classes 10 --machine thesis-a100 --batch 64 --out good.db "
          "--strategy "
          "dp=2,stages=2,micro=4");
    damage("good.db");
    return 0;
}

/* hplan COMMAND NAME AND... rejects the file and leaves it unchanged. */
static void refuses(words *w, const char *command, const char *name, const char *and) {
    size_t before, after;
    char *was = words_read(name, &before);
    hplan(w, 65, "%s %s %s", command, name, and);
    err_line(w, "%s", name);
    char *is = words_read(name, &after);
    assert_true(before == after && !was == !is);
    if (was && is) assert_memory_equal(was, is, before);
    free(was);
    free(is);
}

static void what_is_no_plan_is_refused_and_left_alone(void **state) {
    static const char *const names[] = {"missing.db", "text.db",    "empty.db",    "noise.db",
                                        "folder.db",  "foreign.db", "cut10.db",    "cut50.db",
                                        "cut90.db",   "zeroed0.db", "zeroed100.db"};
    words *w = *state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char baseline[64];
        snprintf(baseline, sizeof baseline, "--baseline %s", names[i]);
        refuses(w, "explain", names[i], "");
        refuses(w, "why", names[i], "dp=2");
        refuses(w, "run", names[i], "--steps 1");
        refuses(w, "compare", names[i], "");
        refuses(w, "check", names[i], baseline);
        refuses(w, "plot timeline", names[i], "-o chart.svg");
        refuses(w, "export", names[i], "--chrome -o trace.json");
        refuses(w, "report", names[i], "-o page.html");
    }
    assert_int_not_equal(access("chart.svg", F_OK), 0);
    assert_int_not_equal(access("trace.json", F_OK), 0);
    assert_int_not_equal(access("missing.db", F_OK), 0);
}

static void explain_shows_a_plan_in_each_way(void **state) {
    static const words_row rows[] = {
        {0, "explain good.db", ".", NULL},
        {0, "explain good.db --dot", "^digraph", NULL},
        {0, "explain good.db --rank 0", ".", NULL},
    };
    words *w = *state;
    each_row(w, rows);
    hplan(w, 2, "explain good.db --rank 99");
    err_line(w, "--rank");
}

/* Stages hold every unit and every parameter once; tasks wait only for earlier ones. */
static void explain_does_not_contradict_itself(void **state) {
    words *w = *state;
    hplan(w, 0, "explain good.db --json");
    double units = 0, parameters = 0;
    const int stages = words_length(w, "stages"), roles = words_length(w, "roles");
    assert_int_equal(stages, 2);
    for (int i = 0; i < stages; i++) {
        units += words_number(w, "stages/%d/last_unit", i) - words_number(w, "stages/%d/first_unit", i) + 1;
        parameters += words_number(w, "stages/%d/parameters", i);
    }
    near_to(units, words_length(w, "units"), 0);
    near_to(parameters, words_number(w, "parameters"), 0);
    int tasks = 0;
    for (int i = 0; i < roles; i++) {
        size_t k, j;
        json_t *task, *earlier;
        json_array_foreach(words_at(w, "roles/%d/tasks", i), k, task) {
            tasks++;
            json_array_foreach(json_object_get(task, "after"), j, earlier)
                assert_true(json_integer_value(earlier) < json_integer_value(json_object_get(task, "task")));
        }
    }
    assert_true(tasks > 0);
}

/* Tiles times branches: every part of the stage belongs to some rank, under its own number. */
static void explain_shows_all_parts_of_a_stage(void **state) {
    words *w = *state;
    hplan(w, 0, "simulate --net cnn --image 28 --batch 2 --strategy sp=2x1,bp=2 --device ref --out parts.db");
    hplan(w, 0, "explain parts.db");
    out_says(w, "^stage 0 on ranks 0\\.\\.3 ");
    out_says(w, "tile 1 of 2 \\(1,0\\) branch 1 of 2");
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_plan_is_refused_and_left_alone),
        cmocka_unit_test(explain_shows_a_plan_in_each_way),
        cmocka_unit_test(explain_does_not_contradict_itself),
        cmocka_unit_test(explain_shows_all_parts_of_a_stage),
    };
    return cmocka_run_group_tests(tests, make_files, words_close);
}
