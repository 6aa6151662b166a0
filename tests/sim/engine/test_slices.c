/* test_slices.c - more ranks than cores: no core is idle while one of its ranks has work. A waiting rank
 * resumes after a slice if another computes on its core, or once none does. Also: how all-reduces advance
 * between the tasks of their members. */
#include "sim/engine/slices.h"
#include "tests/support/plan/law_cases.h"

#include "networks/nets/nets.h"
#include "tests/support/sim/random_world.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static hp_sim_result run(const world *w, const hp_machine *m, double slice_s) {
    const hp_sim_options o = {.want_spans = true, .slice_s = slice_s, .straggler_rank = -1};
    hp_error err = {HP_OK, ""};
    hp_sim_result r;
    if (hp_sim_run(w->arena, w->p, w->g, m, &w->costs, &o, &r, &err) != HP_OK) fail_msg("%s", err.text);
    return r;
}

static double all_work_ns(const world *w) {
    double sum = 0;
    for (int rank = 0; rank < hp_program_ranks(w->p); rank++) {
        const hp_role *r = &w->p->role[rank % w->p->n_role];
        for (int t = 0; t < r->n_task; t++)
            if (r->queue[r->task[t].queue].kind != HP_QUEUE_SEND) /* the receiver copies */
                sum += 1e9 * w->costs.seconds(w->costs.self, w->p, w->g, rank, t);
    }
    return sum;
}

/* Any strategy, any slice: one core has done all work when the step ends, and not before. */
static void one_core_is_never_idle(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_some(60); seed++) {
        world w = random_world(seed);
        w.costs = (hp_sim_costs){random_seconds, NULL, &w.seed};
        const int ranks = hp_program_ranks(w.p);
        hp_machine m = test_machine(1, ranks, true);
        m.cores_per_node = 1;
        for (double slice_s = 1e-6; slice_s < 1e-2; slice_s *= 30) {
            const double step = (double)run(&w, &m, slice_s).makespan_ns;
            double tasks = 0;
            for (int r = 0; r < ranks; r++) tasks += w.p->role[r % w.p->n_role].n_task;
            if (fabs(step - all_work_ns(&w)) > ranks * tasks)
                fail_msg("seed %lu, %d ranks: %.0f ns, work %.0f", seed, ranks, step, all_work_ns(&w));
        }
        hp_arena_free(w.arena);
    }
}

/* Averages over all ways to seat the ranks: the i-th rank has seat number i of a permutation. */
typedef struct seating {
    int ranks, cores, computing; /* the first ranks compute, the last one waits */
    double busy, beside, all;
} seating;

static void seat(seating *t, int *core, int rank, int *free_seats) {
    if (rank < t->ranks) {
        for (int c = 0; c < t->cores; c++) {
            const int here = free_seats[c];
            free_seats[c]--;
            core[rank] = c;
            /* each seat of the core is another way */
            for (int i = 0; i < here; i++) seat(t, core, rank + 1, free_seats);
            free_seats[c]++;
        }
        return;
    }
    unsigned with = 0;
    for (int r = 0; r < t->computing; r++) with |= 1U << core[r];
    t->busy += __builtin_popcount(with);
    t->beside += with >> core[t->ranks - 1] & 1;
    t->all++;
}

static void chance_is_the_mean_over_all_placements(void **state) {
    (void)state;
    for (int ranks = 1; ranks <= 6; ranks++)
        for (int cores = 1; cores <= 4; cores++)
            for (int computing = 0; computing <= ranks; computing++) {
                int core[8], free_seats[8];
                seating t = {.ranks = ranks, .cores = cores, .computing = computing};
                for (int c = 0; c < cores; c++) free_seats[c] = ranks / cores + (c < ranks % cores);
                seat(&t, core, 0, free_seats);
                assert_true(fabs(sim_slices_busy(ranks, cores, computing) - t.busy / t.all) < 1e-12);
                if (computing == ranks) continue;
                assert_true(fabs(sim_slices_beside(ranks, cores, computing) - t.beside / t.all) < 1e-12);
            }
}

/* With a core for each rank, there is nothing to slice. */
static void as_many_cores_as_ranks_need_no_slices(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_some(40); seed++) {
        world w = random_world(seed);
        w.costs = (hp_sim_costs){random_seconds, NULL, &w.seed};
        const hp_machine m = test_machine(1, hp_program_ranks(w.p), true);
        assert_int_equal(run(&w, &m, 0).makespan_ns, run(&w, &m, 4e-3).makespan_ns);
        hp_arena_free(w.arena);
    }
}

/* The first task of a stage in each micro-batch takes 1 ms; for the first stage's second micro-batch,
 * `longer`. */
static double chain_seconds(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    (void)g;
    const double *longer = self;
    const hp_task *t = p->role[rank].task;
    if (t[task].op != HP_TASK_FWD) return 0;
    for (int i = 0; i < task; i++)
        if (t[i].op == HP_TASK_FWD && t[i].micro == t[task].micro) return 0;
    return rank == 0 && t[task].micro == 1 ? *longer : 1e-3;
}

static int64_t first_start_ns(const hp_program *p, const hp_sim_result *r, int rank) {
    for (int64_t i = 0; i < r->n_span[rank]; i++)
        if (p->role[rank].task[r->span[rank][i].task].op == HP_TASK_FWD) return r->span[rank][i].t0_ns;
    return -1;
}

/* Three stages on two cores. While two compute, they share a core in one of three placements, so they have 5
 * / 3 cores, and the first micro-batch passes the second stage in 1.2 ms. When it reaches the third stage,
 * the first stage is at its second micro-batch and shares a core with the third in one of three
 * placements. */
static void who_waits_comes_back_after_a_slice(void **state) {
    (void)state;
    world w = {.arena = hp_arena_new()};
    hp_error err = {HP_OK, ""};
    double longer = 10e-3;
    w.g = random_net(w.arena, 7, 6);
    if (hp_strategy_parse("stages=3,micro=2", &w.s, &err) != HP_OK) fail_msg("%s", err.text);
    const hp_lower_options o = {.mode = HP_MODE_INFER, .dtype = HP_F32, .batch = 2};
    if (hp_lower(w.arena, w.g, &w.s, &o, &w.p, &err) != HP_OK) fail_msg("%s", err.text);
    w.costs = (hp_sim_costs){chain_seconds, NULL, &longer};
    hp_machine m = test_machine(1, 3, true);
    m.cores_per_node = 2;
    for (int slice_ms = 1; slice_ms <= 40; slice_ms += 3) {
        const hp_sim_result r = run(&w, &m, slice_ms * 1e-3);
        const double wanted_ns = 2.2e6 + fmin(slice_ms * 1e6 / 3, 9e6);
        assert_true(fabs((double)first_start_ns(w.p, &r, 2) - wanted_ns) < 1000);
    }
    const hp_sim_result even = run(&w, &m, 0);
    assert_true(llabs(first_start_ns(w.p, &even, 2) - 2000000) < 1000);
    hp_arena_free(w.arena);
}

/* --- all-reduces on cores --- */

enum { STEP_NS = 100 }; /* duration of every all-reduce's step */

static int steps_of(const hp_program *p, const hp_task *t) {
    const hp_collective_case c = hp_task_case(p, &p->role[0], t);
    return hp_algorithms[t->algorithm]->steps(&c);
}

/* Replicas of different speed. */
static double uneven_seconds(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    const hp_task *t = &p->role[rank % p->n_role].task[task];
    if (t->queue != 0) return 1e-9 * STEP_NS * steps_of(p, t);
    return (1 + 0.37 * rank) * random_seconds(self, p, g, 0, task);
}

/* When the rank looks next, at t or later: immediately if it computes nothing, otherwise after the task. */
static int64_t look_ns(const hp_program *p, const hp_sim_result *r, int rank, int64_t t_ns) {
    for (int64_t i = 0; i < r->n_span[rank]; i++) {
        const hp_span *s = &r->span[rank][i];
        if (p->role[0].task[s->task].queue == 0 && s->t0_ns < t_ns && t_ns < s->t1_ns) return s->t1_ns;
    }
    return t_ns;
}

static const hp_span *span_of(const hp_sim_result *r, int rank, int task) {
    for (int64_t i = 0; i < r->n_span[rank]; i++)
        if (r->span[rank][i].task == task) return &r->span[rank][i];
    return NULL;
}

/* After all have posted, each step ends when the last member has looked; each member notices its end at its
 * next look. Those of a queue follow one another. Returns the number of later steps that had to wait. */
static int check_reductions(const hp_program *p, const hp_sim_result *r, int queue) {
    const hp_role *role = &p->role[0];
    int n = 0;
    int64_t t_ns = 0;
    for (int t = 0; t < role->n_task; t++) {
        if (role->task[t].queue != queue) continue;
        for (int k = 0; k < p->dp; k++)
            if (span_of(r, k, t)->t0_ns > t_ns) t_ns = span_of(r, k, t)->t0_ns;
        const int steps = steps_of(p, &role->task[t]);
        assert_true(steps <= 8); /* all of them are simulated */
        for (int i = 0; i < steps; i++) {
            int64_t last_ns = t_ns;
            for (int k = 0; k < p->dp; k++) {
                const int64_t at_ns = look_ns(p, r, k, t_ns) + STEP_NS;
                if (at_ns > last_ns) last_ns = at_ns;
            }
            n += i > 0 && last_ns > t_ns + STEP_NS;
            t_ns = last_ns;
        }
        for (int k = 0; k < p->dp; k++) assert_int_equal(span_of(r, k, t)->t1_ns, look_ns(p, r, k, t_ns));
    }
    return n;
}

static void a_reduction_goes_a_step_on_when_members_look(void **state) {
    (void)state;
    int waited = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        world w = {.arena = hp_arena_new(), .seed = seed};
        hp_error err = {HP_OK, ""};
        if (hp_net_build(w.arena, "vgg19", 32, 32, 10, &w.g, &err) != HP_OK) fail_msg("%s", err.text);
        w.s = hp_strategy_default();
        w.s.dp = 2 + (int)seed % 4;
        w.p = lower_training(w.arena, w.g, &w.s, w.s.dp, false);
        w.costs = (hp_sim_costs){uneven_seconds, NULL, &w.seed};
        const hp_machine m = test_machine(1, w.s.dp, true);
        const hp_sim_result r = run(&w, &m, 0);
        for (int q = 1; q < w.p->role[0].n_queue; q++)
            if (w.p->role[0].queue[q].kind == HP_QUEUE_COLL) waited += check_reductions(w.p, &r, q);
        hp_arena_free(w.arena);
    }
    assert_true(waited > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_core_is_never_idle),
        cmocka_unit_test(chance_is_the_mean_over_all_placements),
        cmocka_unit_test(as_many_cores_as_ranks_need_no_slices),
        cmocka_unit_test(a_reduction_goes_a_step_on_when_members_look),
        cmocka_unit_test(who_waits_comes_back_after_a_slice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
