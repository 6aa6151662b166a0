/* test_threads.c - several threads read the samples of a call. Laws, over random data, boxes and programs:
 * what is read, and which error is reported, do not depend on the number of threads, nor on whether decoders
 * read the files. All threads send pulses. Together they keep no more files open than one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdatomic.h>
#include <unistd.h>

#include "exec/base/half.h"
#include "exec/data/dataset/loader.h"
#include "exec/data/image/decoder.h"
#include "base/rng.h"
#include "tests/support/exec/make_images.h"
#include "tests/support/exec/read_sample.h"
#include "tests/support/plan/data_files.h"
#include "tests/support/plan/law_cases.h"

enum { H = 41, W = 33, CLASSES = 4, FILES = 24, BATCH = 12 };

static const int32_t THREADS[] = {1, 2, 5, BATCH + 7};
enum { TEAMS = sizeof THREADS / sizeof *THREADS };

static int32_t draw(uint64_t k, uint64_t what, int32_t n) {
    return (int32_t)hp_rng_below(11, k, what, (uint64_t)n);
}

/* --- data --- */

static uint8_t px[(H + 3) * (W + 2) * 3];

/* Image `i` of a folder: any format, three sizes. */
static void make_image(const char *folder, int i) {
    static const char *const ends[] = {"png", "jpg", "tif", "tif"};
    char name[64];
    const int h = H + i % 3, w = W + i % 2, kind = i % 4;
    for (int k = 0; k < h * w * 3; k++) px[k] = (uint8_t)hp_rng_below((uint64_t)i, 1, (uint64_t)k, 256);
    snprintf(name, sizeof name, "%s/%02d.%s", folder, i, ends[kind]);
    const char *path = scratch_path(name);
    if (kind == 0) make_png(path, h, w, 3, px);
    if (kind == 1) make_jpeg(path, h, w, 3, px, 85);
    if (kind == 2) make_tiff(path, h, w, 3, px, 8, 0);
    if (kind == 3) make_tiff_tiled(path, h, w, 3, px, 16);
}

static void make_mask(int i) {
    static uint8_t mask[(H + 3) * (W + 2)];
    char name[64];
    for (int k = 0; k < (H + i % 3) * (W + i % 2); k++) mask[k] = (uint8_t)((k + i) % CLASSES);
    snprintf(name, sizeof name, "masked/train/masks/%02d.png", i);
    make_png_as(scratch_path(name), H + i % 3, W + i % 2, PNG_COLOR_TYPE_GRAY, 8, false, mask);
}

static void make_data(void) {
    for (int i = 0; i < FILES; i++) {
        make_image(i % 2 ? "folder/train/a" : "folder/train/b", i);
        make_image("masked/train/images", i);
        make_mask(i);
    }
    static uint8_t images[16 + FILES * 6 * 5] = {0, 0, 8, 3, 0, 0, 0, FILES, 0, 0, 0, 6, 0, 0, 0, 5},
                                           labels[8 + FILES] = {0, 0, 8, 1, 0, 0, 0, FILES};
    for (int i = 0; i < FILES * 30; i++) images[16 + i] = (uint8_t)(i * 7);
    for (int i = 0; i < FILES; i++) labels[8 + i] = (uint8_t)(i % CLASSES);
    scratch_write("idx/train-images-idx3-ubyte", images, sizeof images);
    scratch_write("idx/train-labels-idx1-ubyte", labels, sizeof labels);
    for (size_t i = 0; i < sizeof images; i++) images[i] = (uint8_t)(1 + i % 255);
    scratch_write("text", images, sizeof images); /* has no zeros */
    make_image("one", 0);
}

typedef struct source {
    const char *name;
    bool maps, text, test;
} source;

static const source SOURCES[] = {{"folder", false, false, false},   {"masked", true, false, false},
                                 {"idx", false, false, false},      {"synthetic", false, false, false},
                                 {"synthetic", true, false, false}, {"text:", true, true, false},
                                 {"patches:", false, false, true}};
enum { N_SOURCES = sizeof SOURCES / sizeof *SOURCES };

static void beat(void *self) {
    atomic_fetch_add((atomic_int *)self, 1);
}

static hp_data_options options_of(const source *s, uint64_t k, char name[SCRATCH_PATH], atomic_int *beats) {
    hp_data_options o = hp_data_options_default();
    const bool as_is = strcmp(s->name, "synthetic") == 0;
    snprintf(name, SCRATCH_PATH, "%s", as_is ? s->name : scratch_path(s->name));
    if (s->text) snprintf(name, SCRATCH_PATH, "text:%s", scratch_path("text"));
    if (s->test) snprintf(name, SCRATCH_PATH, "patches:%s,size=8,tissue=0", scratch_path("one/00.png"));
    o.name = name;
    o.split = s->test ? HP_SPLIT_TEST : HP_SPLIT_TRAIN;
    o.image_h = s->text ? 9 : 8 + draw(k, 1, 40);
    o.image_w = s->text ? 1 : 8 + draw(k, 2, 40);
    o.image_c = s->text ? 1 : draw(k, 3, 4) ? 3 : 1;
    o.resize = !s->text && draw(k, 4, 3) == 0 ? 50 : 0;
    o.channels = draw(k, 5, 4) ? 0 : 1;
    if (s->maps) o.label_h = o.image_h, o.label_w = o.image_w;
    o.classes = s->text ? 256 : CLASSES;
    o.ids = s->text;
    for (int c = 0; c < 3; c++) o.mean[c] = 0.1 * (c + 1), o.std[c] = 0.2 + 0.1 * c;
    o.pulse = (hp_pulse){beat, beats};
    return o;
}

/* --- one law: a call reads the same bytes, or fails with the same words --- */

static hp_decoders *decoders;

typedef struct team {
    hp_dataset *data;
    hp_loader *loader;
    atomic_int beats;
} team;

static void open_team(team *t, const source *s, const hp_program *p, uint64_t k, int32_t threads) {
    char name[SCRATCH_PATH];
    hp_error err = {0};
    hp_data_options o = options_of(s, k, name, &t->beats);
    if (threads % 2 == 0) o.decoders = decoders; /* 2 threads use decoders; 1, 5 and 19 decode themselves */
    if (hp_dataset_open(&o, &t->data, &err) != HP_OK) fail_msg("%s", err.text);
    const bool eval = s->test || draw(k, 6, 3) == 0;
    const hp_loader_options l = {.data = t->data,
                                 .program = p,
                                 .replica = draw(k, 7, p->dp),
                                 .shuffle = !eval && draw(k, 8, 3),
                                 .eval = eval,
                                 .seed = k,
                                 .threads = threads};
    if (hp_loader_open(&l, &t->loader, &err) != HP_OK) fail_msg("%s", err.text);
}

static void close_team(team *t) {
    hp_loader_close(t->loader);
    hp_dataset_close(t->data);
}

static hp_program any_program(uint64_t k) {
    static const int32_t split[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 3}, {1, BATCH}};
    const int32_t *s = split[draw(k, 9, 5)];
    return (hp_program){
        .dtype = HP_F32, .dp = s[0], .micro = s[1], .batch = BATCH, .micro_batch = BATCH / (s[0] * s[1])};
}

static hp_box any_box(uint64_t k, uint64_t what, int64_t n, int32_t h, int32_t w, int32_t c) {
    const int32_t size[HP_AXES] = {(int32_t)n, h, w, c};
    hp_box b;
    for (int a = 0; a < HP_AXES; a++) {
        b.lo[a] = draw(k, what + (uint64_t)a, size[a]) / 2;
        b.hi[a] = b.lo[a] + 1 + draw(k, what + 8 + (uint64_t)a, size[a] - b.lo[a]);
    }
    return b;
}

typedef struct answer {
    hp_status status;
    hp_error err;
    size_t x_bytes, label_bytes;
    unsigned char *x;
    int32_t *labels;
} answer;

/* The k-th call of a program, drawn only from k. */
static answer call(team *t, const hp_program *p, uint64_t k) {
    static const hp_dtype types[] = {HP_F32, HP_F64, HP_BF16, HP_F16, HP_U8};
    const hp_data_options *o = &t->data->o;
    const hp_dtype dtype = types[draw(k, 20, 5)];
    const hp_box box = any_box(k, 30, p->micro_batch, o->image_h, o->image_w, o->image_c);
    hp_box map = any_box(k, 50, p->micro_batch, o->label_h, o->label_w, 1);
    answer a = {.x_bytes = (size_t)(hp_box_elems(&box) * hp_dtype_bytes(dtype))};
    a.label_bytes = (size_t)hp_box_len(&map, HP_AXIS_N) * (size_t)hp_dataset_label_count(t->data, &map) *
                    sizeof *a.labels;
    a.x = malloc(a.x_bytes);
    a.labels = malloc(a.label_bytes);
    const bool has_x = draw(k, 21, 5) != 0, has_labels = !has_x || draw(k, 22, 3) != 0;
    memset(a.x, 0x5a, a.x_bytes);
    memset(a.labels, 0x5a, a.label_bytes);
    a.status = hp_loader_read(t->loader, draw(k, 23, 5), draw(k, 24, p->micro), has_x ? a.x : NULL, dtype,
                              &box, has_labels ? a.labels : NULL, &map, &a.err);
    return a;
}

static void assert_same(const answer *a, const answer *b) {
    assert_int_equal(a->status, b->status);
    if (a->status != HP_OK) {
        assert_string_equal(a->err.text, b->err.text);
        return;
    }
    assert_memory_equal(a->x, b->x, a->x_bytes);
    assert_memory_equal(a->labels, b->labels, a->label_bytes);
}

static void free_answer(answer *a) {
    free(a->x);
    free(a->labels);
}

/* Returns how many calls failed. */
static int compare(const source *s, uint64_t k, uint64_t calls) {
    const hp_program p = any_program(k);
    team t[TEAMS];
    int failed = 0;
    for (int i = 0; i < TEAMS; i++) {
        t[i].beats = 0;
        open_team(&t[i], s, &p, k, THREADS[i]);
    }
    for (uint64_t c = 0; c < calls; c++) {
        answer one = call(&t[0], &p, k * 100 + c);
        failed += one.status != HP_OK;
        for (int i = 1; i < TEAMS; i++) {
            answer other = call(&t[i], &p, k * 100 + c);
            assert_same(&one, &other);
            free_answer(&other);
        }
        free_answer(&one);
    }
    for (int i = 0; i < TEAMS; i++) close_team(&t[i]);
    return failed;
}

static void what_is_read_does_not_depend_on_the_threads(void **state) {
    (void)state;
    make_data();
    for (uint64_t k = 0; k < law_cases(20) * N_SOURCES; k++)
        assert_int_equal(compare(&SOURCES[k % N_SOURCES], k, 5), 0);
}

/* Damages files and masks before the data is opened, because afterwards only handles with a closed file would
 * see it. The damage is at their end, where only reading the pixels finds it. */
static void the_first_sample_that_fails_is_told_whoever_reads_it(void **state) {
    (void)state;
    int failed = 0;
    make_data();
    for (int i = 0; i < FILES; i += 1 + i % 5) {
        static const char *const ends[] = {"png", "jpg", "tif", "tif"};
        char name[64];
        snprintf(name, sizeof name, "folder/train/%s/%02d.%s", i % 2 ? "a" : "b", i, ends[i % 4]);
        scratch_write(name, "\x89PNG\r\n\x1a\n", 8);
        snprintf(name, sizeof name, "masked/train/masks/%02d.png", i);
        scratch_write(name, "no PNG", 6);
    }
    for (uint64_t k = 0; k < law_cases(40); k++) failed += compare(&SOURCES[k % 2], k, 5);
    assert_true(failed > (int)law_cases(40) / 2);
}

/* A call reports the error that reading its samples one by one reports first. */
static void the_first_error_is_that_of_the_lowest_sample(void **state) {
    (void)state;
    make_data();
    scratch_write("folder/train/a/05.jpg", "no image", 8);
    scratch_write("folder/train/a/09.jpg", "none either", 11);
    char name[SCRATCH_PATH];
    atomic_int beats = 0;
    hp_error err = {0}, alone = {0};
    hp_data_options o = options_of(&SOURCES[0], 1, name, &beats);
    hp_dataset *d = NULL;
    hp_loader *l = NULL;
    const hp_program p = {.dtype = HP_F32, .dp = 1, .micro = 1, .batch = FILES, .micro_batch = FILES};
    assert_int_equal(hp_dataset_open(&o, &d, &err), HP_OK);
    const hp_loader_options lo = {.data = d, .program = &p, .eval = true, .threads = 5};
    assert_int_equal(hp_loader_open(&lo, &l, &err), HP_OK);
    const hp_box one = whole_image(d), all = {{0}, {FILES, o.image_h, o.image_w, o.image_c}};
    float *x = malloc((size_t)hp_box_elems(&all) * sizeof *x);
    int64_t bad = 0;
    while (hp_dataset_read(d, bad, &one, HP_F32, x, &alone) == HP_OK) bad++;
    for (int again = 0; again < 50; again++) {
        assert_int_equal(hp_loader_read(l, 0, 0, x, HP_F32, &all, NULL, NULL, &err), HP_EDATA);
        assert_string_equal(err.text, alone.text);
    }
    free(x);
    hp_loader_close(l);
    hp_dataset_close(d);
}

/* --- heart beats, open files, 16 bits --- */

static int open_files(void) {
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

/* Pulses are as many as with one thread: none is lost. A batch of small files, all of which one handle would
 * keep open, stays within its limit. */
static void threads_beat_and_share_the_limit_of_open_files(void **state) {
    (void)state;
    enum { MANY = 2 * HP_POOL_READERS };
    int beats[2];
    for (int i = 0; i < MANY; i++) make_image("folder/train/a", i);
    for (int k = 0; k < 2; k++) {
        const int32_t threads = k ? 15 : 1;
        const hp_program p = {.dtype = HP_F32, .dp = 1, .micro = 1, .batch = MANY, .micro_batch = MANY};
        team t = {.beats = 0};
        char name[SCRATCH_PATH];
        hp_error err = {0};
        hp_data_options o = options_of(&SOURCES[0], 1, name, &t.beats);
        o.image_c = 3;
        assert_int_equal(hp_dataset_open(&o, &t.data, &err), HP_OK);
        const hp_loader_options l = {.data = t.data, .program = &p, .shuffle = true, .threads = threads};
        assert_int_equal(hp_loader_open(&l, &t.loader, &err), HP_OK);
        const hp_box box = {{0}, {MANY, o.image_h, o.image_w, 3}};
        float *x = malloc((size_t)hp_box_elems(&box) * sizeof *x);
        const int before = open_files();
        for (int step = 0; step < 3; step++) {
            assert_int_equal(hp_loader_read(t.loader, step, 0, x, HP_F32, &box, NULL, NULL, &err), HP_OK);
            if (step == 0) beats[k] = atomic_load(&t.beats);
        }
        assert_true(open_files() - before <= HP_POOL_READERS + threads);
        free(x);
        close_team(&t);
        assert_true(open_files() <= before);
    }
    assert_true(beats[0] >= MANY);
    assert_int_equal(beats[0], beats[1]);
}

static void numbers_of_16_bits_are_the_rounded_ones(void **state) {
    (void)state;
    make_data();
    for (uint64_t k = 0; k < 20; k++) {
        char name[SCRATCH_PATH];
        atomic_int beats = 0;
        const hp_data_options o = options_of(&SOURCES[k % 2], k, name, &beats);
        hp_dataset *d = NULL;
        assert_int_equal(hp_dataset_open(&o, &d, NULL), HP_OK);
        const hp_box box = any_box(k, 0, 1, o.image_h, o.image_w, o.image_c);
        const int64_t n = hp_box_elems(&box);
        float x[n];
        uint16_t narrow[n];
        assert_int_equal(hp_dataset_read(d, (int64_t)k, &box, HP_F32, x, NULL), HP_OK);
        assert_int_equal(hp_dataset_read(d, (int64_t)k, &box, HP_BF16, narrow, NULL), HP_OK);
        for (int64_t i = 0; i < n; i++) assert_int_equal(narrow[i], to_bf16(x[i]));
        assert_int_equal(hp_dataset_read(d, (int64_t)k, &box, HP_F16, narrow, NULL), HP_OK);
        for (int64_t i = 0; i < n; i++) assert_int_equal(narrow[i], to_f16(x[i]));
        hp_dataset_close(d);
    }
}

/* Generated images, with more threads than samples. */
static void rows_of_a_large_image_are_shared_by_threads(void **state) {
    (void)state;
    enum { SIDE = 1400, SAMPLES = 2 };
    static const hp_dtype types[] = {HP_F32, HP_BF16, HP_U8};
    const hp_program p = {.dtype = HP_F32, .dp = 1, .micro = 2, .batch = 2 * SAMPLES, .micro_batch = SAMPLES};
    atomic_int beats[TEAMS];
    for (uint64_t k = 0; k < law_cases(6); k++) {
        const hp_dtype dtype = types[k % 3];
        const hp_box box = {{draw(k, 1, 2), draw(k, 2, 100), draw(k, 3, 100), 0},
                            {SAMPLES, SIDE - draw(k, 4, 100), SIDE - draw(k, 5, 100), 3}};
        const size_t bytes = (size_t)(hp_box_elems(&box) * hp_dtype_bytes(dtype));
        unsigned char *x[TEAMS];
        for (int i = 0; i < TEAMS; i++) {
            hp_data_options o = hp_data_options_default();
            hp_dataset *d = NULL;
            hp_loader *l = NULL;
            beats[i] = 0;
            o.name = "synthetic", o.image_h = o.image_w = SIDE, o.image_c = 3, o.classes = CLASSES,
            o.seed = k;
            o.pulse = (hp_pulse){beat, &beats[i]};
            assert_int_equal(hp_dataset_open(&o, &d, NULL), HP_OK);
            const hp_loader_options lo = {.data = d, .program = &p, .threads = THREADS[i]};
            assert_int_equal(hp_loader_open(&lo, &l, NULL), HP_OK);
            x[i] = malloc(bytes);
            memset(x[i], i, bytes);
            assert_int_equal(hp_loader_read(l, (int64_t)k, 1, x[i], dtype, &box, NULL, NULL, NULL), HP_OK);
            assert_memory_equal(x[i], x[0], bytes);
            hp_loader_close(l);
            hp_dataset_close(d);
        }
        assert_true(atomic_load(&beats[TEAMS - 1]) > atomic_load(&beats[0]));
        for (int i = 0; i < TEAMS; i++) free(x[i]);
    }
}

static int start_decoders(void **state) {
    (void)state;
    const hp_decoder_limits limits = hp_decoder_limits_default();
    return hp_decoders_start(&limits, &decoders, NULL) == HP_OK ? 0 : -1;
}

static int stop_decoders(void **state) {
    (void)state;
    hp_decoders_stop(decoders);
    return 0;
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(what_is_read_does_not_depend_on_the_threads),
        IN_SCRATCH(the_first_sample_that_fails_is_told_whoever_reads_it),
        IN_SCRATCH(the_first_error_is_that_of_the_lowest_sample),
        IN_SCRATCH(threads_beat_and_share_the_limit_of_open_files),
        IN_SCRATCH(numbers_of_16_bits_are_the_rounded_ones),
        IN_SCRATCH(rows_of_a_large_image_are_shared_by_threads),
    };
    return cmocka_run_group_tests(tests, start_decoders, stop_decoders);
}
