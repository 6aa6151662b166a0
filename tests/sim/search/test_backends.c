/* test_backends.c - the back end determines a message's time: back ends are as fast as their rows, equal if
 * these are equal, and identical between processors; a search gives each kind of traffic to the faster
 * one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "costmodels/models.h"
#include "base/rng.h"
#include "tests/support/sim/search_world.h"

static bool near(double have, double want) {
    return fabs(have - want) <= 1e-9 * fabs(want);
}

static world gpus(const char *machine, const char *rows) {
    world w = make_world(machine, "resnet18", 64, 16);
    w.setup.device = &hp_devices[HP_DEVICE_CUDA];
    world_use_rows(&w, rows);
    return w;
}

static hp_evaluation evaluate(world *w, const char *strategy) {
    hp_error err = {HP_OK, ""};
    hp_strategy s;
    hp_evaluation v = {0};
    w->setup.machine = &w->m;
    hp_eval *e = hp_eval_new(w->arena, &w->setup);
    if (hp_strategy_parse(strategy, &s, &err) != HP_OK ||
        hp_evaluate(e, w->arena, &s, HP_EVAL_PLACED, &v, &err) != HP_OK)
        fail_msg("%s: %s", strategy, err.text);
    assert_int_equal(v.reject.code, HP_FEASIBLE);
    return v;
}

static double step_s(world *w, const char *strategy, const char *comm) {
    return evaluate(w, hp_arena_printf(w->arena, "%s%s", strategy, comm)).figures.step_s;
}

static double message_s(const world *w, hp_wire by, bool same_node, double bytes) {
    return hp_cost_p2p(w->setup.table, &w->m, by, same_node, bytes).seconds;
}

static double sum_s(const world *w, hp_wire by, int ranks, int per_node, double bytes) {
    const hp_collective_case what = {HP_COLLECTIVE_ALLREDUCE, ranks, 0, ranks};
    const hp_collective_call c = {by, hp_algorithm_choose(&what, (int64_t)bytes, true),
                                  HP_COLLECTIVE_ALLREDUCE, ranks, per_node};
    return hp_cost_collective(w->setup.table, &w->m, &c, bytes).seconds;
}

/* MPI's messages would sum faster by hplan's steps than by its own row, which is not tested here */
#define NOT_BY_STEPS                                                                                         \
    "collective nvswitch-h allreduce own.doubling r4 n4 | guess 0 0 | 0:1e-3 1e9:3\n"                        \
    "collective nvswitch-h allreduce own.ring r4 n4 | guess 0 0 | 0:1e-3 1e9:3\n"
static const char EQUAL[] =
    "collective nvswitch-h allreduce mpi r4 n4 | guess 0 0 | 0:1e-5 1e9:0.09001\n"
    "collective nvswitch-h allreduce nccl r4 n4 | guess 0 0 | 0:1e-5 1e9:0.09001\n" NOT_BY_STEPS
    "p2p nvswitch-h mpi | guess 0 0 | 0:1e-5 1e9:0.09001\n"
    "p2p nvswitch-h nccl | guess 0 0 | 0:1e-5 1e9:0.09001\n";
/* MPI starts sooner, NCCL is faster. They meet at 300 kB, or sooner if messages share a link, which starting
 * does not */
static const char CROSSING[] =
    "collective nvswitch-h allreduce mpi r4 n4 | guess 0 0 | 0:1e-6 1e9:1.997001\n"
    "collective nvswitch-h allreduce nccl r4 n4 | guess 0 0 | 0:3e-4 1e9:1.0003\n" NOT_BY_STEPS
    "p2p nvswitch-h mpi | guess 0 0 | 0:1e-6 1e9:1.997001\n"
    "p2p nvswitch-h nccl | guess 0 0 | 0:3e-4 1e9:1.0003\n";

/* NCCL's operations occupy a stream one after another and order the tasks around them (plan/program/lanes.h):
 * with several at a time, it has no advantage. */
static void equal_rows_take_equal_steps(void **state) {
    (void)state;
    static const struct {
        const char *strategy;
        double most_behind; /* relative */
    } row[] = {{"dp=4", 1e-3}, {"stages=2", 0.01}, {"stages=4,micro=4", 0.15}, {"sp=2x2", 0.15}};
    world w = gpus("dgx-h200", EQUAL);
    for (int i = 0; i < 11; i++) {
        const double bytes = pow(7, i);
        assert_true(near(message_s(&w, HP_WIRE_MPI, true, bytes), message_s(&w, HP_WIRE_NCCL, true, bytes)));
        assert_true(near(sum_s(&w, HP_WIRE_MPI, 4, 4, bytes), sum_s(&w, HP_WIRE_NCCL, 4, 4, bytes)));
    }
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *s = row[i].strategy;
        const double mpi = step_s(&w, s, ",comm=mpi"), nccl = step_s(&w, s, ",comm=nccl");
        if (mpi > 1.02 * nccl || nccl > (1 + row[i].most_behind) * mpi)
            fail_msg("%s: mpi %g, nccl %g", s, mpi, nccl);
        assert_true(step_s(&w, s, "") == nccl); // NOLINT: auto is the device's own
    }
    hp_arena_free(w.arena);
}

static void the_order_is_the_rows_by_size(void **state) {
    (void)state;
    world w = gpus("dgx-h200", CROSSING);
    for (uint64_t i = 0; i < 200; i++) {
        const double bytes = exp(16 * hp_rng_uniform(1, 2, i));
        if (fabs(bytes - 3e5) < 1000) continue;
        assert_true((message_s(&w, HP_WIRE_MPI, true, bytes) < message_s(&w, HP_WIRE_NCCL, true, bytes)) ==
                    (bytes < 3e5));
        assert_true((sum_s(&w, HP_WIRE_MPI, 4, 4, bytes) < sum_s(&w, HP_WIRE_NCCL, 4, 4, bytes)) ==
                    (bytes < 3e5));
    }
    /* gradients are large; halos of small images small */
    assert_true(step_s(&w, "dp=4", ",comm=mpi") > step_s(&w, "dp=4", ",comm=nccl"));
    assert_true(step_s(&w, "sp=4x1", ",comm=halo:mpi+stage:nccl+allreduce:nccl+stats:nccl") <
                step_s(&w, "sp=4x1", ",comm=nccl"));
    hp_arena_free(w.arena);
}

/* Unmeasured costs, computed by hand from the shipped path rows and the machine's links. */
static void paths_add_to_their_links(void **state) {
    (void)state;
    world w = gpus("dgx-h200", "");
    const double wire = w.m.inter.latency_s + 1e6 / w.m.inter.bytes_per_s,
                 inside = w.m.intra.latency_s + 1e6 / w.m.intra.bytes_per_s;
    assert_true(near(message_s(&w, HP_WIRE_ANY, false, 1e6), wire));
    assert_true(near(message_s(&w, HP_WIRE_NCCL, false, 1e6), 8.4e-6 + wire));
    assert_true(near(message_s(&w, HP_WIRE_MPI, false, 1e6), 20e-6 + 1e6 / 24e9 + wire));
    assert_true(near(message_s(&w, HP_WIRE_MPI, true, 1e6), 15e-6 + inside)); /* straight */
    const double launch = message_s(&w, HP_WIRE_NCCL, true, 0);
    assert_true(launch >= 10e-6 && launch <= 20e-6); /* as users of NCCL see it */
    hp_arena_free(w.arena);
}

/* For any size and group, no back end beats its launch plus the wire, which summing switches use once each
 * way, rings twice. A staging back end also copies the whole buffer out and in, whatever the algorithm. More
 * bytes take no less. */
static void sums_obey_their_lower_bounds(void **state) {
    (void)state;
    world w = gpus("dgx-h200", "");
    static const int groups[][2] = {{2, 2}, {4, 4}, {8, 8}, {16, 8}, {64, 8}, {6, 1}};
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        const int p = groups[g][0], n = groups[g][1];
        double mpi_before = 0, nccl_before = 0;
        for (int i = 0; i < 18; i++) {
            const double bytes = 4 * pow(3, i);
            const double mpi = sum_s(&w, HP_WIRE_MPI, p, n, bytes),
                         nccl = sum_s(&w, HP_WIRE_NCCL, p, n, bytes);
            const double link =
                n >= p ? w.m.intra.bytes_per_s : w.m.inter.bytes_per_s * fmin(n, w.m.nics_per_node);
            const double passes = n > 2 ? 1 : 2.0 * (p - 1) / p;
            const double launch = n >= p ? 5e-6 : 8.4e-6; /* within a node as measured, 6 us for two */
            assert_true(nccl >= launch + passes * bytes / fmax(link, w.m.intra.bytes_per_s));
            assert_true(mpi >= 20e-6 + bytes / 24e9);
            assert_true(mpi >= mpi_before && nccl >= nccl_before);
            mpi_before = mpi, nccl_before = nccl;
        }
        assert_true(nccl_before < mpi_before); /* staged gradients lose */
    }
    hp_arena_free(w.arena);
}

static void processors_have_one_back_end(void **state) {
    (void)state;
    world w = make_world("local", "resnet18", 64, 16);
    assert_int_equal(hp_wire_of(&w.m, HP_DEVICE_CUDA, HP_BACKEND_NCCL), HP_WIRE_ANY);
    assert_int_equal(hp_wire_of(&w.m, HP_DEVICE_CPU, HP_BACKEND_MPI), HP_WIRE_ANY);
    assert_true(message_s(&w, HP_WIRE_ANY, true, 1e6) > 0);
    hp_arena_free(w.arena);
}

static void improve(world *w, hp_evaluation *e) {
    hp_error err = {HP_OK, ""};
    hp_eval *eval = hp_eval_new(w->arena, &w->setup);
    if (hp_search_backends(eval, w->arena, HP_EVAL_PLACED, e, &err) != HP_OK) fail_msg("%s", err.text);
}

/* Small halos and statistics go to MPI, gradients stay; the step is no longer than with either one for
 * everything. */
static void each_kind_goes_to_the_faster_one(void **state) {
    (void)state;
    const int32_t mpi = hp_comm_choice(HP_BACKEND_MPI, HP_ALGORITHM_LIBRARY);
    world w = gpus("dgx-h200", CROSSING);
    hp_evaluation e = evaluate(&w, "sp=4x1");
    improve(&w, &e);
    assert_int_equal(e.strategy.comm[HP_TRAFFIC_HALO], mpi);
    assert_int_equal(e.strategy.comm[HP_TRAFFIC_STATS], mpi);
    assert_int_equal(e.strategy.comm[HP_TRAFFIC_ALLREDUCE], HP_COMM_AUTO);
    assert_true(e.figures.step_s < step_s(&w, "sp=4x1", ",comm=nccl"));
    assert_true(e.figures.step_s < step_s(&w, "sp=4x1", ",comm=mpi"));
    world same = gpus("dgx-h200", EQUAL);
    e = evaluate(&same, "dp=4"); /* no gain: keeps the device's own */
    improve(&same, &e);
    assert_int_equal(e.strategy.comm[HP_TRAFFIC_ALLREDUCE], HP_COMM_AUTO);
    e = evaluate(&w, "sp=4x1,comm=nccl"); /* an explicit choice is kept */
    improve(&w, &e);
    assert_non_null(strstr(e.figures.strategy, "comm=nccl"));
    hp_arena_free(w.arena), hp_arena_free(same.arena);
}

/* For every shipped figure of a GPU, or of a link between GPUs, the table says whether hplan ever measured
 * it. */
static void shipped_figures_of_gpus_say_their_status(void **state) {
    (void)state;
    static const char *const of_gpus[] = {"a100", "h200", "v100", "nv", "pcie", "ib-"};
    world w = make_world("dgx-h200", "cnn", 28, 1);
    int found = 0;
    for (int i = 0; i < w.t->n; i++) {
        const hp_row *r = &w.t->row[i];
        bool gpu = r->kind == HP_ROW_PATH && strcmp(r->key, "shm") != 0, said = false;
        for (size_t k = 0; k < sizeof of_gpus / sizeof *of_gpus; k++)
            gpu |= strncmp(r->class, of_gpus[k], strlen(of_gpus[k])) == 0;
        for (const char *const *s = hp_gpu_statuses; *s; s++) {
            const size_t n = strlen(*s);
            said |= strncmp(r->where, *s, n) == 0 && r->where[n] == ':';
        }
        if (gpu && !said) fail_msg("%s %s %s: '%s'", hp_row_infos[r->kind].name, r->class, r->key, r->where);
        found += gpu;
    }
    assert_true(found >= 10);
    hp_arena_free(w.arena);
}

static void a_table_says_its_driver_and_status(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_cost_table *t = NULL;
    hp_error err = {HP_OK, ""};
    const char *head =
        "hplan-cost 2\nmachine m\ndate d\ndriver 580.1\nstatus one GPU\np2p a mpi | guess 0 0 | 1:1\n";
    assert_int_equal(hp_rows_parse(arena, head, "f", &t, &err), HP_OK);
    assert_string_equal(t->driver, "580.1");
    assert_string_equal(t->status, "one GPU");
    assert_int_equal(t->n, 1);
    head = "hplan-cost 2\nmachine m\ndate d\nstatus two GPUs\n";
    assert_int_equal(hp_rows_parse(arena, head, "f", &t, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "f line 4"));
    hp_arena_free(arena);
}

/* A search's treatment of its best text model: it also tries ranks that share tokens, and keeps the best. */
static void tokens_are_shared_where_that_is_faster(void **state) {
    (void)state;
    static const char *const shares[] = {"tp=4,seq=2:ring", "tp=4,seq=2:a2a", "tp=2,seq=4:ring",
                                         "tp=2,seq=4:a2a"};
    world w = make_world("dgx-h100", "gpt:2,512,8,16384,256", 1, 8);
    hp_error err = {HP_OK, ""};
    w.setup.device = &hp_devices[HP_DEVICE_CUDA];
    hp_evaluation e = evaluate(&w, "tp=8");
    const double before = e.figures.step_s;
    if (hp_search_backends(hp_eval_new(w.arena, &w.setup), w.arena, HP_EVAL_PLACED, &e, &err) != HP_OK)
        fail_msg("%s", err.text);
    assert_true(e.figures.step_s < 0.95 * before);
    assert_true(e.strategy.seq.ranks > 1);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        const double other = step_s(&w, shares[i], "");
        if (e.figures.step_s > 1.011 * other)
            fail_msg("%s: %g s, found %g", shares[i], other, e.figures.step_s);
    }
    hp_arena_free(w.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_rows_take_equal_steps),
        cmocka_unit_test(the_order_is_the_rows_by_size),
        cmocka_unit_test(paths_add_to_their_links),
        cmocka_unit_test(sums_obey_their_lower_bounds),
        cmocka_unit_test(processors_have_one_back_end),
        cmocka_unit_test(each_kind_goes_to_the_faster_one),
        cmocka_unit_test(tokens_are_shared_where_that_is_faster),
        cmocka_unit_test(shipped_figures_of_gpus_say_their_status),
        cmocka_unit_test(a_table_says_its_driver_and_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
