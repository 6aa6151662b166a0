/* test_onnx.c - hand-written models: names, shapes at any size, rewrites that preserve the function,
 * messages, and arbitrary bytes. */
#include "networks/graph/fuse.h"
#include "networks/graph/graph_check.h"
#include "networks/graph/graph_json.h"
#include "networks/nets/net_act.h"
#include "networks/onnx/model.h"
#include "tests/support/plan/built/append_layers.h"
#include "tests/support/onnx/onnx_odd.h"
#include "tests/support/onnx/plain_graph.h"
#include "tests/support/plan/built/layers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

/* --- helpers --- */

static hp_graph *parsed(onnx_writer *w, int h, int width, hp_onnx_model *m) {
    hp_error err = {0};
    if (odd_parse(w, h, width, m, &err) != HP_OK) fail_msg("%s", err.text);
    if (hp_graph_check(m->graph, &err) != HP_OK) fail_msg("%s", err.text);
    return m->graph;
}

/* --- the odd model (onnx_odd.h) --- */

/* The same network from the builder, with a layer for every node. */
static hp_graph *odd_graph(hp_arena *a, int h, int w, const float **param) {
    hp_builder b = hp_builder_start(a, "plain", h, w, 2, NULL);
    const hp_layer three = {.op = HP_CONV,
                            .window.kh = 3,
                            .window.kw = 3,
                            .window.pad_h = 1,
                            .window.pad_w = 1},
                   one = {.op = HP_CONV, .window.kh = 1, .window.kw = 1};
    int n = 0;
    float *sixth = HP_NEW(a, float, ODD_C), *ones = HP_NEW(a, float, ODD_C),
          *threes = HP_NEW(a, float, ODD_C);
    float *s = HP_NEW(a, float, ODD_C), *shift = HP_NEW(a, float, ODD_C);
    for (int i = 0; i < ODD_C; i++) {
        sixth[i] = 1.0f / 6;
        ones[i] = 1;
        threes[i] = 3;
        s[i] = 1.7f;
        shift[i] = -0.3f;
    }
    int x = append_conv_as(&b, 0, "c1", ODD_C, &three);
    param[n++] = drawn(a, 1, ODD_C * 3 * 9);
    x = append_scale(&b, x, "c1.s", true);
    param[n++] = drawn(a, 40, ODD_C);
    param[n++] = drawn(a, 41, ODD_C);
    int y = append_scale(&b, x, "plus3", true);
    param[n++] = ones;
    param[n++] = threes;
    y = hp_build_mul(&b, x, hp_build_act(&b, y, "clip", HP_ACT_RELU6), "product");
    x = append_scale(&b, y, "h1", false);
    param[n++] = sixth;
    x = append_scale(&b, x, "h1.s", true);
    param[n++] = s;
    param[n++] = shift;
    x = append_conv_as(&b, x, "c2", ODD_C, &one);
    param[n++] = drawn(a, 2, ODD_C * ODD_C);
    y = hp_build_act_with(&b, hp_build_adaptpool(&b, x, "pool", 1, 1), "gate", HP_ACT_HSIGMOID, 0.2, 0.5);
    x = hp_build_add(&b, x, hp_build_mul(&b, x, y, "gated"), "sum");
    x = hp_build_act(&b, x, "r", HP_ACT_RELU);
    x = hp_build_resize(&b, x, "up", 2 * h, 2 * w, HP_NEAREST, HP_CORNERS_ASYMMETRIC);
    append_conv_as(&b, x, "last", 2, &three);
    param[n++] = drawn(a, 3, 2 * ODD_C * 9);
    hp_graph *g = NULL;
    assert_int_equal(hp_builder_finish(&b, &g), HP_OK);
    return g;
}

static const double *run_graph(hp_arena *a, const hp_graph *g, const float *const *param) {
    const int64_t n = (int64_t)g->image_h * g->image_w * g->image_c;
    double *image = HP_NEW(a, double, n);
    for (int64_t i = 0; i < n; i++) image[i] = 2 * hp_rng_uniform(3, 9, (uint64_t)i) - 1;
    plain p = {.g = g, .param = param};
    return plain_run(a, &p, image);
}

static void simplified_graphs_compute_the_same(void **state) {
    (void)state;
    for (int side = 4; side < 12; side += 3) {
        hp_arena *a = hp_arena_new();
        onnx_writer w = odd_model(a);
        hp_onnx_model m;
        const hp_graph *g = parsed(&w, side, side + 1, &m);
        const float *plain_param[32], **param = HP_NEW(a, const float *, g->n_param);
        const hp_graph *other = odd_graph(a, side, side + 1, plain_param);
        for (int i = 0; i < g->n_param; i++) param[i] = m.param[i].data;
        const double *got = run_graph(a, g, param), *wanted = run_graph(a, other, plain_param);
        for (int64_t i = 0; i < hp_tensor_elems(g, g->n_tensor - 1); i++)
            assert_true(fabs(got[i] - wanted[i]) <= 1e-5 * (1 + fabs(wanted[i])));
        hp_arena_free(a);
    }
}

static int count_op(const hp_graph *g, hp_layer_op op) {
    int n = 0;
    for (int l = 0; l < g->n_layer; l++) n += g->layer[l].op == (int32_t)op;
    return n;
}

static void four_nodes_become_one_hard_swish_and_scales_vanish(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    onnx_writer w = odd_model(a);
    hp_onnx_model m;
    const hp_graph *g = parsed(&w, 8, 8, &m);
    assert_int_equal(count_op(g, HP_SCALE), 1); /* 1 + gate, on one pixel */
    assert_int_equal(count_op(g, HP_ADD), 0);
    assert_int_equal(count_op(g, HP_MUL), 1);
    assert_int_equal(g->layer[layer_named(g, "h1")].act, HP_ACT_HSWISH);
    hp_arena_free(a);
}

static void layers_and_parameters_keep_their_names(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    onnx_writer w = odd_model(a);
    hp_onnx_model m;
    const hp_graph *g = parsed(&w, 8, 8, &m);
    assert_string_equal(g->net, "onnx:dir/a_model");
    assert_string_equal(g->param[g->layer[layer_named(g, "c1")].param[0]].name, "stem.weight");
    assert_string_equal(g->param[g->layer[layer_named(g, "c2")].param[1]].name, "c2.bias");
    assert_int_equal(g->layer[layer_named(g, "an_upsampling")].op, HP_RESIZE); /* spaces are for tables */
    assert_int_equal(m.declared_h, 0);
    hp_arena_free(a);
}

static void shapes_follow_the_image(void **state) {
    static const int sides[] = {1, 2, 7, 64, 1000, 100000};
    (void)state;
    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++) {
        hp_arena *a = hp_arena_new();
        onnx_writer w = odd_model(a);
        hp_onnx_model m;
        const hp_graph *g = parsed(&w, sides[i], 3, &m);
        const hp_tensor *last = &g->tensor[g->n_tensor - 1];
        assert_true(last->h == 2 * sides[i] && last->w == 6 && last->c == 2 && g->classes == 2);
        assert_true(m.output.dim[2] == 2 * sides[i] && m.output.dim[1] == 2);
        hp_arena_free(a);
    }
}

/* --- files --- */

static char *write_file(hp_arena *a, const void *data, size_t size) {
    char *path = hp_arena_printf(a, "test_onnx.%d.onnx", (int)getpid());
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
    return path;
}

static void a_database_holds_the_model_for_every_size(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    onnx_writer w = odd_model(a);
    size_t size;
    const void *data = onnx_writer_pack(&w, &size);
    char *path = write_file(a, data, size), *db = hp_arena_printf(a, "%s.db", path);
    hp_onnx_model m;
    hp_error err = {0};
    hp_graph *from_file = NULL, *from_db = NULL;
    assert_int_equal(hp_onnx_read(a, path, 20, 30, false, &m, &err), HP_OK);
    if (hp_model_write(db, path, m.graph, &err) != HP_OK) fail_msg("%s", err.text);
    for (int side = 0; side < 40; side += 13) { /* 0: the size of the import */
        assert_int_equal(hp_model_read(a, path, side ? side : 20, side ? side : 30, &from_file, &err), HP_OK);
        if (hp_model_read(a, db, side, side, &from_db, &err) != HP_OK) fail_msg("%s", err.text);
        assert_string_equal(hp_graph_text(a, from_db), hp_graph_text(a, from_file));
        hp_graph *from_json = NULL;
        assert_int_equal(hp_graph_from_json(a, hp_graph_json(a, from_db), &from_json, &err), HP_OK);
        assert_string_equal(hp_graph_text(a, from_json), hp_graph_text(a, from_db));
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(db), 0);
    assert_int_equal(hp_model_read(a, path, 8, 8, &from_file, &err), HP_EDATA);
    hp_arena_free(a);
}

/* Weights in any form that files allow are the same weights. */
static void forms_of_weights(void **state) {
    (void)state;
    static const uint16_t half[2] = {0x3c00, 0xc500}, brain[2] = {0x3f80, 0xc0a0}; /* 1, -5 */
    static const float full[2] = {1, -5};
    static const double twice[2] = {1, -5};
    static const int64_t dim[4] = {2, 1, 1, 1}, image[4] = {1, 1, 2, 2};
    for (int form = 0; form < 5; form++) {
        hp_arena *a = hp_arena_new();
        onnx_writer w = onnx_writer_start(a, 13);
        onnx_write_input(&w, "x", 4, image);
        if (form == 0) onnx_write_floats(&w, "w", 4, dim, full);
        if (form == 1) onnx_write_bytes(&w, "w", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16, 4, dim, half, 4);
        if (form == 2) onnx_write_bytes(&w, "w", ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16, 4, dim, brain, 4);
        if (form == 3) onnx_write_bytes(&w, "w", ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE, 4, dim, twice, 16);
        if (form == 4) {
            Onnx__NodeProto *n = onnx_write_node(&w, "Constant", "", "w");
            onnx_write_bytes(&w, "value", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, 4, dim, full, 8);
            onnx_write_attribute(&w, n, "value", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR)->t =
                w.graph.initializer[--w.graph.n_initializer];
        }
        onnx_write_node(&w, "Conv", "x w", "y");
        onnx_write_output(&w, "y");
        hp_onnx_model m;
        parsed(&w, 0, 0, &m);
        assert_string_equal(m.graph->param[0].name, "w");
        assert_true(m.param[0].data[0] == 1 && m.param[0].data[1] == -5);
        hp_arena_free(a);
    }
}

/* --- quantised models --- */

/* Conv between QuantizeLinear and DequantizeLinear, with 8-bit weights by rows. */
static void quantised_weights_and_scales_are_taken_over(void **state) {
    (void)state;
    static const int8_t weight[6] = {127, -3, 0, -127, 1, 64};
    static const float scale[2] = {0.5f, 0.25f};
    static const int64_t dim[4] = {2, 3, 1, 1}, two = 2, image[4] = {1, 3, 4, 4};
    const uint8_t zero = 0, mid = 200;
    hp_arena *a = hp_arena_new();
    onnx_writer w = onnx_writer_start(a, 13);
    onnx_write_input(&w, "x", 4, image);
    onnx_write_bytes(&w, "w8", ONNX__TENSOR_PROTO__DATA_TYPE__INT8, 4, dim, weight, 6);
    onnx_write_floats(&w, "ws", 1, &two, scale);
    onnx_write_bytes(&w, "zero", ONNX__TENSOR_PROTO__DATA_TYPE__UINT8, 0, NULL, &zero, 1);
    onnx_write_bytes(&w, "mid", ONNX__TENSOR_PROTO__DATA_TYPE__UINT8, 0, NULL, &mid, 1);
    write_number(&w, "xs", 0.1f);
    write_number(&w, "ys", 0.0235294122f);
    onnx_write_int(&w, onnx_write_node(&w, "DequantizeLinear", "w8 ws", "w"), "axis", 0);
    onnx_write_node(&w, "QuantizeLinear", "x xs mid", "xq");
    onnx_write_node(&w, "DequantizeLinear", "xq xs mid", "xr");
    onnx_write_node(&w, "Conv", "xr w", "c");
    onnx_write_node(&w, "QuantizeLinear", "c ys zero", "yq");
    onnx_write_node(&w, "DequantizeLinear", "yq ys zero", "y");
    onnx_write_output(&w, "y");
    hp_onnx_model m;
    const hp_graph *g = parsed(&w, 0, 0, &m);
    assert_int_equal(g->n_layer, 3); /* image, convolution, the clamp implied by the last zero point */
    assert_int_equal(g->layer[2].act, HP_ACT_RELU6);
    assert_memory_equal(m.param[0].data8, weight, 6);
    for (int i = 0; i < 6; i++) assert_true(m.param[0].data[i] == scale[i / 3] * (float)weight[i]);
    assert_true(m.param[0].data8_scale[1] == 0.25f);
    assert_int_equal(m.n_qparam, 2);
    assert_true(m.qparam[0].tensor == 0 && m.qparam[0].scale == 0.1f && m.qparam[0].zero == 200);
    assert_true(m.qparam[1].tensor == 2 && m.qparam[1].zero == 0);
    hp_arena_free(a);
}

/* The attribute of opset 21 agrees with the zero point's type. */
static void the_type_of_a_quantised_output_is_its_zero_points(void **state) {
    (void)state;
    for (int type = ONNX__TENSOR_PROTO__DATA_TYPE__UINT8; type <= ONNX__TENSOR_PROTO__DATA_TYPE__INT8; type++)
        for (int with_zero = 0; with_zero < 2; with_zero++) {
            static const int64_t image[4] = {1, 3, 4, 4};
            const uint8_t zero = 0;
            hp_arena *a = hp_arena_new();
            hp_onnx_model m;
            hp_error err = {0};
            onnx_writer w = onnx_writer_start(a, 21);
            onnx_write_input(&w, "x", 4, image);
            onnx_write_bytes(&w, "zero", ONNX__TENSOR_PROTO__DATA_TYPE__UINT8, 0, NULL, &zero, 1);
            write_number(&w, "scale", 0.1f);
            onnx_write_int(&w,
                           onnx_write_node(&w, "QuantizeLinear", with_zero ? "x scale zero" : "x scale", "q"),
                           "output_dtype", type);
            onnx_write_node(&w, "DequantizeLinear", with_zero ? "q scale zero" : "q scale", "y");
            onnx_write_output(&w, "y");
            const bool same = type == ONNX__TENSOR_PROTO__DATA_TYPE__UINT8;
            assert_int_equal(odd_parse(&w, 0, 0, &m, &err), same ? HP_OK : HP_EDATA);
            if (!same) assert_non_null(strstr(err.text, "output_dtype = 3"));
            hp_arena_free(a);
        }
}

/* ONNX Runtime's quantize_dynamic of Conv and Relu reads back as these, with the weights that the bytes
 * represent. */
static void quantised_while_it_runs(void **state) {
    (void)state;
    static const uint8_t weight[6] = {255, 125, 128, 1, 129, 192};
    static const float bias[2] = {0.5f, -0.25f};
    static const int64_t dim[4] = {2, 3, 1, 1}, of_bias[4] = {1, 2, 1, 1}, image[4] = {1, 3, 4, 4};
    const uint8_t mid = 128;
    hp_arena *a = hp_arena_new();
    onnx_writer w = onnx_writer_start(a, 13);
    onnx_write_input(&w, "x", 4, image);
    onnx_write_bytes(&w, "w8", ONNX__TENSOR_PROTO__DATA_TYPE__UINT8, 4, dim, weight, 6);
    onnx_write_bytes(&w, "mid", ONNX__TENSOR_PROTO__DATA_TYPE__UINT8, 0, NULL, &mid, 1);
    write_number(&w, "ws", 0.125f);
    onnx_write_floats(&w, "b", 4, of_bias, bias);
    onnx_write_node(&w, "DynamicQuantizeLinear", "x", "q s z");
    onnx_write_node(&w, "ConvInteger", "q w8 z mid", "c");
    onnx_write_int(&w, onnx_write_node(&w, "Cast", "c", "f"), "to", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
    onnx_write_node(&w, "Mul", "s ws", "k");
    onnx_write_node(&w, "Mul", "f k", "m");
    onnx_write_node(&w, "Add", "m b", "e");
    onnx_write_node(&w, "Relu", "e", "y");
    onnx_write_output(&w, "y");
    hp_onnx_model m;
    const hp_graph *g = parsed(&w, 0, 0, &m);
    assert_int_equal(g->n_layer, 3); /* image, convolution, activation */
    assert_int_equal(g->layer[2].act, HP_ACT_RELU);
    for (int i = 0; i < 6; i++) assert_true(m.param[0].data[i] == 0.125f * (float)(weight[i] - 128));
    assert_memory_equal(m.param[1].data, bias, sizeof bias);
    assert_int_equal(m.n_qparam, 0);
    hp_arena_free(a);
}

/* The scale of the current image is not a constant that can be returned. */
static void a_scale_is_no_result(void **state) {
    (void)state;
    static const int64_t image[4] = {1, 3, 4, 4};
    hp_arena *a = hp_arena_new();
    onnx_writer w = onnx_writer_start(a, 13);
    hp_onnx_model m;
    hp_error err;
    onnx_write_input(&w, "x", 4, image);
    onnx_write_node(&w, "DynamicQuantizeLinear", "x", "q s z");
    onnx_write_output(&w, "q");
    assert_int_equal(odd_parse(&w, 0, 0, &m, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "must not be a result"));
    hp_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_type_of_a_quantised_output_is_its_zero_points),
        cmocka_unit_test(quantised_while_it_runs),
        cmocka_unit_test(a_scale_is_no_result),
        cmocka_unit_test(simplified_graphs_compute_the_same),
        cmocka_unit_test(four_nodes_become_one_hard_swish_and_scales_vanish),
        cmocka_unit_test(layers_and_parameters_keep_their_names),
        cmocka_unit_test(shapes_follow_the_image),
        cmocka_unit_test(a_database_holds_the_model_for_every_size),
        cmocka_unit_test(forms_of_weights),
        cmocka_unit_test(quantised_weights_and_scales_are_taken_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
