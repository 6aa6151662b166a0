/* test_loss.c - softmax cross-entropy of rows or maps, on every device: against the written-out formula, over
 * any split of the map, and the optimiser's handling of pixels without a label. */
#include "tests/support/exec/draw_layer.h"

enum { CPU, REF, DEVICES };
static const hp_device_ops *const devices[DEVICES] = {&hp_device_cpu, &hp_device_ref};

static const struct {
    int n, h, w, classes;
} sizes[] = {{5, 1, 1, 10}, {1, 1, 1, 2}, {2, 7, 5, 2}, {1, 16, 16, 3}, {3, 1, 9, 19}, {2, 4, 3, 300}};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* A 1x1 convolution that ends in logits (n, h, w, classes); `out`: the part that is here, NULL: all. */
static rig *logits_rig(int device, int size, const hp_box *out) {
    const hp_layer layer = {.op = HP_CONV,
                            .n_in = 1,
                            .window.kh = 1,
                            .window.kw = 1,
                            .window.stride_h = 1,
                            .window.stride_w = 1,
                            .window.dil_h = 1,
                            .window.dil_w = 1,
                            .groups = 1};
    const hp_tensor x = {sizes[size].h, sizes[size].w, 3, 0},
                    y = {sizes[size].h, sizes[size].w, sizes[size].classes, 0};
    rig_boxes boxes = {.out = out ? *out : (hp_box){{0}, {0}}};
    boxes.own = boxes.in[0] = boxes.out;
    boxes.in[0].hi[HP_AXIS_C] = 3;
    rig *r = rig_new_part(devices[device], &layer, &x, y, sizes[size].n, true, 0, out ? &boxes : NULL);
    hp_error err = {0};
    fill(r, -1, 1);
    if (rig_open(r, &err) != HP_OK) fail_msg("%s", err.text);
    return r;
}

static double logit_at(int64_t i) {
    return (double)(float)(8 * hp_rng_uniform(5, 1, (uint64_t)i) - 4);
}

/* A third of the rows has no label, marked in either way. */
static int32_t label_at(int64_t row, int classes) {
    const uint64_t k = hp_rng_below(6, 1, (uint64_t)row, 6);
    if (k < 2 && classes < 256) return k ? 255 : -1;
    return k < 2 ? -1 : (int32_t)hp_rng_below(6, 2, (uint64_t)row, (uint64_t)classes);
}

/* Logits and labels of the rig's part, as functions of their positions in the whole. */
static void put_rows(rig *r) {
    const hp_box *b = &r->boxes.out;
    const hp_tensor *t = &r->tensor[1];
    int32_t *label = rig_at(r, r->labels);
    int64_t i = 0;
    for (int n = b->lo[0]; n < b->hi[0]; n++)
        for (int y = b->lo[1]; y < b->hi[1]; y++)
            for (int x = b->lo[2]; x < b->hi[2]; x++) {
                const int64_t row = ((int64_t)n * t->h + y) * t->w + x;
                for (int c = 0; c < t->c; c++) rig_set(r, r->y, i++, logit_at(row * t->c + c));
                *label++ = label_at(row, t->c);
            }
}

/* One row by the textbook: returns the loss, and the softmax in p. */
static double textbook(const rig *r, int64_t row, int label, double *p) {
    const int classes = r->tensor[1].c;
    double sum = 0;
    for (int c = 0; c < classes; c++) sum += exp(rig_get(r, r->y, row * classes + c));
    for (int c = 0; c < classes; c++) p[c] = exp(rig_get(r, r->y, row * classes + c)) / sum;
    return -log(p[label]);
}

static int largest(const double *p, int n) {
    int best = 0;
    for (int c = 1; c < n; c++)
        if (p[c] > p[best]) best = c;
    return best;
}

/* The gradient of a mean over all rows: float32 devices round the softmax and the result once each. */
static void check_gradient(const rig *r, int64_t row, int label, const double *p, double eps) {
    const int classes = r->tensor[1].c;
    const double rows = (double)(r->samples * r->tensor[1].h * r->tensor[1].w);
    for (int c = 0; c < classes; c++) {
        const double want = label < 0 ? 0 : (p[c] - (c == label)) / rows,
                     got = rig_get(r, r->logits_grad, row * classes + c);
        if (fabs(got - want) > eps * (p[c] / rows + fabs(want)))
            fail_msg("row %lld class %d: %.12g, should be %.12g", (long long)row, c, got, want);
    }
}

static void check_formula(int device, int size) {
    rig *r = logits_rig(device, size, NULL);
    const int classes = sizes[size].classes;
    const int32_t *labels = rig_at(r, r->labels);
    double want[HP_METRICS] = {0}, p[300] = {0};
    put_rows(r);
    assert_int_equal(rig_run(r, RIG_LOSS), HP_OK);
    for (int64_t row = 0; row < rig_elems(r, r->y) / classes; row++) {
        const int label = labels[row] >= 0 && labels[row] < classes ? labels[row] : -1;
        if (label >= 0) {
            want[HP_METRIC_LOSS] += textbook(r, row, label, p);
            want[HP_METRIC_COUNTED] += 1;
            want[HP_METRIC_CORRECT] += largest(p, classes) == label;
            want[HP_METRIC_HIT] += label > 0 && largest(p, classes) == label;
            want[HP_METRIC_PREDICTED] += largest(p, classes) > 0;
            want[HP_METRIC_LABELLED] += label > 0;
        }
        check_gradient(r, row, label, p, device == REF ? 1e-13 : 2 * (double)FLT_EPSILON);
    }
    const double *got = rig_at(r, HP_BUF_METRIC);
    assert_true(fabs(got[HP_METRIC_LOSS] - want[HP_METRIC_LOSS]) <= 1e-12 * (1 + want[HP_METRIC_LOSS]));
    for (int m = 1; m < HP_METRICS; m++) assert_true(got[m] == want[m]);
    rig_free(r);
}

static void loss_gradient_and_counts_follow_the_formula(void **state) {
    (void)state;
    for (int device = 0; device < DEVICES; device++)
        for (int size = 0; size < SIZES; size++) check_formula(device, size);
}

/* --- parts --- */

static int64_t row_of(const rig *whole, int n, int y, int x) {
    return ((int64_t)n * whole->tensor[1].h + y) * whole->tensor[1].w + x;
}

/* The part's gradient equals the whole's bit for bit; adds up its metrics. */
static void check_part(int device, int size, const rig *whole, const hp_box *box, double *metric) {
    rig *r = logits_rig(device, size, box);
    const int classes = sizes[size].classes;
    put_rows(r);
    assert_int_equal(rig_run(r, RIG_LOSS), HP_OK);
    int64_t i = 0;
    for (int n = box->lo[0]; n < box->hi[0]; n++)
        for (int y = box->lo[1]; y < box->hi[1]; y++)
            for (int x = box->lo[2]; x < box->hi[2]; x++)
                for (int c = 0; c < classes; c++)
                    assert_true(rig_get(r, r->logits_grad, i++) ==
                                rig_get(whole, whole->logits_grad, row_of(whole, n, y, x) * classes + c));
    for (int m = 0; m < HP_METRICS; m++) metric[m] += ((double *)rig_at(r, HP_BUF_METRIC))[m];
    rig_free(r);
}

static void check_grid(int device, int size, const hp_layout *grid) {
    rig *whole = logits_rig(device, size, NULL);
    double sum[HP_METRICS] = {0};
    put_rows(whole);
    assert_int_equal(rig_run(whole, RIG_LOSS), HP_OK);
    for (int part = 0; part < hp_layout_parts(grid); part++) {
        const hp_box box = hp_layout_own(grid, &whole->graph, 1, whole->samples, part);
        if (!hp_box_empty(&box)) check_part(device, size, whole, &box, sum);
    }
    const double *want = rig_at(whole, HP_BUF_METRIC);
    assert_true(fabs(sum[HP_METRIC_LOSS] - want[HP_METRIC_LOSS]) <= 1e-12 * want[HP_METRIC_LOSS]);
    for (int m = 1; m < HP_METRICS; m++) assert_true(sum[m] == want[m]);
    rig_free(whole);
}

static void the_loss_of_any_tiling_is_that_of_the_whole_map(void **state) {
    (void)state;
    static const hp_layout grids[] = {
        {2, 1, 1, 1, 1, 1}, {1, 3, 1, 1, 1, 1}, {2, 2, 1, 1, 1, 1}, {5, 2, 2, 1, 1, 1}, {1, 1, 2, 1, 1, 1}};
    for (int device = 0; device < DEVICES; device++)
        for (int size = 2; size < SIZES; size++)
            for (size_t g = 0; g < sizeof grids / sizeof *grids; g++) check_grid(device, size, &grids[g]);
}

/* --- the optimiser --- */

/* m = mu m + factor g + decay w, w = w - lr m, with the constants of rig_run. */
static void check_update(int device, int size, double counted, double factor) {
    rig *r = logits_rig(device, size, NULL), *before = logits_rig(device, size, NULL);
    ((double *)rig_at(r, HP_BUF_METRIC))[HP_METRIC_COUNTED] = counted;
    assert_int_equal(rig_run(r, RIG_SGD), HP_OK);
    for (int64_t i = 0; i < r->param[0].count; i++) {
        const double w = rig_get(before, HP_BUF_WEIGHTS, i), g = rig_get(before, HP_BUF_GRADS, i);
        const double m = 0.9 * rig_get(before, HP_BUF_OPTIMIZER, i) + factor * g + 1e-4 * w;
        const double bound = (device == REF ? 1e-15 : (double)FLT_EPSILON) * 4 * (2 + fabs(factor));
        assert_true(fabs(rig_get(r, HP_BUF_OPTIMIZER, i) - m) <= bound);
        assert_true(fabs(rig_get(r, HP_BUF_WEIGHTS, i) - (w - 0.1 * m)) <= bound);
    }
    rig_free(before);
    rig_free(r);
}

/* A map's mean is over pixels with a label; a classifier's over all samples. */
static void the_optimiser_makes_means_over_labelled_pixels(void **state) {
    (void)state;
    for (int device = 0; device < DEVICES; device++) {
        check_update(device, 2, 2 * 7 * 5, 1);
        check_update(device, 2, 10, 7);
        check_update(device, 3, 160, 1.6);
        check_update(device, 3, 0, 1); /* no labels: gradients are zero, and stay so */
        check_update(device, 0, 2, 1);
    }
}

/* exp(1e4) is infinite, so the largest logit must be subtracted first. */
static void large_logits_give_finite_losses(void **state) {
    (void)state;
    for (int device = 0; device < DEVICES; device++) {
        rig *r = logits_rig(device, 1, NULL);
        rig_set(r, r->y, 0, 1e4);
        rig_set(r, r->y, 1, -1e4);
        *(int32_t *)rig_at(r, r->labels) = 1;
        assert_int_equal(rig_run(r, RIG_LOSS), HP_OK);
        assert_true(((double *)rig_at(r, HP_BUF_METRIC))[HP_METRIC_LOSS] == 2e4);
        assert_true(rig_get(r, r->logits_grad, 0) == 1 && rig_get(r, r->logits_grad, 1) == -1);
        rig_free(r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss_gradient_and_counts_follow_the_formula),
        cmocka_unit_test(the_loss_of_any_tiling_is_that_of_the_whole_map),
        cmocka_unit_test(the_optimiser_makes_means_over_labelled_pixels),
        cmocka_unit_test(large_logits_give_finite_losses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
