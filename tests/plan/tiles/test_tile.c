/* test_tile.c - boxes of single layers: the parts' own boxes cover a tensor exactly once; a layer's need, and
 * a kernel's view of it, equal a count tap by tap. Every operator, images down to one pixel, more tiles than
 * rows. */
#include "networks/graph/reads.h"
#include "networks/graph/resample.h"
#include "tests/support/plan/single_layer.h"
#include "tests/support/plan/law_cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* --- (a) what parts own --- */

static void mark(uint8_t *count, const hp_box *whole, const hp_box *b) {
    for (int n = b->lo[0]; n < b->hi[0]; n++)
        for (int y = b->lo[1]; y < b->hi[1]; y++)
            for (int x = b->lo[2]; x < b->hi[2]; x++)
                for (int c = b->lo[3]; c < b->hi[3]; c++)
                    count[((n * whole->hi[1] + y) * whole->hi[2] + x) * whole->hi[3] + c]++;
}

static void boxes_of_all_parts_cover_every_tensor_once(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(1200); seed++) {
        throws d = {seed, 0};
        single s = draw_layer(&d);
        point_at_own(&s);
        hp_layout l = draw_layout(&d);
        if (seed % 2) draw_weights(&d, &l);
        for (int t = 0; t < s.g.n_tensor; t++) {
            const hp_box whole = hp_box_whole(&s.g, t, s.samples);
            const int64_t n = hp_box_elems(&whole);
            uint8_t *count = calloc((size_t)n, 1);
            assert_non_null(count);
            for (int p = 0; p < hp_layout_parts(&l); p++) {
                const hp_box own = hp_layout_own(&l, &s.g, t, s.samples, p);
                assert_true(hp_box_within(&own, &whole));
                mark(count, &whole, &own);
            }
            for (int64_t i = 0; i < n; i++)
                if (count[i] != 1)
                    fail_msg("%s, tensor %d, %dx%dx%dx%d: element %lld has %d owners", said(&s, seed), t,
                             l.rows, l.cols, l.slices, l.channels, (long long)i, count[i]);
            free(count);
        }
    }
}

/* Within one of what its weight implies: the boundaries are the exact ones, rounded down. Equal weights split
 * like no weights. */
static void parts_are_in_proportion(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(2000); seed++) {
        throws d = {seed, 7};
        hp_layout l = draw_layout(&d);
        draw_weights(&d, &l);
        if (l.rows < 1) abort(); /* a layout has rows */
        const hp_proportions *w = &l.by[HP_AXIS_H];
        const int n = draw(&d, 1, 4000), each = w->n ? l.rows / w->n : 1;
        double total = 0, before = 0;
        for (int k = 0; k < l.rows; k++) total += w->n ? w->of[k / each] : 1;
        for (int k = 0; k <= l.rows; k++) {
            const double exact = n * before / total;
            assert_true(fabs(exact - hp_proportions_at(w, n, l.rows, k) - 0.5) <= 0.5 + 1e-9 * n);
            before += k == l.rows ? 0 : w->n ? w->of[k / each] : 1;
        }
        hp_proportions equal = {.n = w->n};
        for (int i = 0; i < equal.n; i++) equal.of[i] = w->of[0];
        for (int k = 0; k <= l.rows; k++)
            assert_int_equal(hp_proportions_at(&equal, n, l.rows, k), hp_split_at(n, l.rows, k));
        assert_int_equal(hp_proportions_reduced(&equal).n, 0);
    }
}

/* The largest possible values. */
static void proportions_do_not_overflow(void **state) {
    (void)state;
    hp_proportions w = {.n = HP_MAX_PROPORTIONS};
    for (int i = 0; i < w.n; i++) w.of[i] = UINT16_MAX;
    assert_int_equal(hp_proportions_at(&w, INT32_MAX, 1 << 16, 1 << 16), INT32_MAX);
    assert_int_equal(hp_proportions_at(&w, INT32_MAX, 1 << 16, 1 << 15), INT32_MAX / 2);
}

/* Rows, columns and samples of any two parts differ by at most one. */
static void parts_are_even(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(500); seed++) {
        throws d = {seed, 1};
        single s = draw_layer(&d);
        point_at_own(&s);
        const hp_layout l = draw_layout(&d);
        for (int a = HP_AXIS_N; a <= HP_AXIS_W; a++) {
            int least = INT32_MAX, most = 0;
            for (int p = 0; p < hp_layout_parts(&l); p++) {
                const hp_box own = hp_layout_own(&l, &s.g, 0, s.samples, p);
                const int n = hp_box_len(&own, a);
                if (n < least) least = n;
                if (n > most) most = n;
            }
            assert_true(most - least <= 1);
        }
    }
}

/* --- (b) what a layer needs --- */

/* Windows without gaps between their taps or between each other: the need is then the bounding box of the
 * taps inside the image. */
static bool gapless(const hp_layer *l, int axis) {
    const bool rows = axis == HP_AXIS_H;
    if (l->op == HP_CONVT && (rows ? l->window.dil_h : l->window.dil_w) > 1) return false;
    if (l->op != HP_CONV && l->op != HP_MAXPOOL && l->op != HP_AVGPOOL) return true;
    return (rows ? l->window.dil_h : l->window.dil_w) == 1 &&
           (rows ? l->window.stride_h : l->window.stride_w) <= (rows ? l->window.kh : l->window.kw);
}

static void check_need(const single *s, uint64_t seed, int k, const hp_box *out) {
    const hp_box need = hp_layer_need(&s->g, 1, k, out), all = hp_box_whole(&s->g, k, s->samples),
                 want = brute_need(&s->g, 1, k, out);
    if (hp_box_empty(&want) != hp_box_empty(&need)) fail_msg("%s, input %d: empty", said(s, seed), k);
    if (hp_box_empty(&want)) return;
    assert_true(hp_box_within(&need, &all));
    for (int a = 0; a < HP_AXES; a++) {
        const hull h = brute_hull(&s->g, 1, k, a, out);
        if (need.lo[a] != want.lo[a] || need.hi[a] != want.hi[a] ||
            (h.first < h.end && (need.lo[a] > h.first || need.hi[a] < h.end)))
            fail_msg("%s, input %d, axis %d: out %d..%d needs %d..%d, not %d..%d", said(s, seed), k, a,
                     out->lo[a], out->hi[a], want.lo[a], want.hi[a], need.lo[a], need.hi[a]);
        if (h.first < h.end && gapless(&s->layer[1], a))
            assert_true(need.lo[a] == h.first && need.hi[a] == h.end);
    }
}

static void a_layer_needs_the_box_around_its_taps(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(24000); seed++) {
        throws d = {seed, 2};
        single s = draw_layer(&d);
        point_at_own(&s);
        for (int i = 0; i < 8; i++) {
            const hp_box out = draw_output(&d, &s);
            for (int k = 0; k < s.layer[1].n_in; k++) check_need(&s, seed, k, &out);
        }
    }
}

/* A window along one axis, `small` of them side by side on the larger map: the input, or the output if
 * transposed. */
static single draw_strip(throws *d, bool transposed, int axis, int small) {
    single s = {.samples = 1};
    hp_layer *l = &s.layer[1];
    const int k = draw(d, 1, 4), stride = draw(d, 1, 4), dil = draw(d, 1, 2);
    const int large = (small - 1) * stride + (k - 1) * dil + 1;
    const bool rows = axis == HP_AXIS_H;
    s.layer[0] = (hp_layer){.op = HP_INPUT};
    *l = (hp_layer){.op = transposed ? HP_CONVT : HP_CONV,
                    .n_in = 1,
                    .out = 1,
                    .groups = 1,
                    .window.kh = 1,
                    .window.kw = 1,
                    .window.stride_h = 1,
                    .window.stride_w = 1,
                    .window.dil_h = 1,
                    .window.dil_w = 1};
    *(rows ? &l->window.kh : &l->window.kw) = k;
    *(rows ? &l->window.stride_h : &l->window.stride_w) = stride;
    *(rows ? &l->window.dil_h : &l->window.dil_w) = dil;
    const int in = transposed ? small : large, out = transposed ? large : small;
    s.tensor[0] = (hp_tensor){.h = rows ? in : 2, .w = rows ? 2 : in, .c = 2, .producer = 0};
    s.tensor[1] = (hp_tensor){.h = rows ? out : 2, .w = rows ? 2 : out, .c = 2, .producer = 1};
    s.g = (hp_graph){.n_layer = 2, .n_tensor = 2};
    return s;
}

/* A halo is what a split at a multiple of the stride lacks: one of the two parts reads across the border. */
static void a_halo_is_what_even_tiles_lack(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(2000); seed++) {
        throws d = {seed, 3};
        const bool transposed = draw(&d, 0, 3) == 0;
        const int axis = draw(&d, HP_AXIS_H, HP_AXIS_W), half = 10;
        single s = draw_strip(&d, transposed, axis, 2 * half);
        point_at_own(&s);
        const int stride = axis == HP_AXIS_H ? s.layer[1].window.stride_h : s.layer[1].window.stride_w;
        hp_box first = hp_box_whole(&s.g, 1, 1), second = first;
        first.hi[axis] = second.lo[axis] = transposed ? half * stride : half;
        const int border = transposed ? half : half * stride;
        first = brute_need(&s.g, 1, 0, &first);
        second = brute_need(&s.g, 1, 0, &second);
        assert_int_equal(hp_layer_has_halo(&s.g, 1), first.hi[axis] > border || second.lo[axis] < border);
    }
}

/* What resizing calls halo-free: each input pixel contains a whole number of output pixels, which read only
 * it. */
static void a_resized_map_without_halo_reads_its_own_pixels(void **state) {
    (void)state;
    int free_of_it = 0;
    for (uint64_t seed = 1; seed <= law_cases(2000); seed++) {
        throws d = {seed, 6};
        single s;
        while (!try_layer(&d, HP_RESIZE, &s)) continue;
        point_at_own(&s);
        if (hp_layer_has_halo(&s.g, 1)) continue;
        free_of_it++;
        for (int a = HP_AXIS_H; a <= HP_AXIS_W; a++) {
            const int times = axis_of(&s.tensor[1], a) / axis_of(&s.tensor[0], a);
            for (int o = 0; o < axis_of(&s.tensor[1], a); o++) {
                hp_box out = hp_box_whole(&s.g, 1, 1);
                out.lo[a] = o;
                out.hi[a] = o + 1;
                const hull h = brute_hull(&s.g, 1, 0, a, &out);
                assert_true(h.lo == o / times && h.hi == o / times + 1);
            }
        }
    }
    assert_true(40 * free_of_it > (int)law_cases(2000)); /* one in fifteen is */
}

/* --- (c) how a kernel sees it --- */

enum { MOST_TAPS = 64 };
typedef struct tap_list {
    int n, lo, hi; /* range of the input items that count */
    int in[MOST_TAPS], weight[MOST_TAPS];
} tap_list;

static void tap_add(void *state, int in, int weight) {
    tap_list *l = state;
    if (in < l->lo || in >= l->hi) return;
    assert_true(l->n < MOST_TAPS);
    l->in[l->n] = in;
    l->weight[l->n++] = weight;
}

/* The same definitions on the local problem: a layer with the shape's sizes, read by the kernels' rules. */
static void local_taps(const hp_layer *l, const hp_shape *s, int axis, int o, tap_list *to) {
    const bool rows = axis == HP_AXIS_H;
    const int n = rows ? s->ih : s->iw, pad = rows ? s->ph : s->pw, stride = rows ? s->sh : s->sw,
              k = rows ? s->kh : s->kw, dil = rows ? s->dh : s->dw;
    to->hi = n;
    if (l->op == HP_CONV || l->op == HP_MAXPOOL || l->op == HP_AVGPOOL) {
        for (int t = 0; t < k; t++) tap_add(to, o * stride - pad + t * dil, t);
    } else if (l->op == HP_CONVT) {
        for (int i = 0; i < n; i++)
            for (int t = 0; t < k; t++)
                if (i * stride - pad + t * dil == o) tap_add(to, i, t);
    } else if (l->op == HP_ADAPTPOOL) {
        const int64_t at = o + (rows ? s->oy0 : s->ox0), in = rows ? s->full.ih : s->full.iw,
                      out = rows ? s->full.oh : s->full.ow;
        for (int64_t i = at * in / out; i < ((at + 1) * in + out - 1) / out; i++)
            tap_add(to, (int)i - (rows ? s->iy0 : s->ix0), 0);
    } else if (l->op == HP_RESIZE) {
        const hp_resampling r =
            hp_resampling_of(l, rows, rows ? s->full.ih : s->full.iw, rows ? s->full.oh : s->full.ow);
        const hp_resample at = hp_resample_at(&r, o + (rows ? s->oy0 : s->ox0));
        for (int i = at.lo; i <= at.hi; i++) tap_add(to, i - (rows ? s->iy0 : s->ix0), 0);
    } else if (l->op == HP_LINEAR) {
        for (int i = 0; i < n; i++) tap_add(to, i, i);
    } else {
        tap_add(to, l->op == HP_PAD ? o - pad : o, 0);
    }
}

static void local_channels(const hp_layer *l, const hp_shape *s, int o, tap_list *to) {
    const bool grouped = l->op == HP_CONV,
               all = grouped || l->op == HP_CONVT || l->op == HP_LINEAR || l->op == HP_SOFTMAX;
    const int ins = grouped ? s->ic / s->groups : s->ic, first = grouped ? o / (s->oc / s->groups) * ins : 0;
    to->hi = s->ic;
    for (int i = o; l->op == HP_SUM && i < s->ic; i += s->oc) tap_add(to, i, 0);
    if (!all && l->op != HP_SUM) tap_add(to, o, 0);
    for (int i = 0; all && i < ins; i++) tap_add(to, first + i, i);
}

/* Do kernels of the layer use the boxes' places in the whole maps? */
static bool goes_by_boxes(const hp_layer *l) {
    return l->op == HP_LAYERNORM || l->op == HP_RMSNORM || l->op == HP_ATTENTION || l->op == HP_EMBEDDING ||
           l->op == HP_CLASSTOKEN || l->op == HP_CROP || l->op == HP_MERGE || l->op == HP_GATHER ||
           l->op == HP_REDUCE || l->op == HP_GROUPNORM;
}

static void same_taps(const single *s, uint64_t seed, const hp_box *in, const hp_box *out) {
    const hp_layer *l = &s->layer[1];
    if (goes_by_boxes(l)) return;
    const hp_shape shape = hp_shape_between(&s->g, 1, in, out);
    const hp_box all = hp_box_whole(&s->g, 0, s->samples);
    assert_true(shape.n == hp_box_len(out, HP_AXIS_N) && shape.full.oh == s->tensor[l->out].h);
    for (int a = HP_AXIS_H; a < HP_AXES; a++)
        for (int o = 0; o < hp_box_len(out, a); o++) {
            tap_list whole = {.lo = 0, .hi = all.hi[a]}, local = {.lo = 0};
            brute_taps(&s->g, 1, 0, a, out->lo[a] + o, tap_add, &whole);
            if (a == HP_AXIS_C) {
                local_channels(l, &shape, o, &local);
            } else {
                local_taps(l, &shape, a, o, &local);
            }
            bool same = local.n == whole.n;
            for (int i = 0; same && i < local.n; i++)
                same = local.in[i] + in->lo[a] == whole.in[i] && local.weight[i] == whole.weight[i];
            if (l->op == HP_LINEAR && a != HP_AXIS_C) same = shape.kh == shape.ih && shape.kw == shape.iw;
            if (!same)
                fail_msg("%s, axis %d: output %d reads other inputs from %d..%d", said(s, seed), a,
                         out->lo[a] + o, in->lo[a], in->hi[a]);
        }
}

/* The need, plus some rows, columns or channels. */
static hp_box draw_more(throws *d, const single *s, const hp_box *need) {
    const hp_box all = hp_box_whole(&s->g, 0, s->samples);
    hp_box more = *need;
    for (int a = 0; a < HP_AXES; a++) {
        const bool pixels = a == HP_AXIS_H || a == HP_AXIS_W;
        if (draw(d, 0, pixels ? 1 : 9) == 0) more.hi[a] += draw(d, 1, 4);
        if (draw(d, 0, 9) == 0) more.lo[a] -= draw(d, 1, 2);
    }
    return hp_box_and(&more, &all);
}

static void what_a_layer_reads_gives_it_the_same_taps(void **state) {
    (void)state;
    int larger = 0, refused = 0;
    for (uint64_t seed = 1; seed <= law_cases(24000); seed++) {
        throws d = {seed, 4};
        single s = draw_layer(&d);
        point_at_own(&s);
        for (int i = 0; i < 8; i++) {
            const hp_box out = draw_output(&d, &s), need = hp_layer_need(&s.g, 1, 0, &out);
            if (hp_box_empty(&need)) continue;
            const hp_box have = draw_more(&d, &s, &need);
            assert_true(hp_layer_reads(&s.g, 1, &need, &need));
            const bool reads = hp_layer_reads(&s.g, 1, &need, &have), more = !hp_box_equal(&need, &have);
            larger += reads && more;
            refused += !reads;
            if (s.layer[1].op == HP_CONCAT) continue; /* the kernel places its inputs by their boxes */
            same_taps(&s, seed, &need, &out);
            if (reads) same_taps(&s, seed, &have, &out);
        }
    }
    assert_true(larger > 300 && refused > 300);
}

/* --- (d) what can be computed while a halo flies --- */

/* The pieces cover the whole output exactly once; the first needs only `have`, and is as large as that
 * allows. */
static void check_pieces(const single *s, uint64_t seed, const hp_box *have, const hp_box *out,
                         const hp_box *piece, int n) {
    int64_t sum = 0;
    const hp_box need = brute_need(&s->g, 1, 0, &piece[0]);
    bool right = hp_box_within(&need, have) && hp_layer_reads(&s->g, 1, &need, have) &&
                 2 * hp_box_elems(&piece[0]) >= hp_box_elems(out);
    for (int i = 0; i < n; i++) {
        right &= hp_box_within(&piece[i], out) && !hp_box_empty(&piece[i]);
        sum += hp_box_elems(&piece[i]);
        for (int j = 0; j < i; j++) {
            const hp_box both = hp_box_and(&piece[i], &piece[j]);
            right &= hp_box_empty(&both);
        }
    }
    for (int a = HP_AXIS_H; a <= HP_AXIS_W; a++)
        for (int side = 0; side < 2; side++) {
            hp_box more = piece[0];
            if (side ? more.hi[a]++ == out->hi[a] : more.lo[a]-- == out->lo[a]) continue;
            const hp_box reads = brute_need(&s->g, 1, 0, &more);
            right &= !hp_box_within(&reads, have);
        }
    if (!right || sum != hp_box_elems(out))
        fail_msg("%s: the interior or its borders are wrong", said(s, seed));
}

static void an_interior_needs_no_halo(void **state) {
    (void)state;
    int split = 0, whole = 0;
    for (uint64_t seed = 1; seed <= law_cases(24000); seed++) {
        throws d = {seed, 5};
        single s;
        while (!try_layer(&d, HP_CONV, &s)) continue;
        point_at_own(&s);
        const hp_layout l = draw_layout(&d);
        const int part = draw(&d, 0, hp_layout_parts(&l) - 1);
        const hp_box out = hp_layout_own(&l, &s.g, s.layer[1].out, s.samples, part),
                     need = brute_need(&s.g, 1, 0, &out), have = hp_layout_own(&l, &s.g, 0, s.samples, part);
        hp_box piece[5];
        if (hp_box_empty(&out) || hp_box_empty(&have)) continue;
        const int n = hp_interior(&s.g, 1, &have, &need, &out, piece);
        assert_true(n == 0 || !hp_box_within(&need, &have));
        if (n) check_pieces(&s, seed, &have, &out, piece, n);
        split += n > 0;
        whole += n == 0;
    }
    const int some = (int)law_cases(24000) / 60;
    assert_true(split > some && whole > some);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_of_all_parts_cover_every_tensor_once),
        cmocka_unit_test(parts_are_in_proportion),
        cmocka_unit_test(proportions_do_not_overflow),
        cmocka_unit_test(parts_are_even),
        cmocka_unit_test(a_layer_needs_the_box_around_its_taps),
        cmocka_unit_test(a_halo_is_what_even_tiles_lack),
        cmocka_unit_test(a_resized_map_without_halo_reads_its_own_pixels),
        cmocka_unit_test(what_a_layer_reads_gives_it_the_same_taps),
        cmocka_unit_test(an_interior_needs_no_halo),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
