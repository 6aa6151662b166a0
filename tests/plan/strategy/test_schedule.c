/* test_schedule.c - the laws of schedules: every pass once, in an executable order, in the closed-form time,
 * with no more in flight than promised. The times come from a separate simulation without communication and
 * with equal stages. */
#include "plan/strategy/layout.h"
#include "plan/strategy/schedule.h"
#include "tests/support/plan/random_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum {
    KINDS = 3,
    MAX_ROLES = 32,
    MAX_CHUNKS = 4,
    MAX_GROUPS = 128,
    MAX_STEPS = KINDS * MAX_CHUNKS * MAX_GROUPS
};

/* --- the simulation --- */

typedef struct pipeline {
    const hp_strategy *s;
    int64_t t[KINDS]; /* duration of a step of each kind */
    int n_role, n[MAX_ROLES], at[MAX_ROLES];
    hp_sched_step step[MAX_ROLES][MAX_STEPS];
    int64_t clock[MAX_ROLES];
    int64_t end[KINDS][MAX_ROLES * MAX_CHUNKS]
               [MAX_GROUPS]; /* per virtual stage and micro-batch; 0: not yet */
} pipeline;

static pipeline world; /* too large for the stack */

static pipeline *pipeline_of(const hp_strategy *s, int64_t t_f, int64_t t_b, int64_t t_w) {
    memset(&world, 0, sizeof world);
    world.s = s;
    world.t[HP_STEP_FORWARD] = t_f;
    world.t[HP_STEP_BACKWARD] = t_b;
    world.t[HP_STEP_WEIGHTS] = t_w;
    world.n_role = hp_strategy_roles(s);
    assert_true(world.n_role <= MAX_ROLES && hp_schedule_most(s) <= MAX_STEPS);
    for (int r = 0; r < world.n_role; r++) world.n[r] = hp_schedule(s, r, world.step[r]);
    return &world;
}

/* The model's stage of a role's step; chunks follow one another. */
static int virtual_stage(const pipeline *p, int role, const hp_sched_step *step) {
    int position, part;
    hp_role_place(p->s, role, step->flip, &position, &part);
    return step->chunk * hp_positions(p->s) + position;
}

/* When the step's input is available; -1: not yet. */
static int64_t ready(const pipeline *p, int role, const hp_sched_step *step) {
    const int v = virtual_stage(p, role, step), last = hp_positions(p->s) * p->s->chunks - 1, m = step->micro;
    int64_t at = 0;
    if (step->kind == HP_STEP_FORWARD && v > 0) at = p->end[HP_STEP_FORWARD][v - 1][m];
    if (step->kind == HP_STEP_BACKWARD)
        at = v < last ? p->end[HP_STEP_BACKWARD][v + 1][m] : p->end[HP_STEP_FORWARD][v][m];
    if (step->kind == HP_STEP_WEIGHTS) at = p->end[HP_STEP_BACKWARD][v][m];
    return at || (step->kind == HP_STEP_FORWARD && v == 0) ? at : -1;
}

/* Runs whatever can run; false if nothing can. */
static bool advance(pipeline *p, int role) {
    bool any = false;
    for (; p->at[role] < p->n[role]; p->at[role]++, any = true) {
        const hp_sched_step *step = &p->step[role][p->at[role]];
        const int64_t at = ready(p, role, step);
        if (at < 0) break;
        if (at > p->clock[role]) p->clock[role] = at;
        p->clock[role] += p->t[step->kind];
        p->end[step->kind][virtual_stage(p, role, step)][step->micro] = p->clock[role];
    }
    return any;
}

static int64_t makespan(pipeline *p) {
    for (bool any = true; any;) {
        any = false;
        for (int r = 0; r < p->n_role; r++) any |= advance(p, r);
    }
    int64_t latest = 0;
    for (int r = 0; r < p->n_role; r++) {
        assert_int_equal(p->at[r], p->n[r]); /* otherwise they wait for one another */
        if (p->clock[r] > latest) latest = p->clock[r];
    }
    return latest;
}

/* --- draws --- */

static hp_strategy plain(hp_sched sched, int stages, int micro) {
    hp_strategy s = hp_strategy_default();
    s.sched = (int32_t)sched;
    s.stages = stages;
    s.micro = micro;
    if (sched == HP_SCHED_GEMS) s.gems = 2;
    return s;
}

/* Any schedule with one rank per position. */
static hp_strategy any_schedule(dice *d) {
    hp_strategy s = plain((hp_sched)roll(d, 0, 5), roll(d, 1, 9), roll(d, 1, 20));
    if (s.sched == HP_SCHED_LP) s.micro = 1;
    if (s.sched == HP_SCHED_GEMS) s.gems = 2 * roll(d, 1, 3);
    if (s.sched == HP_SCHED_INTERLEAVED || s.sched == HP_SCHED_GEMS) s.stages += s.stages == 1;
    if (s.sched != HP_SCHED_INTERLEAVED) return s;
    s.chunks = roll(d, 2, MAX_CHUNKS);
    s.micro = s.stages * roll(d, 1, 4);
    return s;
}

static int min(int a, int b) {
    return a < b ? a : b;
}

static int64_t max64(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* --- laws --- */

/* Each pass of each chunk and micro-batch occurs once; backward after forward, weights after backward; the
 * passes of GEMS alternate between a pipeline and its mirror image. */
static void every_pass_appears_once_and_in_order(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        dice d = {seed, 0};
        const hp_strategy s = any_schedule(&d);
        const pipeline *p = pipeline_of(&s, 1, 1, 1);
        const int kinds = s.sched == HP_SCHED_ZB && s.stages > 1 ? 3 : 2, groups = s.gems * s.micro;
        for (int r = 0; r < p->n_role; r++) {
            int seen[KINDS][MAX_CHUNKS][MAX_GROUPS] = {{{0}}};
            assert_int_equal(p->n[r], kinds * s.chunks * groups);
            assert_true(p->n[r] <= hp_schedule_most(&s));
            for (int i = 0; i < p->n[r]; i++) {
                const hp_sched_step *t = &p->step[r][i];
                assert_in_range(t->kind, 0, kinds - 1);
                assert_in_range(t->chunk, 0, s.chunks - 1);
                assert_in_range(t->micro, 0, groups - 1);
                assert_int_equal(t->flip, t->micro / s.micro % 2 * (s.sched == HP_SCHED_GEMS));
                assert_int_equal(seen[t->kind][t->chunk][t->micro]++, 0);
                if (t->kind > 0) assert_int_equal(seen[t->kind - 1][t->chunk][t->micro], 1);
            }
        }
        assert_true(makespan(pipeline_of(&s, 1, 1, 1)) > 0);
    }
}

/* LP: one batch goes there and back. GPipe and 1F1B: the bubble is the time of S-1 micro-batches. GEMS: each
 * further pass adds its own work and S-1 times the longer of the two passes. */
static void times_are_the_closed_forms(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        dice d = {seed, 1};
        const int S = roll(&d, 1, 9), m = roll(&d, 1, 20), R = 2 * roll(&d, 1, 3);
        const int64_t t_f = roll(&d, 1, 1000), t_b = roll(&d, 1, 1000), both = t_f + t_b;
        hp_strategy s = plain(HP_SCHED_LP, S, 1);
        assert_int_equal(makespan(pipeline_of(&s, t_f, t_b, 0)), S * both);
        if (S == 1) continue;
        s = plain(HP_SCHED_GPIPE, S, m);
        assert_int_equal(makespan(pipeline_of(&s, t_f, t_b, 0)), (m + S - 1) * both);
        s = plain(HP_SCHED_1F1B, S, m);
        assert_int_equal(makespan(pipeline_of(&s, t_f, t_b, 0)), (m + S - 1) * both);
        s = plain(HP_SCHED_GEMS, S, m);
        s.gems = R;
        assert_int_equal(makespan(pipeline_of(&s, t_f, t_b, 0)),
                         (m + S - 1) * both + (R - 1) * (m * both + (S - 1) * max64(t_f, t_b)));
    }
}

/* Narayanan et al. 2021, section 2.2: the bubble is that of one chunk. */
static void interleaving_divides_the_bubble(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        dice d = {seed, 2};
        hp_strategy s = plain(HP_SCHED_INTERLEAVED, roll(&d, 2, 9), 0);
        s.chunks = roll(&d, 2, MAX_CHUNKS);
        s.micro = s.stages * roll(&d, 1, 4);
        const int64_t t_f = roll(&d, 1, 1000), t_b = roll(&d, 1, 1000);
        assert_int_equal(makespan(pipeline_of(&s, t_f, t_b, 0)),
                         (s.micro * s.chunks + s.stages - 1) * (t_f + t_b));
    }
}

/* Qi et al. 2023, table 1: the bubble of ZB-H1 is (S-1)(t_f + t_b - t_w) if t_w is no longer than the others
 * and the pipeline is filled; in any case it is less than 1F1B's (S-1)(t_f + t_b + t_w). */
static void zero_bubble_beats_1f1b(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        dice d = {seed, 3};
        const int S = roll(&d, 2, 9), m = roll(&d, 1, 25);
        const int64_t t_f = roll(&d, 1, 100), t_b = roll(&d, 1, 100), t_w = roll(&d, 0, 100);
        const int64_t all = t_f + t_b + t_w;
        const hp_strategy zb = plain(HP_SCHED_ZB, S, m), old = plain(HP_SCHED_1F1B, S, m);
        const int64_t ours = makespan(pipeline_of(&zb, t_f, t_b, t_w));
        const int64_t theirs = makespan(pipeline_of(&old, t_f, t_b + t_w, 0));
        assert_true(t_w > 0 ? ours < theirs : ours == theirs);
        if (m >= 2 * S && t_w <= t_f && t_w <= t_b)
            assert_int_equal(ours, m * all + (S - 1) * (t_f + t_b - t_w));
    }
}

/* Largest number of micro-batches whose activations a role keeps. */
static int most_in_flight(const pipeline *p, int role, hp_step_kind frees) {
    int now = 0, most = 0;
    for (int i = 0; i < p->n[role]; i++) {
        const int kind = p->step[role][i].kind;
        now += (kind == HP_STEP_FORWARD) - (kind == (int)frees);
        if (now > most) most = now;
    }
    assert_int_equal(now, 0);
    return most;
}

static void stashes_are_bounded(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        dice d = {seed, 4};
        const hp_strategy s = any_schedule(&d);
        const pipeline *p = pipeline_of(&s, 1, 1, 1);
        const bool zb = s.sched == HP_SCHED_ZB && s.stages > 1;
        for (int r = 0; r < p->n_role; r++) {
            const int n = most_in_flight(p, r, zb ? HP_STEP_WEIGHTS : HP_STEP_BACKWARD);
            const int behind = s.stages - r, full = s.chunks * s.micro;
            const int expected[] = {[HP_SCHED_LP] = 1,
                                    [HP_SCHED_GPIPE] = s.micro,
                                    [HP_SCHED_1F1B] = min(s.micro, behind),
                                    [HP_SCHED_INTERLEAVED] =
                                        min(full, 2 * (behind - 1) + (s.chunks - 1) * s.stages + 1),
                                    [HP_SCHED_ZB] = min(s.micro, s.stages),
                                    [HP_SCHED_GEMS] = s.micro};
            assert_int_equal(n, s.stages == 1 ? 1 : expected[s.sched]);
        }
    }
}

/* Number of micro-batches for which a role has run all chunks when its first backward pass begins. */
static int whole_before_backward(const pipeline *p, int role, int chunks) {
    int whole = 0;
    for (int i = 0; i < p->n[role] && p->step[role][i].kind == HP_STEP_FORWARD; i++)
        whole += p->step[role][i].chunk == chunks - 1;
    return whole;
}

/* Memory estimates count exactly what the order holds: with one chunk, the maximum that ever occurs; with
 * several, no more than that. */
static void in_flight_is_what_the_order_holds(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        dice d = {seed, 5};
        const hp_strategy s = any_schedule(&d);
        const pipeline *p = pipeline_of(&s, 1, 1, 1);
        for (int r = 0; r < p->n_role; r++) {
            const int n = hp_schedule_in_flight(&s, r), most = most_in_flight(p, r, HP_STEP_BACKWARD);
            assert_int_equal(n, whole_before_backward(p, r, s.chunks));
            assert_true(s.chunks == 1 ? n == most : n >= 1 && n * s.chunks <= most);
        }
    }
}

/* Tiles of a position do the same; with tail=shared, the pipeline is as long as its spatial part. */
static void parts_of_a_position_do_the_same(void **state) {
    (void)state;
    hp_strategy s;
    hp_error err;
    assert_int_equal(hp_strategy_parse("stages=3,sp=2x2:2x1,tail=shared,micro=4,sched=1f1b", &s, &err),
                     HP_OK);
    const pipeline *p = pipeline_of(&s, 1, 1, 0);
    assert_int_equal(p->n_role, 6);
    for (int r = 1; r < p->n_role; r++)
        assert_int_equal(memcmp(p->step[r], p->step[r < 4 ? 0 : 4], sizeof(hp_sched_step) * (size_t)p->n[r]),
                         0);
    assert_int_equal(most_in_flight(p, 0, HP_STEP_BACKWARD), 2);
    assert_int_equal(most_in_flight(p, 5, HP_STEP_BACKWARD), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pass_appears_once_and_in_order),
        cmocka_unit_test(times_are_the_closed_forms),
        cmocka_unit_test(interleaving_divides_the_bubble),
        cmocka_unit_test(zero_bubble_beats_1f1b),
        cmocka_unit_test(stashes_are_bounded),
        cmocka_unit_test(in_flight_is_what_the_order_holds),
        cmocka_unit_test(parts_of_a_position_do_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
