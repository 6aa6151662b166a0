/* test_geometry.c - what every part of a stage holds: enough for its layers, and computed no further than
 * they read. With several layers per exchange: the published depths, counts and redundant rows of
 * communication-avoiding halos. */
#include "networks/graph/reads.h"
#include "networks/nets/net_act.h"
#include "tests/support/plan/brute_tiles.h"
#include "tests/support/plan/odd_net.h"
#include "tests/support/plan/law_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* --- any network, any layout --- */

typedef struct drawn {
    const hp_graph *g;
    hp_geometry *geo;
    hp_layout layout;
    int first, end, samples, halo, branches;
} drawn;

static void draw_layout_weights(dice *d, hp_layout *l) {
    const int parts[HP_AXIS_C] = {l->slices, l->rows, l->cols};
    for (int axis = 0; axis < HP_AXIS_C; axis++) {
        l->by[axis].n = coin(d) ? parts[axis] : 0;
        for (int i = 0; i < l->by[axis].n; i++) l->by[axis].of[i] = (uint16_t)roll(d, 1, 6);
    }
}

static drawn draw_stage(hp_arena *arena, uint64_t seed) {
    dice d = {seed, 4000};
    drawn s = {.g = any_net(arena, seed, roll(&d, 3, 9)), .samples = roll(&d, 1, 4), .halo = roll(&d, 1, 5)};
    assert_non_null(s.g);
    const bool plain = s.halo > 1; /* channels and branches exchange before every convolution */
    s.layout = (hp_layout){.rows = roll(&d, 1, 5),
                           .cols = roll(&d, 1, 4),
                           .slices = roll(&d, 1, 3),
                           .channels = plain ? 1 : roll(&d, 1, 3),
                           .tp = 1,
                           .seq = 1};
    draw_layout_weights(&d, &s.layout);
    s.branches = plain ? 1 : roll(&d, 1, 3);
    const int from = roll(&d, 0, s.g->n_unit - 1), to = roll(&d, from + 1, s.g->n_unit);
    s.first = s.g->unit_first[from];
    s.end = s.g->unit_first[to];
    s.geo = hp_geometry_deep(arena, s.g, &s.layout, s.branches, s.first, s.end, s.samples, s.halo, 0);
    return s;
}

static const hp_box *have_of(const drawn *s, int part, int t) {
    return hp_geometry_have(s->geo, s->g, part, t);
}

static bool made_here(const drawn *s, int t) {
    return s->g->tensor[t].producer >= s->first && s->g->tensor[t].producer > 0;
}

static bool in_stage(const drawn *s, int t) {
    return s->g->tensor[t].producer < s->end && hp_graph_last_use(s->g, t) >= s->first;
}

/* Nothing of it is computed twice: if a part needs more, it arrives in an exchange. */
static bool owned_only(const drawn *s, int t) {
    for (int p = 0; p < s->geo->n_part; p++)
        if (!hp_box_equal(have_of(s, p, t), hp_geometry_own(s->geo, s->g, p, t))) return false;
    return true;
}

static void check_owned(const drawn *s, int t) {
    const hp_box whole = hp_box_whole(s->g, t, s->samples);
    for (int p = 0; p < s->geo->n_part; p++) {
        const hp_box *own = hp_geometry_own(s->geo, s->g, p, t);
        const hp_box want = p % s->branches == s->geo->branch_of[t]
                                ? hp_layout_own(&s->layout, s->g, t, s->samples, p / s->branches)
                                : (hp_box){{0}, {0}};
        assert_true(hp_box_equal(own, &want));
        assert_true(hp_box_within(own, have_of(s, p, t)) && hp_box_within(have_of(s, p, t), &whole));
    }
    if (made_here(s, t) && s->halo == 1) assert_true(owned_only(s, t));
}

/* around[part * n_tensor + t]: bounding box of what the part owns and its layers read. */
static void check_layer(const drawn *s, int layer, hp_box *around) {
    const hp_layer *l = &s->g->layer[layer];
    for (int k = 0; k < l->n_in; k++) {
        const int x = l->in[k];
        const bool exchanged = made_here(s, x) && owned_only(s, x);
        for (int p = 0; p < s->geo->n_part; p++) {
            const hp_box *need = hp_geometry_need(s->geo, p, layer, k),
                         want = brute_need(s->g, layer, k, have_of(s, p, l->out));
            hp_box *most = &around[p * s->g->n_tensor + x];
            assert_true(hp_box_equal(need, &want));
            assert_true(exchanged || hp_box_within(need, have_of(s, p, x)));
            *most = hp_box_around(most, need);
        }
    }
}

static void parts_have_what_their_layers_read_and_no_more(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(2000); seed++) {
        hp_arena *arena = hp_arena_new();
        const drawn s = draw_stage(arena, seed);
        hp_box *around = HP_NEW(arena, hp_box, s.geo->n_part * s.g->n_tensor);
        for (int t = 0; t < s.g->n_tensor; t++) {
            if (in_stage(&s, t)) check_owned(&s, t);
            for (int p = 0; p < s.geo->n_part; p++)
                around[p * s.g->n_tensor + t] = *hp_geometry_own(s.geo, s.g, p, t);
        }
        for (int l = s.first ? s.first : 1; l < s.end; l++) check_layer(&s, l, around);
        for (int t = 0; t < s.g->n_tensor; t++) {
            if (!in_stage(&s, t) || (made_here(&s, t) && owned_only(&s, t))) continue;
            for (int p = 0; p < s.geo->n_part; p++)
                if (!hp_box_equal(have_of(&s, p, t), &around[p * s.g->n_tensor + t]))
                    fail_msg("seed %llu: part %d has more of tensor %d than its layers read",
                             (unsigned long long)seed, p, t);
        }
        hp_arena_free(arena);
    }
}

/* Number of halo-bearing layers between a tensor and the next exchanges after it. */
static void no_exchange_serves_more_layers_than_asked(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(2000); seed++) {
        hp_arena *arena = hp_arena_new();
        const drawn s = draw_stage(arena, seed);
        int *depth = HP_NEW(arena, int, s.g->n_tensor);
        for (int l = s.end - 1; l >= (s.first ? s.first : 1); l--)
            for (int k = 0; k < s.g->layer[l].n_in; k++) {
                const int x = s.g->layer[l].in[k], y = s.g->layer[l].out;
                const int after = hp_layer_has_halo(s.g, l) + (owned_only(&s, y) ? 0 : depth[y]);
                if (after > depth[x]) depth[x] = after;
                assert_true(depth[x] <= s.halo);
            }
        hp_arena_free(arena);
    }
}

/* --- chains --- */

/* A chain of `length` 3x3 convolutions of stride 1 with pointwise layers in between. */
static hp_graph *chain(hp_arena *arena, dice *d, int length, int h, int w) {
    hp_error err;
    hp_graph *g = NULL;
    hp_builder b = hp_builder_start(arena, "chain", h, w, 4, &err);
    int x = 0;
    for (int i = 0; i < length; i++) {
        hp_build_scope(&b, "%d.", i);
        x = hp_build_conv(&b, x, "conv", 4, (hp_window){.k = 3, .pad = 1});
        if (coin(d)) x = hp_build_bn(&b, x, "bn");
        if (coin(d)) x = hp_build_act(&b, x, "relu", HP_ACT_RELU);
        if (roll(d, 0, 3) == 0) x = hp_build_conv(&b, x, "one", 4, (hp_window){.k = 1});
    }
    if (hp_builder_finish(&b, &g) != HP_OK) fail_msg("%s", err.text);
    return g;
}

static int count_exchanges(const hp_graph *g, const hp_geometry *geo) {
    int n = 0;
    for (int t = 0; t < g->n_tensor; t++) {
        bool needs_more = false;
        for (int l = geo->first ? geo->first : 1; l < geo->end; l++)
            for (int k = 0; k < g->layer[l].n_in; k++)
                for (int p = 0; g->layer[l].in[k] == t && p < geo->n_part; p++)
                    needs_more |=
                        !hp_box_within(hp_geometry_need(geo, p, l, k), hp_geometry_have(geo, g, p, t));
        n += needs_more;
    }
    return n;
}

/* L halo-bearing layers, `halo` of them per exchange; the image includes its halo. */
static void a_chain_exchanges_once_per_group_but_for_the_first(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(300); seed++) {
        dice d = {seed, 5000};
        hp_arena *arena = hp_arena_new();
        const int length = roll(&d, 1, 9), halo = roll(&d, 1, 6), rows = roll(&d, 1, 3),
                  cols = roll(&d, 2, 3);
        const hp_graph *g = chain(arena, &d, length, roll(&d, 3, 40), roll(&d, 3, 40));
        const hp_layout layout = {rows, cols, 1, 1, 1, 1};
        const hp_geometry *geo = hp_geometry_deep(arena, g, &layout, 1, 0, g->n_layer, 1, halo, 0);
        assert_int_equal(count_exchanges(g, geo), (length + halo - 1) / halo - 1);
        hp_arena_free(arena);
    }
}

/* Rows of convolutions' outputs that several parts compute. */
static int64_t redundant_rows(const hp_graph *g, const hp_geometry *geo) {
    int64_t n = 0;
    for (int l = 1; l < g->n_layer; l++)
        for (int p = 0; g->layer[l].window.kh == 3 && p < geo->n_part; p++)
            n += hp_box_len(hp_geometry_have(geo, g, p, g->layer[l].out), HP_AXIS_H) -
                 hp_box_len(hp_geometry_own(geo, g, p, g->layer[l].out), HP_AXIS_H);
    return n;
}

/* A group of h convolutions computes h-1, h-2 .. 0 more rows at each of the 2(P-1) inner edges of P strips:
 * (P-1) h (h-1) rows. All groups except the first are full. */
static void redundant_rows_of_a_chain_follow_the_closed_form(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(300); seed++) {
        dice d = {seed, 6000};
        hp_arena *arena = hp_arena_new();
        const int length = roll(&d, 1, 9), h = roll(&d, 1, 6), strips = roll(&d, 2, 5);
        const hp_graph *g = chain(arena, &d, length, strips * 6 + roll(&d, 0, 9), 5);
        const hp_layout layout = {strips, 1, 1, 1, 1, 1};
        const hp_geometry *geo = hp_geometry_deep(arena, g, &layout, 1, 0, g->n_layer, 1, h, 0);
        const int full = (length - 1) / h, rest = length - full * h;
        assert_int_equal(redundant_rows(g, geo), (strips - 1) * (full * h * (h - 1) + rest * (rest - 1)));
        hp_arena_free(arena);
    }
}

/* Before a layer that reads everything, all layers would be computed twice; the parts exchange there
 * instead. */
static void what_is_read_whole_is_not_computed_twice(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    for (int halo = 1; halo <= 5; halo++) {
        hp_error err;
        hp_graph *g = NULL;
        hp_builder b = hp_builder_start(arena, "gather", 24, 24, 4, &err);
        const int x = hp_build_conv(&b, 0, "a", 4, (hp_window){.k = 3, .pad = 1});
        hp_build_conv(&b, hp_build_adaptpool(&b, x, "pool", 8, 8), "b", 4, (hp_window){.k = 3, .pad = 1});
        if (hp_builder_finish(&b, &g) != HP_OK) fail_msg("%s", err.text);
        const hp_layout layout = {2, 2, 1, 1, 1, 1};
        const hp_geometry *geo = hp_geometry_deep(arena, g, &layout, 1, 0, g->n_layer, 1, halo, 0);
        for (int p = 0; p < 4; p++)
            assert_true(hp_box_equal(hp_geometry_have(geo, g, p, x), hp_geometry_own(geo, g, p, x)));
    }
    hp_arena_free(arena);
}

/* --- fused residual blocks --- */

/* A unit that makes the tensor, then n blocks of two 3x3 convolutions with a shortcut, with norms before
 * (ResNet v2) or after them (v1); block `strided` has a stride of 2 (-1: none). */
static hp_graph *blocks(hp_arena *arena, int n, bool before, int strided, int h) {
    hp_error err;
    hp_graph *g = NULL;
    hp_builder b = hp_builder_start(arena, "blocks", h, 8, 4, &err);
    int x = hp_build_conv(&b, 0, "stem", 4, (hp_window){.k = 1});
    hp_build_unit(&b);
    for (int i = 0; i < n; i++) {
        int y = x;
        hp_build_scope(&b, "%d.", i);
        for (int k = 0; k < 2; k++) {
            const int stride = i == strided && k == 0 ? 2 : 1;
            if (before) y = hp_build_act(&b, hp_build_bn(&b, y, "bn"), "relu", HP_ACT_RELU);
            y = hp_build_conv(&b, y, "conv", 4, (hp_window){.k = 3, .stride = stride, .pad = 1});
            if (!before) y = hp_build_act(&b, hp_build_bn(&b, y, "bn"), "relu", HP_ACT_RELU);
        }
        if (i == strided) x = hp_build_conv(&b, x, "short", 4, (hp_window){.k = 1, .stride = 2});
        x = hp_build_add(&b, y, x, "add");
    }
    if (hp_builder_finish(&b, &g) != HP_OK) fail_msg("%s", err.text);
    return g;
}

static const hp_geometry *three_strips(hp_arena *arena, const hp_graph *g, int halo) {
    const hp_layout strips = {3, 1, 1, 1, 1, 1};
    return hp_geometry_deep(arena, g, &strips, 1, g->unit_first[1], g->n_layer, 1, halo, 0);
}

/* How far the first convolution of the middle strip reads into its neighbours, on the side where it is more;
 * the whole group takes at most one round. */
static int depth_before(hp_arena *arena, const hp_graph *g, int halo) {
    const hp_geometry *geo = three_strips(arena, g, halo);
    int layer = g->unit_first[1];
    while (g->layer[layer].op != HP_CONV) layer++;
    const hp_box *own = hp_geometry_own(geo, g, 1, g->layer[layer].in[0]),
                 *need = hp_geometry_need(geo, 1, layer, 0);
    const int above = own->lo[HP_AXIS_H] - need->lo[HP_AXIS_H],
              below = need->hi[HP_AXIS_H] - own->hi[HP_AXIS_H];
    assert_true(count_exchanges(g, geo) <= 1);
    return above > below ? above : below;
}

/* MPI4DL's halo-D2 (ResNet, f blocks per exchange): 2f rows; 4f-1 when the first block strides; with w blocks
 * from the stride on, 2(f-w) + 2(2w-1) + 1. */
static void fused_residual_blocks_need_the_published_depth(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    for (int f = 1; f <= 6; f++)
        for (int before = 0; before < 2; before++) {
            assert_int_equal(depth_before(arena, blocks(arena, f, before, -1, 96), 2 * f), 2 * f);
            assert_int_equal(depth_before(arena, blocks(arena, f, before, 0, 96), 2 * f), 4 * f - 1);
            for (int w = 1; w <= f; w++)
                assert_int_equal(depth_before(arena, blocks(arena, f, before, f - w, 96), 2 * f),
                                 2 * (f - w) + 2 * (2 * w - 1) + 1);
        }
    hp_arena_free(arena);
}

/* f blocks per exchange; the first group's input includes its halo. */
static void residual_blocks_exchange_once_per_group(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    for (int n = 1; n <= 8; n++)
        for (int f = 1; f <= n; f++) {
            const hp_graph *v1 = blocks(arena, n, false, -1, 120), *v2 = blocks(arena, n, true, -1, 120);
            const int groups = (n + f - 1) / f, alone = f == 1; /* after the norm: no shortcut reads a halo */
            assert_int_equal(count_exchanges(v1, three_strips(arena, v1, 2 * f)), groups - 1);
            assert_int_equal(count_exchanges(v2, three_strips(arena, v2, 2 * f)), groups - 1 + alone);
        }
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_have_what_their_layers_read_and_no_more),
        cmocka_unit_test(no_exchange_serves_more_layers_than_asked),
        cmocka_unit_test(a_chain_exchanges_once_per_group_but_for_the_first),
        cmocka_unit_test(redundant_rows_of_a_chain_follow_the_closed_form),
        cmocka_unit_test(what_is_read_whole_is_not_computed_twice),
        cmocka_unit_test(fused_residual_blocks_need_the_published_depth),
        cmocka_unit_test(residual_blocks_exchange_once_per_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
