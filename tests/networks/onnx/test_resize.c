/* test_resize.c - ONNX's Resize: modes, coordinates, scales and sizes of some axes, compared with its
 * definition (onnx/docs/Operators.md) in float64; unsupported ones are named. */
#include "networks/graph/graph_check.h"
#include "networks/graph/graph_resize.h"
#include "networks/onnx/onnx.h"
#include "tests/support/onnx/onnx_write.h"
#include "tests/support/onnx/plain_graph.h"

#include <math.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { H = 5, W = 7, CHANNELS = 2 };

typedef struct request {
    const char *mode, *coordinates, *nearest, *policy;
    int opset, n_axes;
    int64_t axes[4];
    bool sizes;
    float of[4]; /* scales or sizes of the given axes, or of N, C, H, W */
    float cubic; /* 0: not said */
    int64_t outside, antialias;
} request;

static void write_float(onnx_writer *w, Onnx__NodeProto *n, const char *name, float v) {
    Onnx__AttributeProto *a = onnx_write_attribute(w, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    a->has_f = 1;
    a->f = v;
}

static hp_status read_request(hp_arena *a, const request *q, hp_onnx_model *m, hp_error *err) {
    const int64_t shape[4] = {1, CHANNELS, H, W}, n = q->n_axes ? q->n_axes : 4;
    onnx_writer w = onnx_writer_start(a, q->opset ? q->opset : 18);
    int64_t sizes[4];
    size_t size;
    for (int i = 0; i < 4; i++) sizes[i] = (int64_t)q->of[i];
    onnx_write_input(&w, "x", 4, shape);
    if (q->sizes)
        onnx_write_integers(&w, "sizes", 1, &n, sizes);
    else
        onnx_write_floats(&w, "scales", 1, &n, q->of);
    Onnx__NodeProto *node = onnx_write_node(&w, "Resize", q->sizes ? "x - - sizes" : "x - scales", "y");
    for (size_t i = 0; i < node->n_input; i++)
        if (strcmp(node->input[i], "-") == 0) node->input[i] = hp_arena_strdup(a, "");
    if (q->mode) onnx_write_text(&w, node, "mode", q->mode);
    if (q->coordinates) onnx_write_text(&w, node, "coordinate_transformation_mode", q->coordinates);
    if (q->nearest) onnx_write_text(&w, node, "nearest_mode", q->nearest);
    if (q->policy) onnx_write_text(&w, node, "keep_aspect_ratio_policy", q->policy);
    if (q->n_axes) onnx_write_ints(&w, node, "axes", (size_t)q->n_axes, q->axes);
    if (q->cubic != 0) write_float(&w, node, "cubic_coeff_a", q->cubic);
    if (q->outside) onnx_write_int(&w, node, "exclude_outside", q->outside);
    if (q->antialias) onnx_write_int(&w, node, "antialias", q->antialias);
    onnx_write_output(&w, "y");
    const void *data = onnx_writer_pack(&w, &size);
    return hp_onnx_parse(a, "resize.onnx", data, size, false, 0, 0, true, m, err);
}

/* --- the definition --- */

typedef struct side {
    int in, out;
    double scale;
} side;

static side side_of(const request *q, int dim) {
    side s = {dim == 2 ? H : W, 0, 1};
    const int n = q->n_axes ? q->n_axes : 4;
    s.out = s.in;
    for (int i = 0; i < n; i++) {
        const int64_t axis = q->n_axes ? (q->axes[i] + 4) % 4 : i;
        if (axis != dim) continue;
        s.scale = q->sizes ? (double)q->of[i] / s.in : (double)q->of[i];
        s.out = q->sizes ? (int)q->of[i] : (int)floor((double)((float)s.in * q->of[i]));
    }
    return s;
}

static bool is(const char *text, const char *word) {
    return text && strcmp(text, word) == 0;
}

static double coordinate(const request *q, side s, int i) {
    if (is(q->coordinates, "asymmetric")) return i / s.scale;
    if (is(q->coordinates, "align_corners")) return s.out == 1 ? 0 : (double)i * (s.in - 1) / (s.out - 1);
    if (is(q->coordinates, "pytorch_half_pixel") && s.out == 1) return 0;
    return (i + 0.5) / s.scale - 0.5;
}

static double keys(double a, double d) {
    if (d <= 1) return (a + 2) * pow(d, 3) - (a + 3) * d * d + 1;
    return d < 2 ? a * pow(d, 3) - 5 * a * d * d + 8 * a * d - 4 * a : 0;
}

/* Weight of input pixel i in output pixel o. */
static double weight(const request *q, side s, int o, int i) {
    const double at = coordinate(q, s, o), a = q->cubic != 0 ? (double)q->cubic : -0.75;
    double sum = 0, all = 0;
    if (is(q->mode, "cubic")) {
        for (int k = -3; k < s.in + 3; k++) {
            const bool outside = k < 0 || k >= s.in;
            if (q->outside && outside) continue;
            all += keys(a, fabs(at - k));
            if ((int)fmin(fmax(k, 0), s.in - 1) == i) sum += keys(a, fabs(at - k));
        }
        return q->outside ? sum / all : sum;
    }
    if (is(q->mode, "linear")) return fmax(0, 1 - fabs(fmin(fmax(at, 0), s.in - 1) - i));
    const double near = is(q->nearest, "floor") ? floor(at) : ceil(at - 0.5);
    return (int)fmin(fmax(near, 0), s.in - 1) == i;
}

static void compare_with_the_definition(const request *q) {
    hp_arena *a = hp_arena_new();
    const side rows = side_of(q, 2), cols = side_of(q, 3);
    hp_onnx_model m;
    hp_error err = {0};
    double image[H * W * CHANNELS];
    for (int i = 0; i < H * W * CHANNELS; i++) image[i] = sin(3 * i);
    if (read_request(a, q, &m, &err) != HP_OK) fail_msg("%s", err.text);
    if (hp_graph_check(m.graph, &err) != HP_OK) fail_msg("%s", err.text);
    const hp_tensor *t = &m.graph->tensor[m.graph->layer[m.graph->n_layer - 1].out];
    if (t->h != rows.out || t->w != cols.out) fail_msg("%dx%d, not %dx%d", t->h, t->w, rows.out, cols.out);
    plain p = {.g = m.graph};
    const double *y = plain_run(a, &p, image);
    for (int o = 0; o < t->h * t->w * CHANNELS; o++) {
        const int c = o % CHANNELS, x = o / CHANNELS % t->w, row = o / CHANNELS / t->w;
        double want = 0;
        for (int i = 0; i < H * W; i++)
            want += weight(q, rows, row, i / W) * weight(q, cols, x, i % W) * image[i * CHANNELS + c];
        if (fabs(y[o] - want) > 1e-9)
            fail_msg("mode %s, %s: %d,%d is %g, not %g", q->mode ? q->mode : "nearest",
                     q->coordinates ? q->coordinates : "half_pixel", row, x, y[o], want);
    }
    hp_arena_free(a);
}

static void modes_axes_and_scales_are_what_onnx_says(void **state) {
    static const request requests[] = {
        {.mode = "linear", .n_axes = 2, .axes = {2, 3}, .of = {2, 3}},
        {.mode = "linear", .n_axes = 2, .axes = {3, 2}, .of = {2, 3}},
        {.mode = "linear", .n_axes = 1, .axes = {-1}, .of = {2}},
        {.mode = "linear", .n_axes = 2, .axes = {-2, -1}, .sizes = true, .of = {9, 4}, .policy = "stretch"},
        {.n_axes = 4, .axes = {0, 1, 3, 2}, .of = {1, 1, 2, 2}},
        {.mode = "linear", .of = {1, 1, 1.3f, 0.7f}},
        {.mode = "linear", .coordinates = "asymmetric", .of = {1, 1, 2.6f, 0.6f}},
        {.mode = "linear", .coordinates = "pytorch_half_pixel", .of = {1, 1, 0.3f, 1.25f}},
        {.coordinates = "asymmetric", .nearest = "floor", .of = {1, 1, 1.7f, 0.9f}},
        {.nearest = "round_prefer_floor", .of = {1, 1, 1.7f, 0.8f}},
        {.mode = "cubic", .of = {1, 1, 2, 2}},
        {.mode = "cubic", .of = {1, 1, 0.7f, 1.6f}, .cubic = -0.5f},
        {.mode = "cubic", .coordinates = "align_corners", .sizes = true, .of = {1, CHANNELS, 9, 3}},
        {.mode = "cubic", .coordinates = "asymmetric", .of = {1, 1, 1.5f, 3}, .outside = 1},
        {.mode = "cubic", .sizes = true, .of = {1, CHANNELS, 13, 2}, .outside = 1, .cubic = -0.5f},
        {.mode = "cubic", .opset = 13, .of = {1, 1, 3, 2}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) compare_with_the_definition(&requests[i]);
}

static void what_is_not_read_is_named(void **state) {
    static const struct {
        request q;
        const char *says;
    } refused[] = {
        {{.mode = "linear", .of = {1, 1, 0.5f, 0.5f}, .antialias = 1}, "antialias"},
        {{.sizes = true, .n_axes = 2, .axes = {2, 3}, .of = {9, 9}, .policy = "not_larger"},
         "keep_aspect_ratio_policy 'not_larger'"},
        {{.n_axes = 2, .axes = {2, -2}, .of = {2, 2}}, "twice"},
        {{.n_axes = 2, .axes = {1, 2}, .of = {2, 2}}, "channels"},
        {{.n_axes = 1, .axes = {7}, .of = {2}}, "7"},
        {{.mode = "lanczos", .of = {1, 1, 2, 2}}, "lanczos"},
        {{.mode = "cubic", .of = {1, 1, 2, 2}, .cubic = NAN}, "cubic_coeff_a"},
        {{.mode = "linear", .coordinates = "tf_crop_and_resize", .of = {1, 1, 2, 2}}, "tf_crop_and_resize"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        hp_arena *a = hp_arena_new();
        hp_onnx_model m;
        hp_error err = {0};
        assert_int_equal(read_request(a, &refused[i].q, &m, &err), HP_EDATA);
        if (!strstr(err.text, refused[i].says)) fail_msg("'%s' does not say '%s'", err.text, refused[i].says);
        hp_arena_free(a);
    }
}

/* At another image size, a scale gives the integer part of its product, and sizes stay in proportion. */
static void a_scale_is_one_at_any_image_size(void **state) {
    const request q = {.mode = "linear", .of = {1, 1, 1.3f, 0.7f}};
    hp_arena *a = hp_arena_new();
    hp_onnx_model m;
    hp_error err = {0};
    hp_graph *g;
    (void)state;
    assert_int_equal(read_request(a, &q, &m, &err), HP_OK);
    assert_int_equal(hp_graph_resize(a, m.graph, 11, 23, &g, &err), HP_OK);
    assert_int_equal(g->tensor[1].h, (int)floor((double)(11.0f * 1.3f)));
    assert_int_equal(g->tensor[1].w, (int)floor((double)(23.0f * 0.7f)));
    assert_int_equal(hp_graph_resize(a, m.graph, 11, 1, &g, &err), HP_EPLAN);
    hp_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(modes_axes_and_scales_are_what_onnx_says),
                                       cmocka_unit_test(what_is_not_read_is_named),
                                       cmocka_unit_test(a_scale_is_one_at_any_image_size)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
