/* test_convt.c - transposed convolution and padding, on the reference device and on the fast one. A
 * transposed convolution is the adjoint of the convolution with the same weights, each pass is the adjoint of
 * the other, and parts of the output add up to the whole. */
#include "tests/support/exec/draw_layer.h"
#include "tests/support/plan/law_cases.h"

static const hp_device_ops *const devices[] = {&hp_device_ref, &hp_device_cpu};

static rig *opened(const hp_device_ops *ops, const draw *d) {
    rig *r = build(ops, d);
    fill(r, -1, 1);
    run_all(r);
    return r;
}

static double dot(const rig *a, int32_t x, const rig *b, int32_t y) {
    double sum = 0;
    for (int64_t i = 0; i < rig_elems(a, x); i++) sum += rig_get(a, x, i) * rig_get(b, y, i);
    return sum;
}

static void copy_buffer(rig *to, int32_t buffer, const rig *from, int32_t other) {
    assert_int_equal(rig_elems(to, buffer), rig_elems(from, other));
    for (int64_t i = 0; i < rig_elems(to, buffer); i++) rig_set(to, buffer, i, rig_get(from, other, i));
}

/* --- laws in float64 --- */

static const double tight = 1e-12; /* sums of a few thousand products of at most 1 */

static draw turned_round(const draw *d) {
    draw conv = *d;
    conv.layer.op = HP_CONV;
    conv.in[0] = d->out;
    conv.out = d->in[0];
    return conv;
}

/* (O, I, kh, kw) of one layer are (I, O, kh, kw) of the other, in the same order. */
static void transposed_is_the_adjoint_convolution(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_some(40); round++) {
        draw d = draw_convt(round);
        d.bias = false;
        d.flags = 0;
        const draw c = turned_round(&d);
        rig *convt = opened(&hp_device_ref, &d), *conv = build(&hp_device_ref, &c);
        copy_buffer(conv, HP_BUF_WEIGHTS, convt, HP_BUF_WEIGHTS);
        copy_buffer(conv, conv->x[0], convt, convt->dy);
        copy_buffer(conv, conv->dy, convt, convt->x[0]);
        run_all(conv);
        compare(convt, conv, convt->y, conv->dx[0], tight, NULL, "y");
        compare(convt, conv, convt->dx[0], conv->y, tight, NULL, "dx");
        for (int64_t i = 0; i < convt->param[0].count; i++)
            assert_true(fabs(rig_get(convt, HP_BUF_GRADS, i) - rig_get(conv, HP_BUF_GRADS, i)) < tight);
        rig_free(convt);
        rig_free(conv);
    }
}

static void bias_is_added_to_every_pixel_and_its_gradient_is_the_sum(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_some(40); round++) {
        draw with = draw_convt(round), without = with;
        with.bias = true;
        without.bias = false;
        with.flags = without.flags = 0;
        rig *a = opened(&hp_device_ref, &with), *b = opened(&hp_device_ref, &without);
        const int64_t first = a->place[1].offset;
        for (int o = 0; o < with.out.c; o++) {
            double sum = 0;
            for (int64_t i = o; i < rig_elems(a, a->y); i += with.out.c) {
                const double bias = rig_get(a, HP_BUF_WEIGHTS, first + o);
                assert_true(fabs(rig_get(a, a->y, i) - rig_get(b, b->y, i) - bias) < tight);
                sum += rig_get(a, a->dy, i);
            }
            assert_true(fabs(rig_get(a, HP_BUF_GRADS, first + o) - sum) < tight);
        }
        rig_free(a);
        rig_free(b);
    }
}

static void padding_keeps_the_map_and_adds_zeros(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_some(40); round++) {
        const draw d = draw_pad(round);
        rig *r = opened(&hp_device_ref, &d);
        double inside = 0, outside = 0;
        for (int64_t i = 0; i < rig_elems(r, r->y); i++) {
            const int x = (int)(i / d.out.c % d.out.w), y = (int)(i / d.out.c / d.out.w % d.out.h);
            const int ix = x - d.layer.window.pad_w, iy = y - d.layer.window.pad_h;
            const int64_t n = i / d.out.c / d.out.w / d.out.h;
            if (iy < 0 || iy >= d.in[0].h || ix < 0 || ix >= d.in[0].w) {
                outside += fabs(rig_get(r, r->y, i));
                continue;
            }
            const int64_t at = ((n * d.in[0].h + iy) * d.in[0].w + ix) * d.out.c + i % d.out.c;
            inside += fabs(rig_get(r, r->y, i) - rig_get(r, r->x[0], at)) +
                      fabs(rig_get(r, r->dy, i) - rig_get(r, r->dx[0], at));
        }
        assert_true(inside == 0 && outside == 0);
        rig_free(r);
    }
}

/* <Ax, dy> = <x, A'dy> = <w, dw>: the last because the output is also linear in the weights. */
static void passes_are_adjoint(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_some(60); round++) {
        draw d = round % 3 ? draw_convt(round) : draw_pad(round);
        d.bias = false;
        d.flags = 0;
        for (int k = 0; k < 2; k++) {
            rig *r = opened(devices[k], &d);
            const double forward = dot(r, r->y, r, r->dy), data = dot(r, r->x[0], r, r->dx[0]);
            /* every element of y sums at most taps * channels products of at most 1 */
            const double terms = (double)(25 * d.in[0].c), bound = (k ? eps() : tight) * terms * terms;
            const double most = bound * (double)rig_elems(r, r->y);
            assert_true(fabs(forward - data) <= most);
            if (d.layer.op == HP_CONVT) {
                double weights = 0;
                for (int64_t i = 0; i < r->param[0].count; i++)
                    weights += rig_get(r, HP_BUF_WEIGHTS, i) * rig_get(r, HP_BUF_GRADS, i);
                assert_true(fabs(forward - weights) <= most);
            }
            rig_free(r);
        }
    }
}

/* --- the fast device --- */

/* Values are integers, so that all sums are exact in float32 and no rounding hides a wrong index. */
static void fill_whole(rig *r) {
    fill(r, -3, 3);
    for (int32_t b = 0; b < r->role.n_buffer; b++) {
        const bool maps = r->buffer[b].kind == HP_BUF_TENSOR || r->buffer[b].kind == HP_BUF_GRADIENT;
        if (!maps && b != HP_BUF_WEIGHTS && b != HP_BUF_GRADS) continue;
        for (int64_t i = 0; i < rig_elems(r, b); i++) {
            const double v = rig_get(r, b, i);
            rig_set(r, b, i, fabs(v) <= 3 ? round(v) : 0);
        }
    }
}

static void compare_params(const rig *a, const rig *b, double bound) {
    for (int p = 0; p < a->graph.n_param; p++)
        for (int64_t i = a->place[p].offset; i < a->place[p].offset + a->param[p].count; i++)
            if (!(fabs(rig_get(a, HP_BUF_GRADS, i) - rig_get(b, HP_BUF_GRADS, i)) <= bound))
                fail_msg("gradient %d[%lld]: %g, should be %g", p, (long long)(i - a->place[p].offset),
                         rig_get(a, HP_BUF_GRADS, i), rig_get(b, HP_BUF_GRADS, i));
}

static void whole_numbers_are_exact(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_some(60); round++) {
        const draw d = round % 4 ? draw_convt(round) : draw_pad(round);
        rig *both[2];
        for (int k = 0; k < 2; k++) {
            both[k] = build(devices[k], &d);
            fill_whole(both[k]);
            run_all(both[k]);
        }
        compare(both[1], both[0], both[1]->y, both[0]->y, 0, NULL, "y");
        compare(both[1], both[0], both[1]->dx[0], both[0]->dx[0], 0, NULL, "dx");
        compare_params(both[1], both[0], 0);
        rig_free(both[0]);
        rig_free(both[1]);
    }
}

/* n products of at most 1 in float32, in any order: n^2 eps. */
static void fast_matches_the_reference(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_some(60); round++) {
        const draw d = draw_convt(round);
        rig *exact = opened(devices[0], &d), *fast = opened(devices[1], &d);
        const double window = d.layer.window.kh * d.layer.window.kw, ins = d.in[0].c, outs = d.out.c,
                     pixels = (double)(d.samples * d.out.h * d.out.w);
        compare(fast, exact, fast->y, exact->y, eps() * window * ins * (window * ins + 2), NULL, "y");
        compare(fast, exact, fast->dx[0], exact->dx[0], eps() * window * outs * window * outs, NULL, "dx");
        compare_params(fast, exact, eps() * pixels * (pixels + 2));
        rig_free(exact);
        rig_free(fast);
    }
}

/* --- parts --- */

typedef struct whole_map {
    double *y, *dx, *grads;
    int64_t n_y, n_dx, n_grads;
} whole_map;

static int64_t place_of(const hp_box *b, const hp_tensor *t, int64_t i) {
    const int64_t c = hp_box_len(b, HP_AXIS_C), w = hp_box_len(b, HP_AXIS_W), h = hp_box_len(b, HP_AXIS_H);
    const int64_t x = i / c % w, y = i / c / w % h, n = i / c / w / h;
    return (((b->lo[HP_AXIS_N] + n) * t->h + b->lo[HP_AXIS_H] + y) * t->w + b->lo[HP_AXIS_W] + x) * t->c +
           i % c;
}

static void take_part(rig *part, int32_t buffer, const rig *whole, int32_t other, int tensor) {
    for (int64_t i = 0; i < rig_elems(part, buffer); i++)
        rig_set(part, buffer, i,
                rig_get(whole, other, place_of(&part->buffer[buffer].box, &part->tensor[tensor], i)));
}

static void add_part(double *sum, const rig *part, int32_t buffer, int tensor) {
    for (int64_t i = 0; i < rig_elems(part, buffer); i++)
        sum[place_of(&part->buffer[buffer].box, &part->tensor[tensor], i)] += rig_get(part, buffer, i);
}

static void run_part(const rig *whole, const draw *d, const hp_layout *layout, int number, whole_map *sum) {
    rig_boxes b = {0};
    b.out = b.own = hp_layout_own(layout, &whole->graph, 1, d->samples, number);
    b.in[0] = hp_layer_need(&whole->graph, 1, 0, &b.out);
    if (hp_box_empty(&b.out)) return;
    rig *r = rig_new_part(whole->ops, &d->layer, d->in, d->out, d->samples, d->bias, 0, &b);
    copy_buffer(r, HP_BUF_WEIGHTS, whole, HP_BUF_WEIGHTS);
    take_part(r, r->x[0], whole, whole->x[0], 0);
    take_part(r, r->dy, whole, whole->dy, 1);
    run_all(r);
    add_part(sum->y, r, r->y, 1);
    add_part(sum->dx, r, r->dx[0], 0);
    for (int64_t i = 0; i < sum->n_grads && r->graph.n_param; i++)
        sum->grads[i] += rig_get(r, HP_BUF_GRADS, i);
    rig_free(r);
}

static void check_sum(const rig *whole, int32_t buffer, const double *sum, int64_t n, const char *what) {
    for (int64_t i = 0; i < n; i++)
        if (rig_get(whole, buffer, i) != sum[i])
            fail_msg("%s[%lld]: the parts have %g, the whole %g", what, (long long)i, sum[i],
                     rig_get(whole, buffer, i));
}

/* Integers: all sums are exact. */
static void parts_add_up_to_the_whole(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_some(60); round++) {
        uint64_t c = 1000;
        draw d = round % 4 ? draw_convt(round) : draw_pad(round);
        d.flags = 0;
        const hp_layout layout = {
            pick(round, &c, 1, 6), pick(round, &c, 1, 6), pick(round, &c, 1, 2), 1, 1, 1};
        rig *whole = build(devices[round % 2], &d);
        fill_whole(whole);
        run_all(whole);
        whole_map sum = {.n_y = rig_elems(whole, whole->y),
                         .n_dx = rig_elems(whole, whole->dx[0]),
                         .n_grads = whole->graph.n_param ? rig_elems(whole, HP_BUF_GRADS) : 0};
        sum.y = HP_NEW(whole->arena, double, sum.n_y);
        sum.dx = HP_NEW(whole->arena, double, sum.n_dx);
        sum.grads = HP_NEW(whole->arena, double, sum.n_grads + 1);
        for (int p = 0; p < hp_layout_parts(&layout); p++) run_part(whole, &d, &layout, p, &sum);
        check_sum(whole, whole->y, sum.y, sum.n_y, "y");
        check_sum(whole, whole->dx[0], sum.dx, sum.n_dx, "dx");
        for (int p = 0; p < whole->graph.n_param; p++)
            for (int64_t i = whole->place[p].offset; i < whole->place[p].offset + whole->param[p].count; i++)
                assert_true(rig_get(whole, HP_BUF_GRADS, i) == sum.grads[i]);
        rig_free(whole);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transposed_is_the_adjoint_convolution),
        cmocka_unit_test(bias_is_added_to_every_pixel_and_its_gradient_is_the_sum),
        cmocka_unit_test(padding_keeps_the_map_and_adds_zeros),
        cmocka_unit_test(passes_are_adjoint),
        cmocka_unit_test(whole_numbers_are_exact),
        cmocka_unit_test(fast_matches_the_reference),
        cmocka_unit_test(parts_add_up_to_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
