/* test_sums.c - sums over large maps on a GPU or its stand-in: the error does not grow with the map. The
 * library computes the weights' gradients. */
#include "exec/cuda/runtime/cuda_runtime_device.h"
#include "exec/cuda/train/cuda_train_kernels.h"
#include "tests/support/exec/large_sums.h"
#include "tests/support/standin/standin_child.h"

static void every(int side, void (*check)(const sums_law *l)) {
    for (int p = 0; p < SUMS_PATTERNS; p++)
        check(&(sums_law){&hp_device_cuda, {64, (double)side * side}, side, (sums_pattern)p});
}

static void means_of_large_maps_are_exact_to_a_block(void **state) {
    (void)state;
    every(192, sums_of_pools);
}

static void norms_of_large_maps_are_exact_to_a_block(void **state) {
    (void)state;
    every(192, sums_of_norm);
}

static void losses_of_large_maps_are_exact(void **state) {
    (void)state;
    every(128, sums_of_loss);
}

static void biases(const sums_law *l) {
    sums_of_conv(l, 3, 2, 1, 1, 1);
}

static void bias_gradients_of_large_maps_are_exact_to_a_block(void **state) {
    (void)state;
    every(128, biases);
}

/* All pixels except the first few have the same id. */
static void a_frequent_tokens_gradient_is_exact_to_a_block(void **state) {
    (void)state;
    enum { PIXELS = 1 << 15, ROWS = 3, CHANNELS = 2, FEW = 7 };
    float *id = calloc(PIXELS, sizeof *id), *dy = calloc(PIXELS * CHANNELS, sizeof *dy),
          grad[ROWS * CHANNELS] = {0};
    for (int i = 0; i < PIXELS; i++) id[i] = i < FEW ? 2 : 1;
    for (int i = 0; i < PIXELS * CHANNELS; i++) dy[i] = 0.1f;
    float *there[3] = {new_device(PIXELS * sizeof *id), new_device(PIXELS * CHANNELS * sizeof *dy),
                       new_device(sizeof grad)};
    CUDA(cudaMemcpy(there[0], id, PIXELS * sizeof *id, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(there[1], dy, PIXELS * CHANNELS * sizeof *dy, cudaMemcpyHostToDevice));
    const hp_cuda_embedding e = {PIXELS, ROWS, CHANNELS, 0, ROWS, there[0]};
    CUDA(hp_cuda_embed_backward(HP_F32, there[2], there[1], &e, false, new_stream()));
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaMemcpy(grad, there[2], sizeof grad, cudaMemcpyDeviceToHost));
    for (int c = 0; c < CHANNELS; c++) {
        const double want = (PIXELS - FEW) * (double)0.1f;
        CHECK(grad[c] == 0);
        CHECK(fabs((double)grad[CHANNELS + c] - want) <= 67 * 0x1p-24 * want);
        CHECK(fabs((double)grad[2 * CHANNELS + c] - FEW * (double)0.1f) <= 67 * 0x1p-24);
    }
    free(id);
    free(dy);
}

static void what_is_spread_over_large_maps_has_exact_gradients(void **state) {
    (void)state;
    every(160, sums_of_spread);
}

/* Gradient of a vector that is spread over a map. */
static void a_spread_vectors_gradient_is_rounded_once(void **state) {
    (void)state;
    enum { SIDE = 160, CHANNELS = 3 };
    const hp_layer spread = {.op = HP_GATHER,
                             .n_in = 1,
                             .window.kh = 1,
                             .window.kw = 1,
                             .out_h = SIDE,
                             .out_w = SIDE,
                             .gather.out_c = CHANNELS,
                             .groups = CHANNELS,
                             .gather.step = 1,
                             .gather.border = HP_BORDER_EDGE};
    draw d = {.layer = spread, .samples = 2, .out = {.h = SIDE, .w = SIDE, .c = CHANNELS}};
    d.in[0] = (hp_tensor){.h = 1, .w = 1, .c = CHANNELS};
    rig *r = build(&hp_device_cuda, &d);
    double sum[2 * CHANNELS] = {0};
    fill(r, 0, 1);
    run_all(r);
    for (int64_t i = 0; i < rig_elems(r, r->dy); i++)
        sum[i / (SIDE * SIDE * CHANNELS) * CHANNELS + i % CHANNELS] += rig_get(r, r->dy, i);
    for (int i = 0; i < 2 * CHANNELS; i++)
        assert_true(fabs(rig_get(r, r->dx[0], i) - sum[i]) <= 0x1p-23 * sum[i]);
    rig_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_of_large_maps_are_exact_to_a_block),
        cmocka_unit_test(norms_of_large_maps_are_exact_to_a_block),
        cmocka_unit_test(losses_of_large_maps_are_exact),
        cmocka_unit_test(bias_gradients_of_large_maps_are_exact_to_a_block),
        cmocka_unit_test(what_is_spread_over_large_maps_has_exact_gradients),
        cmocka_unit_test(a_spread_vectors_gradient_is_rounded_once),
        cmocka_unit_test(a_frequent_tokens_gradient_is_exact_to_a_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
