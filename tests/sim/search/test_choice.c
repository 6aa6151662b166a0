/* test_choice.c - with a cost table of collectives, comm=auto means the fastest at each size: two groups of
 * the same ranks if small and large ones differ. The search keeps another choice if it makes the step
 * shorter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "plan/check/check.h"
#include "costmodels/tuning/size_classes.h"
#include "tests/support/sim/search_world.h"

/* By hand: steps over shared memory start sooner, steps over messages are faster. They meet at (2e-5 - 2e-6)
 * / (4e-9 - 1e-9) = 6000 bytes. */
#define CROSSING(op, ranks)                                                                                  \
    "collective shm " op " own.doubling " ranks " | measured 0.02 9 test | 0:2.5e-5 1e9:5.000025\n"          \
    "collective shm " op " own.ring " ranks " | measured 0.02 9 test | 0:2e-5 1e9:1.00002\n"                 \
    "collective shm " op " shm.doubling " ranks " | measured 0.02 9 test | 0:2e-6 1e9:4.000002\n"
enum { MEET = 6000 };

static world processors(const char *rows, int ranks) {
    world w = make_world("local", "cnn", 32, 8);
    w.m.nodes = 1;
    w.m.devices_per_node = w.m.cores_per_node = ranks;
    w.setup.device = &hp_devices[HP_DEVICE_CPU];
    world_use_rows(&w, rows);
    return w;
}

static hp_strategy parsed(const char *text) {
    hp_strategy s;
    hp_error err;
    if (hp_strategy_parse(text, &s, &err) != HP_OK) fail_msg("%s: %s", text, err.text);
    return s;
}

static hp_program *lowered(const world *w, const char *strategy, const hp_comm_table *comm) {
    const hp_lower_options o = {.mode = HP_MODE_TRAIN,
                                .dtype = HP_F32,
                                .batch = w->setup.batch,
                                .device = w->setup.device,
                                .machine = &w->m,
                                .comm = comm,
                                .place = true};
    const hp_strategy s = parsed(strategy);
    hp_program *p = NULL;
    hp_error err;
    if (hp_lower(w->arena, w->g, &s, &o, &p, &err) != HP_OK || hp_program_check(p, w->g, &err) != HP_OK)
        fail_msg("%s: %s", strategy, err.text);
    return p;
}

static hp_evaluation evaluate(world *w, const char *strategy) {
    hp_error err = {HP_OK, ""};
    const hp_strategy s = parsed(strategy);
    hp_evaluation v = {0};
    w->setup.machine = &w->m;
    if (hp_evaluate(hp_eval_new(w->arena, &w->setup), w->arena, &s, HP_EVAL_PLACED, &v, &err) != HP_OK)
        fail_msg("%s: %s", strategy, err.text);
    assert_int_equal(v.reject.code, HP_FEASIBLE);
    return v;
}

static bool same_members(const hp_program *p, int a, int b) {
    const hp_group *x = &p->group[a], *y = &p->group[b];
    return x->n == y->n && x->all_replicas == y->all_replicas &&
           memcmp(p->member + x->first, p->member + y->first, sizeof *p->member * (size_t)x->n) == 0;
}

/* Every collective uses the choice for its size; returns a bit for each choice that occurs. */
static int check_ways(const hp_program *p) {
    int ways = 0;
    for (int i = 0; i < p->n_role; i++)
        for (int k = 0; k < p->role[i].n_task; k++) {
            const hp_task *t = &p->role[i].task[k];
            if (!hp_task_is_collective(t)) continue;
            const bool large = hp_task_bytes(t) >= MEET;
            assert_int_equal(p->role[i].queue[t->queue].backend, large ? HP_BACKEND_OWN : HP_BACKEND_SHM);
            assert_int_equal(t->algorithm, large ? HP_ALGORITHM_RING : HP_ALGORITHM_DOUBLING);
            ways |= 1 << large;
        }
    return ways;
}

static int twins(const hp_program *p) {
    int n = 0;
    for (int a = 1; a < p->n_group; a++)
        for (int b = a + 1; b < p->n_group; b++) n += same_members(p, a, b);
    return n;
}

/* One bucket per layer: kilobytes of weights use another choice than biases. */
static void each_size_goes_its_way_and_the_checks_pass(void **state) {
    (void)state;
    static const struct {
        const char *strategy;
        int ranks;
    } row[] = {
        {"dp=2,fuse=1000", 2}, {"sp=2x1,fuse=1000", 2}, {"dp=4,fuse=1000", 4}, {"sp=2x2,fuse=1000", 4}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        world w =
            processors(row[i].ranks == 2 ? CROSSING("allreduce", "r2 n2") : CROSSING("allreduce", "r4 n4"),
                       row[i].ranks);
        const hp_comm_table *t = hp_size_classes(w.arena, w.setup.table, &w.m, w.setup.device);
        const hp_program *by_size = lowered(&w, row[i].strategy, t),
                         *by_rule = lowered(&w, row[i].strategy, NULL);
        assert_int_equal(check_ways(by_size), 3);
        assert_int_equal(twins(by_size), twins(by_rule) + 1);
        assert_true(evaluate(&w, row[i].strategy).figures.step_s > 0);
        hp_arena_free(w.arena);
    }
}

static bool same_bytes(const void *a, const void *b, size_t n) {
    return n == 0 || memcmp(a, b, n) == 0;
}

static void what_was_not_measured_changes_nothing(void **state) {
    (void)state;
    static const char *const rows[] = {"", CROSSING("allreduce", "r4 n4"), CROSSING("allgather", "r2 n2")};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        world w = processors(rows[i], 2);
        const hp_comm_table *t = hp_size_classes(w.arena, w.setup.table, &w.m, w.setup.device);
        const hp_program *a = lowered(&w, "sp=2x1,fuse=1000", t), *b = lowered(&w, "sp=2x1,fuse=1000", NULL);
        assert_int_equal(a->n_group, b->n_group);
        for (int r = 0; r < a->n_role; r++) {
            const hp_role *x = &a->role[r], *y = &b->role[r];
            assert_int_equal(x->n_task, y->n_task);
            assert_int_equal(x->n_queue, y->n_queue);
            assert_true(same_bytes(x->task, y->task, sizeof *x->task * (size_t)x->n_task));
            assert_true(same_bytes(x->queue, y->queue, sizeof *x->queue * (size_t)x->n_queue));
        }
        hp_arena_free(w.arena);
    }
}

static void what_is_named_stays(void **state) {
    (void)state;
    world w = processors(CROSSING("allreduce", "r2 n2"), 2);
    const hp_comm_table *t = hp_size_classes(w.arena, w.setup.table, &w.m, w.setup.device);
    const hp_program *p = lowered(&w, "sp=2x1,fuse=1000,comm=stats:mpi+allreduce:own", t);
    for (int i = 0; i < p->role[0].n_queue; i++)
        if (p->role[0].queue[i].kind == HP_QUEUE_COLL)
            assert_int_not_equal(p->role[0].queue[i].backend, HP_BACKEND_SHM);
    hp_arena_free(w.arena);
}

/* Two nodes with one core each, shared by two ranks. While the second stage sums its gradients between the
 * nodes, the first one still computes. Alone, MPI's collective is 10 % faster but keeps the core busy all the
 * time: it takes as long within a node, where there is no network to wait for. hplan's steps wait for the
 * network nine tenths of the time. */
static const char BUSY[] =
    "collective shm allreduce mpi r2 n2 | measured 0.02 9 test | 0:9e-6 1e9:0.900009\n"
    "collective shm allreduce own.doubling r2 n2 | measured 0.02 9 test | 0:1e-6 1e9:0.100001\n"
    "collective shm allreduce own.ring r2 n2 | measured 0.02 9 test | 0:1e-6 1e9:0.100001\n"
    "collective tcp allreduce mpi r2 n1 | measured 0.02 9 test | 0:9e-6 1e9:0.900009\n"
    "collective tcp allreduce own.doubling r2 n1 | measured 0.02 9 test | 0:1e-5 1e9:1.00001\n"
    "collective tcp allreduce own.ring r2 n1 | measured 0.02 9 test | 0:1e-5 1e9:1.00001\n";

static void the_fastest_alone_may_hold_up_the_step(void **state) {
    (void)state;
    static const char strategy[] = "dp=2,stages=2,cut=2:2,micro=2";
    const hp_collective_case sum = {.what = HP_COLLECTIVE_ALLREDUCE, .size = 2, .per_node = 1};
    world w = make_world("local", "cnn", 64, 8);
    hp_error err = {HP_OK, ""};
    w.m.nodes = w.m.devices_per_node = 2;
    w.m.cores_per_node = 1;
    w.setup.device = &hp_devices[HP_DEVICE_CPU];
    world_use_rows(&w, BUSY);
    hp_evaluation e = evaluate(&w, strategy);
    hp_eval *eval = hp_eval_new(w.arena, &w.setup);
    assert_int_equal(hp_comm_table_choice(hp_eval_comm(eval), &sum, 1 << 20),
                     hp_comm_choice(HP_BACKEND_MPI, HP_ALGORITHM_LIBRARY));
    const double alone = e.figures.step_s;
    if (hp_search_backends(eval, w.arena, HP_EVAL_PLACED, &e, &err) != HP_OK) fail_msg("%s", err.text);
    assert_int_equal(e.strategy.comm[HP_TRAFFIC_ALLREDUCE],
                     hp_comm_choice(HP_BACKEND_OWN, HP_ALGORITHM_LIBRARY));
    assert_true(e.figures.step_s < 0.95 * alone);
    hp_arena_free(w.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_size_goes_its_way_and_the_checks_pass),
        cmocka_unit_test(what_was_not_measured_changes_nothing),
        cmocka_unit_test(what_is_named_stays),
        cmocka_unit_test(the_fastest_alone_may_hold_up_the_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
