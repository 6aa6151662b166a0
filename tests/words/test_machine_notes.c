/* test_machine_notes.c - what `simulate`, `why` and `explain` say about machine, device and precision:
 * assumptions, the gain of a lower precision, changes by --set, the cost of unequal devices. */
#include "tests/support/words/words.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CNN     "simulate --net cnn --image 28"
#define UNET    "simulate --net unet:16 --image 512 --strategy dp=2 --machine class.machine"
#define MIXED   "'nodes=1; node=1 x a100-40 + 1 x v100-16'"
#define TWO_AND "nodes=512; node=2 x a100-40, nvlink=168GB/s; nic=1 x "

static int make_machines(void **state) {
    if (words_open(state)) return -1;
    words_write("class.machine",
                "name=x; source=\"\"; nodes=4; node=2 x a100-40, nvlink=168GB/s, latency=4us; cores=64; "
                "share-cpu=no; cpu=no\n"
                "nic=1 x 24GB/s, ib-hdr, latency=14us # one a node\n"
                "device=a100-40, memory=40GB, fp32=19.5TFLOP/s, bandwidth=1555GB/s, launch=5us\n");
    words_write("short.machine", "nodes=4; node=2 x NVIDIA A100-SXM4-40GB\n");
    words_write("odd.machine", "nodes=4; node=2 x Abacus 9000, pcie4; nic=1 x ib-hdr\n"
                               "device=Abacus 9000, memory=40GB, fp32=20TFLOP/s, bandwidth=1TB/s\n");
    words_write("l40s.machine", "nodes=4; node=2 x NVIDIA L40S, pcie4; nic=1 x ib-hdr\n");
    return 0;
}

static double step_of(words *w, const char *command) {
    hplan(w, 0, "%s --out step.db --json", command);
    return words_number(w, "candidates/0/step_s");
}

/* Device and precision above every table, and the gain of a lower precision: it equals the prediction for
 * that precision. */
static void a_gain_that_is_said_is_predicted(void **state) {
    words *w = *state;
    char gain[32];
    hplan(w, 0, UNET);
    out_says(w, "^device cuda, fp32; --prec bf16: about [0-9.]*x$");
    out_lacks(w, "^assumed");
    words_match(w->out, "bf16: about ([0-9.]*)x", gain, sizeof gain);
    near_to(step_of(w, UNET) / step_of(w, UNET " --prec bf16"), atof(gain), 0.06); /* two digits */
}

/* The clock has 292 years: a machine that slow is said to be, and nothing is written. */
static void steps_beyond_the_clock_are_refused(void **state) {
    words *w = *state;
    remove("slow.db");
    hplan(w, 65,
          CNN " --gpus 2 --batch 1048576 --machine 'nodes=1; node=2 x foo; device=foo, memory=1000TB, "
              "fp32=0.000000000001TFLOP/s, bandwidth=1B/s' --out slow.db");
    err_says(w, "more than can be simulated: is a rate of the machine");
    assert_int_equal(access("slow.db", F_OK), -1);
}

static void device_and_precision_stand_above_the_table(void **state) {
    static const words_row rows[] = {
        {0, UNET " --prec bf16", "^device cuda, bf16$", NULL},
        {0, UNET " --mode infer",
         "^device cuda, fp32; --prec bf16: about [0-9.]*x, (--prec )?int8: about [0-9.]*x$", NULL},
        {0, CNN " --gpus 1 --machine local", "^device cpu, fp32$",
         NULL}, /* training on a CPU gains nothing */
        {0, CNN " --gpus 1 --machine thesis-a100 --json", "\"device\":\"cuda\"", NULL},
        {0, CNN " --gpus 1 --machine thesis-a100 --json", "\"prec\":\"fp32\"", NULL},
        {0, CNN " --gpus 1 --machine thesis-a100 --out one.db", NULL, NULL},
        {0, "why one.db prec=bf16", "machine: *thesis-a100, device cuda", NULL},
        {0, "why one.db prec=bf16", "precision *bf16 *fp32", NULL},
        {0, "explain one.db", "^training of cnn in fp32", NULL},
        {0, "explain one.db", "on thesis-a100 \\(device cuda\\)", NULL},
    };
    each_row(*state, rows);
}

static void what_is_assumed_is_said(void **state) {
    static const words_row rows[] = {
        /* links that the file omits, an unknown device, costs of another class */
        {0, CNN " --strategy dp=2 --machine short.machine", "^assumed: .*GB/s",
         "assumed: .*GB/s inside a node; 1 x .*GB/s between nodes"},
        {0, CNN " --strategy dp=2 --machine odd.machine",
         "assumed: device \"Abacus 9000\" is unknown: [a-z0-9-]* is assumed",
         "assumed: device \"Abacus 9000\" is unknown: [a-z0-9-]* is assumed"},
        {0, CNN " --strategy dp=2 --machine l40s.machine", "no rows for l40s: those of a100-40 assumed",
         NULL},
    };
    words *w = *state;
    each_row(w, rows);
    err_empty(w); /* l40s.machine specifies everything */
}

/* Twice the NICs' rate equals the machine described with it; unknown changes are rejected with the known
 * ones. */
static void a_change_is_the_machine_described_with_it(void **state) {
    words *w = *state;
    near_to(step_of(w, CNN " --strategy dp=4 --machine thesis-a100 --set nic=2x"),
            step_of(w, CNN " --strategy dp=4 --machine '" TWO_AND "48GB/s, ib-hdr'"), 0);
    hplan(w, 0, CNN " --gpus 2 --machine thesis-a100 --set nodes=1 --set a100.memory=80G");
    out_says(w, "1 x 2 a100-40");
    err_says(w, "what if: thesis-a100 with nodes=1, a100.memory=80G");
    hplan(w, 3, CNN " --gpus 4 --machine thesis-a100 --set nodes=1");
    hplan(w, 2, CNN " --machine thesis-a100 --set nodse=2");
    err_says(w, "nodse.*\\(node");
}

static void a_slow_device_slows_the_step(void **state) {
    words *w = *state;
    assert_true(step_of(w, CNN " --strategy dp=2 --machine thesis-a100 --set slow=0.1:50%") >
                step_of(w, CNN " --strategy dp=2 --machine thesis-a100"));
    hplan(w, 2, "simulate --net resnet18 --image 128 --gpus 2 --machine thesis-a100 --set slow=600:50%%");
    err_says(w, "there are .* nodes, numbered from 0");
}

static void what_unlike_devices_cost_is_said(void **state) {
    static const words_row rows[] = {
        {0,
         "simulate --net resnet18 --image 128 --batch 16 --gpus 2 --machine " MIXED
         " --strategy stages=2,micro=4 --out mixed.db",
         "all devices a100-40 at full speed: .*x as fast; with stages as for equal devices \\(cut=", NULL},
        {0, "why mixed.db dp=2", "mix: *all devices a100-40", NULL},
        {0, "explain mixed.db", ".", NULL},
    };
    each_row(*state, rows);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gain_that_is_said_is_predicted),
        cmocka_unit_test(device_and_precision_stand_above_the_table),
        cmocka_unit_test(what_is_assumed_is_said),
        cmocka_unit_test(a_change_is_the_machine_described_with_it),
        cmocka_unit_test(a_slow_device_slows_the_step),
        cmocka_unit_test(what_unlike_devices_cost_is_said),
        cmocka_unit_test(steps_beyond_the_clock_are_refused),
    };
    return cmocka_run_group_tests(tests, make_machines, words_close);
}
