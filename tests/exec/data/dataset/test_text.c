/* test_text.c - bytes of text as samples: their order, the held-out part of each file, which files are read,
 * and the errors for unfit data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/data/dataset/loader.h"
#include "base/arena.h"
#include "tests/support/plan/data_files.h"

enum { S = 16 };

static hp_data_options options(const char *name, int32_t split) {
    hp_data_options o = hp_data_options_default();
    o.name = name;
    o.split = split;
    o.image_h = o.label_h = S;
    o.image_w = o.label_w = o.image_c = 1;
    o.classes = 256;
    o.ids = true;
    return o;
}

/* Byte i of file f: all values except 0, which text does not contain. */
static uint8_t byte_of(int f, int i) {
    return (uint8_t)(1 + (i * 7 + f * 31 + i / 50) % 255);
}

static void make_text(const char *name, int f, int n) {
    FILE *file = fopen(scratch_path(name), "wb");
    assert_non_null(file);
    for (int i = 0; i < n; i++) fputc(byte_of(f, i), file);
    fclose(file);
}

static hp_dataset *open_ok(const hp_data_options *o) {
    hp_error err = {0};
    hp_dataset *d = NULL;
    if (hp_dataset_open(o, &d, &err) != HP_OK) fail_msg("%s", err.text);
    return d;
}

static const char *name_of(hp_arena *a, const char *paths) {
    return hp_arena_printf(a, "text:%s/%s", scratch, paths);
}

/* A sample's ids, then the last label: S + 1 bytes. */
static void bytes_of(hp_dataset *d, int64_t index, uint8_t *out) {
    const hp_box all = {{0, 0, 0, 0}, {1, S, 1, 1}};
    float x[S];
    int32_t label[S];
    hp_error err;
    assert_int_equal(hp_dataset_read(d, index, &all, HP_F32, x, &err), HP_OK);
    assert_int_equal(hp_dataset_labels(d, index, &all, label, &err), HP_OK);
    for (int i = 0; i < S; i++) {
        assert_true(x[i] >= 0 && x[i] <= 255 && x[i] == (float)(uint8_t)x[i]);
        out[i] = (uint8_t)x[i];
        out[i + 1] = (uint8_t)label[i];
        if (i > 0) assert_int_equal(label[i - 1], out[i]); /* what comes next */
    }
}

/* Both splits together are the files: the training split, then the last twentieth of each file. */
static void the_end_of_every_file_is_held_out(void **state) {
    (void)state;
    static const int SIZE[] = {1000, 19, 777};
    const char *const names[] = {"t/a.txt", "t/b.txt", "t/sub/c"};
    hp_arena *arena = hp_arena_new();
    for (int f = 2; f >= 0; f--) make_text(names[f], f, SIZE[f]);
    for (int split = HP_SPLIT_TRAIN; split <= HP_SPLIT_TEST; split++) {
        uint8_t want[2000], have[S + 1];
        int n = 0;
        for (int f = 0; f < 3; f++) {
            const int held = SIZE[f] / 20, from = split == HP_SPLIT_TEST ? SIZE[f] - held : 0,
                      to = split == HP_SPLIT_TEST ? SIZE[f] : SIZE[f] - held;
            for (int i = from; i < to; i++) want[n++] = byte_of(f, i);
        }
        const hp_data_options o = options(name_of(arena, "t"), split);
        hp_dataset *d = open_ok(&o);
        assert_int_equal(hp_dataset_count(d), (n - 1) / S);
        for (int64_t i = 0; i < hp_dataset_count(d); i++) {
            bytes_of(d, i, have);
            assert_memory_equal(have, want + i * S, S + 1);
        }
        hp_dataset_close(d);
    }
    hp_arena_free(arena);
}

static void a_box_of_a_sample_is_a_part_of_it(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    make_text("one", 3, 500);
    const hp_data_options o = options(name_of(arena, "one"), HP_SPLIT_TRAIN);
    hp_dataset *d = open_ok(&o);
    uint8_t all[S + 1];
    hp_error err;
    for (int lo = 0; lo < S; lo++)
        for (int hi = lo + 1; hi <= S; hi++) {
            const hp_box part = {{0, lo, 0, 0}, {1, hi, 1, 1}};
            double x[S];
            int32_t label[S];
            bytes_of(d, 4, all);
            assert_int_equal(hp_dataset_read(d, 4, &part, HP_F64, x, &err), HP_OK);
            assert_int_equal(hp_dataset_labels(d, 4, &part, label, &err), HP_OK);
            for (int i = lo; i < hi; i++) {
                assert_true(x[i - lo] == all[i]);
                assert_int_equal(label[i - lo], all[i + 1]);
            }
        }
    hp_dataset_close(d);
    hp_arena_free(arena);
}

/* Links, hidden files and binary files do not count, nor does the order in which files were written. */
static void a_folder_is_its_text(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    uint64_t plain, more;
    hp_error err;
    make_text("f/x/a", 1, 400);
    make_text("f/y", 2, 400);
    const hp_data_options o = options(name_of(arena, "f"), HP_SPLIT_TRAIN);
    hp_dataset *d = open_ok(&o);
    assert_int_equal(hp_dataset_fingerprint(d, &plain, &err), HP_OK);
    hp_dataset_close(d);
    make_text("f/.hidden", 3, 400);
    FILE *binary = fopen(scratch_path("f/x/binary.gz"), "wb");
    assert_non_null(binary);
    for (int i = 0; i < 400; i++) fputc(i % 256, binary);
    fclose(binary);
    assert_int_equal(symlink("y", scratch_path("f/link")), 0);
    assert_int_equal(symlink(".", scratch_path("f/loop")), 0);
    assert_int_equal(mkfifo(scratch_path("f/pipe"), 0600), 0);
    d = open_ok(&o);
    assert_int_equal(hp_dataset_fingerprint(d, &more, &err), HP_OK);
    assert_true(plain == more);
    hp_dataset_close(d);
    make_text("f/y", 4, 400);
    d = open_ok(&o);
    assert_int_equal(hp_dataset_fingerprint(d, &more, &err), HP_OK);
    assert_true(plain != more);
    hp_dataset_close(d);
    hp_arena_free(arena);
}

static void refused(const hp_data_options *o, const char *says) {
    hp_error err = {0};
    hp_dataset *d = NULL;
    assert_int_equal(hp_dataset_open(o, &d, &err), HP_EDATA);
    if (!strstr(err.text, says)) fail_msg("'%s' does not say '%s'", err.text, says);
}

static void what_is_no_text_is_refused(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    make_text("short", 1, S);
    make_text("long", 1, 900);
    mkdir(scratch_path("empty"), 0700);
    FILE *binary = fopen(scratch_path("binary"), "wb");
    assert_non_null(binary);
    fputs("text, then", binary);
    fputc(0, binary);
    fclose(binary);
    hp_data_options o = options(name_of(arena, "short"), HP_SPLIT_TRAIN);
    refused(&o, "a sample takes 16");
    o.name = name_of(arena, "empty");
    refused(&o, "no text in it");
    o.name = name_of(arena, "binary");
    refused(&o, "is no text");
    o.name = name_of(arena, "nowhere");
    refused(&o, "cannot open");
    o.name = "text:/dev/zero";
    refused(&o, "no regular file");
    o.name = "text:";
    refused(&o, "no text in it");
    o.name = name_of(arena, "long");
    o.classes = 128;
    refused(&o, "vocabulary of 256");
    o.classes = 256;
    o.ids = false;
    refused(&o, "reads images");
    o.ids = true;
    o.label_h = 1;
    refused(&o, "one for each");
    o = options(scratch, HP_SPLIT_TRAIN);
    make_text("train/images/a.png", 1, 10);
    make_text("train/masks/a.png", 1, 10);
    refused(&o, "reads ids");
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_end_of_every_file_is_held_out, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_box_of_a_sample_is_a_part_of_it, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_folder_is_its_text, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(what_is_no_text_is_refused, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
