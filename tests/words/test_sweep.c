/* test_sweep.c - searches over several device counts and image sizes: the best of each, or the reason why
 * there is none; machines that are too small or have idle devices; the stored results in plan.db, and its
 * plots. */
#include "tests/support/words/words.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define SMALL "nodes=2; node=2 x a100-40, nvlink=100GB/s; nic=1 x 24GB/s"
#define FEWER "nodes=2; node=1 x a100-40, nvlink=100GB/s; nic=1 x 24GB/s"
#define CNN   "simulate --net cnn --image 28"
enum { FRONT = 16 };

/* The first count lacks memory, the second has enough. */
static void a_search_has_a_row_for_each_count(words *w, const char *what, int first, int second) {
    hplan(w, 0, "simulate --net unet:64 --machine summit %s --json --out search.db", what);
    assert_int_equal(words_length(w, "scaling"), 2);
    assert_true(json_is_null(words_at(w, "scaling/0/strategy")));
    assert_string_equal(words_text(w, "scaling/0/reason/code"), "E-MEM");
    assert_string_not_equal(words_text(w, "scaling/0/reason/limit"), "");
    assert_true(json_is_null(words_at(w, "scaling/1/reason")));
    near_to(words_number(w, "scaling/1/number"), 1, 0);
    near_to(words_number(w, "scaling/1/gpus"), second, 0);
    assert_string_equal(words_text(w, "scaling/1/strategy"), words_text(w, "candidates/0/strategy"));
    hplan(w, 0, "simulate --net unet:64 --machine summit %s --out search.db", what);
    out_says(w, "^  - .* %d +[12] +E-MEM: ", first);
}

static void a_count_without_a_plan_is_a_row_of_its_search(void **state) {
    a_search_has_a_row_for_each_count(*state, "--image 3072 --gpus 1,2 --batch 1", 1, 2);
    if (words_all("a count without a plan beside four devices"))
        a_search_has_a_row_for_each_count(*state, "--image 4096 --gpus 1,4 --batch 2", 1, 4);
}

/* Each size gives the same as when requested alone; the last is the plan. */
static void sizes_are_as_each_alone(words *w, const char *net, const char *list, const char *const *sizes) {
    char strategy[3][128];
    double step[3];
    hplan(w, 0, "simulate --net %s --image %s --machine thesis-a100 --gpus 2 --batch 4 --json --out sizes.db",
          net, list);
    assert_int_equal(words_length(w, "images"), 3);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(words_text(w, "images/%d/image", i), sizes[i]);
        snprintf(strategy[i], sizeof strategy[i], "%s", words_text(w, "images/%d/strategy", i));
        step[i] = words_number(w, "images/%d/step_s", i);
    }
    for (int i = 0; i < 3; i++) {
        hplan(w, 0,
              "simulate --net %s --image %s --machine thesis-a100 --gpus 2 --batch 4 --json --out alone.db",
              net, sizes[i]);
        const int chosen = (int)words_number(w, "chosen") - 1;
        assert_string_equal(words_text(w, "image"), sizes[i]);
        assert_string_equal(words_text(w, "candidates/%d/strategy", chosen), strategy[i]);
        near_to(words_number(w, "candidates/%d/step_s", chosen), step[i], 0);
    }
    assert_true(words_same_file("sizes.db", "alone.db"));
}

static void several_sizes_are_as_each_alone(void **state) {
    static const char *const small[] = {"28x28", "32x28", "32x32"}, *const large[] = {"256x256", "512x256",
                                                                                      "512x512"};
    words *w = *state;
    sizes_are_as_each_alone(w, "cnn", "28,32x28,32", small);
    if (words_all("several sizes of unet:16"))
        sizes_are_as_each_alone(w, "unet:16", "256,512x256,512", large);
    hplan(w, 0, "simulate --net unet:64 --image 8192,1024 --machine thesis-a100 --gpus 1 --out sizes.db");
    out_says(w, "^ +8192x8192 +1 +1 +E-MEM: .*; fix: ");
}

/* A count that the machine does not have is a separate row, in a search and for a template; alone, it is an
 * error. */
static void a_count_that_is_not_there_is_a_row(void **state) {
    static const char *const how[] = {"", "--strategy dp=*"};
    words *w = *state;
    const bool all = words_all("a search also of four devices, beside a count that is not there");
    for (int i = 0; i < 2; i++) {
        const bool three = all || i == 1;
        const int last = three ? 2 : 1;
        hplan(w, 0, CNN " --machine '" SMALL "' --gpus %s %s --json", three ? "2,4,64" : "2,64", how[i]);
        assert_int_equal(words_length(w, "scaling"), last + 1);
        near_to(words_number(w, "scaling/0/gpus"), 2, 0);
        if (three) near_to(words_number(w, "scaling/1/gpus"), 4, 0);
        near_to(words_number(w, "scaling/%d/gpus", last), 64, 0);
        char *row = words_compact(w, "scaling/%d", last);
        assert_true(words_count(row, "E-GPUS|there are 4|has 4") == 1);
        free(row);
    }
    hplan(w, 3, CNN " --machine '" SMALL "' --gpus 64");
}

/* A node with idle devices equals one with fewer devices, except for the NICs, which stay. */
static double step_of(words *w, const char *options) {
    hplan(w, 0, CNN " --strategy dp=2 --batch 8 --json --machine %s", options);
    return words_number(w, "candidates/0/step_s");
}

static void a_node_with_empty_devices_is_one_with_fewer(void **state) {
    words *w = *state;
    const double left = step_of(w, "'" SMALL "' --ranks-per-node 1");
    near_to(left, step_of(w, "'" FEWER "'"), 0);
    assert_true(left != step_of(w, "'" SMALL "'")); /* two ranks of a node */
    hplan(w, 2, CNN " --machine '" SMALL "' --ranks-per-node 3");
}

typedef struct candidate {
    int rank;
    double images_per_s, memory_bytes, hours;
} candidate;

static bool beats(const candidate *a, const candidate *b) {
    const bool better =
        a->images_per_s > b->images_per_s || a->memory_bytes < b->memory_bytes || a->hours < b->hours;
    return better && a->images_per_s >= b->images_per_s && a->memory_bytes <= b->memory_bytes &&
           a->hours <= b->hours;
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql) {
    sqlite3_stmt *s;
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK) fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    return s;
}

static json_t *read_meta(sqlite3 *db, const char *key) {
    sqlite3_stmt *s = prepare(db, "SELECT value FROM meta WHERE key = ?");
    sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    json_t *value = json_loads((const char *)sqlite3_column_text(s, 0), JSON_DECODE_ANY, NULL);
    sqlite3_finalize(s);
    assert_non_null(value);
    return value;
}

static void check_front(sqlite3 *db) {
    candidate c[FRONT];
    int n = 0;
    sqlite3_stmt *s =
        prepare(db, "SELECT rank, images_per_s, memory_bytes, gpus / images_per_s FROM candidate");
    for (; sqlite3_step(s) == SQLITE_ROW && n < FRONT; n++)
        c[n] = (candidate){sqlite3_column_int(s, 0), sqlite3_column_double(s, 1), sqlite3_column_double(s, 2),
                           sqlite3_column_double(s, 3)};
    sqlite3_finalize(s);
    assert_int_equal(n, 6);
    json_t *front = read_meta(db, "front");
    for (int k = 0; k < n; k++) {
        bool best = true, kept = false;
        size_t i;
        json_t *rank;
        for (int j = 0; j < n; j++) best = best && !beats(&c[j], &c[k]);
        json_array_foreach(front, i, rank) kept = kept || json_integer_value(rank) == c[k].rank;
        assert_int_equal(kept, best);
    }
    json_decref(front);
}

static void check_curves(sqlite3 *db) {
    json_t *curves = read_meta(db, "curves"), *curve, *strategy;
    const char *name;
    size_t i;
    assert_int_equal(json_object_size(curves), 2);
    json_object_foreach(curves, name, curve) {
        assert_int_equal(json_array_size(curve), 3);
        json_array_foreach(curve, i, strategy) {
            sqlite3_stmt *s = prepare(db, "SELECT 1 FROM candidate WHERE strategy = ?");
            sqlite3_bind_text(s, 1, json_string_value(strategy), -1, SQLITE_STATIC);
            assert_int_equal(sqlite3_step(s), SQLITE_ROW);
            sqlite3_finalize(s);
        }
    }
    json_decref(curves);
}

/* Nothing dominates a point of the front; candidates are marked as a curve. */
static void the_plan_keeps_front_and_curves(void **state) {
    words *w = *state;
    sqlite3 *db;
    hplan(w, 0,
          "simulate --net unet:64 --image 4096 --machine thesis-a100 --gpus 4,8,16 --batch-per-gpu 1 --prec "
          "bf16 --strategy "
          "dp=*,recompute=boundary --strategy dp=*,stages=4,micro=4,recompute=full --out front.db");
    assert_int_equal(sqlite3_open_v2("front.db", &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    check_front(db);
    check_curves(db);
    sqlite3_close(db);
}

static void file_says(const char *name, const char *pattern) {
    size_t n;
    char *text = words_read(name, &n);
    if (!text || !words_count(text, pattern)) fail_msg("%s lacks '%s'", name, pattern);
    free(text);
}

static void curves_and_points_are_plotted(void **state) {
    words *w = *state;
    if (!words_program("gnuplot")) skip();
    words_write("points.txt", "source: somebody, somewhere\n# a comment\n2 55.5\n4 1e2\n");
    words_write("nobody.txt", "2 55.5\n");
    words_write("wrong.txt", "source: x\n2 fast\n");
    hplan(w, 0, "plot scaling front.db -o front.svg");
    file_says("front.svg", "dp=\\*,recompute=boundary");
    file_says("front.svg", "stages=4");
    hplan(w, 0, "plot scaling front.db points.txt -o points.svg");
    file_says("points.svg", "measured: somebody, somewhere");
    hplan(w, 65, "plot scaling front.db nobody.txt -o nobody.svg");
    hplan(w, 65, "plot scaling front.db wrong.txt -o wrong.svg");
    err_says(w, "wrong.txt line 2");
    hplan(w, 0, "plot pareto front.db -o pareto.svg");
    file_says("pareto.svg", "device hours");
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_count_without_a_plan_is_a_row_of_its_search),
        cmocka_unit_test(several_sizes_are_as_each_alone),
        cmocka_unit_test(a_count_that_is_not_there_is_a_row),
        cmocka_unit_test(a_node_with_empty_devices_is_one_with_fewer),
        cmocka_unit_test(the_plan_keeps_front_and_curves),
        cmocka_unit_test(curves_and_points_are_plotted),
    };
    return cmocka_run_group_tests(tests, words_open, words_close);
}
