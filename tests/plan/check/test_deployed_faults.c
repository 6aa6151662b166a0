/* test_deployed_faults.c - programs of deployed networks with one seeded fault: every kind, over random
 * networks, precisions, tiles, stages and strips, is caught with code and rank; any damage is survived. */
#include "plan/check/check.h"
#include "tests/support/plan/damage.h"
#include "tests/support/plan/random_deployed.h"
#include "tests/support/plan/seed_deployed_faults.h"
#include "plan/lower/lower.h"
#include "tests/support/plan/law_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* A random deployed network, with a proved program. */
static hp_program *draw_program(victim *v, uint64_t seed) {
    hp_error err = {HP_OK, ""};
    hp_program *p = NULL;
    char text[HP_STRATEGY_TEXT];
    int64_t batch = 0;
    const int blocks = roll(&v->d, 2, 6);
    const hp_graph *g =
        seed % 3 == 0 ? random_net(v->arena, seed, blocks) : random_infer_net(v->arena, seed, blocks);
    v->g = random_deployed(v->arena, g, coin(&v->d) ? HP_PREC_INT8 : roll(&v->d, 0, HP_PRECS - 1));
    const hp_strategy s = random_infer_strategy(&v->d, v->g, 12, &batch);
    const hp_lower_options o = {.mode = HP_MODE_INFER, .dtype = HP_F32, .batch = batch, .place = true};
    if (hp_lower(v->arena, v->g, &s, &o, &p, &err) != HP_OK || hp_program_check(p, v->g, &err) != HP_OK)
        fail_msg("seed %llu %s: %s", (unsigned long long)seed, hp_strategy_text(&s, text), err.text);
    return p;
}

static void any_strategy_is_proved(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(1500); seed++) {
        victim v = {.arena = hp_arena_new(), .d = {seed, 5000}};
        draw_program(&v, seed);
        hp_arena_free(v.arena);
    }
}

static void expect_caught(const victim *v, const char *fault, uint64_t seed) {
    hp_error err = {HP_OK, ""};
    if (hp_program_check(v->p, v->g, &err) != HP_EPLAN)
        fail_msg("%s in rank %d, seed %llu, was not caught", fault, v->role, (unsigned long long)seed);
    if (strncmp(err.text, "E-", 2) != 0 || (!strstr(err.text, "rank") && !strstr(err.text, "group")))
        fail_msg("%s: no code or place: %s", fault, err.text);
}

static void seeded_faults_are_all_caught(void **state) {
    (void)state;
    int caught[DEPLOYED_FAULTS] = {0};
    for (uint64_t seed = 1; seed <= law_cases(300); seed++) {
        victim v = {.arena = hp_arena_new(), .d = {seed, 7000}};
        const hp_program *whole = draw_program(&v, seed);
        for (int f = 0; f < DEPLOYED_FAULTS; f++) {
            v.p = copy_program(v.arena, v.g, whole);
            v.role = roll(&v.d, 0, whole->n_role - 1);
            v.r = &v.p->role[v.role];
            if (!deployed_faults[f].inject(&v)) continue;
            expect_caught(&v, deployed_faults[f].name, seed);
            caught[f]++;
        }
        hp_arena_free(v.arena);
    }
    for (int f = 0; f < DEPLOYED_FAULTS; f++)
        if (caught[f] < 3) fail_msg("only %d faults of kind %s", caught[f], deployed_faults[f].name);
}

/* With sanitizers: the checker never accesses memory out of bounds. */
static void damage_of_any_kind_is_survived(void **state) {
    (void)state;
    int refused = 0;
    const int n = (int)law_cases(200);
    for (int seed = 1; seed <= n; seed++) {
        victim v = {.arena = hp_arena_new(), .d = {(uint64_t)seed, 8000}};
        const hp_program *whole = draw_program(&v, (uint64_t)seed);
        hp_error err;
        for (int k = 0; k < 20; k++) {
            damage(&v, whole);
            refused += hp_program_check(v.p, v.g, &err) != HP_OK;
        }
        hp_arena_free(v.arena);
    }
    assert_true(refused > n * 20 / 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_strategy_is_proved),
        cmocka_unit_test(seeded_faults_are_all_caught),
        cmocka_unit_test(damage_of_any_kind_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
