/* test_size_classes.c - size classes end where straight lines cross, which can be computed by hand;
 * unmeasured choices, or ones that are barely faster, are left to the rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "costmodels/tuning/size_classes.h"

typedef struct fixture {
    hp_arena *arena;
    hp_machine m;
} fixture;

static hp_comm_table *classes(fixture *f, const char *rows, int device) {
    hp_error err = {HP_OK, ""};
    hp_cost_table *t = NULL;
    const char *text = hp_arena_printf(f->arena, "hplan-cost 2\nmachine local\ndate d\n%s", rows);
    if (hp_rows_parse(f->arena, text, "rows", &t, &err) != HP_OK) fail_msg("%s", err.text);
    return hp_size_classes(f->arena, t, &f->m, &hp_devices[device]);
}

static int32_t choice(const hp_comm_table *t, int ranks, int64_t bytes) {
    const hp_collective_case c = {.what = HP_COLLECTIVE_ALLREDUCE, .size = ranks, .per_node = ranks};
    return hp_comm_table_choice(t, &c, bytes);
}

static int set_up(void **state) {
    fixture *f = *state = calloc(1, sizeof *f);
    hp_error err;
    f->arena = hp_arena_new();
    return hp_machine_load("local", &f->m, &err) == HP_OK ? 0 : -1;
}

static int tear_down(void **state) {
    fixture *f = *state;
    hp_arena_free(f->arena);
    free(f);
    return 0;
}

#define ROW(way, line) "collective shm allreduce " way " r2 n2 | measured 0.02 9 test | " line "\n"
static const int32_t SHM = 1 + HP_BACKEND_SHM, MPI = 1 + HP_BACKEND_MPI;

static int32_t way(int32_t backend, hp_algorithm a) {
    return hp_comm_choice((hp_backend)(backend - 1), a);
}

/* mpi: 4 us + b / 1e9; shm.ring: 1 us + 4 b / 1e9: equal at 1000 bytes. The rule's choices are slower
 * throughout. */
static void a_class_ends_where_lines_cross(void **state) {
    const hp_comm_table *t =
        classes(*state,
                ROW("mpi", "0:4e-6 1e6:1.004e-3") ROW("own.doubling", "0:1e-4 1e6:1e-2")
                    ROW("own.ring", "0:1e-4 1e6:1e-2") ROW("shm.ring", "0:1e-6 1e6:4.001e-3"),
                HP_DEVICE_CPU);
    assert_int_equal(choice(t, 2, 0), way(SHM, HP_ALGORITHM_RING));
    assert_int_equal(choice(t, 2, 999), way(SHM, HP_ALGORITHM_RING));
    assert_int_equal(choice(t, 2, 1001), way(MPI, HP_ALGORITHM_LIBRARY));
    assert_int_equal(choice(t, 2, INT64_MAX), way(MPI, HP_ALGORITHM_LIBRARY));
    assert_int_equal(choice(t, 4, 100), HP_COMM_AUTO);
}

/* The rule chooses doubling up to 32 KiB. */
static void two_per_cent_are_no_gain(void **state) {
    const char *rule = ROW("own.doubling", "1000:1e-4 10000:1e-4");
    const char *more = hp_arena_printf(((fixture *)*state)->arena, "%s%s",
                                       ROW("mpi", "1000:0.97e-4 10000:0.97e-4"), rule),
               *less = hp_arena_printf(((fixture *)*state)->arena, "%s%s",
                                       ROW("mpi", "1000:0.99e-4 10000:0.99e-4"), rule);
    assert_int_equal(choice(classes(*state, more, HP_DEVICE_CPU), 2, 5000), way(MPI, HP_ALGORITHM_LIBRARY));
    assert_int_equal(choice(classes(*state, less, HP_DEVICE_CPU), 2, 5000), HP_COMM_AUTO);
}

static void without_the_rules_time_nothing_wins(void **state) {
    const hp_comm_table *t = classes(*state, ROW("mpi", "1000:1e-6 1e7:1e-5"), HP_DEVICE_CPU);
    assert_int_equal(t->n, 0);
    /* measured up to 16 KiB, and another algorithm from 64 KiB on, which continues; unknown in between */
    t = classes(*state,
                ROW("mpi", "1024:1e-6 16384:1e-6") ROW("own.doubling", "1024:1e-4 16384:1e-4")
                    ROW("own.ring", "65536:1e-4 1048576:1e-3") ROW("shm.ring", "65536:1e-5 1048576:1e-4"),
                HP_DEVICE_CPU);
    assert_int_equal(choice(t, 2, 16384), way(MPI, HP_ALGORITHM_LIBRARY));
    assert_int_equal(choice(t, 2, 16385), HP_COMM_AUTO);
    assert_int_equal(choice(t, 2, 65535), HP_COMM_AUTO);
    assert_int_equal(choice(t, 2, 65536), way(SHM, HP_ALGORITHM_RING));
    assert_int_equal(choice(t, 2, (int64_t)1 << 40), way(SHM, HP_ALGORITHM_RING));
    t = classes(*state, ROW("mpi", "1024:1e-6 16384:1e-6") ROW("own.doubling", "1024:1e-4 16384:1e-4"),
                HP_DEVICE_CPU);
    assert_int_equal(choice(t, 2, 1), way(MPI, HP_ALGORITHM_LIBRARY));
    assert_int_equal(choice(t, 2, 1 << 20), HP_COMM_AUTO); /* the rule takes a ring */
}

static void only_what_a_plan_can_name_wins(void **state) {
    static const char *const rows[] = {
        ROW("nccl", "1000:1e-6 10000:1e-6")
            ROW("own.doubling", "1000:1e-4 10000:1e-4"), /* processors have none */
        ROW("mpi.ring", "1000:1e-6 10000:1e-6") ROW("own.doubling", "1000:1e-4 10000:1e-4"),
        "collective shm allreduce mpi r2 n2 | guess 0.02 9 test | 1000:1e-6 "
        "10000:1e-6\n" /* nobody's measurement */
        ROW("own.doubling", "1000:1e-4 10000:1e-4"),
        "collective eth allreduce mpi r2 n2 | measured 0.02 9 test | "
        "1000:1e-6 10000:1e-6\n" /* another link */
        "collective eth allreduce own.doubling r2 n2 | measured 0.02 9 test | "
        "1000:1e-4 10000:1e-4\n"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(classes(*state, rows[i], HP_DEVICE_CPU)->n, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_class_ends_where_lines_cross, set_up, tear_down),
        cmocka_unit_test_setup_teardown(two_per_cent_are_no_gain, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_the_rules_time_nothing_wins, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_what_a_plan_can_name_wins, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
