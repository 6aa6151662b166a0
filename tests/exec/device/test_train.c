/* test_train.c - the fast device's convolutions and matrix products against the reference, over drawn shapes,
 * within bounds of float32 arithmetic. */
#include "tests/support/exec/draw_layer.h"
#include "tests/support/plan/law_cases.h"

/* --- convolution and linear: |error| <= n eps sum |a||b| (Higham, section 3.1) --- */

/* Number of terms of the layer's longest sum: forward, backward, weights. */
static double terms_of(const draw *d) {
    const int64_t pixels = d->samples * d->out.h * d->out.w;
    if (d->layer.op == HP_LINEAR)
        return (double)larger((int64_t)d->in[0].h * d->in[0].w * d->in[0].c, larger(d->out.c, pixels)) + 2;
    const int64_t k = (int64_t)d->layer.window.kh * d->layer.window.kw / d->layer.groups;
    return (double)larger(larger(k, 1) * larger(d->in[0].c, d->out.c), pixels) + 2;
}

static void check_matrix(const draw *d, double factor) {
    rig *fast = build(&hp_device_cpu, d), *exact = build(&hp_device_ref, d), *size = build(&hp_device_ref, d);
    fill(fast, -1, 1);
    fill(exact, -1, 1);
    fill(size, -1, 1);
    for (int32_t b = 0; b < size->role.n_buffer; b++) /* the same sums over absolute values */
        for (int64_t i = 0; b != size->labels && b != HP_BUF_METRIC && i < rig_elems(size, b); i++)
            rig_set(size, b, i, fabs(rig_get(size, b, i)));
    run_all(fast);
    run_all(exact);
    run_all(size);
    compare(fast, exact, fast->y, exact->y, factor, size, "y");
    compare(fast, exact, fast->dx[0], exact->dx[0], factor, size, "dx");
    for (int p = 0; p < fast->graph.n_param; p++)
        for (int64_t i = 0; i < fast->param[p].count; i++) {
            const int64_t at = fast->place[p].offset + i;
            const double bound = factor * rig_get(size, HP_BUF_GRADS, at);
            if (fabs(rig_get(fast, HP_BUF_GRADS, at) - rig_get(exact, HP_BUF_GRADS, at)) > bound)
                fail_msg("gradient of parameter %d, element %lld: %g, should be %g +- %g", p, (long long)i,
                         rig_get(fast, HP_BUF_GRADS, at), rig_get(exact, HP_BUF_GRADS, at), bound);
        }
    rig_free(fast);
    rig_free(exact);
    rig_free(size);
}

static void fast_convolution_matches_the_reference(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_some(60); round++) {
        const draw d = draw_conv(round);
        rig *probe = build(&hp_device_cpu, &d);
        const bool winograd = hp_conv_winograd(&probe->graph, 1);
        rig_free(probe);
        if (!winograd) check_matrix(&d, terms_of(&d) * eps());
    }
}

/* Shapes with more pixels than one block of the weight gradient's matrix product; channels with
 * and without padding. */
static void weight_gradients_by_blocks_match_the_reference(void **state) {
    (void)state;
    static const struct {
        int ins, outs, kernel, stride;
    } shapes[] = {{32, 48, 1, 1}, {60, 47, 1, 2}, {32, 32, 3, 2}, {64, 40, 5, 1}};
    for (int k = 0; k < 8; k++) {
        const int i = k / 2;
        draw d = {.layer = {.op = HP_CONV, .n_in = 1, .groups = 1, .window.dil_h = 1, .window.dil_w = 1},
                  .samples = 3};
        d.layer.window.kh = d.layer.window.kw = shapes[i].kernel;
        d.layer.window.stride_h = d.layer.window.stride_w = shapes[i].stride;
        d.layer.window.pad_h = d.layer.window.pad_w = shapes[i].kernel / 2;
        d.in[0] = (hp_tensor){.h = 15 * shapes[i].stride, .w = 14 * shapes[i].stride, .c = shapes[i].ins};
        d.out.c = shapes[i].outs;
        d.flags = k % 2 ? HP_FLAG_ADD : 0;
        finish_window(&d);
        assert_true(d.samples * d.out.h * d.out.w > HP_GRADIENT_ROWS);
        check_matrix(&d, terms_of(&d) * eps());
    }
}

static void fast_linear_matches_the_reference(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_some(25); round++) {
        const draw d = draw_linear(round);
        check_matrix(&d, terms_of(&d) * eps());
    }
}

/* Winograd mixes neighbouring pixels, so the bound is in norms. With |x|, |w| <= 1 a transformed input is
 * at most 4 (each row of B' has absolute sum 2), a transformed weight (3/2)^2. An output adds 9 products
 * per channel: (n + 12) eps * 81 * n / 1 over n channels, or over tiles for the weight gradient (the
 * adjoint has the same norms). */
static void check_winograd(const draw *d) {
    rig *fast = build(&hp_device_cpu, d), *exact = build(&hp_device_ref, d);
    assert_true(hp_conv_winograd(&fast->graph, 1));
    fill(fast, -1, 1);
    fill(exact, -1, 1);
    run_all(fast);
    run_all(exact);
    const double n = (double)larger(d->in[0].c, d->out.c), bound = 81 * n * (n + 12) * eps();
    compare(fast, exact, fast->y, exact->y, bound, NULL, "y");
    compare(fast, exact, fast->dx[0], exact->dx[0], bound, NULL, "dx");
    const int high = (d->out.h + 1) / 2, wide = (d->out.w + 1) / 2;
    const double tiles = (double)d->samples * high * wide;
    compare(fast, exact, HP_BUF_GRADS, HP_BUF_GRADS, 81 * tiles * (tiles + 12) * eps(), NULL, "gradient");
    rig_free(fast);
    rig_free(exact);
}

static void winograd_matches_the_reference(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_some(25); round++) {
        const draw d = draw_winograd(round);
        const int64_t covered = (int64_t)((d.out.h + 1) / 2) * ((d.out.w + 1) / 2) * 4;
        if (covered * 2 <= (int64_t)d.out.h * d.out.w * 3) check_winograd(&d);
    }
}

/* Convolution of small integers is exact in both, so no rounding can hide a wrong index. */
static void whole_numbers_are_convolved_exactly(void **state) {
    (void)state;
    for (uint64_t r = 0; r < law_some(40); r++) {
        const draw d = r % 2 ? draw_conv(r) : draw_winograd(r);
        rig *fast = build(&hp_device_cpu, &d), *exact = build(&hp_device_ref, &d), *both[] = {fast, exact};
        for (int k = 0; k < 2; k++) {
            fill(both[k], -3, 3);
            for (int32_t b = 0; b < both[k]->role.n_buffer; b++)
                for (int64_t i = 0; b != HP_BUF_METRIC && b != both[k]->labels && i < rig_elems(both[k], b);
                     i++)
                    rig_set(both[k], b, i, 4 * round(rig_get(both[k], b, i))); /* Winograd halves twice */
            run_all(both[k]);
        }
        compare(fast, exact, fast->y, exact->y, 0, NULL, "y");
        compare(fast, exact, fast->dx[0], exact->dx[0], 0, NULL, "dx");
        for (int p = 0; p < fast->graph.n_param; p++)
            for (int64_t i = fast->place[p].offset; i < fast->place[p].offset + fast->param[p].count; i++)
                assert_true(rig_get(fast, HP_BUF_GRADS, i) == rig_get(exact, HP_BUF_GRADS, i));
        rig_free(fast);
        rig_free(exact);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_convolution_matches_the_reference),
        cmocka_unit_test(weight_gradients_by_blocks_match_the_reference),
        cmocka_unit_test(fast_linear_matches_the_reference),
        cmocka_unit_test(winograd_matches_the_reference),
        cmocka_unit_test(whole_numbers_are_convolved_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
