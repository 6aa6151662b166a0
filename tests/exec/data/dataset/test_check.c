/* test_check.c - unreadable samples: damage is found in any part of them, and the loader reads
 * others in their place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "exec/data/dataset/loader.h"
#include "base/rng.h"
#include "tests/support/exec/make_images.h"
#include "tests/support/exec/read_sample.h"
#include "tests/support/plan/data_files.h"

enum { S = 8, FILES = 6 };

static hp_dataset *open_folder(const char *name, int side, int32_t split) {
    static hp_dataset *d;
    hp_data_options o = hp_data_options_default();
    hp_error err = {0};
    o.name = scratch_path(name);
    o.split = split;
    o.image_h = o.image_w = side;
    o.image_c = 1;
    o.classes = 2;
    if (hp_dataset_open(&o, &d, &err) != HP_OK) fail_msg("%s", err.text);
    return d;
}

/* Calls until the sample is read or an error comes; *calls: number of calls. */
static hp_status check(hp_dataset *d, int64_t index, int *calls, hp_error *err) {
    int32_t row = 0;
    *calls = 0;
    do {
        const int32_t before = row;
        const hp_status s = hp_dataset_check(d, index, &row, err);
        ++*calls;
        if (s != HP_OK) return s;
        assert_true(row == 0 || row > before);
    } while (row > 0);
    return HP_OK;
}

/* 9 million pixels take more than one call. Wherever a file was cut, it is found and named; a cut in its last
 * part only by the last call. */
static void damage_is_found_wherever_it_lies(void **state) {
    (void)state;
    enum { SIDE = 3000, SHARES = 8 };
    static uint8_t px[SIDE * SIDE]; /* noise: so a position in the file corresponds to a row */
    for (size_t i = 0; i < sizeof px; i += 8) {
        const uint64_t noise = hp_rng_below(5, 0, i, UINT64_MAX);
        memcpy(px + i, &noise, 8);
    }
    make_png(scratch_path("large/train/a/whole.png"), SIDE, SIDE, 1, px);
    size_t n;
    unsigned char *bytes = scratch_read(scratch_path("large/train/a/whole.png"), &n);
    for (int k = 0; k < SHARES; k++) {
        char name[64];
        snprintf(name, sizeof name, "large/train/a/cut%d.png", k);
        scratch_write(name, bytes, n * (size_t)(2 * k + 1) / (2 * SHARES));
    }
    free(bytes);
    hp_dataset *d = open_folder("large", S, HP_SPLIT_TRAIN);
    assert_true(hp_dataset_may_leave_out(d));
    int calls, whole;
    hp_error err = {0};
    assert_int_equal(check(d, SHARES, &whole, &err), HP_OK); /* sorted: the cut ones come first */
    assert_true(whole > 1);
    for (int k = 0; k < SHARES; k++) {
        char name[32];
        snprintf(name, sizeof name, "cut%d.png", k);
        assert_int_equal(check(d, k, &calls, &err), HP_EDATA);
        assert_non_null(strstr(err.text, name));
        assert_true(calls <= whole);
    }
    assert_int_equal(calls, whole);
    hp_dataset_close(d);
}

/* Every pixel of image i is i + 1. */
static void make_folder(const char *split) {
    uint8_t px[S * S];
    for (int i = 0; i < FILES; i++) {
        char name[64];
        memset(px, i + 1, sizeof px);
        snprintf(name, sizeof name, "few/%s/%c/%d.png", split, i < FILES / 2 ? 'a' : 'b', i);
        make_png(scratch_path(name), S, S, 1, px);
    }
}

/* Reads one epoch in batches of 2 with that many threads: pixel[i] and label[i] of position i. */
static void read_all(hp_dataset *d, bool eval, int32_t threads, uint8_t *pixel, int32_t *label) {
    enum { BATCH = 2 };
    const hp_program p = {.batch = BATCH, .micro = 1, .micro_batch = BATCH, .dtype = HP_F32};
    const hp_loader_options o = {.data = d, .program = &p, .eval = eval, .threads = threads};
    const hp_box images = {.hi = {[HP_AXIS_N] = BATCH, [HP_AXIS_H] = S, [HP_AXIS_W] = S, [HP_AXIS_C] = 1}},
                 labels = {.hi = {[HP_AXIS_N] = BATCH, [HP_AXIS_H] = 1, [HP_AXIS_W] = 1, [HP_AXIS_C] = 1}};
    hp_error err = {0};
    hp_loader *l;
    assert_int_equal(hp_loader_open(&o, &l, &err), HP_OK);
    assert_int_equal(hp_loader_steps(l), FILES / BATCH);
    for (int step = 0; step < FILES / BATCH; step++) {
        uint8_t x[BATCH][S * S];
        if (hp_loader_read(l, step, 0, x, HP_U8, &images, label + step * BATCH, &labels, &err) != HP_OK)
            fail_msg("%s", err.text);
        for (int i = 0; i < BATCH; i++) {
            pixel[step * BATCH + i] = x[i][0];
            for (int k = 1; k < S * S; k++) assert_int_equal(x[i][k], x[i][0]);
        }
    }
    hp_loader_close(l);
}

static void the_next_stands_in_for_it_in_training(void **state) {
    (void)state;
    static const uint8_t wanted[FILES] = {1, 3, 3, 5, 5, 1}; /* 1, 3 and 5 are left out */
    make_folder("train");
    for (int threads = 1; threads <= 2; threads++) {
        hp_dataset *d = open_folder("few", S, HP_SPLIT_TRAIN);
        uint8_t pixel[FILES];
        int32_t label[FILES];
        for (int i = 1; i < FILES; i += 2) hp_dataset_leave_out(d, i);
        read_all(d, false, threads, pixel, label);
        assert_memory_equal(pixel, wanted, FILES);
        for (int i = 0; i < FILES; i++) assert_int_equal(label[i], wanted[i] - 1 >= FILES / 2);
        hp_dataset_close(d);
    }
}

static void it_has_no_label_in_evaluation(void **state) {
    (void)state;
    make_folder("train");
    make_folder("test");
    hp_dataset *d = open_folder("few", S, HP_SPLIT_TEST);
    uint8_t pixel[FILES];
    int32_t label[FILES];
    hp_dataset_leave_out(d, 4);
    read_all(d, true, 2, pixel, label);
    for (int i = 0; i < FILES; i++) {
        assert_int_equal(pixel[i], i == 4 ? 0 : i + 1);
        assert_int_equal(label[i], i == 4 ? HP_LABEL_IGNORED : i >= FILES / 2);
    }
    hp_dataset_close(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(damage_is_found_wherever_it_lies, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(the_next_stands_in_for_it_in_training, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(it_has_no_label_in_evaluation, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
