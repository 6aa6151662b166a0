/* test_import.c - output of nccl-tests and the OSU micro-benchmarks becomes rows: times as printed, at bytes
 * of the whole data. Wrong, impossible or ambiguous input is an error with its line, never a row. */
#include "costmodels/tuning/tuning_export.h"
#include "costmodels/tuning/fastest.h"
#include "costmodels/tuning/import.h"
#include "tests/support/sim/made_up_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static hp_machine shipped(const char *name) {
    hp_machine m;
    hp_error err = {HP_OK, ""};
    if (hp_machine_load(name, &m, &err) != HP_OK) fail_msg("%s", err.text);
    return m;
}

static hp_status take(hp_arena *arena, const hp_import_options *o, const char *text, hp_cost_table **t,
                      hp_error *err) {
    hp_import *i = hp_import_new(arena, o);
    *t = hp_rows_new(arena, o->machine->name, "2026-01-02");
    HP_TRY(hp_import_text(i, text, "dir/log.txt", "2026-01-01", err));
    return hp_import_rows(i, *t, err);
}

static hp_cost_table *rows_of(hp_arena *arena, const hp_import_options *o, const char *text) {
    hp_error err = {HP_OK, ""};
    hp_cost_table *t;
    if (take(arena, o, text, &t, &err) != HP_OK) fail_msg("%s", err.text);
    return t;
}

static const hp_row *row_of(const hp_cost_table *t, hp_row_kind kind, const char *class, const char *key) {
    const hp_row *r = hp_rows_find(t, kind, class, key);
    if (!r) fail_msg("no row of %s '%s'", class, key);
    return r;
}

/* --- nccl-tests --- */

#define TITLE                                                                                                \
    "#                                                       out-of-place                       in-place\n"  \
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw " \
    "  busbw #wrong\n"                                                                                       \
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s) " \
    " (GB/s)\n"
#define RANK(R, HOST) "#  Rank  " R " Group  0 Pid  1887 on   " HOST " device  0 [0x8d] NVIDIA A100\n"
#define RANKS_2       RANK("0", "worker-1") RANK("1", "worker-1")
#define SUM_ROWS                                                                                             \
    "           8             2     float     sum      -1    20.00    0.00    0.00      0    21.00    0.00 " \
    "   0.00      0\n"                                                                                       \
    "     1048576        262144     float     sum      -1   100.00   10.49   10.49      0   110.00    9.53 " \
    "   9.53      0\n"

static const char today[] =
    "$ mpirun ./build/all_reduce_perf -b 8\n"
    "# nccl-tests version 2.17.6 nccl-headers=22602 nccl-library=22602\n"
    "# Collective test starting: all_reduce_perf\n"
    "# nThread 1 nGpus 2 minBytes 8 maxBytes 1048576 step: 2(factor)\n#\n# Using devices\n" RANKS_2
    "#\n" TITLE SUM_ROWS "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 5.0\n#\n"
    "# Collective test concluded: all_reduce_perf\n";
/* before 2.13: no group, no root, errors instead of counts */
static const char earlier[] =
    "# nThread 1 nGpus 1 minBytes 8 maxBytes 1048576 step: 2(factor) warmup iters: 5 iters: 20 validation: 1 "
    "\n"
    "#\n# Using devices\n#   Rank  0 Pid   1320 on node-a device  0 [0x00] Tesla V100-SXM2-16GB\n"
    "#   Rank  1 Pid   2066 on node-b device  0 [0x00] Tesla V100-SXM2-16GB\nNCCL version 2.7.8+cuda11.0\n"
    "#                                                     out-of-place                       in-place\n"
    "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  "
    "error\n"
    "#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
    "     1048576        262144   float     sum    300.0    3.50    3.50  2e-07    310.0    3.38    3.38  "
    "2e-07\n"
    "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 3.4\n";

static void nccl_tests_of_any_age_are_read(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_machine m = shipped("thetagpu");
    const hp_row *r = row_of(rows_of(arena, &(hp_import_options){.machine = &m}, today), HP_ROW_COLLECTIVE,
                             m.intra.name, "allreduce nccl r2 n2");
    assert_int_equal(r->n, 2);
    assert_true(near(r->x[1], 1048576, 1e-12) &&
                near(r->y[1], 110e-6, 1e-12)); /* in place, as for gradients */
    assert_int_equal(r->source, HP_SOURCE_MEASURED);
    assert_string_equal(r->where, "never run: nccl-tests 2.17.6, NCCL 2.26.2, log.txt of 2026-01-01");
    const hp_import_options o = {.machine = &m, .op = "all_reduce"};
    r = row_of(rows_of(arena, &o, earlier), HP_ROW_COLLECTIVE, m.inter.name, "allreduce nccl r2 n1");
    assert_true(near(r->y[0], 310e-6, 1e-12));
    assert_non_null(strstr(r->where, "NCCL 2.7.8"));
    const hp_import_options ring = {.machine = &m, .algorithm = HP_ALGORITHM_RING};
    (void)row_of(rows_of(arena, &ring, today), HP_ROW_COLLECTIVE, m.intra.name, "allreduce nccl.ring r2 n2");
    hp_arena_free(arena);
}

/* Several runs in one log; out-of-place times if nothing else was checked; three equal sizes: the median. */
static void runs_after_each_other_are_rows_of_their_own(void **state) {
    (void)state;
    static const char text[] = "# Collective test starting: alltoall_perf\n" RANKS_2 TITLE
                               "        1024           128     float    none      -1    20.00    0.05    "
                               "0.03      0    40.00    0.03    0.03    N/A\n"
                               "# Collective test starting: hypercube_perf\n" RANKS_2 TITLE
                               "        1024           128     float    none      -1    20.00    0.05    "
                               "0.03      0    40.00    0.03    0.03    0\n"
                               "# Collective test starting: all_gather_perf\n" RANKS_2 TITLE
                               "           0             0     float    none      -1     3.00    0.00    "
                               "0.00      0     3.00    0.00    0.00      0\n"
                               "        1024           128     float    none      -1    30.00    0.03    "
                               "0.02      0    30.00    0.03    0.02      0\n"
                               "        1024           128     float    none      -1    90.00    0.01    "
                               "0.01      0    90.00    0.01    0.01      0\n"
                               "        1024           128     float    none      -1    33.00    0.03    "
                               "0.02      0    33.00    0.03    0.02      0\n"
                               "# Collective test starting: sendrecv_perf\n" RANKS_2 TITLE
                               "        1024           256     float     sum      -1    12.00    0.09    "
                               "0.09      0    13.00    0.08    0.08    N/A\n";
    hp_arena *arena = hp_arena_new();
    hp_error err = {HP_OK, ""};
    const hp_machine m = shipped("thetagpu");
    const hp_import_options o = {.machine = &m};
    const hp_cost_table *t = rows_of(arena, &o, text);
    assert_int_equal(t->n, 3);
    assert_true(near(row_of(t, HP_ROW_COLLECTIVE, m.intra.name, "alltoall nccl r2 n2")->y[0], 20e-6, 1e-12));
    const hp_row *gather = row_of(t, HP_ROW_COLLECTIVE, m.intra.name, "allgather nccl r2 n2");
    assert_true(gather->n == 1 && near(gather->y[0], 33e-6, 1e-12));
    assert_true(gather->samples == 3 && gather->residual > 0.05);
    assert_true(near(row_of(t, HP_ROW_P2P, m.intra.name, "nccl")->y[0], 12e-6, 1e-12));
    hp_import *i = hp_import_new(arena, &o);
    assert_int_equal(hp_import_text(i, text, "log", "d", &err), HP_OK);
    assert_string_equal(hp_import_left_out(i), "hypercube");
    hp_arena_free(arena);
}

/* --- OSU --- */

static void osu_sizes_become_those_of_the_whole_data(void **state) {
    (void)state;
    static const struct {
        const char *test, *key;
        double bytes; /* bytes of the whole data, for 4 ranks at size 1024 */
    } row[] = {{"Allreduce", "allreduce mpi r4 n4", 1024},
               {"Allgather", "allgather mpi r4 n4", 4096},
               {"All-to-All Personalized Exchange", "alltoall mpi r4 n4", 4096},
               {"Broadcast", "broadcast mpi r4 n4", 1024},
               {"Reduce", "reduce mpi r4 n4", 1024},
               {"Reduce_scatter", "reducescatter mpi r4 n4", 1024},
               {"Gather", "gather mpi r4 n4", 4096},
               {"Scatter", "scatter mpi r4 n4", 4096}};
    hp_arena *arena = hp_arena_new();
    const hp_machine m = local_like(4);
    const hp_import_options o = {.machine = &m, .ranks = 4, .per_node = 4};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *text =
            hp_arena_printf(arena,
                            "# OSU MPI %s Latency Test v7.4\n# Datatype: MPI_CHAR.\n"
                            "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n"
                            "1024                   12.50             11.00             14.00        1000\n",
                            row[i].test);
        const hp_row *r = row_of(rows_of(arena, &o, text), HP_ROW_COLLECTIVE, "shm", row[i].key);
        if (r->n != 1 || !near(r->x[0], row[i].bytes, 1e-12) || !near(r->y[0], 12.5e-6, 1e-12))
            fail_msg("%s: %g bytes in %g s", row[i].key, r->x[0], r->y[0]);
    }
    const char *barrier = "# OSU MPI Barrier Latency Test v5.8\n# Avg Latency(us)\n             8.32\n";
    const hp_row *r = row_of(rows_of(arena, &o, barrier), HP_ROW_COLLECTIVE, "shm", "barrier mpi r4 n4");
    assert_true(near(r->y[0], 8.32e-6, 1e-12));
    hp_arena_free(arena);
}

/* One direction; large messages also from a window of them. Between processors they are the link's, between
 * GPUs MPI's. */
static void osu_messages_are_rows_of_the_link(void **state) {
    (void)state;
    static const char
        latency[] = "# OSU MPI Latency Test v5.6.3\n# Size          Latency (us)\n"
                    "0                       0.50\n1024                    1.50\n",
        bandwidth[] =
            "# OSU MPI-CUDA Bandwidth Test v7.2\n"
            "# Send Buffer on DEVICE (D) and Receive Buffer on DEVICE (D)\n"
            "# Size      Bandwidth (MB/s)\n# Datatype: MPI_CHAR.\n"
            "1                       1.01\n1048576             20000.00\n4194304             20971.52\n";
    hp_arena *arena = hp_arena_new();
    const hp_machine m = local_like(2), gpus = shipped("thetagpu");
    const hp_row *r = row_of(rows_of(arena, &(hp_import_options){.machine = &m, .per_node = 2}, latency),
                             HP_ROW_P2P, "shm", "");
    assert_true(r->n == 2 && near(r->y[1], 1.5e-6, 1e-12));
    r = row_of(rows_of(arena, &(hp_import_options){.machine = &gpus, .per_node = 1}, bandwidth), HP_ROW_P2P,
               gpus.inter.name, "mpi");
    assert_int_equal(r->n, 2);
    assert_true(near(r->x[1], 4194304, 1e-12) && near(r->y[1], 200e-6, 1e-9)); /* 4 MiB at 20.97152 GB/s */
    hp_arena_free(arena);
}

/* --- what is refused --- */

static void wrong_and_impossible_times_are_refused(void **state) {
    (void)state;
#define BEGIN "# Collective test starting: all_reduce_perf\n" RANKS_2 TITLE
    static const struct {
        const char *text, *says;
        hp_status code;
    } bad[] = {
        {BEGIN "1024 256 float sum -1 20.00 0.05 0.05 3 20.00 0.05 0.05 0\n",
         "log.txt line 7: #wrong is not 0", HP_EDATA},
        {BEGIN "1024 256 float sum -1 20.00 0.05 0.05 0 20.00 0.05 0.05 1\n", "#wrong is not 0", HP_EDATA},
        {BEGIN
         "1024 256 float sum -1 20.00 0.05 0.05 0 20.00 0.05 0.05 0\n# Out of bounds values : 4 FAILED\n",
         "line 8: results were wrong", HP_EDATA},
        {BEGIN "1024 256 float sum -1 20.00 0.05\n",
         "line 7: expected 13 columns as in the title, there are 7", HP_EDATA},
        {BEGIN "1024 256 float sum -1 fast 0.05 0.05 0 20.00 0.05 0.05 0\n", "expected a time", HP_EDATA},
        {BEGIN "1024 256 float sum -1 -3 0.05 0.05 0 20.00 0.05 0.05 0\n", "expected a time", HP_EDATA},
        {BEGIN "1024 256 float sum -1 20.00 9.05 0.05 0 20.00 0.05 0.05 0\n", "algbw is not size / time",
         HP_EDATA},
        {BEGIN "1024x 256 float sum -1 20.00 0.05 0.05 0 20.00 0.05 0.05 0\n", "expected a size", HP_EDATA},
        {BEGIN "67108864 16777216 float sum -1 20.00 3355.44 0.05 0 20.00 3355.44 0.05 0\n", "GB/s",
         HP_EDATA},
        {BEGIN "1048576 262144 float sum -1 900.00 1.17 0.05 0 900.00 1.17 0.05 0\n"
               "16777216 4194304 float sum -1 905.00 18.54 0.05 0 905.00 18.54 0.05 0\n",
         "line 8: 16777216 bytes take 905 us, 1048576 bytes 900 us: enqueue timing", HP_EDATA},
        {BEGIN "# no rows\n", "holds no times", HP_EDATA},
        {"", "holds no times", HP_EDATA},
        {"1024 12.5\n", "holds no times", HP_EDATA},
        {"# nThread 1\n" RANKS_2 TITLE SUM_ROWS, "--op", HP_EUSAGE},
        {"# Collective test starting: all_reduce_perf\n" TITLE SUM_ROWS, "--ranks N --per-node N", HP_EUSAGE},
        {"# nThread 1\n" RANK("0", "a") RANK("0", "b") TITLE SUM_ROWS, "MPI=1", HP_EDATA},
        {"# nThread 1\n" RANK("0", "a") TITLE SUM_ROWS, "--op", HP_EUSAGE},
        {"# all_reduce_perf\n" RANK("0", "a") TITLE SUM_ROWS, "one rank", HP_EDATA},
        {"# all_reduce_perf\n" RANK("0", "a") RANK("1", "a") RANK("2", "b") TITLE SUM_ROWS,
         "2 ranks on a, but 1 on b", HP_EDATA},
        {"# OSU MPI-CUDA Allreduce Latency Test v7.4\n# Size Avg Latency(us)\n8 2.5\n",
         "--ranks N --per-node N", HP_EUSAGE},
        {"# OSU MPI Allreduce Latency Test v7.4\n# Size Avg Latency(us)\n8 2.5\n", "not MPI-CUDA", HP_EUSAGE},
    };
    hp_arena *arena = hp_arena_new();
    const hp_machine m = shipped("thetagpu");
    const hp_import_options o = {.machine = &m};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hp_error err = {HP_OK, ""};
        hp_cost_table *t;
        const hp_status s = take(arena, &o, bad[i].text, &t, &err);
        if (s != bad[i].code || !strstr(err.text, bad[i].says))
            fail_msg("%d: exit %d, '%s', expected %d, '%s'", (int)i, s, err.text, bad[i].code, bad[i].says);
    }
    const hp_machine cpu = local_like(4);
    const hp_import_options host = {.machine = &cpu, .ranks = 4, .per_node = 4};
    static const char *const osu[] = {
        "# OSU MPI Allreduce Latency Test v7.4\n# Size Avg Latency(us)\n8 fast\n",
        "# OSU MPI Allreduce Latency Test v7.4\n# Size Avg Latency(us)\n8 2.5 2.4 Fail\n",
        "# OSU MPI Allreduce Latency Test v7.4\n# Size Avg Latency(us)\n8\n",
        "# OSU MPI Allreduce Latency Test v7.4\n# Size Overall(us) Latency\n8 2.5\n",
        "# OSU MPI Barrier Latency Test v7.4\n# Size Avg Latency(us)\n8 2.5\n",
    };
    for (size_t i = 0; i < sizeof osu / sizeof *osu; i++) {
        hp_error err = {HP_OK, ""};
        hp_cost_table *t;
        if (take(arena, &host, osu[i], &t, &err) != HP_EDATA || !strstr(err.text, "log.txt"))
            fail_msg("accepted: %s (%s)", osu[i], err.text);
    }
    hp_arena_free(arena);
}

/* Cut anywhere, or with bytes changed anywhere: an error or rows, never a crash. */
static void damaged_output_is_survived(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_machine m = shipped("thetagpu");
    const hp_import_options o = {.machine = &m, .op = "all_reduce"};
    const char *const from[] = {today, earlier};
    int taken = 0, refused = 0;
    for (uint64_t i = 0; i < 4000; i++) {
        hp_error err = {HP_OK, ""};
        char *text = hp_arena_strdup(arena, from[i % 2]);
        const size_t n = strlen(text);
        hp_cost_table *t;
        text[hp_rng_below(1, 1, i, n)] = (char)(1 + hp_rng_below(1, 2, i, 255));
        if (i % 3 == 0) text[hp_rng_below(1, 3, i, n)] = 0;
        if (take(arena, &o, text, &t, &err) == HP_OK)
            taken++;
        else
            refused++;
    }
    assert_true(taken > 100 && refused > 100);
    hp_arena_free(arena);
}

/* --- what is done with rows --- */

/* Compared with trying all rows at a size. */
static void the_fastest_is_the_lowest_line(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        hp_arena *arena = hp_arena_new();
        hp_row row[4];
        const hp_row *at[4];
        hp_fastest *f;
        for (uint64_t r = 0; r < 4; r++) {
            double *x = HP_NEW(arena, double, 5), *y = HP_NEW(arena, double, 5);
            for (uint64_t k = 0; k < 5; k++) {
                x[k] = exp2(3 * (double)k + (r < 2 ? 0 : hp_rng_uniform(seed, 10 + r, k)));
                y[k] = 1e-6 * (1 + 9 * hp_rng_uniform(seed, r, k));
            }
            row[r] = (hp_row){.n = 5, .x = x, .y = y};
            at[r] = &row[r];
        }
        const int n = hp_fastest_of(arena, at, 4, &f);
        assert_true(n > 0);
        for (int i = 0; i < n; i++)
            for (int k = 0; k < 4;
                 k++) { /* if it is measured at all, no other row is below it at its own points */
                const double from = f[i].bytes, to = i + 1 < n ? f[i + 1].bytes : INFINITY;
                for (int p = 0; p < 5; p++) {
                    const double x = row[k].x[p], mine = hp_row_at(&row[f[i].row], x);
                    if (x > from * 1.0001 && x < to * 0.9999 && !isnan(mine))
                        assert_true(mine <= row[k].y[p] * (1 + 1e-9));
                }
            }
        hp_arena_free(arena);
    }
    const double x[] = {0, 100}, up[] = {0, 10}, down[] = {6, 4}; /* 0.1 x and 6 - 0.02 x meet at 50 */
    const hp_row a = {.n = 2, .x = (double *)x, .y = (double *)up},
                 b = {.n = 2, .x = (double *)x, .y = (double *)down};
    const hp_row *const both[] = {&a, &b};
    hp_arena *arena = hp_arena_new();
    hp_fastest *f;
    assert_int_equal(hp_fastest_of(arena, both, 2, &f), 2);
    assert_true(f[0].row == 0 && f[1].row == 1 && near(f[1].bytes, 50, 1e-12));
    hp_arena_free(arena);
}

static char *exported(hp_arena *arena, bool nccl, const char *rows, hp_tuning_report *r) {
    hp_error err = {HP_OK, ""};
    hp_cost_table *t = NULL;
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (hp_rows_parse(arena, hp_arena_printf(arena, "hplan-cost 2\nmachine m\ndate d\n%s", rows), "t", &t,
                      &err) != HP_OK)
        fail_msg("%s", err.text);
    const hp_status s =
        nccl ? hp_export_nccl_tuner(arena, t, f, r, &err) : hp_export_ompi_rules(arena, t, f, r, &err);
    fclose(f);
    char *copy = s == HP_OK ? hp_arena_strdup(arena, text) : NULL;
    free(text);
    return copy;
}

/* The two lines meet at 50,000 bytes; the library's own row takes precedence over hplan's. */
static const char CROSSING[] = "collective l allreduce mpi.doubling r4 n4 | measured 0 1 | 0:0 100000:10\n"
                               "collective l allreduce nccl.ring r8 n4 | measured 0 1 | 0:6 100000:4\n"
                               "collective l allreduce nccl.two_trees r8 n4 | measured 0 1 | 0:0 100000:10\n"
                               "collective l allreduce own.doubling r4 n4 | measured 0 1 | 0:9 100000:0\n"
                               "collective l allreduce own.ring r4 n4 | measured 0 1 | 0:6 100000:4\n"
                               "collective l allreduce shm.ring r4 n4 | measured 0 1 | 0:1 100000:1\n";

static void rules_change_where_the_lines_cross(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_tuning_report r;
    const char *ompi = exported(arena, false, CROSSING, &r);
    assert_non_null(ompi);
    assert_int_equal(r.rules, 2);
    /* allreduce is 2, its recursive doubling 3, its ring 4 (ompi_info --param coll tuned --level 9) */
    assert_non_null(strstr(ompi, "2 # allreduce\n3 # numbers of ranks\n"));
    assert_non_null(strstr(ompi, "4 # ranks\n2 # message sizes\n0 3 0 0 # doubling\n50000 4 0 0 # ring\n"));
    assert_non_null(strstr(r.left_out, "shm.ring r4 n4"));
    const char *nccl = exported(arena, true, CROSSING, &r);
    assert_non_null(nccl);
    assert_non_null(strstr(nccl, "\nallreduce,0,49999,tree,ll,-1,2,8,-1,-1\nallreduce,50000,"));
    assert_null(exported(arena, true, "collective l allreduce nccl r8 n4 | measured 0 1 | 0:6\n", &r));
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nccl_tests_of_any_age_are_read),
        cmocka_unit_test(runs_after_each_other_are_rows_of_their_own),
        cmocka_unit_test(osu_sizes_become_those_of_the_whole_data),
        cmocka_unit_test(osu_messages_are_rows_of_the_link),
        cmocka_unit_test(wrong_and_impossible_times_are_refused),
        cmocka_unit_test(damaged_output_is_survived),
        cmocka_unit_test(the_fastest_is_the_lowest_line),
        cmocka_unit_test(rules_change_where_the_lines_cross),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
