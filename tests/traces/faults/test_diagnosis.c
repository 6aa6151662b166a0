/* test_diagnosis.c - runs that stop because one rank does: that rank is named, and never another. */
#include "plan/lower/lower.h"
#include "plan/program/wiring.h"
#include "tests/support/plan/law_cases.h"
#include "tests/support/plan/random_net.h"
#include "traces/faults/diagnosis.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_RANKS = 8, STEPS = 3 };

/* A run without times: each rank does what it can, task by task, in the order of its queues. */
typedef struct run {
    const hp_program *p;
    hp_wiring *w;
    int n, frozen;
    int64_t left_of_frozen; /* tasks that it still does before it stops */
    int iter[MAX_RANKS];
    bool *done[MAX_RANKS], *posted[MAX_RANKS]; /* in its current step */
    hp_diagnosis *d;
} run;

static const hp_role *role_of(const run *x, int rank) {
    return &x->p->role[rank % x->p->n_role];
}

static bool ready(const run *x, int rank, int task) {
    const hp_role *r = role_of(x, rank);
    for (int k = r->dep_first[task]; k < r->dep_first[task + 1]; k++)
        if (!x->done[rank][r->dep[k]]) return false;
    return true;
}

static bool has_posted(const run *x, int rank, int iter, int task) {
    return task < 0 || x->iter[rank] > iter || (x->iter[rank] == iter && x->posted[rank][task]);
}

static bool all_posted(const run *x, int rank, int task) {
    const int role = rank % x->p->n_role, iter = x->iter[rank];
    const hp_queue *q = hp_wired_queue_of(&x->w->role[role], task);
    if (q->kind == HP_QUEUE_COMPUTE) return true;
    if (q->kind != HP_QUEUE_COLL)
        return has_posted(x, rank - role + q->peer, iter, hp_wired_other_end(x->w, role, task));
    for (int k = 0; k < hp_group_size(x->p, q->peer); k++) {
        const int other = hp_group_rank(x->p, q->peer, rank / x->p->n_role, k);
        const hp_wired_role *theirs = &x->w->role[other % x->p->n_role];
        const int queue = hp_wired_find(theirs, HP_QUEUE_COLL, q->peer, q->channel);
        if (queue >= 0 &&
            !has_posted(x, other, iter, hp_wired_task(theirs, queue, x->w->role[role].place[task])))
            return false;
    }
    return true;
}

static void next_step(run *x, int rank) {
    const hp_role *r = role_of(x, rank);
    for (int t = 0; t < r->n_task; t++)
        if (!x->done[rank][t]) return;
    if (x->iter[rank] == STEPS - 1) return;
    x->iter[rank]++;
    memset(x->done[rank], 0, (size_t)r->n_task);
    memset(x->posted[rank], 0, (size_t)r->n_task);
}

/* Begins the first unfinished task of each queue if it may begin; ends what all participants have begun. The
 * frozen rank begins nothing, but what it has begun ends, as messages progress by themselves. */
static bool advance(run *x, int rank) {
    const hp_role *r = role_of(x, rank);
    bool moved = false;
    for (int q = 0; q < r->n_queue; q++) {
        const hp_wired_queue *queue = &x->w->role[rank % x->p->n_role].queue[q];
        int k = 0;
        while (k < queue->n && x->done[rank][queue->task[k]]) k++;
        if (k == queue->n) continue;
        const int task = queue->task[k];
        const bool stopped = rank == x->frozen && x->left_of_frozen <= 0;
        if (!x->posted[rank][task] && !stopped && ready(x, rank, task)) {
            x->posted[rank][task] = moved = true;
            if (rank == x->frozen) x->left_of_frozen--;
        }
        if (!x->posted[rank][task] || !all_posted(x, rank, task)) continue;
        x->done[rank][task] = moved = true;
        hp_diagnosis_done(x->d, rank, x->iter[rank], task);
    }
    next_step(x, rank);
    return moved;
}

static void run_until_it_stops(run *x) {
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < x->n; r++) moved |= advance(x, r);
    }
}

static void the_rank_that_stopped_is_named(void **state) {
    (void)state;
    int named = 0, cases = 0;
    for (uint64_t seed = 1; seed <= law_cases(300); seed++) {
        hp_arena *arena = hp_arena_new();
        dice d = {seed, 11};
        const hp_graph *g = random_net(arena, seed, roll(&d, 3, 6));
        const int groups = roll(&d, 1, 4);
        const hp_strategy s = random_strategy_of(&d, g, groups, MAX_RANKS, DRAW_ALL);
        const hp_lower_options o = {
            .mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = hp_strategy_batch(&s, groups), .place = true};
        hp_error err = {HP_OK, ""};
        hp_program *p = NULL;
        if (hp_lower(arena, g, &s, &o, &p, &err) != HP_OK) fail_msg("%s", err.text);
        run x = {
            .p = p, .w = hp_wiring_new(arena, p), .n = hp_program_ranks(p), .d = hp_diagnosis_new(arena, p)};
        x.frozen = roll(&d, 0, x.n - 1);
        x.left_of_frozen = roll(&d, 1, 2 * role_of(&x, x.frozen)->n_task);
        for (int r = 0; r < x.n; r++) {
            x.done[r] = HP_NEW(arena, bool, role_of(&x, r)->n_task);
            x.posted[r] = HP_NEW(arena, bool, role_of(&x, r)->n_task);
        }
        run_until_it_stops(&x);
        hp_stopped at[MAX_RANKS];
        hp_diagnosis_conclude(x.d, at);
        const int culprit = hp_diagnosis_culprit(x.d, at);
        if (culprit >= 0 && culprit != x.frozen) {
            char text[HP_STRATEGY_TEXT];
            fail_msg("seed %d, %s: rank %d stopped, rank %d is named", (int)seed, hp_strategy_text(&s, text),
                     x.frozen, culprit);
        }
        cases += x.n > 1;
        named += culprit == x.frozen;
        hp_arena_free(arena);
    }
    print_message("named in %d of %d runs of several ranks\n", named, cases);
    assert_true(named * 2 >= cases); /* otherwise it stopped before a message that it had reached, or
                                      * nobody waited for it */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_rank_that_stopped_is_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
