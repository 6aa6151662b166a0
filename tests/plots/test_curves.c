/* test_curves.c - plots of a sweep, number by number: ideal lines, curves, measured points, device hours,
 * memory. */
#include "plots/plots.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 16, COLUMNS = 8 };

typedef struct table {
    int n;
    double cell[ROWS][COLUMNS];
} table;

/* A data file of the canvas, without its `skip` heading lines; false: there is none. */
static bool read_table(const hp_canvas *c, const char *name, int skip, table *t) {
    char path[512], line[1024];
    snprintf(path, sizeof path, "%s/%s", c->dir, name);
    FILE *f = fopen(path, "r");
    *t = (table){0};
    if (!f) return false;
    while (fgets(line, sizeof line, f) && t->n < ROWS) {
        if (skip-- > 0) continue;
        char *rest = line;
        for (int k = 0; k < COLUMNS && *rest; k++) t->cell[t->n][k] = strtod(rest, &rest);
        t->n++;
    }
    fclose(f);
    return true;
}

static void close_to(double value, double expected) {
    if (!(fabs(value - expected) <= 1e-6 * fabs(expected))) fail_msg("%.9g, not %.9g", value, expected);
}

/* Draws, and leaves the canvas open; a machine without gnuplot has the data all the same. */
static void draw(hp_arena *arena, const char *kind, const hp_plot_source *s, int n, hp_canvas *c) {
    hp_error err = {HP_OK, ""};
    if (hp_canvas_open(HP_CANVAS_SVG, 800, 600, c, &err) != HP_OK) fail_msg("%s", err.text);
    const hp_status status = hp_plot_find(kind)->draw(arena, s, n, c, &err);
    if (status != HP_OK && status != HP_EUNAVAIL) fail_msg("%s", err.text);
}

static hp_plot_candidate candidate(const char *strategy, int rank, int gpus, double step_s, double images,
                                   double memory) {
    return (hp_plot_candidate){.strategy = strategy,
                               .rank = rank,
                               .gpus = gpus,
                               .step_s = step_s,
                               .images_per_s = images,
                               .memory_bytes = memory};
}

static const char *wide[] = {"dp=1", "dp=2", "dp=4"}, *deep[] = {"stages=2", "dp=2,stages=2"};
static hp_plot_curve curves[] = {{"dp=*", 3, wide}, {"dp=*,stages=2", 2, deep}};
static hp_plot_candidate swept[6];
static hp_plot_source sweep = {.net = "net", .path = "plan.db", .n_candidate = 5, .candidate = swept};

static void set_up_sweep(void) {
    swept[0] = candidate("dp=1", 1, 1, 0.1, 100, 8e9);
    swept[1] = candidate("dp=2", 2, 2, 0.1, 190, 8e9);
    swept[2] = candidate("stages=2", 3, 2, 0.1, 150, 5e9);
    swept[3] = candidate("dp=4", 4, 4, 0.1, 360, 9e9);
    swept[4] = candidate("dp=2,stages=2", 5, 4, 0.1, 290, 5e9);
    sweep.n_candidate = 5;
    sweep.n_curve = 2;
    sweep.curve = curves;
}

static void every_strategy_has_its_curve_and_ideal_line(void **state) {
    (void)state;
    static const double gpus[2][3] = {{1, 2, 4}, {2, 4, 0}}, rate[2][3] = {{100, 190, 360}, {150, 290, 0}},
                        ideal[2][3] = {{100, 200, 400}, {150, 300, 0}};
    hp_arena *arena = hp_arena_new();
    hp_canvas c;
    table t;
    set_up_sweep();
    draw(arena, "scaling", &sweep, 1, &c);
    for (int k = 0; k < 2; k++) {
        char name[16];
        snprintf(name, sizeof name, "series%d", k);
        assert_true(read_table(&c, name, 1, &t));
        assert_int_equal(t.n, curves[k].n);
        for (int i = 0; i < t.n; i++) {
            close_to(t.cell[i][0], gpus[k][i]);
            close_to(t.cell[i][1], rate[k][i]);
            close_to(t.cell[i][4], ideal[k][i]);
        }
    }
    assert_false(read_table(&c, "series2", 1, &t));
    hp_canvas_close(&c);
    hp_arena_free(arena);
}

/* Without curves the best of each count is drawn. */
static void a_search_has_one_curve_of_the_best(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_canvas c;
    table t;
    set_up_sweep();
    sweep.n_curve = 0;
    draw(arena, "scaling", &sweep, 1, &c);
    assert_true(read_table(&c, "series0", 1, &t));
    assert_int_equal(t.n, 3);
    close_to(t.cell[1][1], 190);
    assert_false(read_table(&c, "series1", 1, &t));
    hp_canvas_close(&c);
    hp_arena_free(arena);
}

/* 19 images in steps of 0.1 s as predicted; measured 0.2, 0.125, 0.125 s, the first left out as warm-up. */
static void a_run_beside_a_plan_is_a_point(void **state) {
    (void)state;
    hp_trace_iter steps[] = {
        {.iter = 0, .step_s = 0.2}, {.iter = 1, .step_s = 0.125}, {.iter = 2, .step_s = 0.125}};
    hp_arena *arena = hp_arena_new();
    hp_canvas c;
    table t;
    set_up_sweep();
    hp_plot_source both[2] = {sweep, sweep};
    both[1].has_exec = true;
    both[1].path = "run.db";
    both[1].exec = (hp_trace){.strategy = "dp=2", .n_iter = 3, .iter = steps};
    draw(arena, "scaling", both, 2, &c);
    assert_true(read_table(&c, "measured", 0, &t));
    assert_int_equal(t.n, 1);
    close_to(t.cell[0][0], 2);
    close_to(t.cell[0][1], 19 / 0.125);
    assert_false(read_table(&c, "series2", 1, &t)); /* the run has no curves of its own */
    hp_canvas_close(&c);
    hp_arena_free(arena);
}

/* dp=4 is the fastest, stages=2 and its pair need least memory, dp=1 the fewest hours: dp=2 has none of these
 * alone, but nothing beats it in all. It beats dp=3, which is slower on more devices. */
static void the_front_of_a_sweep_says_device_hours(void **state) {
    (void)state;
    static const double hours[] = {2e6 / 150 / 3600, 4e6 / 290 / 3600, 1e6 / 100 / 3600, 2e6 / 190 / 3600,
                                   4e6 / 360 / 3600};
    hp_arena *arena = hp_arena_new();
    hp_canvas c;
    table t;
    set_up_sweep();
    swept[5] = candidate("dp=3", 6, 3, 0.1, 180, 8e9);
    sweep.n_candidate = 6;
    draw(arena, "pareto", &sweep, 1, &c);
    assert_true(read_table(&c, "hours", 1, &t));
    assert_int_equal(t.n, 5);
    for (int i = 0; i < t.n; i++) {
        bool there = false;
        for (int k = 0; k < 5; k++) there |= fabs(t.cell[i][2] - hours[k]) < 1e-6 * hours[k];
        assert_true(there);
    }
    hp_canvas_close(&c);
    sweep.n_front = 1; /* what the file says counts */
    sweep.front = (int32_t[]){4};
    draw(arena, "pareto", &sweep, 1, &c);
    assert_true(read_table(&c, "front0", 1, &t));
    assert_int_equal(t.n, 1);
    close_to(t.cell[0][1], 360);
    sweep.n_front = 0;
    hp_canvas_close(&c);
    hp_arena_free(arena);
}

/* A strategy that a plan lacks has no point there; of an image the side counts. */
static void a_strategy_has_a_line_over_sizes(void **state) {
    (void)state;
    hp_plot_candidate large[] = {candidate("tp=2", 1, 2, 0.4, 10, 9e9), candidate("dp=2", 2, 2, 0.5, 8, 8e9)},
                      small[] = {candidate("dp=2", 1, 2, 0.1, 40, 2e9)};
    hp_plot_source plans[] = {
        {.net = "net", .path = "b.db", .height = 64, .width = 36, .n_candidate = 2, .candidate = large},
        {.net = "net", .path = "a.db", .height = 8, .width = 8, .n_candidate = 1, .candidate = small}};
    static const double wanted[2][2][3] = {{{48, 400, 9e9}}, {{8, 100, 2e9}, {48, 500, 8e9}}};
    hp_arena *arena = hp_arena_new();
    hp_error err;
    hp_canvas c;
    table t;
    draw(arena, "size", plans, 2, &c);
    for (int k = 0; k < 2; k++) {
        assert_true(read_table(&c, k ? "series1" : "series0", 1, &t));
        assert_int_equal(t.n, k + 1);
        for (int i = 0; i <= k; i++) {
            close_to(t.cell[i][0], wanted[k][i][0]);
            close_to(t.cell[i][1], wanted[k][i][1]);
            close_to(t.cell[i][4], wanted[k][i][2]);
        }
    }
    assert_int_equal(hp_plot_size(arena, plans, 1, &c, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "of one size"));
    plans[1].width = 1;
    assert_int_equal(hp_plot_size(arena, plans, 2, &c, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "one is of text"));
    hp_canvas_close(&c);
    hp_arena_free(arena);
}

/* Parts are stacked in the order of names, and the curve goes on to the end of the step: 8 ms, although the
 * last change of rank 1 is after 2 ms. */
static void memory_is_stacked_and_lasts_the_step(void **state) {
    (void)state;
    static const char *const names[] = {"weights", "activations"};
    hp_plot_part parts[] = {{0, 0, 3e9}, {0, 1, 5e9}, {1, 0, 1e9}, {1, 1, 2e9}};
    hp_trace_value planned[] = {{.rank = 0, .value = 8e9}, {.rank = 1, .value = 3e9}},
                   used[] = {{.rank = 0, .t_ns = 1000000, .value = 8e9},
                             {.rank = 1, .t_ns = 3000000, .value = 3e9}};
    hp_trace_iter step = {.t0_ns = 1000000, .t1_ns = 9000000};
    const hp_plot_source s = {
        .net = "net",
        .path = "plan.db",
        .has_sim = true,
        .sim = {.strategy = "dp=2", .machine = "m", .device = "cpu", .n_iter = 1, .iter = &step},
        .n_planned = 2,
        .planned = planned,
        .n_memory = {2},
        .memory = {used},
        .parts.n = 4,
        .parts.at = parts,
        .parts.n_name = 2,
        .parts.name = names,
        .parts.capacity_bytes = 16e9};
    hp_arena *arena = hp_arena_new();
    hp_canvas c;
    table t;
    draw(arena, "memory", &s, 1, &c);
    assert_true(read_table(&c, "part1", 1, &t));
    assert_int_equal(t.n, 2);
    close_to(t.cell[0][1], 3e9);
    close_to(t.cell[0][2], 8e9);
    close_to(t.cell[1][1], 1e9);
    close_to(t.cell[1][2], 3e9);
    assert_true(read_table(&c, "time", 0, &t));
    assert_int_equal(t.n, 4);
    close_to(t.cell[1][1], 2); /* from the start of the step */
    for (int r = 0; r < 2; r++) {
        close_to(t.cell[2 + r][1], 8);
        close_to(t.cell[2 + r][2], used[r].value);
    }
    hp_canvas_close(&c);
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_strategy_has_its_curve_and_ideal_line),
        cmocka_unit_test(a_search_has_one_curve_of_the_best),
        cmocka_unit_test(a_run_beside_a_plan_is_a_point),
        cmocka_unit_test(the_front_of_a_sweep_says_device_hours),
        cmocka_unit_test(a_strategy_has_a_line_over_sizes),
        cmocka_unit_test(memory_is_stacked_and_lasts_the_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
