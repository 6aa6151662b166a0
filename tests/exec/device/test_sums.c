/* test_sums.c - sums over large maps: constant ones, ones that nearly cancel and drawn ones are summed on the processor's devices
 * with an error that does not grow with the map. */
#include "exec/device/infer/infer_loops.h"
#include "exec/device/kernels/kernels.h"
#include "plan/memory/gradient_bands.h"
#include "tests/support/exec/large_sums.h"
#include "tests/support/plan/law_cases.h"

static const sums_blocks of_cpu = {64, HP_GRADIENT_PIXELS};

typedef void sums_fn(const sums_law *l);

/* Every pattern, on maps of `side` by `side` and in the whole suite of eight times that; the reference, which computes in float64,
 * on smaller ones. */
static void every(int side, sums_fn *check) {
    const bool large = law_all("sums over maps of up to 2^26 pixels");
    for (int p = 0; p < SUMS_PATTERNS; p++) {
        check(&(sums_law){&hp_device_cpu, of_cpu, side, (sums_pattern)p});
        check(&(sums_law){&hp_device_ref, of_cpu, side / 4, (sums_pattern)p});
        if (large) check(&(sums_law){&hp_device_cpu, of_cpu, 8 * side, (sums_pattern)p});
    }
}

static void means_of_large_maps_are_exact_to_a_block(void **state) {
    (void)state;
    every(1024, sums_of_pools);
}

static void what_is_spread_over_large_maps_has_exact_gradients(void **state) {
    (void)state;
    every(1024, sums_of_spread);
}

static void norms_of_large_maps_are_exact_to_a_block(void **state) {
    (void)state;
    every(1024, sums_of_norm);
}

static void losses_of_large_maps_are_exact(void **state) {
    (void)state;
    every(512, sums_of_loss);
}

static void products_with_large_maps_are_exact_to_a_block(void **state) {
    (void)state;
    every(1024, sums_of_linear);
}

static void library(const sums_law *l) {
    sums_of_conv(l, 3, 16, 3, 2, 1);
    if (l->side <= 2048) sums_of_conv(l, 16, 16, 3, 1, 16); /* more takes 5 GB */
    sums_of_conv(l, 3, 2, 1, 1, 1);
}

static void own(const sums_law *l) {
    sums_of_conv(l, 32, 32, 1, 1, 1);
    sums_of_conv(l, 32, 32, 3, 2, 1);
}

static void winograd(const sums_law *l) {
    if (l->ops == &hp_device_cpu) sums_of_conv(l, 32, 32, 3, 1, 1);
}

static void transposed(const sums_law *l) {
    sums_of_transposed(l, 3, 2);
}

static void gradients_over_large_maps_are_exact_to_a_band(void **state) {
    (void)state;
    every(512, library);
    every(256, own);
    every(256, winograd);
    every(512, transposed);
}

/* --- bands of a weight's gradient --- */

/* Whole samples to a band, or rows of one; windows that reach over a band's edge, leave gaps, lie in padding. */
static const struct {
    int samples, side, ins, outs, kernel, stride, pad, dil, groups;
} banded[] = {
    {5, 40, 5, 7, 3, 1, 1, 1, 1},    {2, 75, 3, 4, 5, 1, 2, 2, 1},   {1, 150, 6, 4, 3, 2, 1, 1, 2},
    {1, 81, 16, 16, 3, 1, 1, 1, 16}, {3, 71, 32, 32, 3, 1, 1, 1, 1}, {2, 131, 32, 48, 1, 1, 0, 1, 1},
    {1, 140, 33, 32, 3, 2, 0, 1, 1}, {1, 70, 3, 2, 3, 1, 2, 1, 1},   {1, 203, 2, 3, 1, 3, 0, 1, 1},
};

/* Small whole numbers are added up exactly: no rounding may hide a wrong index. Fours, since Winograd halves twice. */
static void put_whole(rig *r) {
    const int32_t buffers[] = {r->x[0], r->dy, HP_BUF_GRADS};
    fill(r, -3, 3);
    for (int k = 0; k < 3; k++)
        for (int64_t i = 0; i < rig_elems(r, buffers[k]); i++)
            rig_set(r, buffers[k], i, 4 * round(rig_get(r, buffers[k], i)));
}

static void check_bands(const draw *d) {
    rig *const both[] = {build(&hp_device_cpu, d), build(&hp_device_ref, d)};
    const hp_shape shape = hp_shape_between(&both[0]->graph, 1, &both[0]->boxes.in[0], &both[0]->boxes.out);
    hp_error err;
    assert_true(hp_gradient_bands(&shape) > 1);
    for (int k = 0; k < 2; k++) {
        put_whole(both[k]);
        assert_int_equal(rig_open(both[k], &err), HP_OK);
        assert_int_equal(rig_run(both[k], RIG_BWDW), HP_OK);
    }
    for (int p = 0; p < both[0]->graph.n_param; p++)
        for (int64_t i = both[0]->place[p].offset; i < both[0]->place[p].offset + both[0]->param[p].count;
             i++)
            if (rig_get(both[0], HP_BUF_GRADS, i) != rig_get(both[1], HP_BUF_GRADS, i))
                fail_msg("%dx%d c%d, kernel %d: gradient %lld is %g, should be %g", d->in[0].h, d->in[0].w,
                         d->in[0].c, d->layer.kh, (long long)i, rig_get(both[0], HP_BUF_GRADS, i),
                         rig_get(both[1], HP_BUF_GRADS, i));
    rig_free(both[0]);
    rig_free(both[1]);
}

static void bands_of_a_gradient_join_exactly(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof banded / sizeof *banded; k++) {
        draw d = {.layer = {.op = HP_CONV, .n_in = 1, .groups = banded[k].groups},
                  .samples = banded[k].samples};
        d.layer.kh = d.layer.kw = banded[k].kernel;
        d.layer.stride_h = d.layer.stride_w = banded[k].stride;
        d.layer.pad_h = d.layer.pad_w = banded[k].pad;
        d.layer.dil_h = d.layer.dil_w = banded[k].dil;
        d.in[0] = (hp_tensor){.h = banded[k].side, .w = banded[k].side + 1, .c = banded[k].ins};
        d.out.c = banded[k].outs;
        d.bias = k % 2;
        d.flags = k % 3 ? HP_FLAG_ADD : 0;
        finish_window(&d);
        check_bands(&d);
    }
}

/* --- kernels, of every instruction set that the processor has --- */

enum { ROWS = 1 << 18, CHANNELS = 3, LISTED = 5 };

typedef void kernel_fn(const hp_f32_kernels *k, const float *x);

static void every_kernel(kernel_fn *check) {
    const hp_f32_kernels *const sets[] = {&hp_f32_kernels_base, &hp_f32_kernels_avx2, &hp_f32_kernels_avx512};
    float *x = malloc(ROWS * CHANNELS * sizeof *x);
    for (int i = 0; i < ROWS * CHANNELS; i++) x[i] = 0.1f;
    for (int k = 0; k < 3; k++) {
        check(sets[k], x);
        if (sets[k] == hp_kernels_pick()->f32) break; /* the best that is here */
    }
    free(x);
}

/* |got - want| <= 67 units of what is added up, all of one sign. */
static void near_block(double got, double want) {
    if (fabs(got - want) > 67 * 0x1p-24 * fabs(want)) fail_msg("%.9g, should be %.9g", got, want);
}

static void check_rows(const hp_f32_kernels *k, const float *x) {
    float sum[CHANNELS] = {1, 2, 3};
    int32_t *next = malloc(ROWS * sizeof *next);
    k->sum.rows(sum, x, ROWS, CHANNELS, true);
    for (int c = 0; c < CHANNELS; c++) near_block((double)sum[c], 1 + c + ROWS * (double)0.1f);
    for (int i = 0; i < ROWS; i++) next[i] = i + LISTED < ROWS ? i + LISTED : -1;
    k->sum.listed(sum, x, LISTED - 1, next, CHANNELS, false);
    for (int c = 0; c < CHANNELS; c++) near_block((double)sum[c], ROWS / LISTED * (double)0.1f);
    near_block(k->point.squares(x, ROWS), ROWS * (double)0.1f * (double)0.1f);
    free(next);
}

static void sums_of_rows_are_exact_to_a_block(void **state) {
    (void)state;
    every_kernel(check_rows);
}

/* RMS norm of equal channels makes them 1. */
static void check_layernorm(const hp_f32_kernels *k, const float *x) {
    double dgamma[CHANNELS], dbeta[CHANNELS];
    float tmp[2 * CHANNELS];
    const float gamma[CHANNELS] = {1, 1, 1};
    const hp_layernorm l = {.pixels = ROWS, .ins = CHANNELS, .outs = CHANNELS};
    k->layernorm.bwd(NULL, dgamma, dbeta, x, x, gamma, &l, tmp);
    for (int c = 0; c < CHANNELS; c++) {
        near_block(dgamma[c], ROWS * (double)0.1f);
        near_block(dbeta[c], ROWS * (double)0.1f);
    }
}

static void layer_norms_gradients_are_exact_to_a_block(void **state) {
    (void)state;
    every_kernel(check_layernorm);
}

/* All queries and keys alike: every weight is 1 / keys, so that the output is v, and so is the gradient of each v dy. */
static void check_attention(const hp_f32_kernels *k, const float *x) {
    enum { TOKENS = 1 << 11, HEAD = CHANNELS };
    const hp_rect all = {0, 0, TOKENS, 1};
    float *out = calloc(5 * TOKENS * HEAD, sizeof *out),
          *room = calloc(1, 4 * (size_t)hp_attend_scratch(HEAD));
    float *maps[5];
    for (int i = 0; i < 5; i++) maps[i] = out + i * TOKENS * HEAD; /* y, log_sum, dq, dk, dv */
    hp_attend a = {
        .channels = HEAD, .to = HEAD, .map_w = 1, .scale = 1, .queries = all, .keys = all, .scratch = room};
    hp_attend_map *const read[] = {&a.q, &a.k, &a.v, &a.dy}, *const made[] = {&a.y, &a.log_sum, &a.dq, &a.dk,
                                                                              &a.dv};
    float *same = malloc(TOKENS * HEAD * sizeof *same);
    memcpy(same, x, TOKENS * HEAD * sizeof *same);
    for (int i = 0; i < 4; i++) *read[i] = (hp_attend_map){.at = same, .w = 1, .step = HEAD};
    for (int i = 0; i < 5; i++) *made[i] = (hp_attend_map){.at = maps[i], .w = 1, .step = i == 1 ? 1 : HEAD};
    k->attend.fwd(&a);
    k->attend.bwd(&a);
    for (int i = 0; i < TOKENS; i++) {
        near_block((double)maps[0][i * HEAD], (double)0.1f);
        near_block((double)maps[1][i], 3 * (double)0.1f * (double)0.1f + log(TOKENS));
        near_block((double)maps[4][i * HEAD], (double)0.1f);
    }
    free(same);
    free(room);
    free(out);
}

static void attention_over_many_tokens_is_exact_to_a_block(void **state) {
    (void)state;
    every_kernel(check_attention);
}

/* Means in inference, by every set of loops. */
static void means_in_inference_are_exact_to_a_block(void **state) {
    (void)state;
    enum { SIDE = 1024 };
    const hp_infer_loops *const sets[] = {&hp_infer_loops_f64, &hp_infer_loops_base, &hp_infer_loops_avx2,
                                          &hp_infer_loops_avx512};
    const hp_layer layer = {.op = HP_ADAPTPOOL, .out_h = 1, .out_w = 1};
    float *x = malloc((size_t)SIDE * SIDE * sizeof *x), y[1];
    double *wide = malloc((size_t)SIDE * SIDE * sizeof *wide), wide_y[1];
    for (int i = 0; i < SIDE * SIDE; i++) wide[i] = (double)(x[i] = i % 2 ? 0.1f : 0.3f);
    for (int k = 0; k < 4; k++) {
        const hp_dtype type = k == 0 ? HP_F64 : HP_F32;
        hp_qparams of = {type, 1, 1, 0};
        const hp_infer_op op = {.x = &of, .y = of, .clamps = true, .lo = -INFINITY, .hi = INFINITY};
        hp_bound b = {
            .layer = &layer, .in_elems = SIDE * SIDE, .out_elems = 1, .stored.x = {type}, .stored.y = type};
        b.shape = (hp_shape){.n = 1, .ih = SIDE, .iw = SIDE, .ic = 1, .oh = 1, .ow = 1, .oc = 1};
        b.shape.full_ih = b.shape.full_iw = SIDE;
        b.shape.full_oh = b.shape.full_ow = 1;
        b.x[0] = k == 0 ? (void *)wide : (void *)x;
        b.y = k == 0 ? (void *)wide_y : (void *)y;
        sets[k]->run[HP_ADAPTPOOL](&op, &b);
        near_block(k == 0 ? wide_y[0] : (double)y[0], ((double)0.1f + (double)0.3f) / 2);
        if (sets[k] == hp_kernels_pick()->loops) break;
    }
    free(x);
    free(wide);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_of_large_maps_are_exact_to_a_block),
        cmocka_unit_test(what_is_spread_over_large_maps_has_exact_gradients),
        cmocka_unit_test(norms_of_large_maps_are_exact_to_a_block),
        cmocka_unit_test(losses_of_large_maps_are_exact),
        cmocka_unit_test(products_with_large_maps_are_exact_to_a_block),
        cmocka_unit_test(gradients_over_large_maps_are_exact_to_a_band),
        cmocka_unit_test(bands_of_a_gradient_join_exactly),
        cmocka_unit_test(sums_of_rows_are_exact_to_a_block),
        cmocka_unit_test(layer_norms_gradients_are_exact_to_a_block),
        cmocka_unit_test(attention_over_many_tokens_is_exact_to_a_block),
        cmocka_unit_test(means_in_inference_are_exact_to_a_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
