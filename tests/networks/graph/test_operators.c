/* test_operators.c - operators beyond those of torchvision's networks: shapes by the published formulas,
 * rejection of mismatched inputs, parameters of built layers, and which networks can be trained. */
#include "networks/graph/graph_gather.h"
#include "networks/graph/shape.h"
#include "networks/nets/net_act.h"
#include "plan/program/program.h"
#include "base/rng.h"
#include "plan/lower/lower.h"
#include "tests/support/plan/built/append_layers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static hp_builder start(hp_arena *arena, int h, int w, hp_error *err) {
    return hp_builder_start(arena, "drawn", h, w, 10, err);
}

static int pick(uint64_t seed, uint64_t *n, int low, int high) {
    return low + (int)hp_rng_below(seed, 17, (*n)++, (uint64_t)(high - low + 1));
}

/* --- shapes --- */

/* ONNX Conv: floor((in + before + after - dilation (k - 1) - 1) / stride) + 1. Any padding after the map
 * corresponds to a number of windows, and different numbers to different padding. */
static void padding_after_the_map_is_a_number_of_windows(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        uint64_t n = 0;
        hp_error err = {0};
        hp_arena *arena = hp_arena_new();
        const int h = pick(seed, &n, 20, 40), w = pick(seed, &n, 20, 40), after = pick(seed, &n, 0, 4);
        hp_layer like = {.op = HP_CONV, .window.kh = pick(seed, &n, 1, 5), .window.kw = pick(seed, &n, 1, 5)};
        like.window.stride_h = like.window.stride_w = pick(seed, &n, 1, 3);
        like.window.dil_h = like.window.dil_w = pick(seed, &n, 1, 2);
        like.window.pad_h = like.window.pad_w = pick(seed, &n, 0, 3);
        like.out_h = (h + like.window.pad_h + after - like.window.dil_h * (like.window.kh - 1) - 1) /
                         like.window.stride_h +
                     1;
        like.out_w = (w + like.window.pad_w + after - like.window.dil_w * (like.window.kw - 1) - 1) /
                         like.window.stride_w +
                     1;
        like.n_param = pick(seed, &n, 1, 2);
        hp_builder b = start(arena, h, w, &err);
        const int y = append_conv_as(&b, 0, "conv", 6, &like);
        assert_int_equal(b.status, HP_OK);
        assert_true(b.g->tensor[y].h == like.out_h && b.g->tensor[y].w == like.out_w);
        assert_int_equal(b.g->n_param, like.n_param);
        assert_int_equal(hp_layer_macs(b.g, 1),
                         (int64_t)like.out_h * like.out_w * 6 * 3 * like.window.kh * like.window.kw);
        like.out_h = like.out_w = 0;
        const int same = append_conv_as(&b, 0, "same", 6, &like);
        const int equal = (h + 2 * like.window.pad_h - like.window.dil_h * (like.window.kh - 1) - 1) /
                              like.window.stride_h +
                          1;
        assert_int_equal(b.g->tensor[same].h, equal);
        hp_arena_free(arena);
    }
}

/* torch.nn.ConvTranspose2d: (in - 1) stride - 2 pad + dilation (k - 1) + output_padding + 1; weights (I, O /
 * groups, kh, kw); every input element is multiplied with each of its weights. */
static void transposed_convolutions_are_torchs(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        uint64_t n = 0;
        hp_error err = {0};
        hp_arena *arena = hp_arena_new();
        const int h = pick(seed, &n, 3, 9), groups = pick(seed, &n, 0, 1) ? 3 : 1,
                  stride = pick(seed, &n, 1, 4);
        const int more = pick(seed, &n, 0, stride - 1);
        hp_layer like = {.op = HP_CONVT, .groups = groups, .n_param = 2};
        like.window.kh = like.window.kw = pick(seed, &n, 2, 5);
        like.window.stride_h = like.window.stride_w = stride;
        like.window.dil_h = like.window.dil_w = pick(seed, &n, 1, 3);
        like.window.pad_h = like.window.pad_w = pick(seed, &n, 0, 1);
        const int want =
            (h - 1) * stride - 2 * like.window.pad_h + like.window.dil_h * (like.window.kh - 1) + more + 1;
        if (more) like.out_h = like.out_w = want;
        hp_builder b = start(arena, h, h, &err);
        const int y = append_conv_as(&b, 0, "up", 6, &like);
        assert_int_equal(b.status, HP_OK);
        assert_true(b.g->tensor[y].h == want && b.g->tensor[y].w == want && b.g->tensor[y].c == 6);
        assert_int_equal(b.g->param[0].dim[0], 3);
        assert_int_equal(b.g->param[0].dim[1], 6 / groups);
        assert_int_equal(b.g->param[1].count, 6);
        assert_int_equal(hp_layer_macs(b.g, 1),
                         (int64_t)h * h * 3 * (6 / groups) * like.window.kh * like.window.kw);
        hp_arena_free(arena);
    }
}

static void the_others_have_the_shape_of_their_input(void **state) {
    (void)state;
    hp_error err = {0};
    hp_arena *arena = hp_arena_new();
    hp_builder b = start(arena, 12, 20, &err);
    const int x = hp_build_conv(&b, 0, "conv", 8, (hp_window){.k = 1}),
              vector = hp_build_adaptpool(&b, x, "pool", 1, 1),
              gate = hp_build_act_with(&b, vector, "gate", HP_ACT_HSIGMOID, 0.2, 0.5),
              gated = hp_build_mul(&b, x, gate, "gated"), squared = hp_build_mul(&b, gated, gated, "squared"),
              scaled = append_scale(&b, squared, "scale", true),
              large = hp_build_resize(&b, scaled, "large", 24, 41, HP_BILINEAR, HP_CORNERS_ALIGN),
              most = append_softmax(&b, large, "softmax");
    assert_int_equal(b.status, HP_OK);
    const int same[] = {gated, squared, scaled};
    for (int i = 0; i < 3; i++) {
        const hp_tensor *t = &b.g->tensor[same[i]];
        assert_true(t->h == 12 && t->w == 20 && t->c == 8);
    }
    assert_true(b.g->tensor[most].h == 24 && b.g->tensor[most].w == 41 && b.g->tensor[most].c == 8);
    const hp_layer *l = &b.g->layer[b.g->tensor[gate].producer],
                   *s = &b.g->layer[b.g->tensor[scaled].producer];
    assert_true(l->act == HP_ACT_HSIGMOID && l->act_arg.a == 0.2 && l->act_arg.b == 0.5);
    assert_true(s->n_param == 2 && b.g->param[s->param[0]].kind == HP_PARAM_FACTOR);
    assert_string_equal(b.g->param[s->param[0]].name, "scale.weight");
    assert_string_equal(b.g->param[s->param[1]].name, "scale.bias");
    hp_arena_free(arena);
}

/* --- refusals --- */

static hp_status shape_of(hp_layer l, const hp_tensor *t, hp_error *err) {
    hp_tensor tensor[3] = {t[0], t[1]}, out;
    hp_graph g = {.tensor = tensor, .n_tensor = 3};
    l.name = "layer";
    l.in[1] = 1;
    return hp_layer_shape(&g, &l, 4, &out, err);
}

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    const hp_tensor map[2] = {{8, 8, 6}, {8, 8, 6}}, vector[2] = {{8, 8, 6}, {1, 1, 5}};
    const hp_layer window = {.op = HP_MAXPOOL,
                             .n_in = 1,
                             .window.kh = 3,
                             .window.kw = 3,
                             .window.stride_h = 2,
                             .window.stride_w = 2};
    hp_error err = {0};
    hp_layer l = window;
    l.window.dil_h = l.window.dil_w = l.groups = 1;
    l.out_h = l.out_w = 4;
    assert_int_equal(shape_of(l, map, &err), HP_OK);
    l.out_h = 5; /* a window that begins after the map */
    assert_int_equal(shape_of(l, map, &err), HP_EPLAN);
    l.out_h = 4;
    l.window.pad_h = 3; /* one that ends before it */
    assert_int_equal(shape_of(l, map, &err), HP_EPLAN);
    l.window.pad_h = 0;
    l.op = HP_AVGPOOL;
    l.window.dil_h = 2;
    assert_int_equal(shape_of(l, map, &err), HP_EUNAVAIL);
    l.window.dil_h = 1;
    l.op = HP_CONV;
    l.n_in = 2; /* adds an 8x8 map to a 4x4 one */
    assert_int_equal(shape_of(l, map, &err), HP_EINTERNAL);
    l.op = HP_CONVT;
    l.n_in = 1;
    l.groups = 4; /* there are 6 channels */
    assert_int_equal(shape_of(l, map, &err), HP_EINTERNAL);
    assert_int_equal(shape_of((hp_layer){.op = HP_MUL, .n_in = 2}, vector, &err), HP_EINTERNAL);
    assert_int_equal(shape_of((hp_layer){.op = HP_RESIZE, .n_in = 1, .out_h = 3}, map, &err), HP_EPLAN);
}

/* What a file may claim: more channels, in any product of numbers, or more border than exists; for an 8 x 8
 * map of 6 channels. */
static void gathers_beyond_the_map_are_refused(void **state) {
    enum { MUCH = 1 << 24 };
    (void)state;
    const hp_tensor map[2] = {{8, 8, 6}, {8, 8, 6}};
    const hp_layer fits = {.op = HP_GATHER,
                           .n_in = 1,
                           .window.kh = 1,
                           .window.kw = 1,
                           .groups = 3,
                           .gather.first = 1,
                           .gather.step = 2,
                           .gather.out_c = 3,
                           .out_h = 8,
                           .out_w = 8};
    hp_layer l[12];
    hp_error err = {0};
    assert_int_equal(shape_of(fits, map, &err), HP_OK);
    for (int i = 0; i < 12; i++) l[i] = fits;
    l[0].gather.first = 2;
    l[1].gather.step = 3;
    l[2].gather.step = MUCH;
    l[3].window.kh = l[3].window.kw = l[3].gather.out_c = l[3].groups = MUCH;
    l[4].groups = 1;
    l[4].gather.step_outer = MUCH;
    l[5].groups = 2; /* there are 3 */
    l[6].gather.out_c = 0;
    l[7].groups = 0;
    l[8].window.pad_h = 1; /* no border */
    l[9].out_w = 9;
    l[10].gather.border = HP_BORDER_REFLECT;
    l[10].window.pad_h = 8;
    l[10].out_h = 16;
    l[11].gather.border = HP_BORDER_SYMMETRIC;
    l[11].out_w = 17;
    for (int i = 0; i < 12; i++) assert_int_not_equal(shape_of(l[i], map, &err), HP_OK);
    l[10].window.pad_h = 7;
    l[11].out_w = 16;
    for (int i = 10; i < 12; i++) assert_int_equal(shape_of(l[i], map, &err), HP_OK);
}

/* --- training --- */

typedef int build_fn(hp_builder *b, int x);

static int build_mul(hp_builder *b, int x) {
    return hp_build_mul(b, x, x, "odd");
}

static int build_scale(hp_builder *b, int x) {
    return append_scale(b, x, "odd", false);
}

static int build_resize(hp_builder *b, int x) {
    return hp_build_resize(b, x, "odd", 9, 9, HP_NEAREST, HP_CORNERS_ASYMMETRIC);
}

static int build_softmax(hp_builder *b, int x) {
    return append_softmax(b, x, "odd");
}

static int build_argmax(hp_builder *b, int x) {
    return append_reduce(b, x, "odd", HP_CHANNELS_ARGMAX);
}

static int build_largest(hp_builder *b, int x) { /* this one can be trained */
    return append_reduce(b, x, "odd", HP_CHANNELS_MAX);
}

static int build_hswish(hp_builder *b, int x) {
    return hp_build_act(b, x, "odd", HP_ACT_HSWISH);
}

static int build_grouped(hp_builder *b, int x) {
    const hp_layer like = {.op = HP_CONVT,
                           .window.kh = 2,
                           .window.kw = 2,
                           .window.stride_h = 2,
                           .window.stride_w = 2,
                           .groups = 2};
    return append_conv_as(b, x, "odd", 4, &like);
}

static int build_counted(hp_builder *b, int x) {
    const hp_layer like = {.op = HP_AVGPOOL,
                           .window.kh = 2,
                           .window.kw = 2,
                           .out_h = 8,
                           .out_w = 8,
                           .window.count_include_pad = 1};
    return append_pool_as(b, x, "odd", &like);
}

static int build_shifted(hp_builder *b, int x) { /* this one can be trained */
    const hp_layer like = {.op = HP_CONV,
                           .window.kh = 3,
                           .window.kw = 3,
                           .window.stride_h = 2,
                           .window.stride_w = 2,
                           .out_h = 4,
                           .out_w = 4};
    return append_conv_as(b, x, "odd", 4, &like);
}

/* One more position than a byte can distinguish; and one fewer. */
static int build_wide_max(hp_builder *b, int x) {
    return hp_build_maxpool(b, hp_build_resize(b, x, "up", 40, 40, HP_NEAREST, HP_CORNERS_ASYMMETRIC), "odd",
                            (hp_window){.k = 17});
}

static int build_full_max(hp_builder *b, int x) {
    return hp_build_maxpool(b, hp_build_resize(b, x, "up", 40, 40, HP_NEAREST, HP_CORNERS_ASYMMETRIC), "odd",
                            (hp_window){.k = 16});
}

static const struct {
    build_fn *build;
    const char *what;
} untrained[] = {{build_wide_max, "maxpool"}, {build_full_max, NULL},   {build_mul, NULL},
                 {build_scale, "scale"},      {build_resize, NULL},     {build_softmax, "softmax"},
                 {build_hswish, NULL},        {build_grouped, "convt"}, {build_counted, "avgpool"},
                 {build_shifted, NULL},       {build_argmax, "reduce"}, {build_largest, NULL}};

static hp_graph *with(hp_arena *arena, build_fn *build) {
    hp_error err = {0};
    hp_graph *g;
    hp_builder b = start(arena, 8, 8, &err);
    const int x = hp_build_conv(&b, 0, "conv", 4, (hp_window){.k = 1});
    hp_build_linear(&b, hp_build_adaptpool(&b, build(&b, x), "pool", 1, 1), "fc", 10);
    assert_int_equal(hp_builder_finish(&b, &g), HP_OK);
    return g;
}

/* The same network can still be lowered for inference. */
static void layers_without_a_backward_pass_are_named(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof untrained / sizeof *untrained; i++) {
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = with(arena, untrained[i].build);
        const hp_strategy s = hp_strategy_default();
        hp_lower_options o = {.mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = 2, .place = true};
        hp_program *p;
        hp_reject why = {0};
        hp_error err = {0};
        const bool trains = untrained[i].what == NULL;
        assert_int_equal(hp_graph_trains(g, &why), trains);
        assert_int_equal(hp_lower(arena, g, &s, &o, &p, &err), trains ? HP_OK : HP_EPLAN);
        if (!trains) {
            assert_int_equal(why.code, HP_REJECT_TRAIN);
            assert_non_null(strstr(why.fix, "--mode infer, or a network without "));
            assert_non_null(strstr(why.fix, untrained[i].what));
            assert_non_null(strstr(why.limit, "layer odd ("));
            assert_non_null(strstr(why.limit, untrained[i].what));
            assert_non_null(strstr(err.text, why.limit));
        }
        o.mode = HP_MODE_INFER;
        assert_int_equal(hp_lower(arena, g, &s, &o, &p, &err), HP_OK);
        hp_arena_free(arena);
    }
}

/* Every row that a border reaches corresponds to one row of the map, on one side. */
static void readers_of_a_gathered_row_are_its_inverse(void **state) {
    (void)state;
    for (int64_t n = 1; n <= 5; n++)
        for (int border = 0; border < HP_BORDERS; border++) {
            const int64_t most[HP_BORDERS] = {0, 9, n - 1, n};
            for (int64_t at = -most[border]; at < n + most[border]; at++)
                for (int64_t row = 0; row < n; row++) {
                    int sides = 0;
                    for (int side = 0; side < HP_MAP_SIDES; side++) {
                        const hp_gather_rows r = hp_gather_readers(border, row, n, side);
                        sides += at >= r.lo && at < r.hi;
                    }
                    assert_int_equal(sides, row == hp_gather_row(border, at, n));
                }
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_of_a_gathered_row_are_its_inverse),
        cmocka_unit_test(padding_after_the_map_is_a_number_of_windows),
        cmocka_unit_test(transposed_convolutions_are_torchs),
        cmocka_unit_test(the_others_have_the_shape_of_their_input),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(gathers_beyond_the_map_are_refused),
        cmocka_unit_test(layers_without_a_backward_pass_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
