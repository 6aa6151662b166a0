/* test_comm.c - the chart of collectives has a panel for every operation and number of ranks, and a line for every back
 * end and algorithm; names in files stay text. */
#include "costmodels/stored.h"
#include "plots/plots.h"
#include "tests/support/traces/trace_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#define CANARY "hplan_canary"

static char out[200], cost[200];

static hp_status draw(const char *rows, hp_canvas_format format, hp_error *err) {
    hp_arena *arena = hp_arena_new();
    hp_canvas c = {0};
    hp_plot_source s;
    const hp_plot_kind *kind = hp_plot_find("comm");
    FILE *f = fopen(cost, "w");
    assert_non_null(f);
    fprintf(f, "hplan-cost 2\nmachine m\ndate `touch " CANARY "`\n%s", rows);
    fclose(f);
    fixture_ok(kind->load(arena, cost, &s, err), err);
    const bool dumb = format == HP_CANVAS_DUMB;
    fixture_ok(hp_canvas_open(format, dumb ? 100 : kind->width, dumb ? 40 : kind->height, &c, err), err);
    const hp_status status = kind->draw(arena, &s, 1, &c, err);
    if (status == HP_OK) fixture_ok(hp_canvas_save(&c, out, err), err);
    hp_canvas_close(&c);
    hp_arena_free(arena);
    return status;
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

static const char ROWS[] = "collective l allreduce mpi r2 n2 | measured 0 1 | 8:1e-6 1048576:1e-3\n"
                           "collective l allreduce nccl.ring r16 n8 | measured 0 1 | 1024:1e-6\n"
                           "collective l allreduce own.ring r2 n2 | measured 0 1 | 8:4e-6 1048576:5e-4\n"
                           "collective l barrier mpi r2 n2 | measured 0 1 | 0:1e-6\n"
                           "p2p l | measured 0 1 | 8:1e-6\n";

static void every_row_is_a_line_in_its_panel(void **state) {
    (void)state;
    hp_error err = {0};
    const hp_status status = draw(ROWS, HP_CANVAS_SVG, &err);
    if (status == HP_EUNAVAIL) skip();
    fixture_ok(status, &err);
    assert_int_equal(count("allreduce, 2 ranks"), 1);
    assert_int_equal(count("allreduce, 16 ranks on 2 nodes"), 1);
    assert_int_equal(count("barrier, "), 0); /* no bytes: logarithms have no place for it */
    static const char *const lines[] = {"mpi", "own.ring", "nccl.ring"};
    for (int i = 0; i < 3; i++)
        if (count(lines[i]) == 0) fail_msg("no line of %s", lines[i]);
    assert_int_equal(access(CANARY, F_OK), -1);
    fixture_ok(draw(ROWS, HP_CANVAS_DUMB, &err), &err);
    assert_true(count("own.ring") == 1 && count("fastest") >= 1);
    assert_int_equal(draw("p2p l | measured 0 1 | 8:1e-6\n", HP_CANVAS_SVG, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "calibrate"));
    unlink(out), unlink(cost);
}

static int set_up(void **state) {
    (void)state;
    fixture_path(out, sizeof out, "comm.svg");
    fixture_path(cost, sizeof cost, "comm.cost");
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row_is_a_line_in_its_panel)};
    return cmocka_run_group_tests(tests, set_up, NULL);
}
