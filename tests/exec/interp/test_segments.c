/* test_segments.c - segments of the compute queue: each task is in exactly one, in the queue's order; only a
 * segment's first task waits for another queue; no segment could be longer. */
#include "exec/interp/graph_segments.h"
#include "tests/support/plan/random_net.h"
#include "plan/lower/lower.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MAX_RANKS = 8 };

static hp_program *drawn(hp_arena *arena, uint64_t seed) {
    dice die = {seed, 3100};
    hp_error err = {HP_OK, ""};
    hp_program *p = NULL;
    const hp_graph *g = random_net(arena, seed, roll(&die, 3, 6));
    hp_strategy s = random_strategy_of(&die, g, roll(&die, 1, 4), MAX_RANKS, DRAW_EXACT);
    draw_comm(&die, &s);
    const hp_lower_options o = {.mode = coin(&die) ? HP_MODE_TRAIN : HP_MODE_INFER,
                                .dtype = HP_F64,
                                .batch = hp_strategy_batch(&s, 4),
                                .place = true};
    if (hp_lower(arena, g, &s, &o, &p, &err) != HP_OK)
        fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
    return p;
}

/* --- the rule for two consecutive tasks --- */

static bool depends_on_others(const hp_role *r, int32_t task) {
    for (int32_t other = 0; other < r->n_task; other++)
        for (int d = r->dep_first[task]; d < r->dep_first[task + 1]; d++)
            if (r->dep[d] == other && r->queue[r->task[other].queue].kind != HP_QUEUE_COMPUTE) return true;
    return false;
}

static bool of_the_host(const hp_role *r, int32_t task) {
    return r->task[task].op == HP_TASK_LOAD || r->task[task].op == HP_TASK_STORE;
}

static bool are_cut(const hp_role *r, int32_t before, int32_t task) {
    return of_the_host(r, before) || of_the_host(r, task) || depends_on_others(r, task);
}

/* --- the law --- */

static void check_segment(const hp_role *r, const int32_t *task, int32_t n, const int32_t *length) {
    for (int i = 1; i < n; i++) {
        assert_int_equal(length[task[i]], 0);
        assert_false(are_cut(r, task[i - 1], task[i]));
    }
}

static int check_role(const hp_role *r) {
    int32_t *length = malloc(sizeof *length * (size_t)(r->n_task + 1));
    int32_t *compute = malloc(sizeof *compute * (size_t)(r->n_task + 1)), n = 0;
    int longer = 0;
    hp_graph_segments(r, length);
    for (int t = 0; t < r->n_task; t++) {
        if (r->queue[r->task[t].queue].kind == HP_QUEUE_COMPUTE)
            compute[n++] = t;
        else
            assert_int_equal(length[t], 0);
    }
    for (int at = 0, next; at < n; at = next) {
        next = at + length[compute[at]];
        assert_true(next > at && next <= n);
        if (at > 0) assert_true(are_cut(r, compute[at - 1], compute[at]));
        check_segment(r, &compute[at], next - at, length);
        longer += next > at + 1;
    }
    free(compute);
    free(length);
    return longer;
}

static void every_task_is_in_one_and_only_the_first_waits_for_others(void **state) {
    (void)state;
    int longer = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        hp_arena *arena = hp_arena_new();
        const hp_program *p = drawn(arena, seed);
        for (int r = 0; r < p->n_role; r++) longer += check_role(&p->role[r]);
        hp_arena_free(arena);
    }
    assert_true(longer > 60);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_is_in_one_and_only_the_first_waits_for_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
