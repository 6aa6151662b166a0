/* test_ref.c - the reference device against independent laws: adjoints, finite differences, closed forms. */
#include "tests/support/exec/draw_layer.h"
#include "tests/support/plan/law_cases.h"

static rig *ready(const draw *d, double low, double high) {
    rig *r = build(&hp_device_ref, d);
    hp_error err = {0};
    fill(r, low, high);
    assert_int_equal(rig_open(r, &err), HP_OK);
    return r;
}

/* Sum of y * dy after a forward pass: a scalar function of everything the layer reads. */
static double scalar(rig *r) {
    assert_int_equal(rig_run(r, RIG_FWD), HP_OK);
    double sum = 0;
    for (int64_t i = 0; i < rig_elems(r, r->y); i++) sum += rig_get(r, r->y, i) * rig_get(r, r->dy, i);
    return sum;
}

/* Derivative of `scalar` with respect to one element, by central differences. */
static double slope(rig *r, int32_t buffer, int64_t i) {
    const double h = 1e-5, old = rig_get(r, buffer, i);
    rig_set(r, buffer, i, old + h);
    const double up = scalar(r);
    rig_set(r, buffer, i, old - h);
    const double down = scalar(r);
    rig_set(r, buffer, i, old);
    return (up - down) / (2 * h);
}

/* Central differences at h = 1e-5 in float64: truncation h^2 f''' and rounding eps*|sum|/h are
 * both below 1e-6 here. */
static void check_slope(rig *r, int32_t from, int64_t i, double gradient, const char *what) {
    const double expect = slope(r, from, i);
    if (fabs(expect - gradient) > 1e-5 * (1 + fabs(expect)))
        fail_msg("%s[%lld] of op %d: %.9g, differences give %.9g", what, (long long)i, r->layer[1].op,
                 gradient, expect);
}

static void check_gradients(const draw *d, uint64_t round) {
    rig *r = ready(d, -2, 2);
    scalar(r);
    if (r->task[RIG_BWDW].op == HP_TASK_BWDW) assert_int_equal(rig_run(r, RIG_BWDW), HP_OK);
    assert_int_equal(rig_run(r, RIG_BWD), HP_OK);
    for (uint64_t k = 0; k < 6; k++) {
        const int in = (int)(k % (uint64_t)d->layer.n_in);
        const int64_t i = (int64_t)hp_rng_below(5, round, k, (uint64_t)rig_elems(r, r->x[in]));
        check_slope(r, r->x[in], i, rig_get(r, r->dx[in], i), "dx");
        for (int p = 0; p < r->graph.n_param && p < 2; p++) {
            const int64_t w =
                r->place[p].offset + (int64_t)hp_rng_below(6, round, k, (uint64_t)r->param[p].count);
            check_slope(r, HP_BUF_WEIGHTS, w, rig_get(r, HP_BUF_GRADS, w), "weight");
        }
    }
    rig_free(r);
}

static void gradients_are_slopes(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_some(40); round++) {
        draw d[] = {draw_linear(round), draw_bn(round), draw_pool(round), draw_point(round), draw_map(round)};
        for (int k = 0; k < 5; k++) {
            d[k].flags = 0;
            if (k != 1 || d[k].samples * d[k].out.h * d[k].out.w >= 8) check_gradients(&d[k], round);
        }
    }
}

/* <conv x, dy> = <x, conv' dy> = <w, dw>: all three are the same sum of products, so if one
 * is right, all are. */
static void convolution_passes_are_adjoint(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_some(25); round++) {
        draw d = draw_conv(round);
        d.bias = false;
        d.flags = 0;
        rig *r = ready(&d, -1, 1);
        const double forward = scalar(r);
        double data = 0, weights = 0;
        assert_int_equal(rig_run(r, RIG_BWD), HP_OK);
        assert_int_equal(rig_run(r, RIG_BWDW), HP_OK);
        for (int64_t i = 0; i < rig_elems(r, r->x[0]); i++)
            data += rig_get(r, r->x[0], i) * rig_get(r, r->dx[0], i);
        for (int64_t i = 0; i < r->param[0].count; i++)
            weights += rig_get(r, HP_BUF_WEIGHTS, i) * rig_get(r, HP_BUF_GRADS, i);
        assert_true(fabs(forward - data) < 1e-9 * (1 + fabs(forward)));
        assert_true(fabs(forward - weights) < 1e-9 * (1 + fabs(forward)));
        rig_free(r);
    }
}

/* A weight of one at tap (ky, kx) shifts the image: y[oy][ox] = x[oy*s - p + ky*d][ox*s - p + kx*d]. */
static void a_single_weight_shifts_the_image(void **state) {
    (void)state;
    for (int tap = 0; tap < 6; tap++) {
        draw d = {.layer = {.op = HP_CONV,
                            .n_in = 1,
                            .window.kh = 2,
                            .window.kw = 3,
                            .window.stride_h = 2,
                            .window.stride_w = 1,
                            .window.pad_h = 1,
                            .window.pad_w = 1,
                            .window.dil_h = 2,
                            .window.dil_w = 1,
                            .groups = 1},
                  .samples = 2,
                  .out = {.c = 1}};
        d.in[0] = (hp_tensor){.h = 6, .w = 5, .c = 1};
        finish_window(&d);
        rig *r = ready(&d, -1, 1);
        for (int k = 0; k < 6; k++) rig_set(r, HP_BUF_WEIGHTS, k, k == tap);
        scalar(r);
        for (int o = 0; o < rig_elems(r, r->y); o++) {
            const int ox = o % d.out.w, oy = o / d.out.w % d.out.h, n = o / d.out.w / d.out.h;
            const int iy = oy * 2 - 1 + tap / 3 * 2, ix = ox - 1 + tap % 3;
            const bool inside = iy >= 0 && iy < 6 && ix >= 0 && ix < 5;
            assert_true(rig_get(r, r->y, o) == (inside ? rig_get(r, r->x[0], (n * 6 + iy) * 5 + ix) : 0));
        }
        rig_free(r);
    }
}

static void normalised_channels_have_mean_zero_and_variance_one(void **state) {
    (void)state;
    draw d = {.layer = {.op = HP_BN, .n_in = 1, .eps = 0, .momentum = 0.25f},
              .samples = 3,
              .out = {.h = 4, .w = 5, .c = 3}};
    d.in[0] = d.out;
    rig *r = ready(&d, -2, 5);
    for (int i = 0; i < 32; i++) rig_set(r, HP_BUF_WEIGHTS, i, i < 16 ? 1 : 0); /* gamma 1, beta 0 */
    for (int i = 0; i < 32; i++) rig_set(r, HP_BUF_STATE, i, i < 16 ? 0 : 1);   /* fresh running statistics */
    scalar(r);
    for (int c = 0; c < 3; c++) {
        double y1 = 0, y2 = 0, x1 = 0, x2 = 0;
        for (int i = c; i < 180; i += 3) {
            y1 += rig_get(r, r->y, i);
            y2 += rig_get(r, r->y, i) * rig_get(r, r->y, i);
            x1 += rig_get(r, r->x[0], i);
            x2 += rig_get(r, r->x[0], i) * rig_get(r, r->x[0], i);
        }
        assert_true(fabs(y1) < 1e-10 && fabs(y2 / 60 - 1) < 1e-10);
        assert_true(fabs(rig_get(r, HP_BUF_STATE, c) - 0.25 * x1 / 60) < 1e-12);
        const double unbiased = (x2 - x1 * x1 / 60) / 59;
        assert_true(fabs(rig_get(r, HP_BUF_STATE, 16 + c) - (0.75 + 0.25 * unbiased)) < 1e-12);
    }
    rig_free(r);
}

/* Equal logits: every class has probability 1/K, the loss is log K, and the gradient sums to zero. */
static void loss_of_equal_logits_is_log_k(void **state) {
    (void)state;
    draw d = {.layer = {.op = HP_ACT, .n_in = 1}, .samples = 3, .out = {.h = 1, .w = 1, .c = 10}};
    d.in[0] = d.out;
    rig *r = ready(&d, 2, 2);
    scalar(r);
    int32_t *labels = rig_at(r, r->labels);
    labels[0] = 4;
    labels[1] = -1;
    labels[2] = 9;
    assert_int_equal(rig_run(r, RIG_LOSS), HP_OK);
    const double *m = rig_at(r, HP_BUF_METRIC);
    assert_true(fabs(m[0] - 2 * log(10)) < 1e-12 && m[1] == 2 && m[2] == 0);
    for (int i = 0; i < 30; i++) {
        const double expect = i / 10 == 1 ? 0 : (0.1 - (i == 4 || i == 29)) / 3;
        assert_true(fabs(rig_get(r, r->logits_grad, i) - expect) < 1e-12);
    }
    rig_free(r);
}

static void dropout_keeps_the_mean_and_its_mask(void **state) {
    (void)state;
    draw d = {.layer = {.op = HP_DROPOUT, .n_in = 1, .p = 0.25f},
              .samples = 4,
              .out = {.h = 10, .w = 10, .c = 100}};
    d.in[0] = d.out;
    rig *r = ready(&d, 1, 1);
    scalar(r);
    assert_int_equal(rig_run(r, RIG_BWD), HP_OK);
    int64_t kept = 0;
    for (int64_t i = 0; i < 40000; i++) {
        const double y = rig_get(r, r->y, i);
        assert_true(y == 0 || fabs(y - 1 / 0.75) < 1e-12);
        assert_true((y == 0) == (rig_get(r, r->dx[0], i) == 0));
        kept += y != 0;
    }
    assert_true(fabs((double)kept - 30000) < 5 * sqrt(40000 * 0.25 * 0.75)); /* five standard deviations */
    rig_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_slopes),
        cmocka_unit_test(convolution_passes_are_adjoint),
        cmocka_unit_test(a_single_weight_shifts_the_image),
        cmocka_unit_test(normalised_channels_have_mean_zero_and_variance_one),
        cmocka_unit_test(loss_of_equal_logits_is_log_k),
        cmocka_unit_test(dropout_keeps_the_mean_and_its_mask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
