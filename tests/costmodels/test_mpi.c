/* test_mpi.c - MPI between GPUs: messages change regime at the libraries' documented limits; Open MPI's
 * reductions go through host memory by the algorithm in its source. */
#include "costmodels/models.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static hp_machine machine(const char *mpi) {
    char text[128];
    hp_machine m;
    hp_error err = {HP_OK, ""};
    snprintf(text, sizeof text, "nodes=16; node=2 x a100-40; nic=1 x 24GB/s, ib-hdr; mpi=%s", mpi);
    if (hp_machine_parse(text, "test", &m, &err) != HP_OK) fail_msg("%s", err.text);
    return m;
}

static hp_cost_table *table(hp_arena *arena, const hp_machine *m) {
    hp_cost_table *t;
    hp_error err = {HP_OK, ""};
    if (hp_cost_load(arena, NULL, m, &t, &err) != HP_OK) fail_msg("%s", err.text);
    return t;
}

static void is(double have, double want) {
    if (fabs(have - want) > 1e-9 * want) fail_msg("%g, expected %g", have, want);
}

/* MVAPICH2-GDR over HDR: gdrcopy up to 8 KiB, one copy up to 128 KiB, then blocks of 256 KiB. The first block
 * is copied out and in while nothing else happens. */
static void messages_have_three_regimes(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_machine m = machine("mvapich2-gdr");
    const hp_cost_table *t = table(arena, &m);
    static const struct {
        double bytes, latency, copied, copies, wire;
    } far[] = {{1, 3e-6, 1, 6.9e9, 24e9},
               {8192, 3e-6, 8192, 6.9e9, 24e9},
               {8193, 11e-6, 8193, 22e9, 24e9},
               {131072, 11e-6, 131072, 22e9, 24e9},
               {131073, 19e-6, 131073, 11.4e9, 22e9},
               {64e6, 19e-6, 262144, 11.4e9, 22e9}};
    for (size_t i = 0; i < sizeof far / sizeof *far; i++)
        is(hp_quiet_p2p(t, &m, HP_WIRE_MPI, false, far[i].bytes).seconds,
           far[i].latency + far[i].copied / far[i].copies + far[i].bytes / far[i].wire);
    is(hp_quiet_p2p(t, &m, HP_WIRE_MPI, true, 8192).seconds,
       2e-6 + 8192 / 6.9e9 + 8192 / m.intra.bytes_per_s);
    is(hp_quiet_p2p(t, &m, HP_WIRE_MPI, true, 64e6).seconds, 5.8e-6 + 64e6 / m.intra.bytes_per_s);
    hp_arena_free(arena);
}

/* An unspecified MPI, or processors: as before. */
static void other_messages_have_none(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_machine m = machine("openmpi");
    const hp_cost_table *t = table(arena, &m);
    const double openmpi = hp_quiet_p2p(t, &m, HP_WIRE_MPI, false, 64e6).seconds,
                 nccl = hp_quiet_p2p(t, &m, HP_WIRE_NCCL, false, 64e6).seconds;
    is(openmpi, 6e-6 + 64e6 / 24e9); /* GPUDirect RDMA */
    m.mpi[0] = 0;
    assert_null(hp_mpi_regime(t, &m, false, 64e6));
    assert_true(hp_quiet_p2p(t, &m, HP_WIRE_MPI, false, 64e6).seconds > openmpi);
    is(hp_quiet_p2p(t, &m, HP_WIRE_NCCL, false, 64e6).seconds, nccl);
    hp_arena_free(arena);
}

/* The whole buffer goes to the host, through an all-reduce among one rank per node, and back: Rabenseifner's
 * over the link, adding at the host's 10 GB/s three times. */
static void open_mpi_adds_up_in_the_hosts_memory(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_machine m = machine("openmpi");
    const hp_cost_table *t = table(arena, &m);
    const double s = 64e6;
    for (int p = 4; p <= 16; p *= 2) {
        const hp_collective_call c = {HP_WIRE_MPI, HP_ALGORITHM_LIBRARY, HP_COLLECTIVE_ALLREDUCE, p, 1};
        const hp_alpha_beta host = {m.inter.latency_s, 1 / 24e9, 3 / 10e9};
        const double steps = hp_library_rabenseifner(&host, p, s);
        is(hp_cost_collective(t, &m, &c, s).seconds, 16e-6 + s / 11e9 + s / 11.9e9 + steps);
    }
    /* a large all-to-all is not staged; copies of 2 S would show */
    const hp_collective_call all = {HP_WIRE_MPI, HP_ALGORITHM_LIBRARY, HP_COLLECTIVE_ALL_TO_ALL, 8, 1};
    assert_non_null(hp_mpi_stage(t, &m, HP_COLLECTIVE_ALL_TO_ALL, 65536));
    assert_null(hp_mpi_stage(t, &m, HP_COLLECTIVE_ALL_TO_ALL, 65537));
    assert_null(hp_mpi_stage(t, &m, HP_COLLECTIVE_BROADCAST, 257));
    assert_true(hp_cost_collective(t, &m, &all, s).seconds < 8 * 6e-6 + 1.1 * s / 24e9);
    hp_arena_free(arena);
}

/* coll_tuned_decision_fixed.c of 5.0, on both sides of its thresholds. */
static void open_mpi_decides_as_its_source_says(void **state) {
    (void)state;
    enum { TREES = HP_ALGORITHM_BINOMIAL, RD = HP_ALGORITHM_DOUBLING };
    enum { RING = HP_ALGORITHM_RING, RAB = HP_ALGORITHM_RABENSEIFNER };
    static const struct {
        int ranks;
        double bytes;
        int want;
    } cases[] = {{2, 4095, RD},      {2, 4096, RING},     {3, 262143, RING},  {3, 262144, RAB},
                 {4, 8191, RD},      {7, 8192, RAB},      {8, 4, RD},         {15, 8192, RAB},
                 {16, 63, RING},     {31, 4095, RD},      {31, 4096, RAB},    {32, 127, RING},
                 {63, 128, RAB},     {64, 262143, RD},    {127, 262144, RAB}, {128, 131071, TREES},
                 {128, 131072, RD},  {255, 262144, RAB},  {256, 4095, TREES}, {511, 4096, RAB},
                 {512, 2047, TREES}, {2047, 16383, RD},   {2047, 16384, RAB}, {2048, 4095, RING},
                 {4095, 16383, RD},  {4096, 16383, RING}, {4096, 32767, RD},  {9999, 32768, RAB}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const hp_mpi_algorithm a = hp_mpi_tuned_allreduce(cases[i].ranks, cases[i].bytes);
        if ((int)a.algorithm != cases[i].want || a.two_trees != (cases[i].want == TREES))
            fail_msg("%d ranks, %.0f bytes: %d", cases[i].ranks, cases[i].bytes, a.algorithm);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_have_three_regimes),
        cmocka_unit_test(other_messages_have_none),
        cmocka_unit_test(open_mpi_adds_up_in_the_hosts_memory),
        cmocka_unit_test(open_mpi_decides_as_its_source_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
