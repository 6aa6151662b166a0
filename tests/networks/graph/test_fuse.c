/* test_fuse.c - the fusing pass and the shape rules, on small graphs written for them. */
#include "networks/graph/fuse.h"
#include "networks/graph/shape.h"
#include "networks/nets/net_act.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* --- the fusing pass --- */

static hp_graph *finish_fused(hp_arena *a, hp_builder *b) {
    hp_graph *plain = NULL;
    assert_int_equal(hp_builder_finish(b, &plain), HP_OK);
    return hp_graph_fuse(a, plain);
}

static void a_norm_read_twice_keeps_its_own_output(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    hp_builder b = hp_builder_start(a, "test", 8, 8, 2, NULL);
    const int n = hp_build_bn(&b, 0, "bn");
    const int r = hp_build_act(&b, n, "relu", HP_ACT_RELU);
    hp_build_add(&b, r, n, "add");
    const hp_graph *g = finish_fused(a, &b);
    assert_int_equal(g->n_layer, 4);
    assert_int_equal(g->layer[1].act, HP_ACT_NONE);
    hp_arena_free(a);
}

static void of_two_norms_the_later_takes_the_addition(void **state) {
    (void)state;
    for (int swap = 0; swap < 2; swap++) {
        hp_arena *a = hp_arena_new();
        hp_builder b = hp_builder_start(a, "test", 8, 8, 2, NULL);
        const int n1 = hp_build_bn(&b, 0, "bn1"), n2 = hp_build_bn(&b, 0, "bn2");
        hp_build_act(&b, hp_build_add(&b, swap ? n2 : n1, swap ? n1 : n2, "add"), "relu6", HP_ACT_RELU6);
        const hp_graph *g = finish_fused(a, &b);
        assert_int_equal(g->n_layer, 3);
        assert_int_equal(g->layer[2].act, HP_ACT_RELU6);
        assert_int_equal(g->layer[2].n_in, 2);
        assert_int_equal(g->layer[2].in[1], 1); /* the first norm */
        assert_string_equal(g->layer[2].name, "bn2");
        hp_arena_free(a);
    }
}

static void addition_takes_its_activation_and_a_lone_one_stays(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    hp_builder b = hp_builder_start(a, "test", 8, 8, 2, NULL);
    const int r = hp_build_act(&b, 0, "relu", HP_ACT_RELU);
    hp_build_act(&b, hp_build_add(&b, r, 0, "add"), "relu2", HP_ACT_RELU);
    const hp_graph *g = finish_fused(a, &b);
    assert_int_equal(g->n_layer, 3);
    assert_int_equal(g->layer[1].op, HP_ACT);
    assert_int_equal(g->layer[2].op, HP_ADD);
    assert_int_equal(g->layer[2].act, HP_ACT_RELU);
    hp_arena_free(a);
}

/* ReLU, convolution, norm: the ReLU precedes its convolution and belongs to no norm; a norm that the sum and
 * other layers read keeps its output. */
static void pre_activation_orders_are_kept(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    hp_builder b = hp_builder_start(a, "test", 8, 8, 2, NULL);
    int s[2];
    for (int k = 0; k < 2; k++) {
        const int r = hp_build_act(&b, k ? s[0] : 0, k ? "relu1" : "relu0", HP_ACT_RELU);
        s[k] = hp_build_bn(&b, hp_build_conv(&b, r, "conv", 3, (hp_window){.k = 1}), k ? "bn1" : "bn0");
    }
    hp_build_add(&b, s[0], s[1], "sum");
    const hp_graph *g = finish_fused(a, &b);
    static const int ops[] = {HP_INPUT, HP_ACT, HP_CONV, HP_BN, HP_ACT, HP_CONV, HP_BN};
    assert_int_equal(g->n_layer, 7);
    for (int l = 0; l < 7; l++) assert_int_equal(g->layer[l].op, ops[l]);
    assert_int_equal(g->layer[3].act, HP_ACT_NONE);
    assert_int_equal(g->layer[3].n_in, 1);
    assert_int_equal(g->layer[6].n_in, 2);
    assert_int_equal(g->layer[6].in[1], g->layer[3].out);
    hp_arena_free(a);
}

static void nothing_is_fused_across_units(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    hp_builder b = hp_builder_start(a, "test", 8, 8, 2, NULL);
    const int n = hp_build_bn(&b, 0, "bn");
    hp_build_unit(&b);
    hp_build_act(&b, n, "relu", HP_ACT_RELU);
    assert_int_equal(finish_fused(a, &b)->n_layer, 3);
    hp_arena_free(a);
}

/* --- shapes --- */

/* Counts windows one by one: each starts a stride after the previous one. Without ceil mode, the whole window
 * lies in the padded image. With it, the previous one must not reach the padded end, and the window starts
 * before the trailing padding. */
static int count_windows(int in, int k, int stride, int pad, bool ceil_mode) {
    int n = 0;
    for (int start = 0;; start += stride, n++) {
        if (!ceil_mode && start + k > in + 2 * pad) return n;
        if (ceil_mode && (start >= in + pad || start - stride + k >= in + 2 * pad)) return n;
    }
}

static void window_shapes_are_the_windows_counted(void **state) {
    (void)state;
    for (int in = 1; in < 12; in++)
        for (int k = 1; k < 6; k++)
            for (int stride = 1; stride <= k; stride++)
                for (int pad = 0; pad <= k / 2; pad++)
                    for (int ceil_mode = 0; ceil_mode < 2; ceil_mode++) {
                        hp_tensor x = {.h = in, .w = in, .c = 5}, y = {0};
                        const hp_graph g = {.n_tensor = 1, .tensor = &x};
                        const hp_layer l = {.name = "pool",
                                            .op = HP_MAXPOOL,
                                            .n_in = 1,
                                            .window.kh = k,
                                            .window.kw = 1,
                                            .window.stride_h = stride,
                                            .window.stride_w = 1,
                                            .window.pad_h = pad,
                                            .window.dil_h = 1,
                                            .window.dil_w = 1,
                                            .window.ceil_mode = ceil_mode};
                        const int n = count_windows(in, k, stride, pad, ceil_mode);
                        const hp_status status = hp_layer_shape(&g, &l, 0, &y, NULL);
                        assert_int_equal(status, n > 0 ? HP_OK : HP_EPLAN);
                        assert_int_equal(y.h, n);
                        assert_int_equal(y.w, in);
                        assert_int_equal(y.c, 5);
                    }
}

/* Over the area that a transposed convolution covers, a convolution has as many windows as the transposed one
 * has inputs. */
static void transposed_shapes_invert_convolutions(void **state) {
    (void)state;
    for (int in = 1; in < 9; in++)
        for (int k = 1; k < 6; k++)
            for (int stride = 1; stride < 5; stride++)
                for (int pad = 0; pad <= k / 2; pad++) {
                    hp_tensor x = {.h = in, .w = 3, .c = 5}, y = {0}, back = {0};
                    const hp_graph g = {.n_tensor = 1, .tensor = &x}, g2 = {.n_tensor = 1, .tensor = &y};
                    hp_layer l = {.name = "up",
                                  .op = HP_CONVT,
                                  .n_in = 1,
                                  .window.kh = k,
                                  .window.kw = 1,
                                  .window.stride_h = stride,
                                  .window.stride_w = 1,
                                  .window.pad_h = pad,
                                  .window.dil_h = 1,
                                  .window.dil_w = 1,
                                  .groups = 1};
                    const hp_status status = hp_layer_shape(&g, &l, 7, &y, NULL);
                    assert_int_equal(status, (in - 1) * stride + k > 2 * pad ? HP_OK : HP_EPLAN);
                    if (status != HP_OK) continue;
                    assert_int_equal(y.w, 3);
                    assert_int_equal(y.c, 7);
                    l.op = HP_CONV;
                    assert_int_equal(hp_layer_shape(&g2, &l, 5, &back, NULL), HP_OK);
                    assert_int_equal(back.h, in);
                }
}

static void padding_must_hold_its_input(void **state) {
    (void)state;
    for (int at = -1; at < 4; at++)
        for (int to = 3; to < 9; to++) {
            hp_tensor x = {.h = 5, .w = 2, .c = 3}, y = {0};
            const hp_graph g = {.n_tensor = 1, .tensor = &x};
            const hp_layer l = {
                .name = "pad", .op = HP_PAD, .n_in = 1, .window.pad_h = at, .out_h = to, .out_w = 2};
            const bool holds = at >= 0 && at + 5 <= to;
            assert_int_equal(hp_layer_shape(&g, &l, 0, &y, NULL), holds ? HP_OK : HP_EINTERNAL);
            if (holds) assert_true(y.h == to && y.w == 2 && y.c == 3);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_norm_read_twice_keeps_its_own_output),
        cmocka_unit_test(of_two_norms_the_later_takes_the_addition),
        cmocka_unit_test(addition_takes_its_activation_and_a_lone_one_stays),
        cmocka_unit_test(pre_activation_orders_are_kept),
        cmocka_unit_test(nothing_is_fused_across_units),
        cmocka_unit_test(window_shapes_are_the_windows_counted),
        cmocka_unit_test(transposed_shapes_invert_convolutions),
        cmocka_unit_test(padding_must_hold_its_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
