/* test_train.c - training on a GPU or its stand-in: every task against the reference, over drawn shapes,
 * within bounds of float32 and bf16 arithmetic. */
#include "exec/cuda/runtime/cuda_runtime_device.h"
#include "networks/graph/acts.h"
#include "tests/support/exec/adamw_case.h"
#include "tests/support/exec/draw_matrix.h"
#include "tests/support/plan/law_cases.h"

/* Both devices on the same layer and data; `size`: the reference on absolute values. */
typedef struct trio {
    rig *fast, *exact, *size;
} trio;

static double stored_as(hp_store store, double v) {
    if (store == HP_STORE_BF16) return (double)from_bf16(to_bf16((float)v));
    return store == HP_STORE_F16 ? (double)from_f16(to_f16((float)v)) : v;
}

/* Values that `fast` rounds when it stores them are rounded in all. */
static void share_numbers(const trio *t, hp_store store) {
    for (int32_t b = 0; b < t->exact->role.n_buffer && b < t->fast->role.n_buffer; b++) {
        if (b == t->fast->labels || b == HP_BUF_METRIC || b == HP_BUF_SCRATCH) continue;
        if (t->fast->buffer[b].kind == HP_BUF_PACK || t->fast->buffer[b].kind == HP_BUF_SAVE) continue;
        for (int64_t i = 0; i < rig_elems(t->fast, b); i++)
            rig_set(t->fast, b, i, stored_as(store, rig_get(t->fast, b, i)));
    }
}

static void put_same(const trio *t, int32_t fast, int32_t exact) {
    for (int64_t i = 0; fast >= 0 && i < rig_elems(t->fast, fast); i++) {
        rig_set(t->exact, exact, i, rig_get(t->fast, fast, i));
        rig_set(t->size, exact, i, fabs(rig_get(t->fast, fast, i)));
    }
}

static trio trio_new(const draw *d, hp_store store, double low, double high) {
    draw narrow = *d;
    for (int i = 0; i < HP_MAX_IN; i++) narrow.in[i].store = store;
    narrow.out.store = store;
    const trio t = {build(&hp_device_cuda, &narrow), build(&hp_device_ref, d), build(&hp_device_ref, d)};
    const rig *f = t.fast, *e = t.exact;
    fill(t.fast, low, high);
    share_numbers(&t, store);
    for (int32_t b = HP_BUF_WEIGHTS; b <= HP_BUF_STATE; b++) put_same(&t, b, b);
    for (int i = 0; i < d->layer.n_in; i++) put_same(&t, f->x[i], e->x[i]);
    put_same(&t, f->dy, e->dy);
    return t;
}

static void trio_run(const trio *t) {
    run_all(t->fast);
    run_all(t->exact);
    run_all(t->size);
}

static void trio_free(const trio *t) {
    rig_free(t->fast);
    rig_free(t->exact);
    rig_free(t->size);
}

static double eps_of(hp_store store) {
    return store == HP_STORE_BF16  ? 0x1p-8
           : store == HP_STORE_F16 ? 0x1p-11
                                   : 0; /* relative, of one rounding to nearest */
}

/* --- convolutions and products: |error| <= n eps sum |a||b|, plus the rounding of the stored result --- */

static void compare_gradients(const trio *t, double factor) {
    for (int p = 0; p < t->fast->graph.n_param; p++)
        for (int64_t i = t->fast->place[p].offset; i < t->fast->place[p].offset + t->fast->param[p].count;
             i++) {
            const double a = rig_get(t->fast, HP_BUF_GRADS, i), b = rig_get(t->exact, HP_BUF_GRADS, i);
            if (fabs(a - b) > factor * rig_get(t->size, HP_BUF_GRADS, i))
                fail_msg("gradient of parameter %d, element %lld: %.9g, should be %.9g", p, (long long)i, a,
                         b);
        }
}

/* Every fourth round uses 16 bits. */
static hp_store store_of(uint64_t round) {
    static const hp_store stores[8] = {[3] = HP_STORE_BF16, [7] = HP_STORE_F16};
    return stores[round % 8];
}

static void check_matrix(const draw *d, hp_store store) {
    if (!begins_inside(d)) return;
    const trio t = trio_new(d, store, -1, 1);
    /* bias and product are rounded separately */
    const double factor = terms_of(d) * eps() + 2 * eps_of(store);
    trio_run(&t);
    compare(t.fast, t.exact, t.fast->y, t.exact->y, factor, t.size, "y");
    compare(t.fast, t.exact, t.fast->dx[0], t.exact->dx[0], factor, t.size, "dx");
    compare_gradients(&t, factor);
    trio_free(&t);
}

static void convolutions_match_the_reference(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(40); round++) {
        const draw d = draw_conv(round);
        check_matrix(&d, store_of(round));
    }
}

static void transposed_convolutions_match_the_reference(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(30); round++) {
        const draw d = draw_convt(round);
        check_matrix(&d, store_of(round / 2));
    }
}

static void dense_layers_match_the_reference(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(25); round++) {
        const draw d = draw_linear(round);
        check_matrix(&d, store_of(round));
    }
}

/* --- batch norm: float64 sums, then a few rounded operations on numbers of magnitude 1/std^3 --- */

static double norm_bound(const trio *t, const draw *d) {
    double inverse = 1;
    for (int c = 0; c < d->out.c; c++)
        inverse = fmax(inverse, rig_get(t->exact, t->exact->save, d->out.c + c));
    return 64 * eps() * inverse * inverse * inverse;
}

static bool far_from_kinks(const rig *exact, double margin) {
    for (int64_t i = 0; i < rig_elems(exact, exact->y); i++) {
        const double y = rig_get(exact, exact->y, i);
        if ((y != 0 && fabs(y) < margin) || (y != 6 && fabs(y - 6) < margin)) return false;
    }
    return true;
}

static void positive_scales(const rig *const *both, const draw *d) {
    for (int32_t i = 0; i < d->out.c; i++)
        for (int k = 0; k < 3; k++) {
            rig *r = (rig *)both[k];
            rig_set(r, HP_BUF_WEIGHTS, i, 0.5 + 0.25 * fabs(rig_get(r, HP_BUF_WEIGHTS, i)));
        }
}

static void check_norm(const draw *d) {
    const trio t = trio_new(d, HP_STORE_REAL, -2, 2);
    const rig *const all[] = {t.fast, t.exact, t.size};
    positive_scales(all, d);
    trio_run(&t);
    const double bound = norm_bound(&t, d), n = (double)(d->samples * d->out.h * d->out.w);
    compare(t.fast, t.exact, t.fast->save, t.exact->save, bound, NULL, "statistics");
    compare(t.fast, t.exact, HP_BUF_STATE, HP_BUF_STATE, bound, NULL, "running");
    compare(t.fast, t.exact, t.fast->y, t.exact->y, bound, NULL, "y");
    if (far_from_kinks(t.exact, bound)) { /* otherwise a mask may differ by rounding */
        for (int k = 0; k < d->layer.n_in; k++)
            compare(t.fast, t.exact, t.fast->dx[k], t.exact->dx[k], bound, NULL, k ? "residual" : "dx");
        compare(t.fast, t.exact, HP_BUF_GRADS, HP_BUF_GRADS, bound * (n + 1), NULL, "gradients");
    }
    assert_int_equal(rig_run(t.fast, RIG_EVAL), HP_OK);
    assert_int_equal(rig_run(t.exact, RIG_EVAL), HP_OK);
    compare(t.fast, t.exact, t.fast->y, t.exact->y, bound, NULL, "evaluation");
    trio_free(&t);
}

static void batch_norm_matches_the_reference(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(60); round++) {
        const draw d = draw_bn(round);
        if (d.samples * d.out.h * d.out.w >= 8) check_norm(&d);
    }
}

/* What is stored is rounded once. */
static void batch_norm_in_16_bits_stays_within_a_rounding(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(30); round++) {
        draw d = draw_bn(round);
        d.layer.act = HP_ACT_NONE; /* no kinks */
        const hp_store store = round % 2 ? HP_STORE_BF16 : HP_STORE_F16;
        if (d.samples * d.out.h * d.out.w < 32) continue;
        const trio t = trio_new(&d, store, -2, 2);
        trio_run(&t);
        const double bound = norm_bound(&t, &d);
        compare(t.fast, t.exact, t.fast->save, t.exact->save, bound, NULL, "statistics");
        for (int64_t i = 0; i < rig_elems(t.fast, t.fast->y); i++) {
            const double y = rig_get(t.exact, t.exact->y, i), dx = rig_get(t.exact, t.exact->dx[0], i);
            assert_true(fabs(rig_get(t.fast, t.fast->y, i) - y) <= fabs(y) * eps_of(store) + bound);
            assert_true(fabs(rig_get(t.fast, t.fast->dx[0], i) - dx) <= fabs(dx) * eps_of(store) + bound);
        }
        trio_free(&t);
    }
}

static void variance_survives_a_large_mean(void **state) {
    (void)state;
    draw d = {.layer = {.op = HP_BN, .n_in = 1, .eps = 1e-5f, .momentum = 0.1f},
              .samples = 2,
              .out = {.h = 9, .w = 9, .c = 5}};
    d.in[0] = d.out;
    const trio t = trio_new(&d, HP_STORE_REAL, 999, 1001);
    trio_run(&t);
    for (int c = 0; c < 5; c++) { /* sums are float64 */
        const double a = rig_get(t.fast, t.fast->save, 5 + c), b = rig_get(t.exact, t.exact->save, 5 + c);
        assert_true(fabs(a - b) <= 2 * eps() * b);
    }
    trio_free(&t);
}

/* --- pooling and elementwise: a few rounded operations each --- */

static void check_simple(const draw *d, double terms) {
    const trio t = trio_new(d, HP_STORE_REAL, -4, 8);
    trio_run(&t);
    const double bound = terms * eps() * 8 * terms;
    compare(t.fast, t.exact, t.fast->y, t.exact->y, bound, NULL, "y");
    for (int i = 0; i < d->layer.n_in; i++)
        compare(t.fast, t.exact, t.fast->dx[i], t.exact->dx[i], bound, NULL, "dx");
    trio_free(&t);
}

static void pooling_matches_the_reference(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(90); round++) {
        const draw d = draw_pool(round);
        check_simple(&d, 20);
    }
}

/* Many threads compute the mean of a map with many pixels. */
static void means_of_large_maps_match_the_reference(void **state) {
    (void)state;
    for (int channels = 3; channels <= 40; channels += 37) {
        draw d = {.layer = {.op = HP_ADAPTPOOL, .n_in = 1, .out_h = 1, .out_w = 1}, .samples = 2};
        d.in[0] = (hp_tensor){.h = 41, .w = 37, .c = channels};
        d.out = (hp_tensor){.h = 1, .w = 1, .c = channels};
        check_simple(&d, 3);
    }
}

static void elementwise_layers_match_the_reference(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(60); round++) {
        const draw d = draw_point(round);
        check_simple(&d, 3);
    }
}

static void check_map(const draw *d, hp_store store) {
    const trio t = trio_new(d, store, -1, 1);
    trio_run(&t);
    const double rounds = 2 * eps_of(store), bound = terms_of_map(d) * eps();
    compare(t.fast, t.exact, t.fast->y, t.exact->y, 8 * eps() + rounds, NULL, "y");
    for (int i = 0; i < d->layer.n_in; i++)
        compare(t.fast, t.exact, t.fast->dx[i], t.exact->dx[i], bound + terms_of_map(d) * rounds, NULL, "dx");
    for (int64_t i = 0; t.fast->graph.n_param && i < t.fast->param[0].count; i++)
        assert_true(fabs(rig_get(t.fast, HP_BUF_GRADS, i) - rig_get(t.exact, HP_BUF_GRADS, i)) <= bound);
    trio_free(&t);
}

static void products_slopes_and_interpolation_match_the_reference(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(80); round++) {
        const draw d = draw_map(round);
        check_map(&d, store_of(round / 4));
    }
}

static void gathers_match_the_reference(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(72); round++) {
        const draw d = draw_gather(round);
        check_map(&d, store_of(round / 2));
    }
}

static void means_and_largest_of_channels_match_the_reference(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(48); round++) {
        const draw d = draw_reduce(round);
        check_map(&d, store_of(round));
    }
}

/* The first of several equal ones, with a NaN among the numbers; never a gradient. */
static void the_number_of_the_largest_channel_is_the_references(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(24); round++) {
        draw d = draw_reduce(round);
        hp_error err;
        d.layer.reduction = HP_CHANNELS_ARGMAX;
        const trio t = trio_new(&d, HP_STORE_REAL, -4, 4);
        for (int64_t i = 0; i < rig_elems(t.fast, t.fast->x[0]); i++) {
            const double v = rig_get(t.fast, t.fast->x[0], i);
            rig_set(t.fast, t.fast->x[0], i, i % 41 == 7 ? NAN : round % 3 ? floor(v / 2) : v);
        }
        put_same(&t, t.fast->x[0], t.exact->x[0]);
        rig *const both[] = {t.fast, t.exact};
        for (int k = 0; k < 2; k++) {
            assert_int_equal(rig_open(both[k], &err), HP_OK);
            assert_int_equal(rig_run(both[k], RIG_FWD), HP_OK);
        }
        compare(t.fast, t.exact, t.fast->y, t.exact->y, 0, NULL, "number");
        trio_free(&t);
    }
}

/* What is stored is rounded once. */
static void near_stored(const trio *t, int32_t fast, int32_t exact, double bound, hp_store store) {
    for (int64_t i = 0; i < rig_elems(t->fast, fast); i++) {
        const double a = rig_get(t->fast, fast, i), b = rig_get(t->exact, exact, i);
        if (!(fabs(a - b) <= fabs(b) * eps_of(store) + bound))
            fail_msg("element %lld of %lld: %.9g, should be %.9g +- %.3g", (long long)i,
                     (long long)rig_elems(t->fast, fast), a, b, bound);
    }
}

static void check_groupnorm(const draw *d, hp_store store) {
    const trio t = trio_new(d, store, -1, 1);
    trio_run(&t);
    const double bound = bound_of_groupnorm(d), n = (double)d->samples * d->out.h * d->out.w;
    near_stored(&t, t.fast->y, t.exact->y, bound, store);
    near_stored(&t, t.fast->dx[0], t.exact->dx[0], bound, store);
    compare(t.fast, t.exact, HP_BUF_GRADS, HP_BUF_GRADS, 8 * eps() * (n + 1), NULL, "gradients");
    trio_free(&t);
}

static void group_norm_matches_the_reference(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(48); round++) {
        const draw d = draw_groupnorm(round);
        check_groupnorm(&d, store_of(round));
    }
}

/* Sums of more rows than one block has threads, of numbers whose mean is a thousand times their deviation. */
static void group_norm_of_a_large_map_loses_nothing_to_its_mean(void **state) {
    (void)state;
    draw d = {.layer = {.op = HP_GROUPNORM, .n_in = 1, .groups = 2, .eps = 1e-5f},
              .samples = 2,
              .out = {.h = 96, .w = 90, .c = 6}};
    d.in[0] = d.out;
    const trio t = trio_new(&d, HP_STORE_REAL, -1, 1);
    for (int64_t i = 0; i < rig_elems(t.fast, t.fast->x[0]); i++)
        rig_set(t.fast, t.fast->x[0], i, 1000 + rig_get(t.fast, t.fast->x[0], i));
    put_same(&t, t.fast->x[0], t.exact->x[0]);
    trio_run(&t);
    compare(t.fast, t.exact, t.fast->y, t.exact->y, 16 * eps(), NULL, "y");
    compare(t.fast, t.exact, t.fast->dx[0], t.exact->dx[0], 16 * eps(), NULL, "dx");
    compare(t.fast, t.exact, HP_BUF_GRADS, HP_BUF_GRADS, 4 * eps() * 96, NULL,
            "gradients"); /* sqrt(n) long */
    trio_free(&t);
}

static void in_place_equals_out_of_place(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(60); round++) {
        const draw d = round % 2 ? draw_point(round / 2) : draw_bn(round);
        const bool bn = d.layer.op == HP_BN, forward = !hp_layer_backward_reads_x(&d.layer);
        if (d.layer.op == HP_CONCAT) continue;
        rig *apart = build(&hp_device_cuda, &d), *inside = build(&hp_device_cuda, &d);
        const int gradient = bn && d.layer.n_in > 1 ? 1 : 0;
        rig_make_in_place(inside, forward, gradient);
        fill(apart, -4, 8);
        fill(inside, -4, 8);
        run_all(apart);
        run_all(inside);
        compare(inside, apart, forward ? inside->x[0] : inside->y, apart->y, 0, NULL, "y");
        for (int i = 0; i < d.layer.n_in; i++)
            compare(inside, apart, i == gradient ? inside->dy : inside->dx[i], apart->dx[i], 0, NULL, "dx");
        rig_free(apart);
        rig_free(inside);
    }
}

/* --- loss, sums, optimiser --- */

static draw draw_logits(int samples, int classes) {
    draw d = {.layer = {.op = HP_ACT, .n_in = 1}, .samples = samples, .out = {.h = 1, .w = 1, .c = classes}};
    d.in[0] = d.out;
    return d;
}

static void check_loss(int samples, int classes) {
    const draw d = draw_logits(samples, classes);
    const trio t = trio_new(&d, HP_STORE_REAL, -5, 5);
    rig *const both[] = {t.fast, t.exact};
    for (int k = 0; k < 2; k++) {
        run_all(both[k]);
        int32_t *labels = rig_at(both[k], both[k]->labels);
        for (int i = 0; i < samples; i++) labels[i] = i % 4 == 3 ? 255 : i * 7 % classes;
        memset(rig_at(both[k], HP_BUF_METRIC), 0, 8 * HP_METRICS);
        const int tasks[] = {RIG_LOSS, RIG_LOSS_EVAL, RIG_ACCUM, RIG_SGD};
        for (int i = 0; i < 4; i++) assert_int_equal(rig_run(both[k], tasks[i]), HP_OK);
    }
    const double *a = rig_at(t.fast, HP_BUF_METRIC), *b = rig_at(t.exact, HP_BUF_METRIC);
    assert_true(fabs(a[0] - b[0]) < 1e-12 * b[0]); /* float64 in both, from equal logits */
    for (int i = 1; i < HP_METRICS; i++) assert_true(a[i] == b[i]);
    compare(t.fast, t.exact, t.fast->logits_grad, t.exact->logits_grad, eps(), NULL, "dlogits");
    compare(t.fast, t.exact, t.fast->dy, t.exact->dy, 10 * eps(), NULL, "sum");
    trio_free(&t);
}

static void loss_matches_the_reference(void **state) {
    (void)state;
    check_loss(9, 37);
    check_loss(70, 200); /* more rows than a block has warps */
    check_loss(1500, 2); /* and more than it has threads */
    check_loss(5, 32);
}

/* g += decay*w; m = momentum*m + g; w -= lr*m, as torch.optim.SGD documents. */
static void sgd_is_torchs(void **state) {
    (void)state;
    draw d = {.layer = {.op = HP_LINEAR, .n_in = 1}, .samples = 1, .out = {.h = 1, .w = 1, .c = 33}};
    d.in[0] = (hp_tensor){.h = 1, .w = 1, .c = 5};
    const trio t = trio_new(&d, HP_STORE_REAL, -1, 1);
    hp_error err;
    const int64_t n = t.fast->role.trained_elems;
    assert_int_equal(rig_open(t.fast, &err), HP_OK);
    assert_int_equal(rig_run(t.fast, RIG_SGD), HP_OK);
    for (int64_t i = 0; i < n; i++) {
        const double old = rig_get(t.exact, HP_BUF_WEIGHTS, i),
                     m = 0.9 * rig_get(t.exact, HP_BUF_OPTIMIZER, i) + rig_get(t.exact, HP_BUF_GRADS, i) +
                         1e-4 * old;
        assert_true(fabs(rig_get(t.fast, HP_BUF_OPTIMIZER, i) - m) <= 6 * eps());
        assert_true(fabs(rig_get(t.fast, HP_BUF_WEIGHTS, i) - (old - 0.1 * m)) <= 6 * eps());
    }
    trio_free(&t);
}

static void adamw_and_the_norm_are_as_published(void **state) {
    (void)state;
    draw d = {
        .layer = {.op = HP_LINEAR, .n_in = 1}, .samples = 1, .out = {.h = 1, .w = 1, .c = 333}, .bias = true};
    d.in[0] = (hp_tensor){.h = 1, .w = 1, .c = 5};
    const trio t = trio_new(&d, HP_STORE_REAL, -1, 1);
    adamw_check(t.fast, 8 * eps());
    norm_check(t.fast, 1e-14);
    trio_free(&t);
}

static void reruns_give_the_same_bits(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(24); round++) {
        const draw d = round % 4 == 0   ? draw_conv(round)
                       : round % 4 == 1 ? draw_bn(round)
                       : round % 4 == 2 ? (round % 8 == 2 ? draw_groupnorm(round) : draw_gather(round))
                                        : draw_pool(round);
        if (!begins_inside(&d)) continue;
        runs_twice_alike(&hp_device_cuda, &d);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_match_the_reference),
        cmocka_unit_test(transposed_convolutions_match_the_reference),
        cmocka_unit_test(dense_layers_match_the_reference),
        cmocka_unit_test(batch_norm_matches_the_reference),
        cmocka_unit_test(batch_norm_in_16_bits_stays_within_a_rounding),
        cmocka_unit_test(variance_survives_a_large_mean),
        cmocka_unit_test(pooling_matches_the_reference),
        cmocka_unit_test(means_of_large_maps_match_the_reference),
        cmocka_unit_test(elementwise_layers_match_the_reference),
        cmocka_unit_test(products_slopes_and_interpolation_match_the_reference),
        cmocka_unit_test(gathers_match_the_reference),
        cmocka_unit_test(means_and_largest_of_channels_match_the_reference),
        cmocka_unit_test(the_number_of_the_largest_channel_is_the_references),
        cmocka_unit_test(group_norm_matches_the_reference),
        cmocka_unit_test(group_norm_of_a_large_map_loses_nothing_to_its_mean),
        cmocka_unit_test(in_place_equals_out_of_place),
        cmocka_unit_test(loss_matches_the_reference),
        cmocka_unit_test(sgd_is_torchs),
        cmocka_unit_test(adamw_and_the_norm_are_as_published),
        cmocka_unit_test(reruns_give_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
