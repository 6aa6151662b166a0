/* test_powersgd.c - a step with gradients as products of thin matrices: for matrices, the projection of the
 * plain step onto them; for everything else, the plain step. */
#include "plan/strategy/axes/axis_compress.h"
#include "tests/support/exec/law_run.h"

static hp_comm *own_comm(hp_comm *inner, const hp_memory *memory) {
    (void)memory;
    return hp_comm_own(inner);
}

/* A step's change of a parameter, without weight decay and learning rate. */
static void steps_of(const hp_graph *g, const law_training *t, const outcome *end, double *step) {
    hp_arena *arena = hp_arena_new();
    const double *start = law_parameters(arena, g, t->seed), decay = 1e-4 * t->lr;
    for (int64_t i = 0; i < end->n; i++) step[i] = end->weights[i] - start[i] * (1 - decay);
    hp_arena_free(arena);
}

/* The projection of the plain step onto one column: orthogonal to the residual, and of rank 1. */
static void is_projection(uint64_t seed, const hp_param *p, const double *coded, const double *plain) {
    const int64_t cols = p->count / p->dim[0];
    double dot = 0, most = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < p->count; i++) {
        dot += coded[i] * (plain[i] - coded[i]);
        most = fmax(most, fabs(plain[i]));
        if (fabs(coded[i]) > fabs(coded[at])) at = i;
    }
    if (fabs(dot) > 1e-9 * (most * most + 1e-6) * (double)p->count)
        fail_msg("seed %llu, %s: not orthogonal by %g", (unsigned long long)seed, p->name, dot);
    for (int64_t i = 0; i < p->count; i++) { /* minors with the largest element */
        const int64_t row = at / cols * cols + i % cols, col = i / cols * cols + at % cols;
        const double minor = coded[at] * coded[i] - coded[row] * coded[col];
        if (fabs(minor) > 1e-9 * (most * most + 1e-6))
            fail_msg("seed %llu, %s: rank above 1 by %g", (unsigned long long)seed, p->name, minor);
    }
}

static void one_step_is_a_projection(void **state) {
    (void)state;
    static const char *const strategies[] = {"dp=2,fuse=4k", "dp=3,stages=2,micro=2,fuse=1k", "dp=2,sp=2x1",
                                             "stages=2,sched=gems,dp=2,fuse=16k"};
    int projected = 0;
    for (uint64_t seed = 1; seed <= law_cases(40); seed++) {
        dice d = {seed, 3200};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_net(arena, seed, roll(&d, 3, 6));
        law_training t = {.g = g, .ops = &hp_device_ref, .steps = 1, .lr = 1, .seed = seed, .comm = own_comm};
        assert_int_equal(hp_strategy_parse(strategies[seed % 4], &t.s, NULL), HP_OK);
        t.batch = hp_strategy_batch(&t.s, 2 * law_groups(&t.s));
        law_training plain = t;
        assert_int_equal(hp_compress_parse("allreduce:powersgd:1", t.s.compress, NULL), HP_OK);
        const outcome have = law_run(arena, &t), want = law_run(arena, &plain);
        double *coded = HP_NEW(arena, double, have.n), *whole = HP_NEW(arena, double, have.n);
        steps_of(g, &t, &have, coded);
        steps_of(g, &t, &want, whole);
        for (int64_t i = 0, at = 0; i < g->n_param; at += g->param[i++].count) {
            const hp_param *p = &g->param[i];
            const int64_t rows = p->dim[0], cols = p->count / rows;
            if (p->n_dim > 1 && rows + cols < rows * cols) {
                is_projection(seed, p, coded + at, whole + at);
                projected++;
            } else {
                for (int64_t k = 0; k < p->count; k++)
                    assert_true(fabs(coded[at + k] - whole[at + k]) < 1e-9);
            }
        }
        hp_arena_free(arena);
    }
    assert_true(projected > 2 * (int)law_cases(40));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_step_is_a_projection)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
