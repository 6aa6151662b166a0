/* test_onnx_int8.c - quantised ONNX models as int8 programs: their integers are those of the operators'
 * definitions (QLinearConv, QuantizeLinear: exact sums, round to nearest even, saturate), evaluated here in
 * float64, for every form of the model. What is impossible in 8 bits stays real, and is named. */
#include "exec/data/weights/quantised.h"
#include "networks/graph/fuse.h"
#include "networks/onnx/int8/int8.h"
#include "tests/support/plan/data_files.h"
#include "tests/support/exec/infer_once.h"
#include "tests/support/onnx/onnx_int8_model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* --- the program --- */

static hp_onnx_model read_model(world *s) {
    size_t size;
    hp_error err = {0};
    hp_onnx_model m;
    const void *data = onnx_writer_pack(&s->w, &size);
    if (hp_onnx_parse(s->w.arena, "q.onnx", data, size, false, 0, 0, true, &m, &err) != HP_OK)
        fail_msg("%s", err.text);
    return m;
}

static hp_onnx_int8 write_file(world *s, const hp_onnx_model *m, const char *path) {
    static const hp_onnx_pixels pixels = {1, {0.5}, {0.5}};
    hp_error err = {0};
    hp_onnx_int8 p;
    if (hp_onnx_deploy_int8(s->w.arena, m, &p, &err) != HP_OK ||
        hp_onnx_write_int8(path, m, &p, &pixels, "a test", &err) != HP_OK)
        fail_msg("%s", err.text);
    return p;
}

static void run_int8(world *s, const hp_onnx_model *m, const hp_onnx_int8 *p, const char *device,
                     const char *path, double *image, double *out) {
    const hp_deploy_options o = {.prec = HP_PREC_INT8, .float_layers = p->float_layers};
    infer_once r;
    hp_error err = {0};
    if (infer_once_open_as(&r, hp_graph_fuse(s->w.arena, m->graph), &o, device, path, &err) != HP_OK ||
        infer_once_run(&r, image, out, &err) != HP_OK)
        fail_msg("%s: %s", device, err.text);
    infer_once_close(&r);
}

static void assert_same_integers(const world *s, const map *wanted, const double *out, const char *device) {
    for (int e = 0; e < wanted->c * H * W; e++) {
        const double real = out[e % (H * W) * wanted->c + e / (H * W)];
        const int q = (int)nearbyint(real / (double)wanted->scale) + wanted->zero;
        if (q != wanted->q[e])
            fail_msg("seed %d, %s, %s: element %d is %d, by definition %d", (int)s->seed,
                     s->qdq ? "QDQ" : "QOperator", device, e, q, wanted->q[e]);
    }
}

static world start(hp_arena *a, uint64_t seed, bool qdq) {
    return (world){.seed = seed, .qdq = qdq, .w = onnx_writer_start(a, 13)};
}

/* Returns false if rounding could go either way. */
static bool one_draw(uint64_t seed, bool qdq) {
    hp_arena *a = hp_arena_new();
    world s = start(a, seed, qdq);
    double image[IMAGE_C * H * W], out[MOST];
    const value last = draw_model(&s, image);
    const char *path = scratch_path("q.safetensors");
    if (!s.near_half) {
        const hp_onnx_model m = read_model(&s);
        const hp_onnx_int8 p = write_file(&s, &m, path);
        assert_string_equal(p.float_layers, "");
        assert_int_equal(p.n_weights8, 4);
        for (int k = 0; k < 2; k++) {
            run_int8(&s, &m, &p, k ? "cpu" : "ref", path, image, out);
            assert_same_integers(&s, &last.m, out, k ? "cpu" : "ref");
        }
    }
    hp_arena_free(a);
    return !s.near_half;
}

static void integers_are_those_of_the_definition(void **state) {
    (void)state;
    int done = 0;
    for (uint64_t seed = 1; seed <= 60; seed++)
        for (int qdq = 0; qdq < 2; qdq++) done += one_draw(seed, qdq);
    assert_true(done >= 60);
}

/* --- what stays real --- */

static void layers_that_are_no_8_bit_numbers_stay_real(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    world s = start(a, 5, true);
    value x = {0}, y = {0}, z = {0};
    double image[IMAGE_C * H * W];
    step_image(&s, &x, image);
    conv c = draw_int8_conv(&s, IMAGE_C, 4, 3, 1);
    c.type = UINT8;
    c.w_zero = 10; /* 255 - 10 exceeds 127 */
    memset(c.w, 100, sizeof c.w);
    c.w[0] = -10;
    c.w[1] = 127;
    y.m.c = 4;
    name_value(&s, &y, 100, 0.5f);
    write_conv(&s, &c, &x, &y);
    step_conv(&s, &y, 4, 3, 1, &z);
    onnx_write_node(&s.w, "Sigmoid", z.name, "no_scale");
    onnx_write_output(&s.w, "no_scale");
    hp_onnx_model m = read_model(&s);
    const hp_onnx_int8 all = write_file(&s, &m, scratch_path("q.safetensors"));
    assert_string_equal(all.float_layers, ""); /* close enough to zero nevertheless */
    int8_t *w = (int8_t *)(uintptr_t)m.param[m.graph->layer[1].param[0]].data8;
    w[0] = INT8_MIN;
    const hp_onnx_int8 less = write_file(&s, &m, scratch_path("q.safetensors"));
    assert_string_equal(less.float_layers, m.graph->layer[1].name);
    assert_int_equal(less.n_weights8, 1);
    hp_arena_free(a);
}

static void a_model_without_scales_is_no_int8_program(void **state) {
    (void)state;
    static const int64_t dim[4] = {1, IMAGE_C, H, W}, w_dim[4] = {2, IMAGE_C, 1, 1};
    static const float w[2 * IMAGE_C] = {1, 2, 3};
    hp_arena *a = hp_arena_new();
    world s = start(a, 1, true);
    onnx_write_input(&s.w, "image", 4, dim);
    onnx_write_floats(&s.w, "w", 4, w_dim, w);
    onnx_write_node(&s.w, "Conv", "image w", "y");
    onnx_write_output(&s.w, "y");
    const hp_onnx_model m = read_model(&s);
    hp_onnx_int8 p;
    hp_error err = {0};
    assert_int_equal(hp_onnx_deploy_int8(a, &m, &p, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "hplan quantize"));
    hp_arena_free(a);
}

/* --- malformed quantisation --- */

typedef struct fault {
    float scale;
    int64_t scales;
    int zero_type;
    const char *says;
} fault;

static void malformed_quantisation_is_refused(void **state) {
    (void)state;
    static const fault faults[] = {
        {0, 1, UINT8, "positive"},           {-1, 1, UINT8, "positive"},
        {NAN, 1, UINT8, "positive"},         {INFINITY, 1, UINT8, "positive"},
        {1e-42f, 1, UINT8, "positive"},      {0.1f, 3, UINT8, "3 scales for 5 channels"},
        {0.1f, 1, INT8, "its integers are"}, {0.1f, 1, INT32, "8-bit"}};
    static const int64_t dim[4] = {1, IMAGE_C, H, W};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const fault *f = &faults[i];
        hp_arena *a = hp_arena_new();
        world s = start(a, 1, true);
        const float scale[3] = {f->scale, f->scale, f->scale};
        const float good = 0.1f;
        const int32_t zero = 0;
        hp_onnx_model m;
        hp_error err = {0};
        size_t size;
        onnx_write_input(&s.w, "image", 4, dim);
        onnx_write_floats(&s.w, "s", f->scales > 1, &f->scales, scale);
        onnx_write_floats(&s.w, "good", 0, NULL, &good);
        onnx_write_bytes(&s.w, "z", f->zero_type, 0, NULL, &zero, f->zero_type == INT32 ? 4 : 1);
        onnx_write_bytes(&s.w, "u", UINT8, 0, NULL, &zero, 1);
        onnx_write_node(&s.w, "QuantizeLinear", f->zero_type == INT8 ? "image good u" : "image s z", "q");
        onnx_write_node(&s.w, "DequantizeLinear", "q s z", "y");
        onnx_write_output(&s.w, "y");
        const void *data = onnx_writer_pack(&s.w, &size);
        assert_int_equal(hp_onnx_parse(a, "q.onnx", data, size, false, 0, 0, true, &m, &err), HP_EDATA);
        if (!strstr(err.text, f->says)) fail_msg("fault %d says: %s", (int)i, err.text);
        hp_arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_those_of_the_definition),
        cmocka_unit_test(layers_that_are_no_8_bit_numbers_stay_real),
        cmocka_unit_test(a_model_without_scales_is_no_int8_program),
        cmocka_unit_test(malformed_quantisation_is_refused),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
