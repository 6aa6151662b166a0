/* test_parts.c - training on a GPU or its stand-in. Layers cut into parts, boxes of the output with the
 * inputs that each needs, equal the whole on the reference. So do batch norms that share their sums. */
#include "exec/cuda/runtime/cuda_runtime_device.h"
#include "networks/graph/acts.h"
#include "tests/support/exec/draw_matrix.h"
#include "tests/support/exec/split_layer.h"
#include "tests/support/plan/law_cases.h"

static double bound_at(const rig *size, double factor, int32_t buffer, int64_t i) {
    return factor * (size ? fabs(rig_get(size, buffer, i)) : 1) + (double)FLT_MIN;
}

static void near(double is, double should, double bound, const draw *d, const char *what) {
    if (!(fabs(is - should) <= bound))
        fail_msg("%s of op %d: %.9g, should be %.9g +- %.3g (k %dx%d s %dx%d p %dx%d)", what, d->layer.op, is,
                 should, bound, d->layer.window.kh, d->layer.window.kw, d->layer.window.stride_h,
                 d->layer.window.stride_w, d->layer.window.pad_h, d->layer.window.pad_w);
}

/* Runs the parts on the GPU, the whole (and its sizes, or NULL) on the reference: outputs are
 * equal, gradients add up. */
static void check_split(const draw *d, uint64_t round, rig *whole, const rig *size, double factor) {
    split s;
    gathered sums = gathered_new(whole);
    draw_parts(whole, d, round, true, &s);
    run_all(whole);
    for (int p = 0; p < s.n; p++) {
        rig *part = build_part(&hp_device_cuda, d, &s.part[p], whole);
        run_all(part);
        for (int64_t i = 0; i < rig_elems(part, part->y); i++) {
            const int64_t at = whole_of(part, part->y, whole, whole->y, i);
            near(rig_get(part, part->y, i), rig_get(whole, whole->y, at),
                 bound_at(size, factor, whole->y, at), d, "y");
        }
        gather_part(&sums, part, whole);
        rig_free(part);
    }
    for (int k = 0; k < d->layer.n_in; k++)
        for (int64_t i = 0; i < rig_elems(whole, whole->dx[k]); i++)
            near(sums.dx[k][i], rig_get(whole, whole->dx[k], i), bound_at(size, factor, whole->dx[k], i), d,
                 "dx");
    for (int p = 0; p < whole->graph.n_param; p++)
        for (int64_t i = whole->place[p].offset; i < whole->place[p].offset + whole->place[p].count; i++)
            near(sums.grads[i], rig_get(whole, HP_BUF_GRADS, i), bound_at(size, factor, HP_BUF_GRADS, i), d,
                 "gradient");
}

static rig *whole_of_draw(const draw *d, double low, double high, bool absolute) {
    rig *r = build(&hp_device_ref, d);
    fill(r, low, high);
    for (int32_t b = 0; absolute && b < r->role.n_buffer; b++)
        for (int64_t i = 0; b != r->labels && b != HP_BUF_METRIC && i < rig_elems(r, b); i++)
            rig_set(r, b, i, fabs(rig_get(r, b, i)));
    return r;
}

static void parts_equal_the_whole(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(60); round++) {
        draw d = round % 3 == 0 ? draw_conv(round) : round % 3 == 1 ? draw_pool(round) : draw_point(round);
        d.flags = 0;
        if (!begins_inside(&d)) continue;
        const bool conv = d.layer.op == HP_CONV;
        rig *whole = whole_of_draw(&d, -1, 1, false), *size = whole_of_draw(&d, -1, 1, true);
        run_all(size);
        check_split(&d, round, whole, conv ? size : NULL, conv ? terms_of(&d) * eps() : 3200 * eps());
        rig_free(whole);
        rig_free(size);
    }
}

static void parts_of_transposed_convolutions_equal_the_whole(void **state) {
    (void)state;
    for (uint64_t round = 1; round < law_cases(40); round += 2) { /* kernel and stride 2: no gaps */
        draw d = draw_convt(round);
        d.flags = 0;
        rig *whole = whole_of_draw(&d, -1, 1, false), *size = whole_of_draw(&d, -1, 1, true);
        run_all(size);
        check_split(&d, round, whole, size, terms_of(&d) * eps());
        rig_free(whole);
        rig_free(size);
    }
}

static void parts_of_gathers_equal_the_whole(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(48); round++) {
        const draw d = draw_gather(round);
        rig *whole = whole_of_draw(&d, -1, 1, false);
        check_split(&d, round, whole, NULL, terms_of_map(&d) * eps());
        rig_free(whole);
    }
}

static void parts_of_products_slopes_and_interpolation_equal_the_whole(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(40); round++) {
        draw d = draw_map(round);
        d.flags = 0;
        rig *whole = whole_of_draw(&d, -1, 1, false);
        check_split(&d, round, whole, NULL, terms_of_map(&d) * eps());
        rig_free(whole);
    }
}

/* Each part reads the whole map. */
static void parts_of_group_norms_equal_the_whole(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(30); round++) {
        draw d = draw_groupnorm(round);
        d.flags = 0;
        rig *whole = whole_of_draw(&d, -1, 1, false);
        const double n = (double)d.samples * d.out.h * d.out.w;
        check_split(&d, round, whole, NULL, bound_of_groupnorm(&d) * (n + 1));
        rig_free(whole);
    }
}

/* --- statistics over several parts: sums between the tasks --- */

typedef struct parts {
    int n;
    rig *part[SPLIT_PARTS];
} parts;

static void add_up_sums(parts *p, int channels) {
    for (int c = 0; c < 2 * channels; c++) {
        double total = 0;
        for (int k = 0; k < p->n; k++) total += ((double *)rig_at(p->part[k], p->part[k]->sums))[c];
        for (int k = 0; k < p->n; k++) ((double *)rig_at(p->part[k], p->part[k]->sums))[c] = total;
    }
}

static void run_parts(parts *p, int task) {
    for (int k = 0; k < p->n; k++) assert_int_equal(rig_run(p->part[k], task), HP_OK);
}

/* A part owns its box and computes one more row and column on each side, if there is one; those have no
 * gradient of their own. */
static void build_shared(const draw *d, uint64_t round, rig *whole, parts *p) {
    split s;
    draw_parts(whole, d, round, false, &s);
    for (p->n = 0; p->n < s.n; p->n++) {
        rig_boxes *b = &s.part[p->n];
        for (int a = HP_AXIS_H; a <= HP_AXIS_W; a++) {
            if (b->out.lo[a] > 0) b->out.lo[a]--;
            if (b->out.hi[a] < (a == HP_AXIS_H ? d->out.h : d->out.w)) b->out.hi[a]++;
        }
        b->in[0] = b->in[1] = b->out;
        rig *r = p->part[p->n] = build_part(&hp_device_cuda, d, b, whole);
        for (int64_t i = 0; i < rig_elems(r, r->dy); i++) {
            const int64_t pixel = i / d->out.c, w = hp_box_len(&b->out, HP_AXIS_W),
                          h = hp_box_len(&b->out, HP_AXIS_H);
            const int32_t y = b->out.lo[HP_AXIS_H] + (int32_t)(pixel / w % h),
                          x = b->out.lo[HP_AXIS_W] + (int32_t)(pixel % w);
            if (y < b->own.lo[HP_AXIS_H] || y >= b->own.hi[HP_AXIS_H] || x < b->own.lo[HP_AXIS_W] ||
                x >= b->own.hi[HP_AXIS_W])
                rig_set(r, r->dy, i, 0);
        }
    }
}

static void check_shared(const draw *d, uint64_t round) {
    rig *whole = whole_of_draw(d, -2, 2, false);
    parts p;
    hp_error err = {HP_OK, ""};
    gathered sums = gathered_new(whole);
    build_shared(d, round, whole, &p);
    run_all(whole);
    for (int k = 0; k < p.n; k++) assert_int_equal(rig_open(p.part[k], &err), HP_OK);
    run_parts(&p, RIG_STATS);
    add_up_sums(&p, d->out.c);
    run_parts(&p, RIG_FWD_SHARED);
    run_parts(&p, RIG_BSTATS);
    add_up_sums(&p, d->out.c);
    run_parts(&p, RIG_BWD_SHARED);
    double inverse = 1;
    for (int c = 0; c < d->out.c; c++) inverse = fmax(inverse, rig_get(whole, whole->save, d->out.c + c));
    const double bound = 64 * eps() * inverse * inverse * inverse,
                 n = (double)whole->samples * d->out.h * d->out.w;
    for (int k = 0; k < p.n; k++) {
        const rig *part = p.part[k];
        for (int64_t i = 0; i < rig_elems(part, part->y); i++)
            near(rig_get(part, part->y, i),
                 rig_get(whole, whole->y, whole_of(part, part->y, whole, whole->y, i)), bound, d, "shared y");
        gather_part(&sums, part, whole);
    }
    for (int64_t i = 0; i < rig_elems(whole, whole->dx[0]); i++)
        near(sums.dx[0][i], rig_get(whole, whole->dx[0], i), bound * p.n, d, "shared dx");
    for (int g = 0; g < 2; g++)
        for (int64_t i = whole->place[g].offset; i < whole->place[g].offset + d->out.c; i++)
            near(sums.grads[i], rig_get(whole, HP_BUF_GRADS, i), bound * (n + 1), d, "shared gradient");
    for (int k = 0; k < p.n; k++) rig_free(p.part[k]);
    rig_free(whole);
}

static void parts_that_share_statistics_equal_the_whole(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_cases(30); round++) {
        draw d = draw_bn(round);
        d.flags = 0;
        d.layer.act = HP_ACT_NONE;
        if (d.samples * d.out.h * d.out.w >= 32) check_shared(&d, round);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_equal_the_whole),
        cmocka_unit_test(parts_of_transposed_convolutions_equal_the_whole),
        cmocka_unit_test(parts_of_products_slopes_and_interpolation_equal_the_whole),
        cmocka_unit_test(parts_of_gathers_equal_the_whole),
        cmocka_unit_test(parts_of_group_norms_equal_the_whole),
        cmocka_unit_test(parts_that_share_statistics_equal_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
