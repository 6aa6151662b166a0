/* test_names.c - a name that is nearly right, or right elsewhere, leads to the intended one. */
#include "tests/support/words/words.h"

#include <stdlib.h>
#include <string.h>

static void networks_are_found_by_nearly_their_name(void **state) {
    words *w = *state;
    static const char *const rows[][2] = {{"resnet5O", "resnet50"},  {"ResNet50", "resnet50"},
                                          {"resnet-50", "resnet50"}, {"RESNET_101", "resnet101"},
                                          {"vgg-16", "vgg16"},       {"ViT-B/16", "vit-b16"},
                                          {"vit_b_16", "vit-b16"},   {"MobileNetV2", "mobilenetv2"},
                                          {"Unet:8", "unet:8"},      {"swin_t", "swin-t"},
                                          {"gpt-2", "gpt2"},         {"densnet121", "densenet121"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hplan(w, 2, "simulate --net %s --image 64 --gpus 2", rows[i][0]);
        err_says(w, "did you mean '%s'", rows[i][1]);
    }
    static const char *const others[] = {"somethingelse", "cat", "zebra"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        hplan(w, 2, "simulate --net %s --gpus 2", others[i]);
        err_lacks(w, "did you mean");
    }
}

static void machines_are_found_by_their_devices(void **state) {
    words *w = *state;
    static const char *const rows[][2] = {{"A100", "node=1 x a100-40"},
                                          {"4xH100", "node=4 x h100"},
                                          {"'4 x H100'", "node=4 x h100"},
                                          {"8xA100-SXM4-80GB", "node=8 x a100-80"},
                                          {"h200", "node=1 x h200"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hplan(w, 2, "simulate --net cnn --image 28 --machine %s", rows[i][0]);
        err_line(w, "did you mean --machine \"nodes=1; %s\"", rows[i][1]);
    }
    hplan(w, 2, "simulate --net cnn --image 28 --machine Thesis_A100s");
    err_line(w, "did you mean");
    hplan(w, 2, "simulate --net cnn --image 28 --machine perlmuter");
    err_line(w, "did you mean 'perlmutter'");
    hplan(w, 2, "simulate --net cnn --image 28 --machine nonsense");
    err_line(w, "known are");
}

static void strategies_are_found_by_their_names_elsewhere(void **state) {
    words *w = *state;
    static const char *const rows[][2] = {
        {"ddp", "dp=N"},        {"DDP", "dp=N"},       {"fsdp", "dp=N,zero=3"},   {"pp=4", "stages=N"},
        {"stage=4", "stages="}, {"mirco=4", "micro="}, {"pipeline=2", "stages=N"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hplan(w, 2, "simulate --net cnn --image 28 --machine thesis-a100 --strategy %s", rows[i][0]);
        err_line(w, "did you mean '%s'", rows[i][1]);
    }
}

/* Known devices stand in for similar ones; unknown devices are reported as such. */
static void devices_say_whose_figures_they_take(void **state) {
    words *w = *state;
    static const char *const variants[] = {"h100-nvl", "h100-pcie", "h200"};
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        hplan(w, 0, "simulate --net cnn --image 28 --strategy dp=1 --machine 'nodes=1; node=1 x %s'",
              variants[i]);
        out_says(w, "no rows for %s: those of h100 assumed, scaled by data-sheet rates", variants[i]);
    }
}

/* The memory of a GPU without a data sheet is required; its speed may stay open, and then nearly everything
 * is possible. */
static void a_gpu_that_is_not_known_is_asked_for(void **state) {
    words *w = *state;
    static const char *const names[] = {"GeForce GTX 1080 Ti", "MI250X", "a1000",
                                        "RTX A6000",           "A10G",   "NVIDIA H200 NVL"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        hplan(w, 2, "simulate --net cnn --image 28 --strategy dp=2 --machine 'nodes=1; node=2 x %s'",
              names[i]);
        err_says(w, "\"%s\" is unknown.*device=%s, memory=...GB, fp32=...TFLOP/s, bandwidth=...GB/s",
                 names[i], names[i]);
        hplan(w, 0,
              "simulate --net cnn --image 28 --strategy dp=2 --json --out x.db --machine 'nodes=1; node=2 x "
              "%s; "
              "device=%s, memory=11GB'",
              names[i], names[i]);
        /* the fastest of the data sheets has some twenty times the rates of the slowest */
        assert_true(words_number(w, "candidates/0/step_high_s") >
                    20 * words_number(w, "candidates/0/step_s"));
        hplan(w, 0, "why x.db dp=1 --json"); /* the plan records that nothing was known */
        assert_true(words_number(w, "asked/step_high_s") > 20 * words_number(w, "asked/step_s"));
    }
    hplan(w, 0,
          "simulate --net resnet50 --batch 16 --strategy dp=2 --machine 'nodes=1; node=2 x foo; device=foo, "
          "memory=11GB'");
    out_says(w, "device \"foo\" is unknown: .*the least");
    out_says(w, "pcie of");
    out_lacks(w, "nvlink of");
    hplan(w, 0,
          "simulate --net cnn --image 28 --strategy dp=1 --machine 'nodes=1; node=1 x foo; device=foo, "
          "memory=11GB, "
          "fp32=11TFLOP/s, bandwidth=484GB/s'");
    out_lacks(w, "the least");
}

/* like=CLASS is followed in any spelling, or rejected if there is no such class. */
static void whom_a_device_is_like_is_followed_or_refused(void **state) {
    words *w = *state;
    double step_s[3];
    static const char *const classes[] = {"a100-40", "a10", "A10"};
    for (int i = 0; i < 3; i++) {
        hplan(w, 0,
              "simulate --net vit-b16 --image 224 --strategy dp=1 --json --machine 'nodes=1; node=1 x foo; "
              "device=foo, "
              "memory=24GB, fp32=31TFLOP/s, fp16=125TFLOP/s, bandwidth=600GB/s, like=%s'",
              classes[i]);
        step_s[i] = words_number(w, "candidates/0/step_s");
    }
    near_to(step_s[1], step_s[2], 1e-9);
    near_to(step_s[1], step_s[0], 0.2); /* the rows are theirs; A10s have fewer multiprocessors */
    hplan(w, 65,
          "simulate --net cnn --image 28 --strategy dp=1 --machine 'nodes=1; node=1 x foo; device=foo, "
          "memory=24GB, "
          "fp32=31TFLOP/s, bandwidth=600GB/s, like=nonsense'");
    err_says(w, "like=nonsense: no cost table has rows");
}

/* 5 could mean 5 % or 500 %. */
static void a_bare_limit_above_one_is_ambiguous(void **state) {
    words *w = *state;
    static const char *const options[] = {"--max-slowdown", "--max-memory"};
    for (int i = 0; i < 2; i++) {
        hplan(w, 2, "check new.db --baseline old.db %s 5", options[i]);
        err_line(w, "%s 5: 5%% of the baseline, or 500%%\\? fix: %s 5%%", options[i], options[i]);
        hplan(w, 65, "check new.db --baseline old.db %s 5%%", options[i]); /* there is no such file */
        hplan(w, 65, "check new.db --baseline old.db %s 0.05", options[i]);
        hplan(w, 65, "check new.db --baseline old.db %s 400%%", options[i]);
    }
}

static void a_short_option_helps(void **state) {
    static const char *const commands[] = {"simulate", "run", "plot", "calibrate", "check", "doctor"};
    words *w = *state;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        hplan(w, 0, "%s --help", commands[i]);
        char *help = strdup(w->out);
        hplan(w, 0, "%s -h", commands[i]);
        assert_string_equal(w->out, help);
        free(help);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(networks_are_found_by_nearly_their_name),
                                       cmocka_unit_test(machines_are_found_by_their_devices),
                                       cmocka_unit_test(strategies_are_found_by_their_names_elsewhere),
                                       cmocka_unit_test(devices_say_whose_figures_they_take),
                                       cmocka_unit_test(a_gpu_that_is_not_known_is_asked_for),
                                       cmocka_unit_test(whom_a_device_is_like_is_followed_or_refused),
                                       cmocka_unit_test(a_bare_limit_above_one_is_ambiguous),
                                       cmocka_unit_test(a_short_option_helps)};
    return cmocka_run_group_tests(tests, words_open, words_close);
}
