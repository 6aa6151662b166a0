/* test_onnx.c - ONNX's backend test suite on the devices: models are read, deployed and run as programs.
 */
#include "base/rng.h"
#include "networks/graph/fuse.h"
#include "networks/onnx/model.h"
#include "tests/support/exec/infer_once.h"
#include "tests/support/onnx/onnx_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

static bool run_on(const char *device, hp_arena *a, const hp_onnx_model *m, const double *image, double *out,
                   hp_error *err) {
    infer_once r = {0};
    const int64_t n = hp_tensor_elems(m->graph, 0);
    const char *path = hp_arena_printf(a, "test_exec_onnx.%s.%d.safetensors", device, (int)getpid());
    hp_status s = hp_model_write_weights(path, m, err);
    if (s == HP_OK) s = infer_once_open(&r, hp_graph_fuse(a, m->graph), device, path, err);
    if (s == HP_OK)
        s = infer_once_run(&r, memcpy(HP_NEW(a, double, n), image, sizeof *image * (size_t)n), out, err);
    infer_once_close(&r);
    unlink(path);
    return s == HP_OK;
}

static bool run_ref(hp_arena *a, const hp_onnx_model *m, const double *image, double *out, hp_error *err) {
    return run_on("ref", a, m, image, out, err);
}

static bool run_cpu(hp_arena *a, const hp_onnx_model *m, const double *image, double *out, hp_error *err) {
    return run_on("cpu", a, m, image, out, err);
}

static void assert_cases_pass(const char *device, case_runner *run) {
    static const char *const groups[] = {"node", "simple", "pytorch-converted", "pytorch-operator"};
    case_counts n = {0};
    DIR *there = opendir(case_data);
    if (!there) {
        printf("skipped: install libonnx-testdata\n");
        skip();
    }
    closedir(there);
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        case_run_group(groups[i], case_ops, run, &n);
    printf("ONNX backend cases on %s: %d passed, %d refused with a reason, %d failed\n", device, n.passed,
           n.refused, n.failed);
    assert_int_equal(n.failed, 0);
    assert_true(n.passed >= 300);
}

static void the_reference_device_computes_what_onnx_says(void **state) {
    (void)state;
    assert_cases_pass("ref", run_ref);
}

static void the_processor_computes_what_onnx_says(void **state) {
    (void)state;
    assert_cases_pass("cpu", run_cpu);
}

/* Numbers near 1000 that differ by hundredths, over a large map: float32 sums lose the differences. The
 * norm's input is the float32 sum; its mean and variance follow their definition, in float64. */
static void a_norm_of_a_large_map_loses_nothing(void **state) {
    enum { SIDE = 256, N = SIDE * SIDE };
    (void)state;
    const int64_t dim[4] = {1, 1, SIDE, SIDE}, one = 1;
    const float thousand = 1000, unit = 1, zero = 0;
    hp_arena *a = hp_arena_new();
    onnx_writer w = onnx_writer_start(a, 13);
    hp_onnx_model m;
    hp_error err = {0};
    size_t size;
    double *image = HP_NEW(a, double, N), *out = HP_NEW(a, double, N), mean = 0, square = 0;
    onnx_write_input(&w, "image", 4, dim);
    onnx_write_floats(&w, "thousand", 1, &one, &thousand);
    onnx_write_floats(&w, "scale", 1, &one, &unit);
    onnx_write_floats(&w, "bias", 1, &one, &zero);
    onnx_write_node(&w, "Add", "image thousand", "moved");
    onnx_write_node(&w, "InstanceNormalization", "moved scale bias", "y");
    onnx_write_output(&w, "y");
    const void *packed = onnx_writer_pack(&w, &size);
    assert_int_equal(hp_onnx_parse(a, "large.onnx", packed, size, false, 0, 0, true, &m, &err), HP_OK);
    for (int i = 0; i < N; i++) image[i] = (double)((float)hp_rng_uniform(8, 2, (uint64_t)i) / 100);
    if (!run_cpu(a, &m, image, out, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < N; i++) mean += (double)((float)image[i] + thousand) / N;
    for (int i = 0; i < N; i++) square += pow((double)((float)image[i] + thousand) - mean, 2) / N;
    for (int i = 0; i < N; i++) {
        const double want = ((double)((float)image[i] + thousand) - mean) / sqrt(square + 1e-5);
        if (fabs(out[i] - want) > 1e-6) fail_msg("pixel %d is %.9g, not %.9g", i, out[i], want);
    }
    hp_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_norm_of_a_large_map_loses_nothing),
                                       cmocka_unit_test(the_reference_device_computes_what_onnx_says),
                                       cmocka_unit_test(the_processor_computes_what_onnx_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
