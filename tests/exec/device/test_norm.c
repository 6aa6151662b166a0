/* test_norm.c - batch norm with statistics shared by several ranks. Parts with redundant rows and columns
 * around their own, with sums added up between the tasks, equal the layer computed whole. Running statistics
 * do not depend on who computed which group. */
#include "exec/device/device_bind.h"
#include "tests/support/exec/split_layer.h"
#include "tests/support/plan/law_cases.h"

typedef struct parts {
    int n;
    rig *part[SPLIT_PARTS];
} parts;

static void widen(const draw *d, uint64_t round, uint64_t *c, int axis, int n, hp_box *b) {
    (void)d;
    const int before = pick(round, c, 0, 2), behind = pick(round, c, 0, 2);
    b->lo[axis] = b->lo[axis] > before ? b->lo[axis] - before : 0;
    b->hi[axis] = b->hi[axis] + behind < n ? b->hi[axis] + behind : n;
}

/* Lets the residual gradient, or without one the data gradient, overwrite dy. */
static void make_in_place(rig *r) {
    const int n = r->layer[1].n_in, gradient = n > 1 ? 1 : 0;
    r->operand[r->task[RIG_BWD_SHARED].operand + 3 + n + gradient] = r->dx[gradient] = r->dy;
}

/* Builds parts of `whole`. Each part has its own gradient for its redundant pixels; the whole's is the sum of
 * all, which is what the parts that read those pixels return. */
static void build_parts(const hp_device_ops *ops, const draw *d, uint64_t round, rig *whole, parts *p) {
    split s;
    uint64_t c = 2000;
    draw_parts(whole, d, round, true, &s);
    double *dy = HP_NEW(whole->arena, double, rig_elems(whole, whole->dy));
    for (p->n = 0; p->n < s.n; p->n++) {
        rig_boxes *b = &s.part[p->n];
        widen(d, round, &c, HP_AXIS_H, d->out.h, &b->out);
        widen(d, round, &c, HP_AXIS_W, d->out.w, &b->out);
        b->in[0] = b->in[1] = b->out;
        rig *r = p->part[p->n] = build_part(ops, d, b, whole);
        rig_fill(r, r->dy, (uint64_t)(100 + p->n), -1, 1);
        for (int64_t i = 0; i < rig_elems(r, r->dy); i++)
            dy[whole_of(r, r->dy, whole, whole->dy, i)] += rig_get(r, r->dy, i);
        if (pick(round, &c, 0, 1)) make_in_place(r);
        hp_error err = {0};
        if (rig_open(r, &err) != HP_OK) fail_msg("%s", err.text);
    }
    for (int64_t i = 0; i < rig_elems(whole, whole->dy); i++) rig_set(whole, whole->dy, i, dy[i]);
}

static void run_parts(const parts *p, int task) {
    for (int k = 0; k < p->n; k++) assert_int_equal(rig_run(p->part[k], task), HP_OK);
}

/* Adds up the sums of all parts, channel by channel: the all-reduce between two tasks. */
static void reduce_parts(const parts *p, int channels) {
    double *all = calloc(2 * (size_t)channels, sizeof *all);
    for (int back = 0; back < 2; back++)
        for (int k = 0; k < p->n; k++) {
            const rig *r = p->part[k];
            const int from = r->boxes.out.lo[HP_AXIS_C], here = hp_box_len(&r->boxes.out, HP_AXIS_C);
            double *sums = rig_at(r, r->sums);
            for (int i = 0; i < 2 * here; i++) {
                double *total = &all[i / here * channels + from + i % here];
                if (back)
                    sums[i] = *total;
                else
                    *total += sums[i];
            }
        }
    free(all);
}

/* --- comparing --- */

static void near(double is, double should, double bound, const char *what) {
    if (fabs(is - should) > bound) fail_msg("%s: %.17g, should be %.17g +- %.3g", what, is, should, bound);
}

/* The bound of tests/exec/device/test_own.c, for this device's precision. */
static double norm_bound(const rig *exact, const draw *d, double precision) {
    double inverse = 1;
    for (int c = 0; c < d->out.c; c++) inverse = fmax(inverse, rig_get(exact, exact->save, d->out.c + c));
    return 64 * precision * 16 * inverse * inverse * inverse;
}

static bool far_from_kinks(const rig *exact, double margin) {
    for (int64_t i = 0; i < rig_elems(exact, exact->y); i++) {
        const double y = rig_get(exact, exact->y, i);
        if ((y != 0 && fabs(y) < margin) || (y != 6 && fabs(y - 6) < margin)) return false;
    }
    return true;
}

static void check_forward(const rig *part, const rig *whole, const draw *d, double bound) {
    const int from = part->boxes.out.lo[HP_AXIS_C], here = hp_box_len(&part->boxes.out, HP_AXIS_C);
    for (int64_t i = 0; i < rig_elems(part, part->y); i++)
        near(rig_get(part, part->y, i), rig_get(whole, whole->y, whole_of(part, part->y, whole, whole->y, i)),
             bound, "y");
    for (int i = 0; i < 2 * here; i++) {
        const int c = from + i % here;
        near(rig_get(part, part->save, i), rig_get(whole, whole->save, i / here * d->out.c + c), bound,
             "statistics");
        near(rig_get(part, HP_BUF_STATE, part->place[2 + i / here].offset + i % here),
             rig_get(whole, HP_BUF_STATE, whole->place[2 + i / here].offset + c), bound,
             "running statistics");
    }
}

static void check_backward(const parts *p, rig *whole, const double *before, double bound) {
    gathered sums = gathered_new(whole);
    const double pixels = (double)whole->task[RIG_FWD_SHARED].forward.pixels;
    for (int k = 0; k < p->n; k++) gather_part(&sums, p->part[k], whole);
    for (int k = 0; k < whole->layer[1].n_in; k++)
        for (int64_t i = 0; i < rig_elems(whole, whole->dx[k]); i++)
            near(sums.dx[k][i], rig_get(whole, whole->dx[k], i), bound * p->n, k ? "residual" : "dx");
    for (int g = 0; g < 2; g++)
        for (int64_t i = whole->place[g].offset; i < whole->place[g].offset + whole->place[g].count; i++)
            near(before[i] + sums.grads[i], rig_get(whole, HP_BUF_GRADS, i), bound * (pixels + 1) * p->n,
                 "parameter gradient");
}

static void check_shared(const hp_device_ops *ops, const draw *d, uint64_t round) {
    rig *whole = build(&hp_device_ref, d);
    parts p;
    fill(whole, -2, 2);
    for (int32_t i = 0; i < d->out.c; i++) /* positive scales */
        rig_set(whole, HP_BUF_WEIGHTS, i, 0.5 + 0.25 * fabs(rig_get(whole, HP_BUF_WEIGHTS, i)));
    const int64_t n = rig_elems(whole, HP_BUF_GRADS);
    double *before = HP_NEW(whole->arena, double, n);
    for (int64_t i = 0; i < n && d->flags & HP_FLAG_ADD; i++) before[i] = rig_get(whole, HP_BUF_GRADS, i);
    build_parts(ops, d, round, whole, &p);
    run_all(whole);
    const double bound = norm_bound(whole, d, ops == &hp_device_ref ? DBL_EPSILON : eps());
    run_parts(&p, RIG_STATS);
    reduce_parts(&p, d->out.c);
    run_parts(&p, RIG_FWD_SHARED);
    for (int k = 0; k < p.n; k++) check_forward(p.part[k], whole, d, bound);
    run_parts(&p, RIG_BSTATS);
    reduce_parts(&p, d->out.c);
    run_parts(&p, RIG_BWD_SHARED);
    /* otherwise masks may differ */
    if (far_from_kinks(whole, bound)) check_backward(&p, whole, before, bound);
    for (int k = 0; k < p.n; k++) rig_free(p.part[k]);
    rig_free(whole);
}

static void parts_that_share_statistics_equal_the_whole(void **state) {
    (void)state;
    for (uint64_t round = 0; round < law_some(80); round++) {
        const draw d = draw_bn(round);
        if (d.samples * d.out.h * d.out.w < 8) continue;
        check_shared(&hp_device_ref, &d, round);
        check_shared(&hp_device_cpu, &d, round);
    }
}

/* As accurate as the whole's variance, although no rank knows a value to shift by. */
static void shared_variance_survives_a_large_mean(void **state) {
    (void)state;
    draw d = {.layer = {.op = HP_BN, .n_in = 1, .eps = 1e-5, .momentum = 0.1},
              .samples = 2,
              .out = {.h = 40, .w = 41, .c = 5}};
    d.in[0] = d.out;
    rig *both[2] = {build(&hp_device_cpu, &d), build(&hp_device_ref, &d)};
    for (int k = 0; k < 2; k++) {
        hp_error err = {0};
        fill(both[k], 999, 1001);
        assert_int_equal(rig_open(both[k], &err), HP_OK);
        const int shared[] = {RIG_STATS, RIG_FWD_SHARED}, alone[] = {RIG_FWD, RIG_FWD};
        for (int t = 0; t < 2; t++) assert_int_equal(rig_run(both[k], k ? alone[t] : shared[t]), HP_OK);
    }
    for (int c = 0; c < 5; c++) { /* x itself represents 1000 to 6e-5; the deviation is 0.6 */
        const double a = rig_get(both[0], both[0]->save, 5 + c), b = rig_get(both[1], both[1]->save, 5 + c);
        assert_true(fabs(a - b) < 4 * eps() * b);
    }
    rig_free(both[0]);
    rig_free(both[1]);
}

/* --- running statistics --- */

enum { REPLICAS = 3, GROUPS = 5 };

static double statistic_of(int group) {
    return 1 + 0.5 * group * group;
}

/* Share of `start` after rank `turn` of `turns` within replica `r`, which computes every turns-th group. */
static double share_of(int r, int turn, int turns, int bn, double start) {
    const hp_layer layer = {.op = HP_BN, .momentum = 0.1};
    const hp_step step = {.replica = r};
    double value = start;
    for (int m = turn, last = -1; m < GROUPS; last = m, m += turns) {
        const bool first_one = last < 0, last_one = m + turns >= GROUPS;
        const int64_t skipped = m - last - 1, behind = last_one ? GROUPS - 1 - m : 0;
        const hp_task task = {.op = HP_TASK_FWD,
                              .flags =
                                  (uint8_t)((first_one ? HP_FLAG_FIRST : 0) | (last_one ? HP_FLAG_LAST : 0)),
                              .micro = m,
                              .forward = {.skipped = (int32_t)skipped, .following = (uint32_t)behind}};
        const hp_bound b = {
            .task = &task, .layer = &layer, .step.dp = REPLICAS, .step.micro = GROUPS, .step.bn = bn};
        const hp_running f = hp_running_factors(&b, &step);
        value = (value * f.before + f.fresh * statistic_of(bn == HP_BN_ALL ? m : r * GROUPS + m)) * f.after;
    }
    return value;
}

/* torch's rule, group by group. */
static double in_order(double start, int groups) {
    for (int m = 0; m < groups; m++) start = 0.9 * start + 0.1 * statistic_of(m);
    return start;
}

static void shares_add_up_to_all_groups_in_order(void **state) {
    (void)state;
    for (int turns = 1; turns <= 3; turns++) {
        double sum = 0;
        for (int r = 0; r < REPLICAS; r++)
            for (int turn = 0; turn < turns; turn++)
                sum += share_of(r, turn, turns, HP_BN_SYNC, r == 0 && turn == 0 ? 7 : 0);
        near(sum, in_order(7, REPLICAS * GROUPS), 1e-12, "replicas");
    }
}

/* Statistics over all replicas: each replica's running ones are the true ones. */
static void shared_groups_are_applied_once(void **state) {
    (void)state;
    for (int turns = 1; turns <= 3; turns++)
        for (int r = 0; r < REPLICAS; r++) {
            double sum = 0;
            for (int turn = 0; turn < turns; turn++) sum += share_of(r, turn, turns, HP_BN_ALL, turn ? 0 : 7);
            near(sum, in_order(7, GROUPS), 1e-12, "one replica");
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_that_share_statistics_equal_the_whole),
        cmocka_unit_test(shared_variance_survives_a_large_mean),
        cmocka_unit_test(shares_add_up_to_all_groups_in_order),
        cmocka_unit_test(shared_groups_are_applied_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
