/* test_dataset.c - data sets, shuffling and the loader: which rank gets which sample, and the
 * errors for bad files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <zlib.h>

#include "exec/data/dataset/loader.h"
#include "exec/data/dataset/dataset_shuffle.h"
#include "tests/support/plan/data_files.h"
#include "tests/support/exec/read_sample.h"

static hp_data_options options(const char *name, int h, int w, int c) {
    hp_data_options o = hp_data_options_default();
    o.name = name;
    o.image_h = h;
    o.image_w = w;
    o.image_c = c;
    o.classes = 10;
    o.seed = 1;
    return o;
}

static hp_dataset *open_ok(const hp_data_options *o) {
    hp_error err = {0};
    hp_dataset *d = NULL;
    if (hp_dataset_open(o, &d, &err) != HP_OK) fail_msg("%s", err.text);
    return d;
}

/* Opening must fail with `code` and a message that contains both words. */
static void open_fails(const hp_data_options *o, hp_status code, const char *word, const char *fix) {
    hp_error err = {0};
    hp_dataset *d = NULL;
    assert_int_equal(hp_dataset_open(o, &d, &err), code);
    if (!strstr(err.text, word) || !strstr(err.text, fix))
        fail_msg("'%s' and '%s' not in: %s", word, fix, err.text);
    assert_null(d);
}

/* --- IDX --- */

/* Published (Xiao, Rasul, Vollgraf 2017): 60,000 training and 10,000 test images, all ten
 * classes equally frequent. */
static void fashion_mnist_has_6000_and_1000_images_per_class(void **state) {
    (void)state;
    if (access("/usr/share/datasets/fashion-mnist", R_OK) != 0) {
        print_message("skipped: the package dataset-fashion-mnist is not installed\n");
        skip();
    }
    for (int split = HP_SPLIT_TRAIN; split <= HP_SPLIT_TEST; split++) {
        hp_data_options o = options("fashion-mnist", 28, 28, 1);
        o.split = split;
        hp_dataset *d = open_ok(&o);
        const int64_t n = split == HP_SPLIT_TRAIN ? 60000 : 10000;
        assert_int_equal(hp_dataset_count(d), n);
        int64_t per_class[10] = {0};
        for (int64_t i = 0; i < n; i++) {
            int32_t label;
            assert_int_equal(read_sample(d, i, NULL, &label, NULL), HP_OK);
            assert_in_range(label, 0, 9);
            per_class[label]++;
        }
        for (int k = 0; k < 10; k++) assert_int_equal(per_class[k], n / 10);
        hp_dataset_close(d);
    }
}

/* The data set's published statistics of x/255: mean 0.2860, standard deviation 0.3530 over the training
 * images. */
static void fashion_mnist_pixels_have_the_published_mean_and_deviation(void **state) {
    (void)state;
    if (access("/usr/share/datasets/fashion-mnist", R_OK) != 0) skip();
    hp_data_options o = options("fashion-mnist", 28, 28, 1);
    o.mean[0] = 0.0;
    o.std[0] = 1.0;
    hp_dataset *d = open_ok(&o);
    double sum = 0.0, square = 0.0;
    for (int64_t i = 0; i < 60000; i++) {
        float x[784];
        assert_int_equal(read_sample(d, i, x, NULL, NULL), HP_OK);
        for (int k = 0; k < 784; k++) sum += (double)x[k], square += (double)x[k] * (double)x[k];
    }
    const double n = 60000.0 * 784.0, mean = sum / n;
    assert_true(fabs(mean - 0.2860) < 1e-4);
    assert_true(fabs(sqrt(square / n - mean * mean) - 0.3530) < 1e-4);
    hp_dataset_close(d);
}

/* 4 images of 2 x 3 with pixel = 10*image + position, labels 0..3. */
static const unsigned char images_idx[] = {0,  0,  8,  3,  0,  0,  0,  4,  0,  0,  0,  2,  0,  0,
                                           0,  3,  0,  1,  2,  3,  4,  5,  10, 11, 12, 13, 14, 15,
                                           20, 21, 22, 23, 24, 25, 30, 31, 32, 33, 34, 35};
static const unsigned char labels_idx[] = {0, 0, 8, 1, 0, 0, 0, 4, 0, 1, 2, 3};

static void write_idx(const void *images, size_t n_images, const void *labels, size_t n_labels) {
    scratch_write("train-images-idx3-ubyte", images, n_images);
    scratch_write("train-labels-idx1-ubyte", labels, n_labels);
}

static void idx_pixels_are_normalised_and_replicated(void **state) {
    (void)state;
    write_idx(images_idx, sizeof images_idx, labels_idx, sizeof labels_idx);
    hp_data_options o = options(scratch, 2, 3, 3);
    assert_int_equal(hp_data_parse_channels("0.5,0.25", "--mean", o.mean, NULL), HP_OK);
    hp_dataset *d = open_ok(&o);
    assert_int_equal(hp_dataset_count(d), 4);
    for (int64_t i = 0; i < 4; i++) {
        float x[18];
        int32_t label;
        assert_int_equal(read_sample(d, i, x, &label, NULL), HP_OK);
        assert_int_equal(label, i);
        for (int k = 0; k < 18; k++) {
            const int64_t pixel = 10 * i + k / 3;
            const double mean = k % 3 == 0 ? 0.5 : 0.25, v = (double)pixel;
            assert_true(x[k] == (float)((v / 255.0 - mean) / 0.5));
        }
    }
    hp_dataset_close(d);
}

static void idx_gzip_equals_plain(void **state) {
    (void)state;
    gzFile f = gzopen(scratch_path("t10k-images-idx3-ubyte.gz"), "wb");
    assert_int_equal(gzwrite(f, images_idx, sizeof images_idx), sizeof images_idx);
    gzclose(f);
    write_idx(images_idx, sizeof images_idx, labels_idx, sizeof labels_idx);
    scratch_write("t10k-labels-idx1-ubyte", labels_idx, sizeof labels_idx);
    hp_data_options o = options(scratch, 2, 3, 1), t = o;
    t.split = HP_SPLIT_TEST;
    hp_dataset *plain = open_ok(&o), *packed = open_ok(&t);
    for (int64_t i = 0; i < 4; i++) {
        float a[6], b[6];
        assert_int_equal(read_sample(plain, i, a, NULL, NULL), HP_OK);
        assert_int_equal(read_sample(packed, i, b, NULL, NULL), HP_OK);
        assert_memory_equal(a, b, sizeof a);
    }
    hp_dataset_close(plain);
    hp_dataset_close(packed);
}

/* FILE instead of DIR: the labels lie beside it. */
static void an_images_file_finds_its_labels(void **state) {
    (void)state;
    scratch_write("images-idx3-ubyte.d/my-images-idx3-ubyte", images_idx, sizeof images_idx);
    scratch_write("images-idx3-ubyte.d/my-labels-idx1-ubyte", labels_idx, sizeof labels_idx);
    const hp_data_options o = options(scratch_path("images-idx3-ubyte.d/my-images-idx3-ubyte"), 2, 3, 1);
    hp_dataset *d = open_ok(&o);
    int32_t label;
    assert_int_equal(read_sample(d, 3, NULL, &label, NULL), HP_OK);
    assert_int_equal(label, 3);
    hp_dataset_close(d);
}

static void every_truncation_of_idx_files_is_refused(void **state) {
    (void)state;
    const hp_data_options o = options(scratch, 2, 3, 1);
    for (size_t n = 0; n < sizeof images_idx; n++) {
        write_idx(images_idx, n, labels_idx, sizeof labels_idx);
        open_fails(&o, HP_EDATA, "train-images-idx3-ubyte", "");
    }
    for (size_t n = 0; n < sizeof labels_idx; n++) {
        write_idx(images_idx, sizeof images_idx, labels_idx, n);
        open_fails(&o, HP_EDATA, "train-labels-idx1-ubyte", "");
    }
}

/* The files' lengths tie their magic numbers and sizes together, so any single wrong bit is detected. */
static void every_flipped_header_bit_of_idx_files_is_refused(void **state) {
    (void)state;
    const hp_data_options o = options(scratch, 2, 3, 1);
    for (size_t bit = 0; bit < 8 * (16 + 8); bit++) {
        unsigned char images[sizeof images_idx], labels[sizeof labels_idx];
        memcpy(images, images_idx, sizeof images);
        memcpy(labels, labels_idx, sizeof labels);
        *(bit < 8 * 16 ? &images[bit / 8] : &labels[bit / 8 - 16]) ^= (unsigned char)(1 << bit % 8);
        write_idx(images, sizeof images, labels, sizeof labels);
        hp_error err = {0};
        hp_dataset *d = NULL;
        assert_int_equal(hp_dataset_open(&o, &d, &err), HP_EDATA);
        assert_non_null(strstr(err.text, "-ubyte"));
    }
}

static void idx_refusals_name_the_fix(void **state) {
    (void)state;
    hp_data_options o = options(scratch, 2, 3, 1);
    unsigned char longer[sizeof images_idx + 1] = {0};
    memcpy(longer, images_idx, sizeof images_idx);
    write_idx(longer, sizeof longer, labels_idx, sizeof labels_idx);
    open_fails(&o, HP_EDATA, "more than", "fetch");
    write_idx(images_idx, sizeof images_idx, labels_idx, sizeof labels_idx);
    o.classes = 3;
    open_fails(&o, HP_EDATA, "label 3", "--classes 4");
    o.classes = 10;
    o.split = HP_SPLIT_TEST;
    open_fails(&o, HP_EDATA, "t10k-images-idx3-ubyte is missing", "put it there");
    o.name = "no/such/data";
    open_fails(&o, HP_EDATA, "no/such/data", "synthetic");
    o.name = "synthetic";
    o.std[0] = 0.0;
    open_fails(&o, HP_EUSAGE, "--std", "not 0");
}

/* --- synthetic --- */

static void synthetic_samples_are_a_function_of_seed_split_and_index(void **state) {
    (void)state;
    const hp_data_options o = options("synthetic", 9, 7, 3);
    hp_data_options other = o, test = o;
    other.seed = 2;
    test.split = HP_SPLIT_TEST;
    hp_dataset *d[4] = {open_ok(&o), open_ok(&o), open_ok(&other), open_ok(&test)};
    float x[4][9 * 7 * 3];
    int32_t label[4];
    assert_int_equal(read_sample(d[1], 8, x[1], NULL, NULL), HP_OK); /* earlier reads do not matter */
    for (int i = 0; i < 4; i++) assert_int_equal(read_sample(d[i], 5, x[i], &label[i], NULL), HP_OK);
    assert_memory_equal(x[0], x[1], sizeof x[0]);
    assert_int_equal(label[0], label[1]);
    assert_memory_not_equal(x[0], x[2], sizeof x[0]);
    assert_memory_not_equal(x[0], x[3], sizeof x[0]);
    for (int i = 0; i < 4; i++) hp_dataset_close(d[i]);
}

/* Pixels are uniform on 0..255: x/255 has mean 1/2 and variance (256^2 - 1) / 12 / 255^2. Labels are uniform.
 * Bounds: five standard errors (variance of a uniform's square: 4/45 of (width/2)^4). */
static void synthetic_pixels_and_labels_are_uniform(void **state) {
    (void)state;
    enum { SAMPLES = 200, PIXELS = 32 * 32 * 3 };
    hp_data_options o = options("synthetic", 32, 32, 3);
    for (int c = 0; c < 3; c++) o.mean[c] = 0.0, o.std[c] = 1.0;
    hp_dataset *d = open_ok(&o);
    static float x[PIXELS];
    double sum = 0.0, square = 0.0;
    for (int64_t i = 0; i < SAMPLES; i++) {
        assert_int_equal(read_sample(d, i, x, NULL, NULL), HP_OK);
        for (int k = 0; k < PIXELS; k++) sum += (double)x[k] - 0.5, square += pow((double)x[k] - 0.5, 2.0);
    }
    const double n = (double)SAMPLES * PIXELS, variance = (65536.0 - 1.0) / 12.0 / 65025.0;
    assert_true(fabs(sum / n) < 5.0 * sqrt(variance / n));
    assert_true(fabs(square / n - variance) < 5.0 * sqrt(4.0 / 45.0 / 16.0 / n));
    double count[10] = {0}, chi2 = 0.0;
    for (int64_t i = 0; i < 100000; i++) {
        int32_t label;
        assert_int_equal(read_sample(d, i, NULL, &label, NULL), HP_OK);
        count[label] += 1.0;
    }
    for (int k = 0; k < 10; k++) chi2 += pow(count[k] - 1e4, 2.0) / 1e4;
    assert_true(chi2 < 27.88); /* 99.9 % of chi-square with 9 degrees of freedom */
    hp_dataset_close(d);
}

/* --- shuffling --- */

static void shuffle_is_a_permutation_of_every_epoch(void **state) {
    (void)state;
    static const int64_t counts[] = {1, 2, 3, 4, 5, 7, 8, 9, 31, 64, 100, 1000, 1024, 1025, 60000};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        unsigned char *seen = calloc((size_t)counts[c], 1);
        for (int64_t i = 0; i < counts[c]; i++) {
            const int64_t at = hp_shuffle(3, 5, i, counts[c]);
            assert_true(at >= 0 && at < counts[c]);
            assert_int_equal(seen[at]++, 0);
        }
        free(seen);
    }
}

/* Over many seeds every (position -> sample) pair of ten appears equally often. */
static void shuffle_sends_every_position_everywhere(void **state) {
    (void)state;
    enum { SEEDS = 20000 };
    double count[10][10] = {{0}};
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        for (int64_t i = 0; i < 10; i++) count[i][hp_shuffle(seed, 0, i, 10)] += 1.0;
    double chi2 = 0.0;
    for (int i = 0; i < 10; i++)
        for (int k = 0; k < 10; k++) chi2 += pow(count[i][k] - SEEDS / 10.0, 2.0) / (SEEDS / 10.0);
    assert_true(chi2 < 126.1); /* 99.9 % of chi-square with 81 degrees of freedom, as row and
                                * column sums are fixed */
}

/* A random permutation has one fixed point and, between two epochs, one agreement on average (Poisson). */
static void epochs_and_seeds_are_shuffled_independently(void **state) {
    (void)state;
    enum { N = 100000 };
    int fixed = 0, epochs = 0, seeds = 0;
    for (int64_t i = 0; i < N; i++) {
        fixed += hp_shuffle(1, 0, i, N) == i;
        epochs += hp_shuffle(1, 0, i, N) == hp_shuffle(1, 1, i, N);
        seeds += hp_shuffle(1, 0, i, N) == hp_shuffle(2, 0, i, N);
    }
    assert_in_range(fixed, 0, 8);
    assert_in_range(epochs, 0, 8);
    assert_in_range(seeds, 0, 8);
}

/* --- loader --- */

static hp_program geometry(int dp, int micro, int64_t batch, hp_dtype dtype) {
    return (hp_program){
        .dtype = dtype, .dp = dp, .micro = micro, .batch = batch, .micro_batch = batch / (dp * micro)};
}

static hp_loader *loader_of(hp_dataset *d, const hp_program *p, int replica, bool eval) {
    hp_error err = {0};
    hp_loader *l = NULL;
    const hp_loader_options o = {d, p, replica, !eval, eval, 7};
    if (hp_loader_open(&o, &l, &err) != HP_OK) fail_msg("%s", err.text);
    return l;
}

/* Gathers all labels and pixels of one step, replica by replica, micro-batch by micro-batch. */
static void gather(hp_dataset *d, const hp_program *p, int64_t step, bool eval, void *x, int32_t *labels) {
    const size_t bytes = (size_t)p->micro_batch * 12 * (size_t)hp_dtype_bytes((hp_dtype)p->dtype);
    const hp_box box = {{0}, {(int32_t)p->micro_batch, 2, 2, 3}},
                 rows = {{0}, {(int32_t)p->micro_batch, 1, 1, 1}};
    for (int r = 0; r < p->dp; r++) {
        hp_loader *l = loader_of(d, p, r, eval);
        for (int m = 0; m < p->micro; m++) {
            const int part = r * p->micro + m;
            int32_t *const to = labels + part * p->micro_batch;
            assert_int_equal(hp_loader_read(l, step, m, (char *)x + (size_t)part * bytes, (hp_dtype)p->dtype,
                                            &box, NULL, NULL, NULL),
                             HP_OK);
            assert_int_equal(hp_loader_read(l, step, m, NULL, HP_F32, NULL, to, &rows, NULL), HP_OK);
        }
        hp_loader_close(l);
    }
}

static void micro_batches_of_all_replicas_tile_the_batch(void **state) {
    (void)state;
    const hp_data_options o = options("synthetic", 2, 2, 3);
    hp_dataset *d = open_ok(&o);
    const hp_program whole = geometry(1, 1, 24, HP_F32);
    for (int64_t step = 0; step < 3; step++) {
        float want[24 * 12], got[24 * 12];
        int32_t want_labels[24], got_labels[24];
        gather(d, &whole, step, false, want, want_labels);
        for (int dp = 1; dp <= 24; dp++) {
            for (int micro = 1; micro <= 24; micro++) {
                if (24 % (dp * micro) != 0) continue;
                const hp_program p = geometry(dp, micro, 24, HP_F32);
                gather(d, &p, step, false, got, got_labels);
                assert_memory_equal(want, got, sizeof got);
                assert_memory_equal(want_labels, got_labels, sizeof got_labels);
            }
        }
    }
    hp_dataset_close(d);
}

static void float64_programs_read_the_float32_pixels(void **state) {
    (void)state;
    const hp_data_options o = options("synthetic", 2, 2, 3);
    hp_dataset *d = open_ok(&o);
    const hp_program narrow = geometry(1, 1, 4, HP_F32), wide = geometry(1, 1, 4, HP_F64);
    float a[48];
    double b[48];
    int32_t labels[4];
    gather(d, &narrow, 0, false, a, labels);
    gather(d, &wide, 0, false, b, labels);
    for (int i = 0; i < 48; i++) assert_true(b[i] == (double)a[i]);
    hp_dataset_close(d);
}

static void label_idx(unsigned char labels[8 + 21]) {
    static unsigned char images[16 + 21] = {0, 0, 8, 3, 0, 0, 0, 21, 0, 0, 0, 1, 0, 0, 0, 1};
    for (int i = 0; i < 21; i++) images[16 + i] = labels[8 + i] = (unsigned char)i;
    write_idx(images, sizeof images, labels, 8 + 21);
}

/* 21 samples in batches of 4: an epoch of training uses 20 different ones; evaluation uses each of the
 * 21 once, in order. */
static void training_drops_the_partial_batch_and_evaluation_covers_it(void **state) {
    (void)state;
    unsigned char labels[8 + 21] = {0, 0, 8, 1, 0, 0, 0, 21};
    label_idx(labels);
    hp_data_options o = options(scratch, 2, 2, 3);
    o.classes = 21;
    hp_dataset *d = open_ok(&o);
    const hp_program p = geometry(2, 2, 4, HP_F32);
    hp_loader *train = loader_of(d, &p, 0, false), *eval = loader_of(d, &p, 0, true);
    assert_int_equal(hp_loader_steps(train), 5);
    assert_int_equal(hp_loader_steps(eval), 6);
    float x[4 * 12];
    int32_t got[4];
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        int seen[21] = {0};
        for (int64_t step = 0; step < 5; step++) {
            gather(d, &p, epoch * 5 + step, false, x, got);
            for (int i = 0; i < 4; i++) assert_int_equal(seen[got[i]]++, 0);
        }
    }
    for (int64_t step = 0; step < 6; step++) {
        gather(d, &p, step, true, x, got);
        for (int i = 0; i < 4; i++) assert_int_equal(got[i], step * 4 + i < 21 ? step * 4 + i : -1);
    }
    for (int i = 12; i < 48; i++) assert_true(x[i] == 0.0f); /* padding after the last sample */
    hp_loader_close(train);
    hp_loader_close(eval);
    const hp_program large = geometry(1, 1, 22, HP_F32);
    const hp_loader_options lo = {d, &large, 0, true, false, 7};
    hp_error err = {0};
    hp_loader *l = NULL;
    assert_int_equal(hp_loader_open(&lo, &l, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "--batch 21"));
    hp_dataset_close(d);
}

static void mean_and_std_lists_are_parsed(void **state) {
    (void)state;
    double v[HP_DATA_CHANNELS];
    assert_int_equal(hp_data_parse_channels("0.485,0.456,0.406", "--mean", v, NULL), HP_OK);
    assert_true(v[0] == 0.485 && v[1] == 0.456 && v[2] == 0.406);
    assert_int_equal(hp_data_parse_channels("0.3", "--mean", v, NULL), HP_OK);
    assert_true(v[0] == 0.3 && v[3] == 0.3);
    assert_int_equal(hp_data_parse_channels("1,2,3,4,5", "--mean", v, NULL), HP_OK);
    assert_true(v[4] == 5 && v[HP_DATA_CHANNELS - 1] == 5);
    static const char *const wrong[] = {"", "a", "1,", ",1", "1,,2", "0.5 0.5", "nan"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(hp_data_parse_channels(wrong[i], "--mean", v, NULL), HP_EUSAGE);
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fashion_mnist_has_6000_and_1000_images_per_class),
        cmocka_unit_test(fashion_mnist_pixels_have_the_published_mean_and_deviation),
        IN_SCRATCH(idx_pixels_are_normalised_and_replicated),
        IN_SCRATCH(idx_gzip_equals_plain),
        IN_SCRATCH(an_images_file_finds_its_labels),
        IN_SCRATCH(every_truncation_of_idx_files_is_refused),
        IN_SCRATCH(every_flipped_header_bit_of_idx_files_is_refused),
        IN_SCRATCH(idx_refusals_name_the_fix),
        cmocka_unit_test(synthetic_samples_are_a_function_of_seed_split_and_index),
        cmocka_unit_test(synthetic_pixels_and_labels_are_uniform),
        cmocka_unit_test(shuffle_is_a_permutation_of_every_epoch),
        cmocka_unit_test(shuffle_sends_every_position_everywhere),
        cmocka_unit_test(epochs_and_seeds_are_shuffled_independently),
        cmocka_unit_test(micro_batches_of_all_replicas_tile_the_batch),
        cmocka_unit_test(float64_programs_read_the_float32_pixels),
        IN_SCRATCH(training_drops_the_partial_batch_and_evaluation_covers_it),
        cmocka_unit_test(mean_and_std_lists_are_parsed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
