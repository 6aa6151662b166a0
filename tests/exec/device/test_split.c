/* test_split.c - a layer computed in parts equals the layer computed whole, on both devices: outputs part by
 * part, input and parameter gradients as sums over the parts. Layers and cuts along samples, rows, columns
 * and channels are random, including parts of one row or column. */
#include "exec/device/cpu/cpu_train.h"
#include "tests/support/exec/split_layer.h"
#include "tests/support/plan/law_cases.h"

/* |part - whole| <= factor * scale; scale NULL: 1. */
typedef struct tolerance {
    double factor, grads; /* for outputs and input gradients; for parameter gradients */
    const rig *scale;
} tolerance;

static double bound_at(const tolerance *t, double factor, int32_t buffer, int64_t i) {
    return factor * (t->scale ? fabs(rig_get(t->scale, buffer, i)) : 1) + (double)FLT_MIN;
}

static void check_value(const rig *r, const char *what, int64_t i, double is, double should, double bound) {
    if (fabs(is - should) <= bound) return;
    const hp_layer *l = &r->layer[1];
    fail_msg("%s: %s[%lld] of op %d is %.17g, should be %.17g +- %.3g (k %dx%d s %dx%d p %dx%d d%d g%d)",
             r->ops->name, what, (long long)i, l->op, is, should, bound, l->window.kh, l->window.kw,
             l->window.stride_h, l->window.stride_w, l->window.pad_h, l->window.pad_w, l->window.dil_h,
             l->groups);
}

static void check_outputs(const rig *part, const rig *whole, const tolerance *t) {
    for (int64_t i = 0; i < rig_elems(part, part->y); i++) {
        const int64_t at = whole_of(part, part->y, whole, whole->y, i);
        check_value(part, "y", at, rig_get(part, part->y, i), rig_get(whole, whole->y, at),
                    bound_at(t, t->factor, whole->y, at));
    }
}

/* `before`: the whole's parameter gradients before its own was added. */
static void check_sums(const rig *part, const gathered *g, const rig *whole, const double *before,
                       const tolerance *t) {
    for (int k = 0; k < whole->layer[1].n_in; k++)
        for (int64_t i = 0; i < rig_elems(whole, whole->dx[k]); i++)
            check_value(part, "dx", i, g->dx[k][i], rig_get(whole, whole->dx[k], i),
                        bound_at(t, t->factor, whole->dx[k], i));
    for (int p = 0; p < whole->graph.n_param; p++) {
        const hp_param_place *at = &whole->place[p];
        for (int64_t i = at->offset; hp_param_trained(&whole->param[p]) && i < at->offset + at->count; i++)
            check_value(part, "dw", i, before[i] + g->grads[i], rig_get(whole, HP_BUF_GRADS, i),
                        bound_at(t, t->grads, HP_BUF_GRADS, i));
    }
}

/* Runs `whole` (a filled ref rig) and its parts on `ops`. */
static void check_split(const hp_device_ops *ops, const draw *d, uint64_t round, rig *whole,
                        const tolerance *t) {
    split s;
    gathered sums = gathered_new(whole);
    const int64_t n = rig_elems(whole, HP_BUF_GRADS);
    double *before = HP_NEW(whole->arena, double, n + 1);
    for (int64_t i = 0; i < n && d->flags & HP_FLAG_ADD; i++) before[i] = rig_get(whole, HP_BUF_GRADS, i);
    run_all(whole);
    draw_parts(whole, d, round, true, &s);
    for (int p = 0; p < s.n; p++) {
        rig *part = build_part(ops, d, &s.part[p], whole);
        run_all(part);
        check_outputs(part, whole, t);
        gather_part(&sums, part, whole);
        if (p == s.n - 1) check_sums(part, &sums, whole, before, t);
        rig_free(part);
    }
}

/* --- within bounds of the arithmetic: see tests/exec/device/test_train.c --- */

static rig *filled(const draw *d, double low, double high) {
    rig *r = build(&hp_device_ref, d);
    fill(r, low, high);
    return r;
}

/* The same layer on absolute values: the sums of |a||b| that bound errors. */
static rig *sizes(const draw *d) {
    rig *r = filled(d, -1, 1);
    for (int32_t b = 0; b < r->role.n_buffer; b++)
        for (int64_t i = 0; b != r->labels && b != HP_BUF_METRIC && i < rig_elems(r, b); i++)
            rig_set(r, b, i, fabs(rig_get(r, b, i)));
    run_all(r);
    return r;
}

static double terms_of(const draw *d) {
    const double taps =
        d->layer.op == HP_LINEAR ? d->in[0].h * d->in[0].w : d->layer.window.kh * d->layer.window.kw;
    return fmax(taps * fmax(d->in[0].c, d->out.c), (double)(d->samples * d->out.h * d->out.w)) + 2;
}

static void check_matrix(const draw *d, uint64_t round, const hp_device_ops *ops) {
    rig *size = sizes(d), *whole = filled(d, -1, 1);
    const double factor = ops == &hp_device_ref ? 1e-12 : terms_of(d) * eps();
    check_split(ops, d, round, whole, &(tolerance){factor, factor, size});
    rig_free(size);
    rig_free(whole);
}

static bool is_winograd(const draw *d) {
    rig *r = build(&hp_device_ref, d);
    const bool yes = hp_conv_winograd(&r->graph, 1);
    rig_free(r);
    return yes;
}

static void parts_of_convolutions_equal_the_whole(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(30); round++) {
        const draw d = draw_conv(round);
        if (!is_winograd(&d)) check_matrix(&d, round, round % 3 ? &hp_device_cpu : &hp_device_ref);
    }
}

static void parts_of_transposed_convolutions_equal_the_whole(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(30); round++) {
        const draw d = draw_convt(round);
        check_matrix(&d, round, round / 2 % 2 ? &hp_device_cpu : &hp_device_ref);
    }
}

static void parts_of_linear_layers_equal_the_whole(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(20); round++) {
        const draw d = draw_linear(round);
        check_matrix(&d, round, round % 2 ? &hp_device_cpu : &hp_device_ref);
    }
}

static void parts_of_winograd_equal_the_whole(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(12); round++) {
        const draw d = draw_winograd(round);
        if (!is_winograd(&d)) continue;
        rig *whole = filled(&d, -1, 1);
        const double n = (double)larger(d.in[0].c, d.out.c), tiles = (double)(d.samples * d.out.h * d.out.w);
        check_split(&hp_device_cpu, &d, round, whole,
                    &(tolerance){81 * n * (n + 12) * eps(), 81 * tiles * (tiles + 12) * eps(), NULL});
        rig_free(whole);
    }
}

static void check_simple(const draw *d, uint64_t round, double terms) {
    const double factor[2] = {1e-12, terms * eps() * 8 * terms};
    const hp_device_ops *const devices[2] = {&hp_device_ref, &hp_device_cpu};
    for (int k = 0; k < 2; k++) {
        rig *whole = filled(d, -4, 8);
        check_split(devices[k], d, round, whole, &(tolerance){factor[k], factor[k], NULL});
        rig_free(whole);
    }
}

static void parts_of_pooling_equal_the_whole(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(120); round++) {
        const draw d = draw_pool(round);
        check_simple(&d, round, 20);
    }
}

static void parts_of_elementwise_layers_equal_the_whole(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(60); round++) {
        const draw d = draw_point(round);
        check_simple(&d, round, 3);
    }
}

static void parts_of_products_slopes_and_interpolation_equal_the_whole(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(80); round++) {
        const draw d = draw_map(round);
        const double factor[2] = {1e-12, terms_of_map(&d) * eps()};
        const hp_device_ops *const devices[2] = {&hp_device_ref, &hp_device_cpu};
        for (int k = 0; k < 2; k++) {
            rig *whole = filled(&d, -1, 1);
            check_split(devices[k], &d, round, whole, &(tolerance){factor[k], factor[k], NULL});
            rig_free(whole);
        }
    }
}

/* --- exact: no rounding can hide a wrong index --- */

/* Multiples of 4, because Winograd halves twice. */
static void make_whole_numbers(rig *r) {
    for (int32_t b = 0; b < r->role.n_buffer; b++)
        for (int64_t i = 0; b != HP_BUF_METRIC && b != r->labels && i < rig_elems(r, b); i++)
            rig_set(r, b, i, 4 * round(rig_get(r, b, i)));
}

static void parts_of_whole_numbers_equal_the_whole_exactly(void **state) {
    (void)state;
    for (uint64_t r = 0; r < law_some(40); r++) {
        const draw d = r % 2 ? draw_conv(r) : draw_winograd(r);
        rig *whole = filled(&d, -3, 3);
        make_whole_numbers(whole);
        check_split(&hp_device_cpu, &d, r, whole, &(tolerance){0, 0, NULL});
        rig_free(whole);
    }
}

/* --- two parts on one rank --- */

/* A kernel for another geometry may need another layout of the weights than the layer's pack has. */
static void two_geometries_share_a_pack(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(40); round++) {
        const draw d = draw_conv(round);
        rig *both = build(&hp_device_cpu, &d), *exact;
        split s;
        int32_t y, dy;
        hp_error err = {0};
        draw_parts(both, &d, round, false, &s);
        rig_add_part(both, &s.part[0], &y, &dy);
        fill(both, -3, 3);
        rig_fill(both, dy, 30, -3, 3);
        take(both, both->x[1], both, both->x[0]);
        make_whole_numbers(both);
        exact = build_part(&hp_device_ref, &d, &s.part[0], both);
        for (int64_t i = 0; i < rig_elems(exact, exact->dy); i++)
            rig_set(exact, exact->dy, i, rig_get(both, dy, i));
        run_all(exact);
        if (rig_open(both, &err) != HP_OK) fail_msg("%s", err.text);
        const int tasks[] = {RIG_PACK, RIG_FWD, RIG_MORE_FWD, RIG_BWD, RIG_MORE_BWD};
        for (int t = 0; t < 5; t++) assert_int_equal(rig_run(both, tasks[t]), HP_OK);
        compare(both, exact, y, exact->y, 0, NULL, "y of the second part");
        compare(both, exact, both->dx[1], exact->dx[0], 0, NULL, "dx of the second part");
        rig_free(both);
        rig_free(exact);
    }
}

/* Padding on one side, unread rows, maps of one row: the library has kernels for nearly all of these. */
static void parts_are_as_fast_as_the_whole(void **state) {
    (void)state;
    static const int tasks[] = {RIG_FWD, RIG_BWD, RIG_BWDW};
    int slow = 0, all = 0;
    for (uint64_t round = 0; round < 30; round++) {
        const draw d = draw_conv(round);
        rig *whole = build(&hp_device_ref, &d);
        split s;
        hp_error err = {0};
        draw_parts(whole, &d, round, true, &s);
        for (int p = 0; p < s.n; p++) {
            rig *part = build_part(&hp_device_cpu, &d, &s.part[p], whole);
            assert_int_equal(rig_open(part, &err), HP_OK);
            for (int t = 0; t < 3; t++, all++)
                slow += strcmp(hp_cpu_kernel_name(part->device, tasks[t]), "own any") == 0;
            rig_free(part);
        }
        rig_free(whole);
    }
    assert_true(slow * 20 <= all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_convolutions_equal_the_whole),
        cmocka_unit_test(parts_of_transposed_convolutions_equal_the_whole),
        cmocka_unit_test(parts_of_linear_layers_equal_the_whole),
        cmocka_unit_test(parts_of_winograd_equal_the_whole),
        cmocka_unit_test(parts_of_pooling_equal_the_whole),
        cmocka_unit_test(parts_of_elementwise_layers_equal_the_whole),
        cmocka_unit_test(parts_of_products_slopes_and_interpolation_equal_the_whole),
        cmocka_unit_test(parts_of_whole_numbers_equal_the_whole_exactly),
        cmocka_unit_test(two_geometries_share_a_pack),
        cmocka_unit_test(parts_are_as_fast_as_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
