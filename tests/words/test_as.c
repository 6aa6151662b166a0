/* test_as.c - simulate --as: a framework takes no less than hplan for the same strategy, plan.db keeps it for
 * `why`, its memory is eager unless specified, and wrong names are explained. */
#include "tests/support/words/words.h"

#define DP "simulate --net resnet18 --image 128 --batch 8 --machine thesis-a100 --strategy dp=2 "

typedef struct figures {
    double step_s, memory_bytes;
} figures;

static figures figures_of(words *w, const char *options) {
    hplan(w, 0, DP "--json --out as.db %s", options);
    return (figures){words_number(w, "candidates/0/step_s"), words_number(w, "candidates/0/memory_bytes")};
}

static void a_framework_takes_longer_and_the_plan_keeps_it(void **state) {
    static const char *const frameworks[] = {"pytorch-1.13", "mpi4dl", "torchgpipe",
                                             "horovod-tf",   "mxnet",  "tensorflow-1.15"};
    words *w = *state;
    const double own_s = figures_of(w, "").step_s;
    for (int i = 0; i < 6; i++) {
        char option[64];
        snprintf(option, sizeof option, "--as %s", frameworks[i]);
        const double step_s = figures_of(w, option).step_s;
        assert_string_equal(words_text(w, "as"), frameworks[i]);
        assert_true(own_s < step_s);
        hplan(w, 0, "why as.db dp=2 --json");
        near_to(words_number(w, "asked/step_s"), step_s, 1e-6);
    }
}

/* PyTorch keeps more, unless planned memory is requested. */
static void memory_is_eager_unless_said(void **state) {
    words *w = *state;
    const figures own = figures_of(w, "");
    assert_true(own.memory_bytes < figures_of(w, "--as pytorch-1.13").memory_bytes);
    near_to(figures_of(w, "--as pytorch-1.13 --memory planned").memory_bytes, own.memory_bytes, 0);
}

static void as_hplan_is_hplan(void **state) {
    words *w = *state;
    const double own_s = figures_of(w, "").step_s;
    near_to(figures_of(w, "--as hplan").step_s, own_s, 0);
}

/* The output names the assumed layout. */
static void the_layout_is_named(void **state) {
    words *w = *state;
    hplan(w, 0, DP "--prec fp16 --as pytorch-1.13 --out as.db");
    out_says(w, "as pytorch-1\\.13, channels first");
    hplan(w, 0, DP "--prec fp16 --as pytorch-1.13-channels-last --json --out as.db");
    assert_string_equal(words_text(w, "layout"), "channels last");
}

static void a_wrong_name_is_answered_with_those_there_are(void **state) {
    words *w = *state;
    hplan(w, 2, DP "--as torch");
    err_says(w, "did you mean 'pytorch-1\\.13'");
    hplan(w, 2, DP "--as pytorch2");
    err_says(w, "did you mean 'pytorch-2'");
    hplan(w, 2, DP "--as jax");
    err_says(w, "'jax'; choose hplan, pytorch-1\\.13");
}

static void an_engine_of_inference_does_not_train(void **state) {
    static const words_row rows[] = {
        {2, DP "--as tensorrt", NULL, "--as tensorrt does not train: add --mode infer"},
        {0, DP "--as tensorrt --mode infer --out as.db", "as tensorrt", NULL}};
    each_row(*state, rows);
}

/* PyTorch quantises for processors alone. */
static void bytes_are_not_multiplied_by_all(void **state) {
    static const words_row rows[] = {
        {69, DP "--mode infer --prec int8 --as pytorch-2", NULL, "pytorch-2 multiplies no bytes on GPUs"},
        {0, DP "--mode infer --prec int8 --as tensorrt --out as.db", "as tensorrt", NULL}};
    each_row(*state, rows);
}

/* The same libraries multiply, and less is a kernel of its own. */
static void compiled_is_no_slower_than_eager(void **state) {
    words *w = *state;
    static const char *const precisions[] = {"fp32", "bf16"};
    for (int i = 0; i < 2; i++) {
        double step_s[2];
        for (int k = 0; k < 2; k++) {
            hplan(w, 0,
                  "simulate --net resnet50 --image 224 --batch 256 --machine thesis-a100 --strategy dp=1 "
                  "--json "
                  "--prec %s --as pytorch-2%s --out as.db",
                  precisions[i], k ? "-compiled" : "");
            step_s[k] = words_number(w, "candidates/0/step_s");
        }
        assert_true(step_s[1] <= step_s[0]);
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_framework_takes_longer_and_the_plan_keeps_it),
        cmocka_unit_test(memory_is_eager_unless_said),
        cmocka_unit_test(as_hplan_is_hplan),
        cmocka_unit_test(the_layout_is_named),
        cmocka_unit_test(an_engine_of_inference_does_not_train),
        cmocka_unit_test(bytes_are_not_multiplied_by_all),
        cmocka_unit_test(compiled_is_no_slower_than_eager),
        cmocka_unit_test(a_wrong_name_is_answered_with_those_there_are),
    };
    return cmocka_run_group_tests(tests, words_open, words_close);
}
