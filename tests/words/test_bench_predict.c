/* test_bench_predict.c - `hplan bench comm --predict`: nccl-tests' columns for a remote machine, which the
 * importer reads as guesses; senseless options are rejected. tests/costmodels/test_comm_costs.c compares its
 * predictions with measurements. */
#include "tests/support/words/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ON_H100 "bench comm --predict --machine dgx-h100 "

/* One line of an all-reduce: bytes, elements, microseconds, 1e9 bytes/s of the data and on the bus. */
typedef struct row {
    double bytes, count, us, algbw, busbw;
} row;
static int rows_of(const char *text, row *rows, int most) {
    int n = 0;
    for (const char *at = text; at && *at; at = strchr(at, '\n'), at += at != NULL) {
        row *r = &rows[n];
        if (*at == '#' || n == most) continue;
        assert_int_equal(sscanf(at, "%lf %lf %*s %*s %*s %lf %lf %lf N/A", &r->bytes, &r->count, &r->us,
                                &r->algbw, &r->busbw),
                         5);
        n++;
    }
    return n;
}

/* nccl-tests: algbw = bytes / time; busbw = algbw 2(n-1)/n for an all-reduce, (n-1)/n for operations with
 * parts, where the count is one part's. */
static void columns_are_those_of_nccl_tests(void **state) {
    static const struct {
        const char *op, *program;
        double bus, parts;
    } ops[] = {{"allreduce", "all_reduce_perf", 14.0 / 8, 1},
               {"all_gather", "all_gather_perf", 7.0 / 8, 8},
               {"reducescatter", "reduce_scatter_perf", 7.0 / 8, 8},
               {"alltoall", "alltoall_perf", 7.0 / 8, 8},
               {"broadcast", "broadcast_perf", 1, 1}};
    words *w = *state;
    row r[8];
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        hplan(w, 0, ON_H100 "--op %s -b 1Mi -e 1Gi -f 32 -d f16", ops[i].op);
        out_says(w, "^# Collective test starting: %s$", ops[i].program);
        out_says(w, "^# back end nccl, pipelined; predicted for machine dgx-h100 by .*, nothing ran$");
        out_says(w, "^#  Rank  7 Group  0 .* node0 device  7 .* h100$");
        assert_int_equal(rows_of(w->out, r, 8), 3);
        for (int k = 0; k < 3; k++) {
            near_to(r[k].bytes, ldexp(1, 20 + 5 * k), 0);
            near_to(r[k].count, r[k].bytes / 2 / ops[i].parts, 0);
            near_to(r[k].algbw, 1e-3 * r[k].bytes / r[k].us, 0.011);
            near_to(r[k].busbw, r[k].algbw * ops[i].bus, 0.011);
            assert_true(k == 0 || r[k].us > r[k - 1].us);
        }
    }
}

/* NVSwitches sum floats (NVLS), not integers: 8 H100s took 2111 and 2677 us for 512 MiB
 * (ai-dynamo/aiconfigurator, NCCL 2.29). */
static void integers_are_added_by_rings(void **state) {
    words *w = *state;
    row r[2];
    hplan(w, 0, ON_H100 "--op allreduce -b 512Mi -e 512Mi -d f16");
    assert_int_equal(rows_of(w->out, r, 2), 1);
    near_to(r[0].us, 2111, 211);
    hplan(w, 0, ON_H100 "--op allreduce -b 512Mi -e 512Mi -d i8");
    assert_int_equal(rows_of(w->out, r, 2), 1);
    near_to(r[0].us, 2677, 268);
}

/* Every operation, on one node, on several, on some of a node's devices: the output becomes rows, which are
 * guesses. */
static void the_importer_reads_predictions(void **state) {
    static const char *const cases[] = {"--gpus 2", "--gpus 8", "--gpus 16", "--gpus 4 --ranks-per-node 1"},
                             *const keys[] = {"r2 n2", "r8 n8", "r16 n8", "r4 n1"};
    words *w = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hplan(w, 0, ON_H100 "%s -b 64Ki -e 64Mi -f 32 -v --out predicted.txt", cases[i]);
        hplan(w, 0, "calibrate --import predicted.txt --machine dgx-h100 -o %d.cost", (int)i);
        char name[16];
        snprintf(name, sizeof name, "%d.cost", (int)i);
        size_t n;
        char *text = words_read(name, &n);
        assert_int_equal(words_count(text, "^collective "), 9);
        const int guesses =
            words_count(text, "^(collective|p2p) .* \\| guess 0\\.3 .*, predicted, predicted\\.txt of");
        assert_int_equal(guesses, words_count(text, "^(collective|p2p) "));
        char pattern[64];
        snprintf(pattern, sizeof pattern, "^collective [a-z-]+ alltoall nccl %s ", keys[i]);
        assert_int_equal(words_count(text, pattern), 1);
        free(text);
    }
}

static void json_has_intervals(void **state) {
    words *w = *state;
    hplan(
        w, 0,
        "bench comm --predict --machine dgx-a100 --gpus 4 --op allreduce,sendrecv -b 1Mi -e 4Mi -f 2 --json");
    assert_true(json_is_true(words_at(w, "predicted")));
    near_to(words_number(w, "ranks"), 4, 0);
    near_to(words_number(w, "per_node"), 4, 0);
    assert_string_equal(words_text(w, "series/0/op"), "allreduce");
    assert_string_equal(words_text(w, "series/1/op"), "sendrecv");
    for (int k = 0; k < 3; k++) {
        const double time = words_number(w, "series/0/rows/%d/time_s", k);
        assert_true(words_number(w, "series/0/rows/%d/low_s", k) < time);
        assert_true(words_number(w, "series/0/rows/%d/high_s", k) > time);
        near_to(words_number(w, "series/0/rows/%d/count", k), ldexp(1, 18 + k), 0);
    }
}

static void what_makes_no_sense_is_refused(void **state) {
    static const words_row rows[] = {
        {2, "bench comm --machine dgx-h100", NULL, "--machine: .* add --predict"},
        {2, "bench comm --cost some.cost", NULL, "--cost: .* add --predict"},
        {2, ON_H100 "--turns 3", NULL, "--turns: with --predict nothing runs"},
        {2, ON_H100 "--hostfile hosts", NULL, "--hostfile: with --predict nothing runs"},
        {2, ON_H100 "--mode barriered", NULL, "--mode: with --predict nothing runs"},
        {2, "bench comm --predict --machine dgx-h1000", NULL, "dgx-h100"},
        {2, ON_H100 "--backend shm", NULL, "has no back end 'shm'"},
        {2, ON_H100 "--ranks-per-node 9", NULL, "a node of dgx-h100 has 8 devices"},
        {2, ON_H100 "--gpus 4 --root 4", NULL, "--root"},
        {2, ON_H100 "--gpus 1", NULL, "--gpus"},
        {2, ON_H100 "--op all_reduc", NULL, "there is no operation 'all_reduc'"},
        {2, ON_H100 "-b 4Mi -e 1Mi", NULL, "-e 1048576 is below -b"},
        {65, ON_H100 "--cost none.cost", NULL, "none.cost"},
        {3, "bench comm --predict --machine summit --gpus 60000", NULL,
         "--gpus 60000: summit has room for .* give --gpus"},
        {3, "bench comm --predict --machine 'nodes=1; node=1 x a10'", NULL, "has one device"},
        {73, ON_H100 "--out nosuchfolder/file", NULL, "nosuchfolder"}};
    each_row(*state, rows);
}

/* Not a short form of --ranks-per-node, of which nothing would be said. */
static void ranks_are_gpus(void **state) {
    words *w = *state;
    hplan(w, 0, ON_H100 "--op allreduce --ranks 2 --json");
    near_to(words_number(w, "ranks"), 2, 0);
    near_to(words_number(w, "per_node"), 2, 0);
    hplan(w, 0, "simulate --net cnn --image 28 --machine dgx-h100 --strategy dp=* --ranks 2 --json");
    near_to(words_number(w, "gpus"), 2, 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_those_of_nccl_tests), cmocka_unit_test(integers_are_added_by_rings),
        cmocka_unit_test(the_importer_reads_predictions),  cmocka_unit_test(json_has_intervals),
        cmocka_unit_test(what_makes_no_sense_is_refused),  cmocka_unit_test(ranks_are_gpus)};
    return cmocka_run_group_tests(tests, words_open, words_close);
}
