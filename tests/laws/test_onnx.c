/* test_onnx.c - ONNX's backend test suite on the devices: models are read, deployed and run as programs.
 */
#include "plan/graph/fuse.h"
#include "plan/onnx/model.h"
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
    assert_true(n.passed >= 260);
}

static void the_reference_device_computes_what_onnx_says(void **state) {
    (void)state;
    assert_cases_pass("ref", run_ref);
}

static void the_processor_computes_what_onnx_says(void **state) {
    (void)state;
    assert_cases_pass("cpu", run_cpu);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_reference_device_computes_what_onnx_says),
                                       cmocka_unit_test(the_processor_computes_what_onnx_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
