/* test_cases.c - ONNX's backend test suite: graphs that are read compute what ONNX defines. Here with the
 * operators' definitions; tests/laws/test_onnx.c runs them on the devices. */
#include "tests/support/onnx/onnx_cases.h"
#include "tests/support/onnx/plain_graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static bool run_plain(hp_arena *a, const hp_onnx_model *m, const double *image, double *out, hp_error *err) {
    (void)err;
    const float **param = HP_NEW(a, const float *, m->graph->n_param + 1);
    for (int p = 0; p < m->graph->n_param; p++) param[p] = m->param[p].data;
    plain p = {.g = m->graph, .param = param};
    const double *y = plain_run(a, &p, image);
    memcpy(out, y, sizeof *out * (size_t)hp_tensor_elems(m->graph, m->graph->n_tensor - 1));
    return true;
}

/* Operators computed while reading. */
static const char folded_ops[] = " Constant ConstantOfShape Range Shape Size Gather Slice Concat Cast "
                                 "Reshape Flatten Squeeze Unsqueeze Transpose "
                                 "Expand Identity Add Sub Mul Div Mod Pow Neg Abs Sqrt Exp Floor Ceil Equal "
                                 "Greater Less Not Where Max Min "
                                 "ReduceProd ReduceSum DequantizeLinear Trilu ScatterND ";

static bool have_data(void) {
    DIR *there = opendir(case_data);
    if (there) closedir(there);
    if (!there) printf("skipped: install libonnx-testdata\n");
    return there != NULL;
}

static void models_that_are_read_compute_what_onnx_says(void **state) {
    static const char *const groups[] = {"node", "simple", "pytorch-converted", "pytorch-operator"};
    case_counts n = {0};
    (void)state;
    if (!have_data()) skip();
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        case_run_group(groups[i], case_ops, run_plain, &n);
    printf("ONNX backend cases: %d passed, %d refused with a reason, %d failed\n", n.passed, n.refused,
           n.failed);
    assert_int_equal(n.failed, 0);
    assert_true(n.passed >= 300);
}

static void constants_are_folded_as_onnx_says(void **state) {
    case_counts n = {0};
    (void)state;
    if (!have_data()) skip();
    case_run_group("node", folded_ops, NULL, &n);
    printf("of constants: %d passed, %d refused with a reason, %d failed\n", n.passed, n.refused, n.failed);
    assert_int_equal(n.failed, 0);
    assert_true(n.passed >= 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(models_that_are_read_compute_what_onnx_says),
                                       cmocka_unit_test(constants_are_folded_as_onnx_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
