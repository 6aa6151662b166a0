/* test_own.c - the fast device's own kernels (batch norm, pooling, elementwise, loss, optimiser) against the
 * reference, over drawn shapes, within bounds of float32 arithmetic; in place where plans do so. */
#include "tests/support/exec/adamw_case.h"
#include "tests/support/exec/draw_layer.h"
#include "tests/support/plan/law_cases.h"

/* Both devices on the same layer and data. */
typedef struct duo {
    rig *fast, *exact;
} duo;

static duo duo_new(const draw *d, double low, double high) {
    duo p = {build(&hp_device_cpu, d), build(&hp_device_ref, d)};
    fill(p.fast, low, high);
    fill(p.exact, low, high);
    return p;
}

static void duo_run(duo p) {
    run_all(p.fast);
    run_all(p.exact);
}

static void duo_free(duo p) {
    rig_free(p.fast);
    rig_free(p.exact);
}

/* --- batch norm --- */

/* Sums over blocks of 64 rows in float32 lose 64 eps of their terms, relative to the largest term, not the
 * result. |x| <= 2 enters squared, and 1/std multiplies; likewise for the gradient's sums. With few rows the
 * variance can be tiny. */
static double norm_bound(const rig *exact, const draw *d) {
    double inverse = 1;
    for (int c = 0; c < d->out.c; c++) inverse = fmax(inverse, rig_get(exact, exact->save, d->out.c + c));
    return 64 * eps() * 16 * inverse * inverse * inverse;
}

static bool far_from_kinks(const rig *exact, double margin) {
    for (int64_t i = 0; i < rig_elems(exact, exact->y); i++) {
        const double y = rig_get(exact, exact->y, i);
        if ((y != 0 && fabs(y) < margin) || (y != 6 && fabs(y - 6) < margin)) return false;
    }
    return true;
}

static void check_norm(const draw *d) {
    const duo p = duo_new(d, -2, 2);
    for (int32_t i = 0; i < d->out.c; i++) /* positive scales */
        for (int k = 0; k < 2; k++) {
            rig *r = k ? p.fast : p.exact;
            rig_set(r, HP_BUF_WEIGHTS, i, 0.5 + 0.25 * fabs(rig_get(r, HP_BUF_WEIGHTS, i)));
        }
    duo_run(p);
    const double bound = norm_bound(p.exact, d), n = (double)(d->samples * d->out.h * d->out.w);
    compare(p.fast, p.exact, p.fast->save, p.exact->save, bound, NULL, "statistics");
    compare(p.fast, p.exact, HP_BUF_STATE, HP_BUF_STATE, bound, NULL, "running");
    compare(p.fast, p.exact, p.fast->y, p.exact->y, bound, NULL, "y");
    if (far_from_kinks(p.exact, bound)) { /* otherwise a mask may differ by rounding */
        compare(p.fast, p.exact, p.fast->dx[0], p.exact->dx[0], bound, NULL, "dx");
        if (d->layer.n_in > 1)
            compare(p.fast, p.exact, p.fast->dx[1], p.exact->dx[1], bound, NULL, "residual");
        for (int g = 0; g < 2; g++)
            for (int64_t i = p.fast->place[g].offset; i < p.fast->place[g].offset + d->out.c; i++)
                assert_true(fabs(rig_get(p.fast, HP_BUF_GRADS, i) - rig_get(p.exact, HP_BUF_GRADS, i)) <=
                            bound * (n + 1));
    }
    assert_int_equal(rig_run(p.fast, RIG_EVAL), HP_OK);
    assert_int_equal(rig_run(p.exact, RIG_EVAL), HP_OK);
    compare(p.fast, p.exact, p.fast->y, p.exact->y, bound, NULL, "evaluation");
    duo_free(p);
}

static void fast_batch_norm_matches_the_reference(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_some(60); round++) {
        const draw d = draw_bn(round);
        if (d.samples * d.out.h * d.out.w >= 8) check_norm(&d);
    }
}

static void variance_survives_a_large_mean(void **state) {
    (void)state;
    draw d = {.layer = {.op = HP_BN, .n_in = 1, .eps = 1e-5f, .momentum = 0.1f},
              .samples = 2,
              .out = {.h = 9, .w = 9, .c = 5}};
    d.in[0] = d.out;
    const duo p = duo_new(&d, 999, 1001);
    duo_run(p);
    for (int c = 0; c < 5; c++) { /* x itself represents 1000 to 6e-5; the deviation is 0.6 */
        const double a = rig_get(p.fast, p.fast->save, 5 + c), b = rig_get(p.exact, p.exact->save, 5 + c);
        assert_true(fabs(a - b) < 128 * eps() * b);
    }
    duo_free(p);
}

/* --- pooling and elementwise: a few rounded operations each --- */

static void check_simple(const draw *d, double terms) {
    const duo p = duo_new(d, -4, 8);
    duo_run(p);
    const double bound = terms * eps() * 8 * terms;
    compare(p.fast, p.exact, p.fast->y, p.exact->y, bound, NULL, "y");
    for (int i = 0; i < d->layer.n_in; i++)
        compare(p.fast, p.exact, p.fast->dx[i], p.exact->dx[i], bound, NULL, "dx");
    duo_free(p);
}

static void fast_pooling_matches_the_reference(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_some(90); round++) {
        const draw d = draw_pool(round);
        check_simple(&d, 20); /* windows of at most 4x4; adaptive ones at most 14x14, but these are means */
    }
}

static void fast_elementwise_layers_match_the_reference(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_some(60); round++) {
        const draw d = draw_point(round);
        check_simple(&d, 3);
    }
}

static void check_map(const draw *d) {
    const duo p = duo_new(d, -1, 1);
    duo_run(p);
    const double bound = terms_of_map(d) * eps();
    compare(p.fast, p.exact, p.fast->y, p.exact->y, 8 * eps(), NULL, "y");
    for (int i = 0; i < d->layer.n_in; i++)
        compare(p.fast, p.exact, p.fast->dx[i], p.exact->dx[i], bound, NULL, "dx");
    for (int64_t i = 0; p.fast->graph.n_param && i < p.fast->param[0].count; i++)
        assert_true(fabs(rig_get(p.fast, HP_BUF_GRADS, i) - rig_get(p.exact, HP_BUF_GRADS, i)) <= bound);
    duo_free(p);
}

static void fast_products_slopes_and_interpolation_match_the_reference(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_some(80); round++) {
        const draw d = draw_map(round);
        check_map(&d);
    }
}

static void in_place_equals_out_of_place(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_some(80); round++) {
        const draw d = round % 2 ? draw_point(round / 2) : draw_bn(round);
        const bool bn = d.layer.op == HP_BN, forward = !hp_layer_backward_reads_x(&d.layer);
        if (d.layer.op == HP_CONCAT) continue;
        const hp_device_ops *const devices[] = {&hp_device_cpu, &hp_device_ref};
        for (int k = 0; k < 2; k++) {
            rig *apart = build(devices[k], &d), *inside = build(devices[k], &d);
            const int gradient = bn && d.layer.n_in > 1 ? 1 : 0;
            rig_make_in_place(inside, forward, gradient);
            fill(apart, -4, 8);
            fill(inside, -4, 8);
            run_all(apart);
            run_all(inside);
            compare(inside, apart, forward ? inside->x[0] : inside->y, apart->y, 0, NULL, "y");
            for (int i = 0; i < d.layer.n_in; i++)
                compare(inside, apart, i == gradient ? inside->dy : inside->dx[i], apart->dx[i], 0, NULL,
                        "dx");
            rig_free(apart);
            rig_free(inside);
        }
    }
}

/* --- loss, sums, optimiser --- */

static draw draw_logits(int samples, int classes) {
    draw d = {.layer = {.op = HP_ACT, .n_in = 1}, .samples = samples, .out = {.h = 1, .w = 1, .c = classes}};
    d.in[0] = d.out;
    return d;
}

static void set_labels(rig *r, int classes) {
    int32_t *labels = rig_at(r, r->labels);
    for (int i = 0; i < r->samples; i++) labels[i] = i % 4 == 3 ? -1 : i * 7 % classes;
}

static void fast_loss_and_optimiser_match_the_reference(void **state) {
    (void)state;
    const draw d = draw_logits(9, 37);
    const duo p = duo_new(&d, -5, 5);
    rig *const both[] = {p.fast, p.exact};
    for (int k = 0; k < 2; k++) {
        run_all(both[k]);
        set_labels(both[k], 37);
        const int tasks[] = {RIG_LOSS, RIG_LOSS_EVAL, RIG_ACCUM, RIG_SGD};
        for (int t = 0; t < 4; t++) assert_int_equal(rig_run(both[k], tasks[t]), HP_OK);
    }
    const double *a = rig_at(p.fast, HP_BUF_METRIC), *b = rig_at(p.exact, HP_BUF_METRIC);
    assert_true(fabs(a[0] - b[0]) < 1e-12 * b[0]); /* float64 in both, from equal logits */
    assert_true(a[1] == 14 && b[1] == 14);         /* two tasks with seven labelled samples each */
    assert_true(a[2] == b[2]);
    compare(p.fast, p.exact, p.fast->logits_grad, p.exact->logits_grad, eps(), NULL, "dlogits");
    compare(p.fast, p.exact, p.fast->dy, p.exact->dy, 10 * eps(), NULL, "sum");
    duo_free(p);
}

/* g += decay*w; m = momentum*m + g; w -= lr*m, as torch.optim.SGD documents. */
static void sgd_is_torchs(void **state) {
    (void)state;
    draw d = {.layer = {.op = HP_LINEAR, .n_in = 1}, .samples = 1, .out = {.h = 1, .w = 1, .c = 33}};
    d.in[0] = (hp_tensor){.h = 1, .w = 1, .c = 5};
    const duo p = duo_new(&d, -1, 1);
    hp_error err;
    const int64_t n = p.fast->role.trained_elems;
    double *w = HP_NEW(p.exact->arena, double, n), *m = HP_NEW(p.exact->arena, double, n);
    for (int64_t i = 0; i < n; i++) {
        const double old = rig_get(p.exact, HP_BUF_WEIGHTS, i);
        m[i] = 0.9 * rig_get(p.exact, HP_BUF_OPTIMIZER, i) + rig_get(p.exact, HP_BUF_GRADS, i) + 1e-4 * old;
        w[i] = old - 0.1 * m[i];
    }
    for (int k = 0; k < 2; k++) {
        rig *r = k ? p.fast : p.exact;
        assert_int_equal(rig_open(r, &err), HP_OK);
        assert_int_equal(rig_run(r, RIG_SGD), HP_OK);
        const double bound = (k ? 6 : 1e-8) * eps();
        for (int64_t i = 0; i < n; i++) {
            assert_true(fabs(rig_get(r, HP_BUF_WEIGHTS, i) - w[i]) <= bound);
            assert_true(fabs(rig_get(r, HP_BUF_OPTIMIZER, i) - m[i]) <= bound);
        }
    }
    duo_free(p);
}

static void adamw_and_the_norm_are_as_published(void **state) {
    (void)state;
    draw d = {
        .layer = {.op = HP_LINEAR, .n_in = 1}, .samples = 1, .out = {.h = 1, .w = 1, .c = 33}, .bias = true};
    d.in[0] = (hp_tensor){.h = 1, .w = 1, .c = 5};
    const duo p = duo_new(&d, -1, 1);
    adamw_check(p.exact, 1e-14);
    norm_check(p.exact, 1e-14);
    adamw_check(p.fast, 8 * eps());
    norm_check(p.fast, 1e-14);
    duo_free(p);
}

static void reruns_give_the_same_bits(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_some(20); round++) {
        const draw d = round % 2 ? draw_conv(round) : draw_winograd(round);
        runs_twice_alike(&hp_device_cpu, &d);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_batch_norm_matches_the_reference),
        cmocka_unit_test(variance_survives_a_large_mean),
        cmocka_unit_test(fast_pooling_matches_the_reference),
        cmocka_unit_test(fast_elementwise_layers_match_the_reference),
        cmocka_unit_test(fast_products_slopes_and_interpolation_match_the_reference),
        cmocka_unit_test(in_place_equals_out_of_place),
        cmocka_unit_test(fast_loss_and_optimiser_match_the_reference),
        cmocka_unit_test(sgd_is_torchs),
        cmocka_unit_test(adamw_and_the_norm_are_as_published),
        cmocka_unit_test(reruns_give_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
