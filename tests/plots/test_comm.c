/* test_comm.c - the chart of collectives has a panel for every operation and number of ranks, and a line for
 * every back end and algorithm; names in files stay text. */
#include "plots/plots.h"
#include "tests/support/traces/trace_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#define CANARY "hplan_canary"

static char out[200];

static const double SIZES[] = {8, 1048576}, SLOW[] = {1e-6, 1e-3}, FAST[] = {4e-6, 5e-4}, NOTHING[] = {0};

/* Two lines that cross, in their panel; one line between nodes; what has no bytes. */
static hp_status draw_at(int n, hp_canvas_format format, int width, int height, hp_error *err) {
    hp_canvas c = {0};
    hp_plot_comm_line of_two[] = {{"mpi", 2, SIZES, SLOW}, {"own.ring", 2, SIZES, FAST}},
                      of_one[] = {{"nccl.ring", 1, SIZES, SLOW}}, of_none[] = {{"mpi", 1, NOTHING, SLOW}};
    hp_plot_comm_fastest fastest[] = {{0, {.n = 1, .bytes = SIZES, .seconds = SLOW}},
                                      {1, {.n = 1, .bytes = SIZES + 1, .seconds = FAST + 1}}};
    hp_plot_comm_panel panel[] = {
        {.what = HP_COLLECTIVE_BARRIER, .ranks = 2, .nodes = 1, .n_line = 1, .line = of_none},
        {.what = HP_COLLECTIVE_ALLREDUCE,
         .link = "`touch " CANARY "`",
         .ranks = 16,
         .nodes = 2,
         .n_line = 1,
         .line = of_one},
        {.what = HP_COLLECTIVE_ALLREDUCE,
         .ranks = 2,
         .nodes = 1,
         .n_line = 2,
         .line = of_two,
         .n_fastest = 2,
         .fastest = fastest}};
    const hp_plot_comm_source s = {"t.cost", "`touch " CANARY "`", n, panel};
    fixture_ok(hp_canvas_open(format, width, height, &c, err), err);
    const hp_status status = hp_plot_comm(&s, &c, err);
    if (status == HP_OK) fixture_ok(hp_canvas_save(&c, out, err), err);
    hp_canvas_close(&c);
    return status;
}

static hp_status draw(int n, hp_canvas_format format, hp_error *err) {
    const hp_plot_kind *kind = hp_plot_find("comm");
    const bool dumb = format == HP_CANVAS_DUMB;
    return draw_at(n, format, dumb ? 100 : kind->width, dumb ? 40 : kind->height, err);
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

static void every_way_is_a_line_in_its_panel(void **state) {
    (void)state;
    hp_error err = {0};
    const hp_status status = draw(3, HP_CANVAS_SVG, &err);
    if (status == HP_EUNAVAIL) skip();
    fixture_ok(status, &err);
    assert_int_equal(count("allreduce, 2 ranks"), 1);
    assert_int_equal(count("allreduce, 16 ranks on 2 nodes, `touch " CANARY "`"), 1);
    assert_int_equal(count("barrier, "), 0); /* no bytes: logarithms have no place for it */
    assert_int_equal(count("(2 of 3)"), 1);
    static const char *const lines[] = {"mpi", "own.ring", "nccl.ring"};
    for (int i = 0; i < 3; i++)
        if (count(lines[i]) == 0) fail_msg("no line of %s", lines[i]);
    assert_int_equal(access(CANARY, F_OK), -1);
    fixture_ok(draw(3, HP_CANVAS_DUMB, &err), &err);
    assert_true(count("own.ring") == 1 && count("fastest") >= 1);
    assert_int_equal(draw(1, HP_CANVAS_SVG, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "calibrate"));
    unlink(out);
}

/* A small picture has few panels, rather than many without room. */
static void panels_have_room(void **state) {
    (void)state;
    hp_error err = {0};
    const hp_status status = draw_at(3, HP_CANVAS_SVG, 400, 300, &err);
    if (status == HP_EUNAVAIL) skip();
    fixture_ok(status, &err);
    assert_int_equal(count("allreduce, 2 ranks"), 1);
    assert_int_equal(count("allreduce, 16 ranks"), 0);
    assert_int_equal(count("(1 of 3)"), 1);
    unlink(out);
}

static int set_up(void **state) {
    (void)state;
    fixture_path(out, sizeof out, "comm.svg");
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_way_is_a_line_in_its_panel),
                                       cmocka_unit_test(panels_have_room)};
    return cmocka_run_group_tests(tests, set_up, NULL);
}
