/* test_program.c - lowered programs: proved for random networks and strategies along every axis; each
 * parameter has one home and one update; naive orders of messages and collectives deadlock, and the checker
 * names the ranks. (Seeded faults: tests/plan/check/test_faults.c.) */
#include "plan/check/check.h"
#include "tests/support/plan/built/blocking.h"
#include "tests/support/plan/random_net.h"
#include "plan/lower/lower.h"
#include "tests/support/plan/law_cases.h"

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
        fail_msg("%s: %s", text, err.text);
    return p;
}

static hp_graph *net(hp_arena *arena, const char *name, int h, int w) {
    hp_graph *g = NULL;
    hp_error err = {HP_OK, ""};
    if (hp_net_build(arena, name, h, w, 10, &g, &err) != HP_OK) fail_msg("%s", err.text);
    return g;
}

/* --- proofs --- */

static void lower_and_prove(hp_arena *arena, const hp_graph *g, const hp_strategy *s,
                            const hp_lower_options *o, const char *of) {
    hp_error err = {HP_OK, ""};
    hp_program *p = NULL;
    char text[HP_STRATEGY_TEXT];
    if (hp_lower(arena, g, s, o, &p, &err) != HP_OK || hp_program_check(p, g, &err) != HP_OK)
        fail_msg("%s, mode %d, %s: %s", of, o->mode, hp_strategy_text(s, text), err.text);
    for (int r = 0; r < p->n_role; r++) assert_true(p->role[r].arena_bytes >= p->role[r].live_bytes - 64);
}

static void every_legal_strategy_is_proved(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_some(600); seed++) {
        dice d = {seed, 3000};
        char of[32];
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_net(arena, seed, roll(&d, 4, 14));
        const int groups = roll(&d, 1, 16);
        hp_strategy s = random_strategy_of(&d, g, groups, 64, seed % 2 ? DRAW_ALL : 0);
        g = random_precision(&d, arena, g, &s);
        snprintf(of, sizeof of, "seed %llu", (unsigned long long)seed);
        for (int mode = 0; mode < 2; mode++) {
            const hp_lower_options o = {.mode = (hp_mode)mode,
                                        .dtype = coin(&d) ? HP_F32 : HP_F64,
                                        .batch = hp_strategy_batch(&s, groups),
                                        .place = true};
            lower_and_prove(arena, g, &s, &o, of);
        }
        hp_arena_free(arena);
    }
}

/* Layouts of real networks, including sizes with no common divisors. */
static void layouts_of_real_networks_are_proved(void **state) {
    (void)state;
    static const char *const strategies[] = {"sp=2x2",
                                             "sp=1x3",
                                             "sp=5x1",
                                             "sp=2x2:2x1,stages=3",
                                             "sp=2x2,stages=2,ldp=2",
                                             "sp=2x2,stages=2,tail=shared",
                                             "stages=3,sched=gems,gems=2",
                                             "stages=3,sched=gems,gems=4",
                                             "sp=2x1,stages=5,sched=gems",
                                             "dp=2,sp=2x1,stages=2,micro=2,sched=1f1b",
                                             "cp=2",
                                             "sp=2x2,halo=2,recompute=full",
                                             "sp=2x2,halo=3,bn=local",
                                             "dp=2,sp=3x1,bn=all",
                                             "stages=3,micro=4,sched=zb",
                                             "clients=2,sp=2x2,stages=2,recompute=boundary"};
    static const char *const nets[] = {"resnet18", "amoebanetd:3,32", "mobilenetv2", "unet:8"};
    const bool all = law_all("layouts of four networks, each of the other three networks too");
    for (int k = 0; k < 4; k++)
        for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
            if (!all && i % 4 != (size_t)k) continue;
            hp_arena *arena = hp_arena_new();
            const hp_graph *g = k % 2 ? net(arena, nets[k], 96, 160) : net(arena, nets[k], 101, 67);
            hp_strategy s;
            hp_error err = {HP_OK, ""};
            if (hp_strategy_parse(strategies[i], &s, &err) != HP_OK) fail_msg("%s", err.text);
            const hp_lower_options o = {
                .mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = hp_strategy_batch(&s, 1), .place = true};
            lower_and_prove(arena, g, &s, &o, nets[k]);
            hp_arena_free(arena);
        }
}

/* --- parameters --- */

/* Elements of [from, to) that tasks of kind `op` on the gradients cover, counted with multiplicity. */
static int64_t covered_by(const hp_role *r, hp_task_op op, int64_t from, int64_t to) {
    int64_t n = 0;
    for (int t = 0; t < r->n_task; t++) {
        const hp_task *k = &r->task[t];
        if (k->op != (uint8_t)op || k->flags & HP_FLAG_METRIC) continue;
        if (hp_task_is_collective(k) && r->operand[k->operand] >= HP_BUF_FIXED) continue;
        const hp_elements range = hp_task_range(k);
        const int64_t lo = range.first > from ? range.first : from,
                      hi = range.first + range.count < to ? range.first + range.count : to;
        if (hi > lo) n += hi - lo;
    }
    return n;
}

static int64_t home_elems(const hp_program *p, int param) {
    int64_t n = 0;
    for (int r = 0; r < p->n_role; r++)
        if (p->role[r].place[param].here & HP_HOME) n += p->role[r].place[param].count;
    return n;
}

/* Every trained element is saved by exactly one rank; applied once on each rank that holds it, or on one of
 * them (ZeRO); and summed once if others hold it too. */
static void every_parameter_has_one_home_and_one_update(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_some(120); seed++) {
        dice d = {seed, 4000};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = random_optimizer(&d, arena, random_net(arena, seed, 9));
        const hp_strategy s = random_strategy_of(&d, g, 4, 64, DRAW_ALL);
        hp_error err;
        hp_program *p = NULL;
        const hp_lower_options o = {
            .mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = hp_strategy_batch(&s, 4), .place = true};
        assert_int_equal(hp_lower(arena, g, &s, &o, &p, &err), HP_OK);
        for (int i = 0; i < g->n_param; i++) {
            const bool trained = hp_param_trained(&g->param[i]);
            if (trained) assert_int_equal(home_elems(p, i), g->param[i].count);
            for (int r = 0; r < p->n_role && trained; r++) {
                const hp_param_place *at = &p->role[r].place[i];
                const bool shared = at->group >= 0 && hp_group_size(p, at->group) > 1;
                const int64_t end = at->offset + at->count;
                if (!at->here) continue;
                assert_int_equal(covered_by(&p->role[r], HP_TASK_UPDATE, at->offset, end), at->count);
                assert_int_equal(covered_by(&p->role[r], HP_TASK_NORM, at->offset, end),
                                 g->clips ? at->count : 0);
                assert_int_equal(covered_by(&p->role[r], HP_TASK_FINITE, at->offset, end),
                                 g->clips ? at->count : 0);
                assert_int_equal(covered_by(&p->role[r], HP_TASK_ALLREDUCE, at->offset, end),
                                 shared && s.zero.stage == 0 ? at->count : 0);
                assert_int_equal(covered_by(&p->role[r], HP_TASK_REDUCE_SCATTER, at->offset, end),
                                 shared && s.zero.stage == 1 ? at->count : 0);
                assert_int_equal(covered_by(&p->role[r], HP_TASK_ALL_GATHER, at->offset, end),
                                 shared && (s.zero.stage == 1 || s.zero.stage == 2) ? at->count : 0);
            }
        }
        hp_arena_free(arena);
    }
}

/* --- deadlocks --- */

static void naive_1f1b_with_synchronous_sends_deadlocks(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_error err;
    const hp_graph *g = net(arena, "resnet18", 64, 64);
    for (int stages = 2; stages <= 6; stages++)
        for (int micro = 1; micro <= 6; micro++) {
            char text[64];
            snprintf(text, sizeof text, "stages=%d,micro=%d,sched=1f1b", stages, micro);
            const hp_program *p = lower_text(arena, g, text, 60);
            assert_int_equal(hp_program_check(p, g, &err), HP_OK);
            const hp_status naive = hp_check_waits(hp_wiring_new(arena, program_blocking(arena, p)), g, &err);
            if (micro == 1) {
                assert_int_equal(naive, HP_OK); /* one micro-batch: plain layer parallelism */
            } else {
                assert_int_equal(naive, HP_EPLAN);
                assert_non_null(strstr(err.text, "E-DEADLOCK: ranks "));
            }
            snprintf(text, sizeof text, "stages=%d,micro=%d,sched=%s", stages, micro,
                     micro > 1 ? "gpipe" : "lp");
            assert_int_equal(
                hp_check_waits(hp_wiring_new(arena, program_blocking(arena, lower_text(arena, g, text, 60))),
                               g, &err),
                HP_OK);
        }
    hp_arena_free(arena);
}

/* Two neighbours wait for each other's strip before sending their own. */
static void a_halo_exchange_by_blocking_calls_deadlocks(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_error err;
    const hp_graph *g = net(arena, "resnet18", 64, 64);
    const hp_program *p = lower_text(arena, g, "sp=2x1", 2);
    assert_int_equal(hp_check_waits(hp_wiring_new(arena, p), g, &err), HP_OK);
    assert_int_equal(hp_check_waits(hp_wiring_new(arena, program_blocking(arena, p)), g, &err), HP_EPLAN);
    assert_non_null(strstr(err.text, "E-DEADLOCK: ranks 0, 1 wait for each other"));
    hp_arena_free(arena);
}

/* A program of two ranks that call collectives of groups 0 and 1, one after the other; order[rank] says which
 * first. */
static hp_program *two_collectives(hp_arena *arena, const int order[2]) {
    static hp_queue queue[] = {{HP_QUEUE_COMPUTE, -1, 0}, {HP_QUEUE_COLL, 0, 0}, {HP_QUEUE_COLL, 1, 0}};
    static hp_group group[] = {{0, 2, 1, 0}, {0, 2, 0, 0}};
    static int32_t member[] = {0, 1}, dep_first[] = {0, 0, 1}, dep[] = {0};
    hp_program *p = HP_NEW(arena, hp_program, 1);
    *p = (hp_program){.dp = 1,
                      .micro = 1,
                      .n_role = 2,
                      .n_group = 2,
                      .n_member = 2,
                      .group = group,
                      .member = member,
                      .role = HP_NEW(arena, hp_role, 2)};
    for (int r = 0; r < 2; r++) {
        hp_task *t = HP_NEW(arena, hp_task, 2);
        for (int i = 0; i < 2; i++)
            t[i] = (hp_task){.op = HP_TASK_ALLREDUCE,
                             .queue = (int16_t)(1 + (i ^ order[r])),
                             .layer = -1,
                             .micro = -1,
                             .collective = {.bucket = -1}};
        p->role[r] = (hp_role){.n_task = 2,
                               .task = t,
                               .n_queue = 3,
                               .queue = queue,
                               .n_dep = 1,
                               .dep = dep,
                               .dep_first = dep_first};
    }
    return p;
}

static void collectives_in_crossed_order_deadlock(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_error err;
    const hp_graph *g = net(arena, "cnn", 28, 28);
    assert_int_equal(hp_check_waits(hp_wiring_new(arena, two_collectives(arena, (int[]){0, 0})), g, &err),
                     HP_OK);
    assert_int_equal(hp_check_waits(hp_wiring_new(arena, two_collectives(arena, (int[]){1, 1})), g, &err),
                     HP_OK);
    assert_int_equal(hp_check_waits(hp_wiring_new(arena, two_collectives(arena, (int[]){0, 1})), g, &err),
                     HP_EPLAN);
    assert_non_null(strstr(err.text, "E-DEADLOCK: ranks "));
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_legal_strategy_is_proved),
        cmocka_unit_test(layouts_of_real_networks_are_proved),
        cmocka_unit_test(every_parameter_has_one_home_and_one_update),
        cmocka_unit_test(naive_1f1b_with_synchronous_sends_deadlocks),
        cmocka_unit_test(a_halo_exchange_by_blocking_calls_deadlocks),
        cmocka_unit_test(collectives_in_crossed_order_deadlock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
