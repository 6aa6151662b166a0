/* adamw_case.c - see adamw_case.h. */
#include "tests/support/exec/adamw_case.h"

#include "networks/graph/optimizer.h"
#include "plan/program/update.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

typedef struct element {
    double w, m, v;
} element;

static element updated(element e, double g, double decay) {
    const double lr = RIG_LR, b1 = RIG_BETA1, b2 = RIG_BETA2, t = RIG_UPDATES + 1;
    const double m = b1 * e.m + (1 - b1) * g, v = b2 * e.v + (1 - b2) * g * g;
    const double m_hat = m / (1 - pow(b1, t)), v_hat = v / (1 - pow(b2, t));
    return (element){e.w - lr * (m_hat / (sqrt(v_hat) + RIG_EPS) + decay * e.w), m, v};
}

static element element_of(const rig *r, int64_t i) {
    const int64_t n = hp_state_elems(&r->program, &r->graph, &r->role);
    return (element){rig_get(r, HP_BUF_WEIGHTS, i), rig_get(r, HP_BUF_OPTIMIZER, i),
                     rig_get(r, HP_BUF_OPTIMIZER, n + i)};
}

static void near(double have, double want, double bound) {
    if (!(fabs(have - want) <= bound * (1 + fabs(want)))) fail_msg("%.17g, not %.17g", have, want);
}

void adamw_check(rig *r, double bound) {
    hp_error err;
    r->graph.optimizer = HP_ADAMW;
    const int64_t n = hp_state_elems(&r->program, &r->graph, &r->role);
    for (int64_t i = 0; i < n; i++)
        rig_set(r, HP_BUF_OPTIMIZER, n + i, fabs(rig_get(r, HP_BUF_OPTIMIZER, i)));
    memset(rig_at(r, HP_BUF_METRIC), 0, 8 * HP_METRICS);
    element *want = HP_NEW(r->arena, element, n);
    for (int p = 0; p < r->graph.n_param; p++)
        for (int64_t i = r->place[p].offset; i < r->place[p].offset + r->place[p].count; i++)
            want[i] = updated(element_of(r, i), rig_get(r, HP_BUF_GRADS, i),
                              r->param[p].kind == HP_PARAM_BIAS ? 0 : RIG_DECAY);
    assert_int_equal(rig_open(r, &err), HP_OK);
    assert_int_equal(rig_run(r, RIG_SGD), HP_OK);
    for (int p = 0; p < r->graph.n_param; p++)
        for (int64_t i = r->place[p].offset; i < r->place[p].offset + r->place[p].count; i++) {
            const element have = element_of(r, i);
            near(have.w, want[i].w, bound);
            near(have.m, want[i].m, bound);
            near(have.v, want[i].v, bound);
        }
}

void norm_check(rig *r, double bound) {
    double want = 0;
    for (int64_t i = 0; i < r->role.trained_elems; i++)
        want += rig_get(r, HP_BUF_GRADS, i) * rig_get(r, HP_BUF_GRADS, i);
    memset(rig_at(r, HP_BUF_METRIC), 0, 8 * HP_METRICS);
    assert_int_equal(rig_run(r, RIG_NORM), HP_OK);
    assert_int_equal(rig_run(r, RIG_NORM), HP_OK); /* buckets add up */
    near(((double *)rig_at(r, HP_BUF_METRIC))[HP_METRIC_SQUARES] / (2 * want), 1, bound);
}
