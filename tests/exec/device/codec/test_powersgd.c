/* test_powersgd.c - PowerSGD on three simulated ranks: nothing is lost, low-rank sums are
 * exact, P is orthogonal. */
#include "exec/device/codec/code.h"
#include "base/rng.h"
#include "plan/codec/codecs.h"
#include "plan/program/factors.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

/* A matrix, a vector, filters, with gaps before each. */
enum {
    RANKS = 3,
    RANGE = 1300,
    AT0 = 5,
    N0 = 24 * 30,
    AT1 = 740,
    N1 = 17,
    AT2 = 770,
    N2 = 8 * 27,
    FACTORS = 600
};

typedef struct fixture {
    hp_param param[3];
    hp_param_place place[3];
    hp_graph graph;
    hp_role role;
    hp_task task;
    int rank;
    hp_dtype dtype;
    double grad[RANKS][RANGE], p[RANKS][FACTORS], q[RANKS][FACTORS], kept[RANKS][RANGE + FACTORS];
} fixture;

static void set_up(fixture *f, int rank, hp_dtype dtype) {
    memset(f, 0, sizeof *f);
    f->param[0] = (hp_param){.kind = HP_PARAM_LINEAR_W, .n_dim = 2, .dim = {24, 30}, .count = N0};
    f->param[1] = (hp_param){.kind = HP_PARAM_BIAS, .n_dim = 1, .dim = {N1}, .count = N1};
    f->param[2] = (hp_param){.kind = HP_PARAM_CONV_W, .n_dim = 4, .dim = {8, 3, 3, 3}, .count = N2};
    const int64_t at[3] = {AT0, AT1, AT2};
    for (int i = 0; i < 3; i++)
        f->place[i] = (hp_param_place){.here = HP_HERE, .offset = 100 + at[i], .count = f->param[i].count};
    f->graph = (hp_graph){.n_param = 3, .param = f->param};
    f->role = (hp_role){.place = f->place};
    f->task = (hp_task){.op = HP_TASK_PROJECT, .code = {.first = 100, .values = RANGE}};
    f->rank = rank;
    f->dtype = dtype;
}

/* Kernels work on arrays of either type; the test keeps float64 values that are exact in float32. */
static void *narrowed(const fixture *f, double *x, int n, float *room) {
    if (f->dtype == HP_F64) return x;
    for (int i = 0; i < n; i++) room[i] = (float)x[i];
    return room;
}

static void widened(const fixture *f, double *x, int n, const float *room) {
    for (int i = 0; i < n && f->dtype == HP_F32; i++) x[i] = (double)room[i];
}

static void run(fixture *f, hp_task_op op, int rank) {
    static float grad[RANGE], p[FACTORS], q[FACTORS], kept[RANGE + FACTORS];
    const hp_step step = {.seed = 7};
    f->task.op = (uint8_t)op;
    void *g = narrowed(f, f->grad[rank], RANGE, grad), *a = narrowed(f, f->p[rank], FACTORS, p),
         *b = narrowed(f, f->q[rank], FACTORS, q);
    hp_bound bound = {.task = &f->task,
                      .code.codec = hp_codec_of(HP_CODEC_POWERSGD, f->rank),
                      .dtype = f->dtype,
                      .count = RANGE,
                      .graph = &f->graph,
                      .role = &f->role,
                      .code.residual = narrowed(f, f->kept[rank], RANGE + FACTORS, kept),
                      .y = op == HP_TASK_PROJECT  ? a
                           : op == HP_TASK_FACTOR ? b
                                                  : g};
    bound.x[0] = op == HP_TASK_PROJECT ? g : a;
    bound.x[1] = b;
    hp_code_factors(&bound, &step);
    widened(f, f->grad[rank], RANGE, grad);
    widened(f, f->p[rank], FACTORS, p);
    widened(f, f->q[rank], FACTORS, q);
    widened(f, f->kept[rank], RANGE + FACTORS, kept);
}

static void all_reduce(double (*x)[FACTORS]) {
    for (int i = 0; i < FACTORS; i++) {
        double sum = 0;
        for (int r = 0; r < RANKS; r++) sum += x[r][i];
        for (int r = 0; r < RANKS; r++) x[r][i] = sum;
    }
}

static void one_step(fixture *f) {
    for (int r = 0; r < RANKS; r++) run(f, HP_TASK_PROJECT, r);
    all_reduce(f->p);
    for (int r = 0; r < RANKS; r++) run(f, HP_TASK_FACTOR, r);
    all_reduce(f->q);
    for (int r = 0; r < RANKS; r++) run(f, HP_TASK_EXPAND, r);
    for (int r = 1; r < RANKS; r++) assert_memory_equal(f->grad[r], f->grad[0], sizeof f->grad[0]);
}

static bool is_gap(int i) {
    return i < AT0 || (i >= AT0 + N0 && i < AT1) || (i >= AT1 + N1 && i < AT2) || i >= AT2 + N2;
}

static void draw(fixture *f, uint64_t step) {
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < RANGE; i++)
            f->grad[r][i] = is_gap(i) ? 0 : 2 * hp_rng_uniform(step, (uint64_t)r, (uint64_t)i) - 1;
}

/* The applied part and what all ranks keep add up to the gradients; vectors are summed uncompressed. */
static void nothing_is_lost(void **state) {
    (void)state;
    enum { STEPS = 30 };
    static fixture f;
    for (int k = 0; k < 6; k++) {
        double brought[RANGE] = {0}, applied[RANGE] = {0};
        set_up(&f, 1 + k / 2 * 2, k % 2 ? HP_F64 : HP_F32);
        for (uint64_t step = 1; step <= STEPS; step++) {
            draw(&f, step);
            double now[RANGE] = {0};
            for (int r = 0; r < RANKS; r++)
                for (int i = 0; i < RANGE; i++) now[i] += f.grad[r][i];
            one_step(&f);
            for (int i = AT1; i < AT1 + N1; i++) assert_true(fabs(f.grad[0][i] - now[i]) <= 1e-6);
            for (int i = 0; i < RANGE; i++) brought[i] += now[i], applied[i] += f.grad[0][i];
        }
        double most = 0;
        for (int i = 0; i < RANGE; i++) {
            double kept = 0;
            for (int r = 0; r < RANKS; r++) kept += f.kept[r][i];
            assert_true(fabs(applied[i] + kept - brought[i]) <= (k % 2 ? 1e-11 : 1e-3));
            if (is_gap(i)) assert_true(f.grad[0][i] == 0);
            most = fmax(most, fabs(kept));
        }
        assert_true(most > 0.1); /* something was kept */
    }
}

/* A sum whose rank is at most the factors' is exact, although no rank's share is. */
static void thin_sums_are_exact(void **state) {
    (void)state;
    static fixture f;
    for (int rank = 1; rank <= 4; rank++) {
        double sum[RANGE] = {0};
        set_up(&f, rank, HP_F64);
        draw(&f, (uint64_t)rank);
        for (int i = 0; i < 24; i++)
            for (int j = 0; j < 30; j++) {
                double thin = 0;
                for (int k = 0; k < rank; k++) thin += sin(1 + i * (k + 1)) * cos(2 + j * (k + 2));
                sum[AT0 + 30 * i + j] = thin;
                f.grad[2][AT0 + 30 * i + j] =
                    thin - f.grad[0][AT0 + 30 * i + j] - f.grad[1][AT0 + 30 * i + j];
            }
        one_step(&f);
        for (int i = AT0; i < AT0 + N0; i++) assert_true(fabs(f.grad[0][i] - sum[i]) <= 1e-11);
    }
}

static void p_is_orthogonal(void **state) {
    (void)state;
    static fixture f;
    set_up(&f, 4, HP_F64);
    draw(&f, 3);
    one_step(&f);
    for (int k = 0; k < 4; k++)
        for (int l = 0; l <= k; l++) {
            double dot = 0;
            for (int i = 0; i < 24; i++) dot += f.p[0][4 * i + k] * f.p[0][4 * i + l];
            assert_true(fabs(dot - (k == l)) <= 1e-14 * 24);
        }
}

/* With constant gradients, the applied updates approach their sum step by step: the kept
 * part does not grow. */
static void what_is_kept_stays_bounded(void **state) {
    (void)state;
    static fixture f;
    double early = 0, late = 0;
    set_up(&f, 2, HP_F64);
    for (int step = 0; step < 400; step++) {
        draw(&f, 1);
        one_step(&f);
        double kept = 0;
        for (int r = 0; r < RANKS; r++)
            for (int i = 0; i < RANGE; i++) kept += f.kept[r][i] * f.kept[r][i];
        if (step < 200) early = fmax(early, kept);
        late = kept;
    }
    assert_true(late <= early * 1.5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost),
        cmocka_unit_test(thin_sums_are_exact),
        cmocka_unit_test(p_is_orthogonal),
        cmocka_unit_test(what_is_kept_stays_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
