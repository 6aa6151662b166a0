/* test_faults.c - programs with one seeded fault: every kind, in tiled, mirrored, replicated and plain
 * pipelines, is caught with code and rank; no damage makes the checker read out of bounds. */
#include "plan/check/check_inside.h"
#include "tests/support/plan/random_net.h"
#include "tests/support/plan/law_cases.h"
#include "tests/support/plan/damage.h"
#include "plan/lower/lower.h"
#include "plan/strategy/sequence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static hp_program *lower_text(hp_arena *arena, const hp_graph *g, const char *text) {
    hp_strategy s;
    hp_error err = {HP_OK, ""};
    hp_program *p = NULL;
    if (hp_strategy_parse(text, &s, &err) != HP_OK) fail_msg("%s", err.text);
    const hp_lower_options o = {
        .mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = hp_strategy_batch(&s, 16), .place = true};
    if (hp_lower(arena, g, &s, &o, &p, &err) != HP_OK) fail_msg("%s: %s", text, err.text);
    return p;
}

static const char *const strategies[] = {
    "dp=2,stages=3,micro=4,sched=1f1b",
    "stages=4,micro=8,sched=gpipe",
    "dp=2,stages=2,chunks=2,micro=4",
    "dp=4,stages=2,micro=2,sched=1f1b",
    "sp=2x2,micro=2",
    "sp=2x2:1x2,stages=3,dp=2",
    "stages=3,sched=gems,gems=4",
    "sp=2x1,stages=2,sched=gems,dp=2",
    "cp=2,micro=2",
    "sp=3x1,stages=2,ldp=2,halo=2",
    "sp=2x2,stages=2,tail=shared,bn=all,dp=2",
    "sp=5x1,fuse=4k",
    "dp=2,sp=2x1,stages=2,micro=2,compress=halo:bf16+stage:int8+allreduce:int8",
};
enum { STRATEGIES = sizeof strategies / sizeof *strategies };
static const char *const of_texts[] = {"tp=2,micro=2", "tp=3,stages=2,micro=2,sched=1f1b",
                                       "tp=2,seq=2:a2a,dp=2", "tp=4,stages=2,micro=2,zero=1"};
enum { OF_TEXTS = sizeof of_texts / sizeof *of_texts };

/* --- laws --- */

/* Is the fault seen, and does the message say what and where? */
static void expect_caught(const victim *v, const char *fault, const char *strategy, int seed) {
    hp_error err = {HP_OK, ""};
    if (hp_program_check(v->p, v->g, &err) != HP_EPLAN)
        fail_msg("%s in rank %d of %s, seed %d, was not caught", fault, v->role, strategy, seed);
    if (strncmp(err.text, "E-", 2) != 0 ||
        (!strstr(err.text, "rank") && !strstr(err.text, "group") && !strstr(err.text, "parameter")))
        fail_msg("no code or place: %s", err.text);
}

/* Seeds each fault that the program can have, this many times. */
static void seed_faults(const hp_graph *g, const char *strategy, int number, int times, int caught[FAULTS]) {
    hp_arena *arena = hp_arena_new();
    hp_error err = {HP_OK, ""};
    hp_strategy s;
    assert_int_equal(hp_strategy_parse(strategy, &s, &err), HP_OK);
    g = hp_strategy_graph(arena, g, &s);
    const hp_program *p = lower_text(arena, g, strategy);
    if (hp_program_check(p, g, &err) != HP_OK) fail_msg("%s: %s", strategy, err.text);
    for (int seed = 0; seed < times * FAULTS; seed++) {
        const int f = seed % FAULTS;
        victim v = {.arena = hp_arena_new(), .g = g, .d = {(uint64_t)(number * 1000 + seed), 5000}};
        v.p = copy_program(v.arena, g, p);
        v.role = roll(&v.d, 0, p->n_role - 1);
        v.r = &v.p->role[v.role];
        if (faults[f].inject(&v)) {
            expect_caught(&v, faults[f].name, strategy, seed);
            caught[f]++;
        }
        hp_arena_free(v.arena);
    }
    hp_arena_free(arena);
}

static void seeded_faults_are_all_caught(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_error err = {HP_OK, ""};
    hp_graph *image = NULL, *text = NULL;
    const int times = law_all("faults in four places of each program, not in two") ? 4 : 2;
    int caught[FAULTS] = {0}, total = 0;
    assert_int_equal(hp_net_build(arena, "resnet18", 70, 64, 10, &image, &err), HP_OK);
    assert_int_equal(hp_net_build(arena, "gpt:2,24,4,8,31", 8, 1, 31, &text, &err), HP_OK);
    for (int i = 0; i < STRATEGIES; i++) seed_faults(image, strategies[i], i, times, caught);
    for (int i = 0; i < OF_TEXTS; i++) seed_faults(text, of_texts[i], STRATEGIES + i, times, caught);
    for (int f = 0; f < FAULTS; f++) {
        if (caught[f] < 3) fail_msg("only %d faults of kind %s", caught[f], faults[f].name);
        total += caught[f];
    }
    assert_true(total >= 150 * times);
    hp_arena_free(arena);
}

/* Removes every dependency except those between a task and what it reads: memory is reused too early. */
static void unsafe_reuse_of_memory_is_caught(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_error err;
    hp_graph *g = NULL;
    assert_int_equal(hp_net_build(arena, "resnet18", 64, 64, 10, &g, &err), HP_OK);
    for (int i = 0; i < STRATEGIES; i++) {
        hp_program *p = copy_program(arena, g, lower_text(arena, g, strategies[i]));
        hp_role *r = &p->role[0];
        memset(r->dep_first, 0, sizeof(int32_t) * (size_t)(r->n_task + 1));
        r->n_dep = 0;
        assert_int_equal(hp_check_memory(p, g, &err), HP_EPLAN);
        assert_non_null(strstr(err.text, "E-RACE"));
    }
    hp_arena_free(arena);
}

/* What NCCL does differently from plan/collectives' definition; the same by MPI is not a fault. */
static hp_status maximum_by(const char *strategy, hp_error *err) {
    hp_arena *arena = hp_arena_new();
    hp_graph *g = NULL;
    assert_int_equal(hp_net_build(arena, "resnet18", 64, 64, 10, &g, err), HP_OK);
    hp_program *p = copy_program(arena, g, lower_text(arena, g, strategy));
    hp_role *r = &p->role[0];
    int id = 0;
    while (r->task[id].op != HP_TASK_ALLREDUCE) id++;
    assert_int_equal(hp_check_collective(p, 0, id, err), HP_OK);
    r->trained_elems = 0; /* gradients of a network are only ever summed */
    p->call = &(hp_call){.reduction = HP_REDUCE_MAX};
    p->n_call = r->task[id].collective.call = 1;
    const hp_status s = hp_check_collective(p, 0, id, err);
    hp_arena_free(arena);
    return s;
}

static void what_a_library_lacks_is_refused(void **state) {
    (void)state;
    hp_error err = {HP_OK, ""};
    assert_int_equal(maximum_by("dp=2,comm=mpi", &err), HP_OK);
    assert_int_equal(maximum_by("dp=2,comm=nccl", &err), HP_EPLAN);
    assert_non_null(strstr(err.text, "E-TYPE"));
    assert_non_null(strstr(err.text, "skip NaNs; choose comm=mpi"));
    for (int b = 0; b < (int)HP_BACKENDS; b++)
        assert_true(!hp_backend_lacks(b, HP_COLLECTIVE_ALL_TO_ALL, HP_REDUCE_SUM, HP_F32, true) ==
                    (b != (int)HP_BACKEND_NCCL));
}

/* --- damage of any kind --- */

/* The checker handles any file content; with sanitizers, without accessing memory out of bounds. */
static void damage_of_any_kind_is_survived(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_error err = {HP_OK, ""};
    int refused = 0;
    const int programs = (int)law_some(1500);
    for (int seed = 0; seed < programs; seed++) {
        victim v = {.arena = hp_arena_new(), .d = {(uint64_t)seed, 6000}};
        v.g = random_optimizer(&v.d, v.arena, random_net(v.arena, (uint64_t)(seed % 30), 4));
        hp_strategy s = random_strategy_of(&v.d, v.g, 4, 16, DRAW_ALL);
        if (coin(&v.d))
            draw_compress(&v.d, &s);
        else
            v.g = random_precision(&v.d, v.arena, v.g, &s);
        const hp_lower_options o = {
            .mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = hp_strategy_batch(&s, 4), .place = true};
        hp_program *whole = NULL;
        if (hp_lower(v.arena, v.g, &s, &o, &whole, &err)) fail_msg("%s", err.text);
        for (int k = 0; k < 8; k++) {
            damage(&v, whole);
            refused += hp_program_check(v.p, v.g, &err) != HP_OK;
        }
        hp_arena_free(v.arena);
    }
    assert_true(refused > 4 * programs);
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seeded_faults_are_all_caught),
        cmocka_unit_test(unsafe_reuse_of_memory_is_caught),
        cmocka_unit_test(what_a_library_lacks_is_refused),
        cmocka_unit_test(damage_of_any_kind_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
