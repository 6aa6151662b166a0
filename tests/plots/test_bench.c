/* test_bench.c - the picture by precision: every series has its bar, text from a file stays text, and
 * what cannot be drawn is said. */
#include "plots/plots.h"
#include "tests/support/traces/trace_fixture.h"

#define CANARY "hplan_canary"

static char path[200], out[200];

static void add(hp_db *db, const char *net, int size, const char *prec, int scenario, int64_t ns) {
    hp_error err = {0};
    hp_bench_query query[] = {{0, ns}, {0, ns + 5}, {1, ns + 3}};
    const hp_bench_series s = {.net = net,
                               .prec = prec,
                               .strategy = net,
                               .machine = net,
                               .device = net,
                               .version = net,
                               .started = net,
                               .image_h = size,
                               .image_w = size,
                               .threads = 1,
                               .ranks = 1,
                               .scenario = scenario,
                               .batch = 1,
                               .predicted_s = 1,
                               .planned_bytes = 1 << 20,
                               .peak_bytes = 1 << 20,
                               .rss_bytes = 1 << 21,
                               .n_query = 3,
                               .query = query};
    fixture_ok(hp_bench_write(db, &s, &err), &err);
}

static void write_db(const char *net, const char *low, int sizes, int scenarios) {
    hp_error err = {0};
    hp_db db;
    fixture_ok(hp_db_create(path, &db, &err), &err);
    for (int size = 0; size < sizes; size++)
        for (int scenario = 0; scenario < scenarios; scenario++) {
            add(&db, net, 256 << size, "fp32", scenario, 4000000 << 2 * size);
            add(&db, net, 256 << size, low, scenario, 1000000 << 2 * size);
        }
    fixture_ok(hp_db_commit(&db, &err), &err);
    hp_db_close(&db);
}

static hp_status draw(hp_canvas_format format, hp_error *err) {
    hp_canvas c;
    hp_plot_source s;
    hp_arena *arena = hp_arena_new();
    const bool dumb = format == HP_CANVAS_DUMB;
    fixture_ok(hp_plot_load(arena, path, &s, err), err);
    fixture_ok(hp_canvas_open(format, dumb ? 100 : 1200, dumb ? 40 : 800, &c, err), err);
    const hp_status status = hp_plot_find("precision")->draw(arena, &s, 1, &c, err);
    if (status == HP_OK) fixture_ok(hp_canvas_save(&c, out, err), err);
    hp_canvas_close(&c);
    hp_arena_free(arena);
    return status;
}

static char *read_out(void) {
    FILE *f = fopen(out, "rb");
    assert_non_null(f);
    char *text = calloc(1, 1 << 20);
    assert_true(fread(text, 1, (1 << 20) - 1, f) > 500);
    fclose(f);
    return text;
}

static int count(const char *text, const char *word) {
    int n = 0;
    for (const char *p = text; (p = strstr(p, word)); p++) n++;
    return n;
}

/* Four times as fast at each of three sizes; both series in the legend of every panel. */
static void every_series_is_drawn(void **state) {
    (void)state;
    hp_error err = {0};
    write_db("resnet101", "int8", 3, HP_SCENARIOS);
    const hp_status status = draw(HP_CANVAS_SVG, &err);
    if (status == HP_EUNAVAIL) skip();
    fixture_ok(status, &err);
    char *text = read_out();
    /* gnuplot draws a label in a box twice: once for its size */
    assert_int_equal(count(text, "<text>4.0x</text>"), 2 * 3);
    assert_int_equal(count(text, "<text>1.0x</text>"), 2 * 3); /* memory: all alike here */
    assert_int_equal(count(text, "<text>int8</text>"), 4);
    assert_int_equal(count(text, "<text>fp32</text>"), 4);
    assert_int_equal(count(text, ">1024\u00b2<"), 4);
    assert_non_null(strstr(text, "resnet101 by precision and image size"));
    assert_non_null(strstr(text, "images/s, offline"));
    free(text);
}

static void one_scenario_has_three_panels(void **state) {
    (void)state;
    hp_error err = {0};
    write_db("resnet101", "bf16", 1, 1);
    const hp_status status = draw(HP_CANVAS_SVG, &err);
    if (status == HP_EUNAVAIL) skip();
    fixture_ok(status, &err);
    char *text = read_out();
    assert_int_equal(count(text, "<text>bf16</text>"), 3);
    assert_non_null(strstr(text, "images/s, one at a time"));
    assert_null(strstr(text, "latency of 8"));
    free(text);
}

static void hostile_names_stay_names(void **state) {
    (void)state;
    static const char *const hostile[] = {"`touch " CANARY "`",
                                          "'; system('touch " CANARY "') #",
                                          "\"; system(\"touch " CANARY "\") #",
                                          "<touch " CANARY,
                                          "\nsystem('touch " CANARY "')\n",
                                          "</text></svg><script>alert(1)",
                                          "\x1b]0;owned\x07",
                                          "{/Symbol a}_b%s%n@macro",
                                          "\xff\xfe",
                                          ""};
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++)
        for (int dumb = 0; dumb < 2; dumb++) {
            hp_error err = {0};
            write_db(hostile[i], "int8", 2, 1);
            const hp_status status = draw(dumb ? HP_CANVAS_DUMB : HP_CANVAS_SVG, &err);
            if (status == HP_EUNAVAIL) skip();
            fixture_ok(status, &err);
            char *text = read_out();
            assert_null(dumb ? NULL : strstr(text, "<script>"));
            assert_null(strchr(text, 0x1b));
            assert_null(strchr(text, 0x07));
            assert_int_not_equal(access(CANARY, F_OK), 0);
            free(text);
        }
}

static void what_cannot_be_drawn_is_said(void **state) {
    (void)state;
    hp_error err = {0};
    write_db("resnet101", "int8", 0, 0);
    assert_int_equal(draw(HP_CANVAS_SVG, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "hplan bench"));
    write_db("resnet101", "fp64", 1, 1);
    assert_int_equal(draw(HP_CANVAS_SVG, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "fp64"));
}

static int tidy(void **state) {
    (void)state;
    unlink(out);
    return unlink(path);
}

int main(void) {
    fixture_path(path, sizeof path, "series.db");
    fixture_path(out, sizeof out, "precision.out");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_series_is_drawn),
        cmocka_unit_test(one_scenario_has_three_panels),
        cmocka_unit_test(hostile_names_stay_names),
        cmocka_unit_test(what_cannot_be_drawn_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, tidy);
}
