/* test_wiring.c - the program's index is the program inverted. In whatever order tasks end, each starts once,
 * after its dependencies and in its queue's order; operands are found where their row says. On random
 * networks and strategies. */
#include "plan/lower/lower.h"
#include "plan/program/operands.h"
#include "plan/program/ready.h"
#include "tests/support/plan/random_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { DRAWS = 60 };

typedef void law(dice *d, hp_arena *arena, const hp_program *p, const hp_graph *g);

static void holds_for_random_programs(law *check) {
    for (uint64_t seed = 1; seed <= DRAWS; seed++) {
        dice d = {seed, 9000};
        hp_arena *arena = hp_arena_new();
        hp_error err = {HP_OK, ""};
        hp_program *p = NULL;
        const hp_graph *g = random_net(arena, seed, roll(&d, 4, 12));
        const int groups = roll(&d, 1, 8);
        const hp_strategy s = random_strategy_of(&d, g, groups, 24, DRAW_ALL);
        const hp_lower_options o = {
            .mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = hp_strategy_batch(&s, groups), .place = true};
        if (hp_lower(arena, g, &s, &o, &p, &err) != HP_OK) fail_msg("seed %d: %s", (int)seed, err.text);
        check(&d, arena, p, g);
        hp_arena_free(arena);
    }
}

/* --- the index --- */

static bool depends(const hp_role *r, int task, int on) {
    for (int i = r->dep_first[task]; i < r->dep_first[task + 1]; i++)
        if (r->dep[i] == on) return true;
    return false;
}

static void check_role(const hp_wired_role *w) {
    const hp_role *r = w->role;
    int queued = 0;
    for (int q = 0; q < r->n_queue; q++)
        for (int k = 0; k < w->queue[q].n; k++, queued++) {
            const int task = hp_wired_task(w, q, k);
            assert_int_equal(r->task[task].queue, q);
            assert_int_equal(w->place[task], k);
            if (k) assert_true(hp_wired_task(w, q, k - 1) < task);
        }
    assert_int_equal(queued, r->n_task);
    assert_int_equal(w->succ_first[r->n_task], r->n_dep);
    for (int t = 0; t < r->n_task; t++)
        for (int i = w->succ_first[t]; i < w->succ_first[t + 1]; i++) {
            assert_true(depends(r, w->succ[i], t));
            if (i > w->succ_first[t]) assert_true(w->succ[i - 1] < w->succ[i]);
        }
}

/* Lowered programs match, so every message has a partner. */
static void check_messages(const hp_wiring *w, int role) {
    const hp_wired_role *r = &w->role[role];
    for (int t = 0; t < r->role->n_task; t++) {
        const hp_queue *q = hp_wired_queue_of(r, t);
        if (q->kind != HP_QUEUE_SEND && q->kind != HP_QUEUE_RECV) continue;
        const int other = hp_wired_other_end(w, role, t);
        assert_true(other >= 0);
        assert_int_equal(w->role[q->peer].role->task[other].message.position,
                         r->role->task[t].message.position);
        assert_int_equal(hp_wired_other_end(w, q->peer, other), t);
    }
}

static void check_index(dice *d, hp_arena *arena, const hp_program *p, const hp_graph *g) {
    (void)d, (void)g;
    const hp_wiring *w = hp_wiring_new(arena, p);
    for (int r = 0; r < p->n_role; r++) {
        check_role(&w->role[r]);
        check_messages(w, r);
        for (int q = 0; q < p->role[r].n_queue; q++) {
            const hp_queue *queue = &p->role[r].queue[q];
            assert_int_equal(
                hp_wired_find(&w->role[r], (hp_queue_kind)queue->kind, queue->peer, queue->channel), q);
        }
    }
}

static void the_index_is_the_program_turned_round(void **state) {
    (void)state;
    holds_for_random_programs(check_index);
}

/* --- ready, started, done --- */

static void check_start(const hp_role *r, const hp_ready *ready, const bool *done, int task) {
    assert_false(hp_ready_started(ready, task));
    for (int i = r->dep_first[task]; i < r->dep_first[task + 1]; i++) assert_true(done[r->dep[i]]);
    for (int t = 0; t < task; t++)
        if (r->task[t].queue == r->task[task].queue) assert_true(hp_ready_started(ready, t));
}

/* The task reported by hp_ready_start or hp_ready_meet is the one that hp_ready_task finds. */
static void add_reported(const hp_ready *ready, const hp_role *r, int task, bool *reported) {
    if (task < 0) return;
    assert_false(reported[task]);
    assert_int_equal(hp_ready_task(ready, r->task[task].queue), task);
    reported[task] = true;
}

static void run_in_random_order(dice *d, hp_arena *arena, const hp_wired_role *w) {
    const hp_role *r = w->role;
    bool *done = HP_NEW(arena, bool, r->n_task), *reported = HP_NEW(arena, bool, r->n_task);
    int32_t *running = HP_NEW(arena, int32_t, r->n_task);
    int n_running = 0, n_done = 0;
    hp_ready ready;
    hp_ready_init(arena, w, &ready);
    for (int q = 0; q < r->n_queue; q++) add_reported(&ready, r, hp_ready_task(&ready, q), reported);
    while (n_done < r->n_task) {
        const int queue = roll(d, 0, r->n_queue - 1), task = hp_ready_task(&ready, queue);
        if (task >= 0) {
            assert_true(reported[task]);
            check_start(r, &ready, done, task);
            running[n_running++] = task;
            add_reported(&ready, r, hp_ready_start(&ready, queue), reported);
        }
        if (n_running == 0 || coin(d)) continue;
        const int i = roll(d, 0, n_running - 1), ended = running[i];
        running[i] = running[--n_running];
        done[ended] = true;
        n_done++;
        for (int s = w->succ_first[ended]; s < w->succ_first[ended + 1]; s++)
            if (hp_ready_meet(&ready, w->succ[s])) add_reported(&ready, r, w->succ[s], reported);
    }
}

static void check_order(dice *d, hp_arena *arena, const hp_program *p, const hp_graph *g) {
    (void)g;
    const hp_wiring *w = hp_wiring_new(arena, p);
    run_in_random_order(d, arena, &w->role[roll(d, 0, p->n_role - 1)]);
}

static void each_task_starts_once_after_what_it_waits_for(void **state) {
    (void)state;
    holds_for_random_programs(check_order);
}

/* --- operands --- */

static void check_task(const hp_graph *g, const hp_role *r, const hp_task *t) {
    assert_true(hp_operand_count_fits(g, t));
    for (int i = 0, k; i < t->n_operand; i++) {
        const hp_operand_info *o = hp_operand_at(g, t, i, &k);
        assert_int_not_equal(o->kind, HP_OPERAND_NONE);
        assert_int_equal(hp_operand_buffer(g, r, t, (hp_operand_kind)o->kind, k), r->operand[t->operand + i]);
        if (o->count == HP_OPERAND_ONE) assert_true(r->operand[t->operand + i] >= 0);
    }
    const hp_operands all = hp_operands_of(g, r, t);
    assert_int_equal(all.y, hp_operand_buffer(g, r, t, HP_OPERAND_Y, 0));
    assert_int_equal(all.sums, hp_operand_buffer(g, r, t, HP_OPERAND_SUMS, 0));
    for (int k = 0; k < all.n_in; k++) {
        assert_int_equal(all.x[k], hp_operand_buffer(g, r, t, HP_OPERAND_X, k));
        assert_int_equal(all.dx[k], hp_operand_buffer(g, r, t, HP_OPERAND_DX, k));
    }
}

static void check_operands(dice *d, hp_arena *arena, const hp_program *p, const hp_graph *g) {
    (void)d, (void)arena;
    for (int i = 0; i < p->n_role; i++)
        for (int t = 0; t < p->role[i].n_task; t++) check_task(g, &p->role[i], &p->role[i].task[t]);
}

static void operands_are_where_their_row_says(void **state) {
    (void)state;
    holds_for_random_programs(check_operands);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_index_is_the_program_turned_round),
        cmocka_unit_test(each_task_starts_once_after_what_it_waits_for),
        cmocka_unit_test(operands_are_where_their_row_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
