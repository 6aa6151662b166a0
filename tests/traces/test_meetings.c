/* test_meetings.c - which tasks meet, and how long the early ones wait. */
#include "tests/support/traces/trace_fixture.h"
#include "plan/lower/lower.h"
#include "traces/meetings.h"
#include "traces/query.h"

static char path[256];

static hp_program *lowered(hp_arena *arena, const char *strategy) {
    hp_error err = {0};
    hp_graph *g = NULL;
    hp_program *p = NULL;
    hp_strategy s;
    const hp_lower_options o = {.mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = 16};
    fixture_ok(hp_strategy_parse(strategy, &s, &err), &err);
    fixture_ok(hp_net_build(arena, "resnet18", 64, 64, 10, &g, &err), &err);
    fixture_ok(hp_lower(arena, g, &s, &o, &p, &err), &err);
    return p;
}

typedef struct tally {
    int n, sends, recvs, sums;
    int64_t count; /* elements */
    bool world;
} tally;

/* A message has two ends of equal size; a collective has a call of every role of its group;
 * compute meets nothing. */
static void ends_and_calls_meet(void **state) {
    (void)state;
    static const char *const strategies[] = {"dp=4",
                                             "dp=2,stages=2,micro=4,sched=1f1b",
                                             "sp=2x2,stages=2,micro=2",
                                             "dp=2,sp=2x1,stages=2,tail=shared,bn=all",
                                             "stages=2,chunks=2,micro=4",
                                             "stages=2,sched=gems,gems=2,micro=2"};
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
        hp_arena *arena = hp_arena_new();
        const hp_program *p = lowered(arena, strategies[i]);
        const hp_meetings m = hp_meetings_new(arena, p);
        int tasks = 0, comm = 0;
        for (int r = 0; r < p->n_role; r++) tasks += p->role[r].n_task;
        tally *met = HP_NEW(arena, tally, tasks);
        for (int r = 0; r < p->n_role; r++)
            for (int t = 0; t < p->role[r].n_task; t++) {
                const hp_task *task = &p->role[r].task[t];
                const hp_queue *q = &p->role[r].queue[task->queue];
                const int32_t number = hp_meeting_of(&m, r, t);
                assert_int_equal(number < 0, q->kind == HP_QUEUE_COMPUTE);
                if (number < 0) continue;
                assert_true(number < tasks);
                tally *a = &met[number];
                if (a->n++) assert_int_equal(a->count, hp_task_range(task).count);
                a->count = hp_task_range(task).count;
                a->sends += q->kind == HP_QUEUE_SEND;
                a->recvs += q->kind == HP_QUEUE_RECV;
                a->sums += q->kind == HP_QUEUE_COLL;
                a->world = hp_meeting_is_world(&m, r, t);
                assert_int_equal(a->world, q->kind == HP_QUEUE_COLL && p->group[q->peer].all_replicas);
                if (q->kind == HP_QUEUE_COLL) assert_true(a->sums <= p->group[q->peer].n);
                comm++;
            }
        assert_true(comm > 0);
        for (int k = 0; k < tasks; k++)
            assert_true(met[k].sums ? met[k].sums == met[k].n
                                    : met[k].sends == met[k].recvs && met[k].n <= 2);
        hp_arena_free(arena);
    }
}

static int64_t ms(const void *self, int rank, int task, int iter) {
    (void)self, (void)rank, (void)iter;
    return fixture_tasks[task].compute ? 1000000 : 9000000;
}

/* Role 0's send (task 4) and role 1's recv (task 5) are a message; the all-reduces (6) are one
 * collective of the world. */
static void the_early_wait_for_the_late(void **state) {
    (void)state;
    static const char *const changes[] = {
        "UPDATE task SET meeting = 0 WHERE (role = 0 AND task = 4) OR (role = 1 AND task = 5)",
        "UPDATE task SET meeting = 1, world = 1 WHERE task = 6",
        "UPDATE span SET t0_ns = t0_ns + 4000000 WHERE rank = 0 AND task = 4", /* replica 0: 4 ms late */
        "UPDATE span SET t0_ns = t0_ns + 8500000 WHERE rank = 3 AND task = 6", /* the last of all replicas */
        "UPDATE span SET t1_ns = t0_ns + 100 WHERE rank = 2 AND task = 4",     /* replica 1: sent ahead, */
        "UPDATE span SET t0_ns = t0_ns + 200 WHERE rank = 3 AND task = 5"};    /* taken later */
    hp_error err = {0};
    hp_db db;
    hp_trace t;
    hp_arena *arena = hp_arena_new();
    fixture_ok(hp_db_create(path, &db, &err), &err);
    const fixture_run r = {.kind = "exec", .ranks = 4, .iters = 1, .duration = ms};
    const int64_t run = fixture_add(&db, &r);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        fixture_ok(hp_db_exec(&db, &err, changes[i], ""), &err);
    fixture_ok(hp_trace_load(arena, &db, run, false, &t, &err), &err);
    const int64_t *met = hp_trace_met(arena, &t, &t.iter[0]);
    int seen = 0;
    for (int64_t i = t.iter[0].first; i < t.iter[0].last; i++) {
        const hp_trace_span *s = &t.span[i];
        const int task = t.task[s->task].task;
        const int64_t waited = met[i - t.iter[0].first] - s->t0_ns;
        int64_t want = 0;
        if (s->rank == 1 && task == 5) want = 4000000;
        if (s->rank != 3 && task == 6) want = 8500000;
        assert_int_equal(waited, want);
        seen += want > 0;
    }
    assert_int_equal(seen, 4);
    hp_db_close(&db);
    hp_arena_free(arena);
}

static int set_up(void **state) {
    (void)state;
    fixture_path(path, sizeof path, "meetings.db");
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_and_calls_meet),
        cmocka_unit_test(the_early_wait_for_the_late),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
