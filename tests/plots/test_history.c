/* test_history.c - the picture of a history has a point for every run that counts and none for others. */
#include "plots/plots.h"
#include "tests/support/traces/trace_fixture.h"

#include <stdio.h>
#include <stdlib.h>

static char out[200];

static hp_ledger_entry run_of(double predicted_s, double measured_s, double equal_s) {
    return (hp_ledger_entry){.predicted_s = predicted_s,
                             .measured_s = measured_s,
                             .equal_speed_s = equal_s,
                             .low_s = 0.9 * predicted_s,
                             .high_s = 1.1 * predicted_s};
}

static hp_status draw(const hp_ledger_entry *e, const bool *use, int n, hp_error *err) {
    hp_canvas c;
    fixture_ok(hp_canvas_open(HP_CANVAS_SVG, 760, 700, &c, err), err);
    const hp_status s = hp_plot_history(e, use, n, "41 runs", &c, err);
    if (s == HP_OK) fixture_ok(hp_canvas_save(&c, out, err), err);
    hp_canvas_close(&c);
    return s;
}

static int count(const char *word) {
    static char text[1 << 20];
    FILE *f = fopen(out, "rb");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    int n = 0;
    for (const char *p = text; (p = strstr(p, word)); p++) n++;
    return n;
}

/* Filled circles (gnuplot's point type 7) are runs as measured, empty ones (6) those at equal speed; one each
 * belongs to the legend. */
static void every_run_that_counts_is_drawn(void **state) {
    (void)state;
    hp_error err = {0};
    const hp_ledger_entry e[] = {run_of(0.01, 0.012, 0.0101), run_of(0.02, 0.021, NAN), run_of(3, 40, 3),
                                 run_of(0.05, 0.04, 0.049)};
    const bool use[] = {true, true, false, true}, none[4] = {false};
    const hp_status status = draw(e, use, 4, &err);
    if (status == HP_EUNAVAIL) skip();
    fixture_ok(status, &err);
    assert_int_equal(count("xlink:href='#gpPt6' transform"),
                     2 * 3 + 1); /* those with error bars are drawn twice */
    assert_int_equal(count("xlink:href='#gpPt5' transform"), 2 + 1);
    assert_true(count("41 runs") > 0);
    assert_int_equal(draw(e, none, 4, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "calibrat"));
    unlink(out);
}

static int set_up(void **state) {
    (void)state;
    fixture_path(out, sizeof out, "history.svg");
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_run_that_counts_is_drawn)};
    return cmocka_run_group_tests(tests, set_up, NULL);
}
