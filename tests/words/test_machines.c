/* test_machines.c - machines as a new user meets them: the device follows the machine, names are accepted as
 * drivers and people write them, all errors are reported at once, and any number of devices can be
 * planned. */
#include "tests/support/words/words.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CNN "simulate --net cnn --image 28"

/* Predicted step of dp=2 with these options. */
static double step_of(words *w, const char *options) {
    hplan(w, 0, CNN " --strategy dp=2 --out step.db --json %s", options);
    return words_number(w, "candidates/0/step_s");
}

static const char *device_of(words *w, const char *plan, char *device, size_t size) {
    hplan(w, 0, "explain %s", plan);
    return words_match(w->out, "\\(device ([a-z]*)\\)", device, size);
}

static void the_device_follows_the_machine(void **state) {
    static const char *const machines[][2] = {
        {"thesis-a100", "cuda"}, {"dgx-h200", "cuda"}, {"local", "cpu"}};
    words *w = *state;
    char device[32];
    for (int i = 0; i < 3; i++) {
        hplan(w, 0, CNN " --strategy dp=2 --machine %s --out machine.db", machines[i][0]);
        err_empty(w); /* nothing was assumed */
        assert_string_equal(device_of(w, "machine.db", device, sizeof device), machines[i][1]);
    }
    hplan(w, 0, CNN " --strategy dp=2 --machine thesis-a100 --prec tf32");
    near_to(step_of(w, "--machine thesis-a100"), step_of(w, "--machine thesis-a100 --device cuda"), 0);
}

static void another_device_than_the_machines_is_said(void **state) {
    static const words_row rows[] = {
        {0, CNN " --strategy dp=2 --machine thesis-a100 --device cpu", NULL,
         "machine of GPUs.*--device cuda"},
        {0, CNN " --strategy dp=2 --machine local --device cuda", NULL, "machine of CPU cores.*--device cpu"},
    };
    each_row(*state, rows);
}

static void stands_in(words *w, const char *options) {
    char device[32];
    hplan(w, 0, CNN " --out far.db %s", options);
    err_says(w, "thesis-a100.*a100-40");
    assert_string_equal(device_of(w, "far.db", device, sizeof device), "cuda");
}

static void more_devices_than_are_here_are_anothers(void **state) {
    stands_in(*state, "--gpus 1024 --batch 1024 --strategy dp=*");
    if (words_all("a search of the machine that stands in"))
        stands_in(*state, "--gpus 16 --batch 16 --top 1 --jitter 0");
}

/* Plans for GPUs are queried for GPUs, with the plan's stored costs. */
static void why_predicts_what_the_plan_does(words *w, const char *machine) {
    hplan(w, 0, CNN " --strategy dp=2 --machine %s --json", machine);
    const double step = words_number(w, "candidates/0/step_s"),
                 memory = words_number(w, "candidates/0/memory_bytes");
    hplan(w, 0, "why plan.db dp=2 --json");
    near_to(words_number(w, "asked/step_s"), step, 0);
    near_to(words_number(w, "asked/memory_bytes"), memory, 0);
}

static void why_asks_about_the_plans_machine(void **state) {
    why_predicts_what_the_plan_does(*state, "thesis-a100");
    why_predicts_what_the_plan_does(*state, "'nodes=4; node=2 x NVIDIA L40S, pcie4; nic=1 x ib-hdr'");
}

/* Writes a machine with only the device's name, or one that specifies everything as hplan's own class
 * does. */
static void describe(const char *file, const char *device) {
    words_write(file,
                "name=x; source=\"\"; nodes=4; node=2 x %s, nvlink=168GB/s, latency=4us; cores=64; "
                "share-cpu=no; cpu=no\n"
                "nic=1 x 24GB/s, ib-hdr, latency=14us # one a node\n"
                "device=%s, memory=40GB, fp32=19.5TFLOP/s, bandwidth=1555GB/s, launch=5us\n",
                device, device);
}

static void a_device_is_called_as_its_driver_calls_it(void **state) {
    static const char *const files[] = {"driver", "small", "short"}, *const precisions[] = {"fp32", "bf16"};
    words *w = *state;
    describe("class.machine", "a100-40");
    describe("driver.machine", "A100-SXM4-40GB");
    describe("small.machine", "nvidia a100-sxm4-40gb");
    words_write("short.machine", "nodes=4; node=2 x NVIDIA A100-SXM4-40GB\n");
    for (int p = 0; p < 2; p++) {
        char options[80];
        snprintf(options, sizeof options, "--machine class.machine --prec %s", precisions[p]);
        const double step = step_of(w, options);
        for (int i = 0; i < 3; i++) {
            snprintf(options, sizeof options, "--machine %s.machine --prec %s", files[i], precisions[p]);
            near_to(step_of(w, options), step, 0);
        }
    }
    hplan(w, 2, "simulate --net cnn --machine short"); /* a file's name has a dot */
    hplan(w, 65, "simulate --net cnn --machine missing.machine");
}

static void all_that_is_wrong_is_one_line(void **state) {
    words *w = *state;
    words_write("bad.machine", "nodes=-1; nod=2 x a100; nic=2 x fast; device=a100, memory=1e99GB\n");
    hplan(w, 65, "simulate --net cnn --machine bad.machine");
    err_line(w, "nodes must be");
    err_says(w, "no such clause \\(node\\)");
    err_says(w, "'fast' is neither a rate");
    err_says(w, "node=K x DEVICE is missing");
    err_says(w, "memory must be");
}

/* A pipe is read; one without a writer is not a machine, and nothing blocks. */
static void a_pipe_is_read(void **state) {
    static const char machine[] = "nodes=4; node=2 x a100-40, nvlink=168GB/s; nic=1 x 24GB/s\n";
    words *w = *state;
    assert_int_equal(mkfifo("pipe", 0600), 0);
    hplan(w, 65, "simulate --net cnn --machine ./pipe");
    hplan(w, 65, CNN " --strategy dp=1 --cost ./pipe");
    hplan(w, 65, "simulate --onnx ./pipe");
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], machine, sizeof machine - 1), sizeof machine - 1);
    close(ends[1]);
    hplan(w, 0, CNN " --strategy dp=2 --machine /dev/fd/%d --out pipe.db", ends[0]);
    close(ends[0]);
}

/* On the command line; including odd numbers. */
static void any_number_of_devices_is_planned(void **state) {
    static const int shapes[][2] = {{1, 1}, {1, 3}, {5, 3}, {2048, 8}};
    words *w = *state;
    for (int i = 0; i < 4; i++) {
        const int nodes = shapes[i][0], each = shapes[i][1];
        hplan(w, 0, CNN " --strategy dp=%d --machine 'nodes=%d; node=%d x h200'", nodes * each, nodes, each);
        hplan(w, 3, CNN " --gpus %d --machine 'nodes=%d; node=%d x h200'", nodes * each + 1, nodes, each);
    }
}

static void a_precision_that_devices_have_no_units_for_is_refused(void **state) {
    static const words_row rows[] = {
        {69, CNN " --strategy dp=2 --machine lassen --prec bf16", NULL,
         "v100-16 has no units for bf16.*--prec fp16"},
        {0, CNN " --strategy dp=2 --machine lassen --prec fp16", NULL, NULL},
        {69, CNN " --gpus 2 --machine lassen --prec fp32,tf32", NULL, NULL}, /* before anything is searched */
    };
    each_row(*state, rows);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_device_follows_the_machine),
        cmocka_unit_test(another_device_than_the_machines_is_said),
        cmocka_unit_test(more_devices_than_are_here_are_anothers),
        cmocka_unit_test(why_asks_about_the_plans_machine),
        cmocka_unit_test(a_device_is_called_as_its_driver_calls_it),
        cmocka_unit_test(all_that_is_wrong_is_one_line),
        cmocka_unit_test(a_pipe_is_read),
        cmocka_unit_test(any_number_of_devices_is_planned),
        cmocka_unit_test(a_precision_that_devices_have_no_units_for_is_refused),
    };
    return cmocka_run_group_tests(tests, words_open, words_close);
}
