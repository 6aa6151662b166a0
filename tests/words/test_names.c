/* test_names.c - a name that is nearly right, or right elsewhere, leads to the one that was meant. */
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

/* Devices of which something is known stand in for those like them, and devices that are not known say so. */
static void devices_say_whose_figures_they_take(void **state) {
    words *w = *state;
    static const char *const variants[] = {"h100-nvl", "h100-pcie", "h200"};
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        hplan(w, 0, "simulate --net cnn --image 28 --strategy dp=1 --machine 'nodes=1; node=1 x %s'",
              variants[i]);
        out_says(w, "no rows for %s: those of h100 assumed, scaled by data-sheet rates", variants[i]);
    }
    hplan(w, 0, "simulate --net cnn --image 28 --strategy dp=1 --machine 'nodes=1; node=1 x rtx4090'");
    out_says(w, "device \"rtx4090\" is unknown: a100-40 is assumed");
}

/* 5 is one of 5 % and of 500 %. */
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
                                       cmocka_unit_test(a_bare_limit_above_one_is_ambiguous),
                                       cmocka_unit_test(a_short_option_helps)};
    return cmocka_run_group_tests(tests, words_open, words_close);
}
