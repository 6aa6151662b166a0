/* test_program.c - lowered programs: proved for random networks and strategies; 60 seeded faults of five
 * kinds are all caught, by code and rank; a naive 1F1B with synchronous sends deadlocks and the checker says
 * between whom. */
#include "plan/program_check.h"
#include "tests/random_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static hp_program *lower_text(hp_arena *arena, const hp_graph *g, const char *text, int64_t batch) {
    hp_strategy s;
    hp_error err = {HP_OK, ""};
    hp_program *p = NULL;
    const hp_lower_options o = {.mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = batch, .place = true};
    if (hp_strategy_parse(text, &s, &err) != HP_OK || hp_lower(arena, g, &s, &o, &p, &err) != HP_OK)
        fail_msg("%s", err.text);
    return p;
}

static void every_legal_strategy_is_proved(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        dice d = {seed, 3000};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_net(arena, seed, roll(&d, 4, 14));
        const int groups = roll(&d, 1, 16);
        const hp_strategy s = random_strategy(&d, g, groups, 64);
        for (int mode = 0; mode < 2; mode++) {
            hp_error err = {HP_OK, ""};
            hp_program *p = NULL;
            const hp_lower_options o = {
                .mode = (hp_mode)mode, .dtype = HP_F32, .batch = groups, .place = true};
            char text[HP_STRATEGY_TEXT];
            if (hp_lower(arena, g, &s, &o, &p, &err) != HP_OK || hp_program_check(p, g, &err) != HP_OK)
                fail_msg("seed %llu %s: %s", (unsigned long long)seed, hp_strategy_text(&s, text), err.text);
            for (int r = 0; r < p->n_role; r++)
                assert_true(p->role[r].arena_bytes >= p->role[r].live_bytes - 64);
        }
        hp_arena_free(arena);
    }
}

/* Every trained parameter lies in exactly one role, gradients of all of them are reduced and applied exactly
 * once. */
static void every_parameter_has_one_home_and_one_update(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        dice d = {seed, 4000};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_net(arena, seed, 9);
        hp_strategy s = random_strategy(&d, g, 4, 64);
        hp_error err;
        hp_program *p = NULL;
        const hp_lower_options o = {.mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = 4, .place = true};
        assert_int_equal(hp_lower(arena, g, &s, &o, &p, &err), HP_OK);
        for (int i = 0; i < g->n_param; i++) {
            int homes = 0;
            for (int r = 0; r < p->n_role; r++) homes += p->role[r].place[i].here;
            assert_int_equal(homes, 1);
        }
        for (int r = 0; r < p->n_role; r++) {
            const hp_role *role = &p->role[r];
            int64_t updated = 0, reduced = 0;
            for (int t = 0; t < role->n_task; t++) {
                if (role->task[t].op == HP_TASK_SGD) updated += role->task[t].count;
                if (role->task[t].op == HP_TASK_ALLREDUCE && !(role->task[t].flags & HP_FLAG_METRIC))
                    reduced += role->task[t].count;
            }
            assert_int_equal(updated, role->trained_elems);
            assert_int_equal(reduced, p->dp > 1 ? role->trained_elems : 0);
        }
        hp_arena_free(arena);
    }
}

static void naive_1f1b_with_synchronous_sends_deadlocks(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_error err;
    hp_graph *g = NULL;
    assert_int_equal(hp_net_build(arena, "resnet18", 64, 64, 10, &g, &err), HP_OK);
    for (int stages = 2; stages <= 6; stages++)
        for (int micro = 1; micro <= 6; micro++) {
            char text[64];
            snprintf(text, sizeof text, "stages=%d,micro=%d,sched=1f1b", stages, micro);
            const hp_program *p = lower_text(arena, g, text, 60);
            assert_int_equal(hp_program_check(p, g, &err), HP_OK);
            const hp_status naive = hp_check_waits(hp_program_blocking(arena, p), g, &err);
            if (micro == 1) {
                assert_int_equal(naive, HP_OK); /* one micro-batch: plain layer parallelism */
            } else {
                assert_int_equal(naive, HP_EPLAN);
                assert_non_null(strstr(err.text, "E-DEADLOCK: ranks "));
            }
            snprintf(text, sizeof text, "stages=%d,micro=%d,sched=%s", stages, micro,
                     micro > 1 ? "gpipe" : "lp");
            assert_int_equal(
                hp_check_waits(hp_program_blocking(arena, lower_text(arena, g, text, 60)), g, &err), HP_OK);
        }
    hp_arena_free(arena);
}

/* --- seeded faults --- */

typedef enum fault { FAULT_ORDER, FAULT_MISSING, FAULT_COUNT, FAULT_TYPE, FAULT_COMMUNICATOR, FAULTS } fault;

/* A copy whose role `r` can be changed. */
static hp_program *copy_program(hp_arena *arena, const hp_program *p, int r) {
    hp_program *c = HP_NEW(arena, hp_program, 1);
    *c = *p;
    c->role = HP_NEW(arena, hp_role, p->n_role);
    memcpy(c->role, p->role, sizeof(hp_role) * (size_t)p->n_role);
    hp_role *role = &c->role[r];
    role->task = HP_NEW(arena, hp_task, role->n_task);
    memcpy(role->task, p->role[r].task, sizeof(hp_task) * (size_t)role->n_task);
    role->queue = HP_NEW(arena, hp_queue, role->n_queue);
    memcpy(role->queue, p->role[r].queue, sizeof(hp_queue) * (size_t)role->n_queue);
    return c;
}

static int pick_task(dice *d, const hp_role *r, uint8_t a, uint8_t b) {
    int list[4096], n = 0;
    for (int t = 0; t < r->n_task && n < 4096; t++)
        if (r->task[t].op == a || r->task[t].op == b) list[n++] = t;
    return list[roll(d, 0, n - 1)];
}

/* Exchanges two transfers of the same queue. */
static void swap_order(dice *d, hp_role *r) {
    for (;;) {
        const int a = pick_task(d, r, HP_TASK_SEND, HP_TASK_RECV),
                  b = pick_task(d, r, HP_TASK_SEND, HP_TASK_RECV);
        if (a == b || r->task[a].queue != r->task[b].queue) continue;
        const int32_t tag = r->task[a].tag;
        r->task[a].tag = r->task[b].tag;
        r->task[b].tag = tag;
        return;
    }
}

static void inject(dice *d, hp_role *r, fault kind) {
    const int t =
        pick_task(d, r, HP_TASK_SEND, kind == FAULT_COMMUNICATOR ? HP_TASK_ALLREDUCE : HP_TASK_RECV);
    hp_task *task = &r->task[t];
    switch (kind) {
    case FAULT_ORDER:
        swap_order(d, r);
        break;
    case FAULT_MISSING: /* the transfer becomes a compute task that does nothing */
        *task = (hp_task){.op = HP_TASK_SGD, .layer = -1, .micro = -1, .tag = 0};
        break;
    case FAULT_COUNT:
        task->count -= 1 + roll(d, 0, 3);
        break;
    case FAULT_TYPE:
        task->dtype = (uint8_t)(task->dtype == HP_F32 ? HP_I32 : HP_F32);
        break;
    default: { /* the queue leads to another peer, another channel, or another group */
        hp_queue *q = &r->queue[task->queue];
        if (q->kind == HP_QUEUE_COLL) {
            q->peer = q->peer ? 0 : 1 + r->stage;
        } else if (coin(d)) {
            q->channel += 2;
        } else {
            q->peer = r->stage;
        }
    }
    }
}

static void seeded_faults_are_all_caught(void **state) {
    (void)state;
    static const char *const strategies[] = {"dp=2,stages=3,micro=4,sched=1f1b",
                                             "stages=4,micro=8,sched=gpipe", "dp=2,stages=2,chunks=2,micro=4",
                                             "dp=4,stages=2,micro=3,sched=1f1b"};
    hp_arena *arena = hp_arena_new();
    hp_error err = {HP_OK, ""};
    hp_graph *g = NULL;
    assert_int_equal(hp_net_build(arena, "resnet18", 64, 64, 10, &g, &err), HP_OK);
    int caught = 0;
    for (int i = 0; i < 60; i++) {
        dice d = {(uint64_t)i, 5000};
        const hp_program *p = lower_text(arena, g, strategies[i % 4], 48);
        const int role = roll(&d, 0, p->n_role - 1);
        hp_program *broken = copy_program(arena, p, role);
        assert_int_equal(hp_program_check(broken, g, &err), HP_OK);
        inject(&d, &broken->role[role], (fault)(i / 4 % FAULTS));
        if (hp_program_check(broken, g, &err) != HP_EPLAN)
            fail_msg("fault %d of kind %d in stage %d was not caught", i, i / 4 % FAULTS, role);
        if (strncmp(err.text, "E-", 2) != 0 || (!strstr(err.text, "rank") && !strstr(err.text, "stage")))
            fail_msg("no code or rank: %s", err.text);
        caught++;
    }
    assert_int_equal(caught, 60);
    hp_arena_free(arena);
}

/* Removing the dependency that makes a reuse of memory safe is found. */
static void unsafe_reuse_of_memory_is_caught(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_error err;
    hp_graph *g = NULL;
    assert_int_equal(hp_net_build(arena, "resnet18", 64, 64, 10, &g, &err), HP_OK);
    hp_program *p = lower_text(arena, g, "stages=2,micro=4,sched=1f1b", 8);
    hp_program *broken = copy_program(arena, p, 0);
    hp_role *r = &broken->role[0];
    r->dep_first = HP_NEW(arena, int32_t, r->n_task + 1);
    r->n_dep = 0; /* no dependencies at all: receives may start before the memory is free */
    assert_int_equal(hp_program_check(p, g, &err), HP_OK);
    assert_int_equal(hp_program_check(broken, g, &err), HP_EPLAN);
    assert_non_null(strstr(err.text, "E-OVERLAP"));
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_legal_strategy_is_proved),
        cmocka_unit_test(every_parameter_has_one_home_and_one_update),
        cmocka_unit_test(naive_1f1b_with_synchronous_sends_deadlocks),
        cmocka_unit_test(seeded_faults_are_all_caught),
        cmocka_unit_test(unsafe_reuse_of_memory_is_caught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
