/* test_scaling.c - scaling curves: batches that grow with the devices, strategies of matching width, a row
 * for every count with its figures or its reason, and the time of an epoch. */
#include "tests/support/words/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CNN   "simulate --net cnn --image 28 --machine thesis-a100"
#define CLOSE 1e-9

/* Row `i` of a weak-scaling curve of resnet50, 64 images per device, an epoch of a million images at 2.5 per
 * device hour: every figure follows from its step by simple arithmetic. */
static void figures_follow_from_the_step(words *w, int i, double n, double base_step_s) {
    const double step = words_number(w, "scaling/%d/step_s", i),
                 batch = words_number(w, "scaling/%d/batch", i);
    const double epoch = words_number(w, "scaling/%d/epoch_s", i),
                 hours = words_number(w, "scaling/%d/gpu_hours", i);
    char strategy[32];
    snprintf(strategy, sizeof strategy, "dp=%.0f", n);
    near_to(words_number(w, "scaling/%d/gpus", i), n, 0);
    near_to(batch, 64 * n, 0);
    assert_true(json_is_null(words_at(w, "scaling/%d/reason", i)));
    assert_string_equal(words_text(w, "scaling/%d/strategy", i), strategy);
    assert_string_equal(words_text(w, "scaling/%d/curve", i), "dp=*");
    near_to(words_number(w, "scaling/%d/images_per_s", i), batch / step, CLOSE);
    near_to(words_number(w, "scaling/%d/speedup", i), n * base_step_s / step, CLOSE);
    near_to(words_number(w, "scaling/%d/efficiency", i), base_step_s / step, CLOSE);
    near_to(epoch, floor(1000000 / batch) * step, CLOSE);
    near_to(hours, n * epoch / 3600, CLOSE);
    near_to(words_number(w, "scaling/%d/cost", i), 2.5 * hours, CLOSE);
    near_to(words_number(w, "scaling/%d/energy_kwh", i), 0.3 * hours, CLOSE); /* V100 SXM2: 300 W */
    /* 4.09 G multiply-adds per image (torchvision), three times as many in training, 15.7 TFLOP/s */
    near_to(words_number(w, "scaling/%d/flop_utilisation", i), 3 * 8.18e9 * 64 / step / 15.7e12, 0.005);
    const int candidate = (int)words_number(w, "scaling/%d/number", i) - 1;
    assert_string_equal(words_text(w, "candidates/%d/strategy", candidate), strategy);
    near_to(words_number(w, "candidates/%d/gpus", candidate), n, 0);
    near_to(words_number(w, "candidates/%d/step_s", candidate), step, 0);
}

static void weak_scaling_adds_up(void **state) {
    words *w = *state;
    hplan(w, 0,
          "simulate --net resnet50 --machine summit --gpus 1,2,4,...,1536 --batch-per-gpu 64 --strategy dp=* "
          "--samples 1000000 "
          "--price 2.5 --json --out weak.db");
    assert_int_equal(words_length(w, "scaling"), 12);
    const double base = words_number(w, "scaling/0/step_s");
    for (int i = 0; i < 12; i++) figures_follow_from_the_step(w, i, i < 11 ? 1 << i : 1536, base);
    near_to(words_number(w, "scaling/11/number"), words_number(w, "chosen"), 0);
    near_to(words_number(w, "gpus"), 1536, 0);
    near_to(words_number(w, "batch"), 64 * 1536, 0);
}

/* A single batch; a count without a plan says why, and the fix that it names works. */
static void strong_scaling_says_what_has_no_plan(void **state) {
    static const int counts[] = {1, 2, 3, 4, 6};
    words *w = *state;
    hplan(w, 0,
          "simulate --net resnet18 --machine summit --gpus 1,2,3,4,6 --batch 24 --strategy dp=*,stages=2 "
          "--json --out strong.db");
    assert_int_equal(words_length(w, "scaling"), 5);
    for (int i = 0; i < 5; i++) {
        near_to(words_number(w, "scaling/%d/gpus", i), counts[i], 0);
        if (counts[i] % 2) {
            assert_true(json_is_null(words_at(w, "scaling/%d/strategy", i)));
            assert_string_equal(words_text(w, "scaling/%d/reason/code", i), "E-GPUS");
            assert_string_equal(words_text(w, "scaling/%d/reason/fix", i), "--gpus 2");
        } else {
            near_to(words_number(w, "scaling/%d/batch", i), 24, 0);
            assert_true(json_is_null(words_at(w, "scaling/%d/reason", i)));
        }
    }
    assert_non_null(strstr(words_text(w, "scaling/2/reason/limit"), "stages=2 occupies 2, dp=2,stages=2 4"));
    near_to(words_number(w, "scaling/1/speedup"), 1, 0); /* the smallest count with a plan is the base */
    assert_true(json_is_null(words_at(w, "scaling/0/speedup")));
    hplan(w, 0,
          "simulate --net resnet18 --machine summit --gpus 2 --batch 24 --strategy dp=*,stages=2 --out "
          "strong.db");
}

/* A batch that does not divide, too little memory: the row has code, limit and a fix that was evaluated. */
static void a_row_without_a_plan_has_its_reason(void **state) {
    words *w = *state;
    char fix[128];
    hplan(w, 0,
          "simulate --net resnet50 --image 1024 --machine summit --gpus 2,4 --batch-per-gpu 8 --memory-limit "
          "8G --strategy dp=* "
          "--strategy dp=*,prec=fp16 --json --out lean.db");
    int without = 0;
    for (int i = 0; i < words_length(w, "scaling"); i++) {
        if (strcmp(words_text(w, "scaling/%d/curve", i), "dp=*") != 0) continue;
        assert_string_equal(words_text(w, "scaling/%d/reason/code", i), "E-MEM");
        without++;
    }
    assert_int_equal(without, 2);
    words_match(words_text(w, "scaling/0/reason/fix"), "^(.*) -> ", fix, sizeof fix);
    assert_true(*fix);
    hplan(w, 0,
          "simulate --net resnet50 --image 1024 --machine summit --batch 16 --memory-limit 8G --strategy "
          "dp=2,%s --out fixed.db",
          fix);
    hplan(w, 0,
          "simulate --net resnet18 --machine summit --gpus 2,3 --batch 8 --strategy dp=* --out batch.db");
    out_says(w, "^  - dp=\\* +3 +8 +E-BATCH: .*; fix: ");
    /* if no count has a plan, each row says why */
    hplan(w, 3,
          "simulate --net unet:64 --image 8192 --machine summit --gpus 1,2 --batch-per-gpu 4 --strategy dp=* "
          "--out none.db");
    assert_int_equal(words_count(w->out, "^  - dp=\\* .*E-MEM: "), 2);
}

static void an_epoch_is_said_of_one_count_too(void **state) {
    static const words_row rows[] = {
        {0, CNN " --gpus 2 --batch 64 --strategy dp=2 --data fashion-mnist --out one.db",
         "an epoch of 60000 samples: ", NULL},
        {0, CNN " --strategy dp=2 --batch 64 --samples 60 --out one.db", "60 samples are not one batch of 64",
         NULL},
    };
    each_row(*state, rows);
}

static void mistakes_are_named(void **state) {
    static const words_row rows[] = {
        {2, CNN " --batch 8 --batch-per-gpu 8", NULL, "give one"},
        {2, CNN " --strategy dp=*,stages=*", NULL, "two stars"},
        {2, CNN " --strategy micro=*", NULL, "no number of devices"},
        {2, CNN " --gpus 1,2,...", NULL, "dots"},
        {2, CNN " --samples 5 --data fashion-mnist", NULL, "give one"},
        {2, CNN " --data imagenet", NULL, "only the size of fashion-mnist"},
        {2, CNN " --price 3", NULL, "--samples"},
        {2,
         CNN " --strategy dp=1 --strategy dp=2 --strategy dp=3 --strategy dp=4 --strategy dp=5 --strategy "
             "dp=6 --strategy dp=7 "
             "--strategy dp=8 --strategy dp=9",
         NULL, "more than 8"},
    };
    each_row(*state, rows);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(weak_scaling_adds_up),
        cmocka_unit_test(strong_scaling_says_what_has_no_plan),
        cmocka_unit_test(a_row_without_a_plan_has_its_reason),
        cmocka_unit_test(an_epoch_is_said_of_one_count_too),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, words_open, words_close);
}
