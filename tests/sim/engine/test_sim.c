/* test_sim.c - the simulator compared with closed forms from the schedules' papers, lower bounds and
 * itself. */
#include "plan/program/traffic.h"
#include "sim/results/timeline.h"
#include "tests/support/sim/critical_path.h"
#include "tests/support/plan/built/blocking.h"
#include "tests/support/sim/random_world.h"
#include "plan/check/check.h"
#include "tests/support/plan/law_cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* --- closed forms --- */

/* The whole cost of a pass through a stage is on its first task; everything else is free. */
typedef struct stage_costs {
    double forward_s, backward_s; /* seconds of one pass through one chunk */
} stage_costs;

static bool first_of_pass(const hp_role *r, int task) {
    const hp_task *t = &r->task[task];
    const bool backward = t->op != HP_TASK_FWD;
    for (int i = 0; i < task; i++) {
        const hp_task *k = &r->task[i];
        if (k->micro != t->micro || k->chunk != t->chunk) continue;
        if (backward ? k->op == HP_TASK_BWD || k->op == HP_TASK_BWDW : k->op == HP_TASK_FWD) return false;
    }
    return true;
}

static double stage_seconds(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    (void)g;
    const stage_costs *c = self;
    const hp_role *r = &p->role[rank % p->n_role];
    const uint8_t op = r->task[task].op;
    if ((op != HP_TASK_FWD && op != HP_TASK_BWD && op != HP_TASK_BWDW) || !first_of_pass(r, task)) return 0;
    return op == HP_TASK_FWD ? c->forward_s : c->backward_s;
}

/* Makespan of a schedule on equal stages, in ns, on devices and on cores: they agree if communication is
 * free. */
static int64_t equal_stages_ns(hp_strategy s, double forward_s, double backward_s) {
    hp_arena *arena = hp_arena_new();
    hp_graph *g;
    hp_error err = {HP_OK, ""};
    if (hp_net_build(arena, "vgg19", 32, 32, 10, &g, &err) != HP_OK) fail_msg("%s", err.text);
    const hp_program *p = lower_training(arena, g, &s, (int64_t)s.dp * s.micro * s.gems, false);
    stage_costs c = {forward_s, backward_s};
    const hp_sim_costs costs = {stage_seconds, NULL, &c};
    const hp_machine devices = test_machine(1, 64, false), cores = test_machine(1, 64, true);
    const int64_t t = makespan_ns(arena, p, g, &devices, &costs, true);
    assert_int_equal(t, makespan_ns(arena, p, g, &cores, &costs, true));
    assert_int_equal(t, makespan_ns(arena, p, g, &cores, &costs, false));
    assert_true(t >= critical_path_ns(arena, p, g, &costs));
    hp_arena_free(arena);
    return t;
}

static hp_strategy strategy(int stages, int micro, hp_sched sched, int chunks) {
    hp_strategy s = hp_strategy_default();
    s.stages = stages;
    s.micro = micro;
    s.sched = sched;
    s.chunks = chunks;
    return s;
}

/* S (t_f + t_b) */
static void layer_parallelism_takes_all_stages_in_turn(void **state) {
    (void)state;
    for (int stages = 1; stages <= 8; stages++)
        assert_int_equal(equal_stages_ns(strategy(stages, 1, HP_SCHED_LP, 1), 3e-6, 7e-6), stages * 10000);
}

/* (m + S - 1)(t_f + t_b), Huang et al. 2019; the same for 1F1B, Narayanan et al. 2021 */
static void gpipe_and_1f1b_take_m_plus_s_minus_1_passes(void **state) {
    (void)state;
    static const double times[][2] = {{1e-6, 1e-6}, {3e-6, 7e-6}, {5e-6, 2e-6}};
    const bool all = law_all("each pipeline with each of three pairs of times, not one");
    for (int stages = 2; stages <= 7; stages++) {
        for (int micro = 1; micro <= 9; micro++) {
            for (int k = 0; k < 3; k++) {
                if (!all && k != (stages + micro) % 3) continue;
                const double f = times[k][0], b = times[k][1];
                const int64_t expected = llround((micro + stages - 1) * (f + b) * 1e9);
                assert_int_equal(equal_stages_ns(strategy(stages, micro, HP_SCHED_GPIPE, 1), f, b), expected);
                assert_int_equal(equal_stages_ns(strategy(stages, micro, HP_SCHED_1F1B, 1), f, b), expected);
            }
        }
    }
}

/* (m v + S - 1)(t_f + t_b)/v if S divides m, Narayanan et al. SC 2021, section 2.2: the bubble shrinks by
 * v */
static void interleaving_divides_the_bubble_by_the_chunks(void **state) {
    (void)state;
    for (int stages = 2; stages <= 4; stages++) {
        for (int chunks = 2; chunks <= 4 && stages * chunks <= 12; chunks++) {
            for (int k = 1; k <= 3; k++) {
                const double f = 3e-6, b = 6e-6; /* one pass through one chunk */
                const int micro = k * stages;
                assert_int_equal(equal_stages_ns(strategy(stages, micro, HP_SCHED_INTERLEAVED, chunks), f, b),
                                 llround((micro * chunks + stages - 1) * (f + b) * 1e9));
            }
        }
    }
}

/* (m + S - 1)(t_f + t_b) + (R - 1)[m (t_f + t_b) + (S - 1) max(t_f, t_b)]: R passes over a pipeline whose
 * mirror image starts where the last pass ends (GEMS; the last line of its table equals Chimera's). */
static void gems_refills_the_pipeline_from_the_other_end(void **state) {
    (void)state;
    static const double times[][2] = {{1e-6, 1e-6}, {3e-6, 7e-6}, {5e-6, 2e-6}, {1e-6, 2e-6}};
    const bool all = law_all("each pair of pipelines with each of four pairs of times, not one");
    for (int stages = 2; stages <= 6; stages++) {
        for (int micro = 1; micro <= 4; micro++) {
            for (int k = 0; k < 8; k++) {
                if (!all && k % 4 != (stages + micro) % 4) continue;
                hp_strategy s = strategy(stages, micro, HP_SCHED_GEMS, 1);
                const double f = times[k % 4][0], b = times[k % 4][1];
                s.gems = k < 4 ? 2 : 4;
                const double seconds = (micro + stages - 1) * (f + b) +
                                       (s.gems - 1) * (micro * (f + b) + (stages - 1) * fmax(f, b));
                assert_int_equal(equal_stages_ns(s, f, b), llround(seconds * 1e9));
            }
        }
    }
}

/* Free communication: data parallelism costs nothing, gradient accumulation takes m passes. */
static void replicas_and_accumulation_cost_their_compute(void **state) {
    (void)state;
    hp_strategy s = strategy(1, 6, HP_SCHED_GPIPE, 1);
    assert_int_equal(equal_stages_ns(s, 3e-6, 7e-6), 60000);
    s.dp = 5;
    assert_int_equal(equal_stages_ns(s, 3e-6, 7e-6), 60000);
}

/* --- random programs --- */

enum { WORLDS = 150 };

static void no_run_beats_its_critical_path(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_some(WORLDS); seed++) {
        world w = random_world(seed);
        const hp_sim_costs costs = {random_seconds, NULL, &w.seed};
        const int64_t path = critical_path_ns(w.arena, w.p, w.g, &costs);
        for (int kind = 0; kind < 3; kind++) {
            const hp_machine m = test_machine(kind == 2 ? 32 : 1, kind == 2 ? 2 : 64, kind == 0);
            const int64_t t = makespan_ns(w.arena, w.p, w.g, &m, &costs, false);
            assert_true(path > 0 && t >= path);
        }
        hp_arena_free(w.arena);
    }
}

/* On c cores, the node's work bounds the run from below, and one core per rank from above. */
static void shared_cores_obey_conservation(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_some(WORLDS); seed++) {
        world w = random_world(seed);
        const hp_sim_costs costs = {random_seconds, NULL, &w.seed};
        double work_ns = 0;
        for (int r = 0; r < w.p->n_role; r++) {
            for (int t = 0; t < w.p->role[r].n_task; t++) {
                const hp_queue_kind kind = hp_task_infos[w.p->role[r].task[t].op].queue;
                if (kind != HP_QUEUE_SEND) work_ns += 1e9 * random_seconds(&w.seed, w.p, w.g, r, t) * w.p->dp;
            }
        }
        const hp_machine two = test_machine(1, 2, true), many = test_machine(1, 64, true);
        const int64_t shared = makespan_ns(w.arena, w.p, w.g, &two, &costs, false);
        assert_true((double)shared >= work_ns / 2 * (1 - 1e-3) - 1e4);
        assert_true(shared >= critical_path_ns(w.arena, w.p, w.g, &costs));
        assert_true(makespan_ns(w.arena, w.p, w.g, &many, &costs, false) > 0);
        hp_arena_free(w.arena);
    }
}

static int64_t total_spans(const hp_sim_result *r) {
    int64_t n = 0;
    for (int i = 0; i < r->n_rank; i++) n += r->n_span[i];
    return n;
}

/* Same input, same bytes; another seed of the jitter, another run. Every task occurs once, after its
 * dependencies; compute tasks of a rank do not overlap. */
static void runs_are_deterministic_and_orderly(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_some(40); seed++) {
        world w = random_world(seed);
        const hp_sim_costs costs = {random_seconds, NULL, &w.seed};
        const hp_machine m = test_machine(1, 2, true);
        hp_sim_options o = {
            .want_spans = true, .jitter = {0.1, 1e-3, 0.1}, .straggler_rank = -1, .draws.seed = 5};
        hp_sim_result a, b, c;
        hp_error err;
        assert_int_equal(hp_sim_run(w.arena, w.p, w.g, &m, &costs, &o, &a, &err), HP_OK);
        assert_int_equal(hp_sim_run(w.arena, w.p, w.g, &m, &costs, &o, &b, &err), HP_OK);
        o.draws.seed = 6;
        assert_int_equal(hp_sim_run(w.arena, w.p, w.g, &m, &costs, &o, &c, &err), HP_OK);
        assert_int_equal(a.makespan_ns, b.makespan_ns);
        assert_int_not_equal(a.makespan_ns, c.makespan_ns);
        assert_int_equal(total_spans(&a), total_spans(&c));
        for (int i = 0; i < a.n_rank; i++) {
            const hp_role *r = &w.p->role[i % w.p->n_role];
            assert_int_equal(a.n_span[i], r->n_task);
            assert_memory_equal(a.span[i], b.span[i], sizeof(hp_span) * (size_t)a.n_span[i]);
            hp_span *by_task = HP_NEW(w.arena, hp_span, r->n_task);
            int64_t busy_until = 0;
            for (int64_t k = 0; k < a.n_span[i]; k++) {
                const hp_span *s = &a.span[i][k];
                by_task[s->task] = *s;
                assert_true(s->t1_ns >= s->t0_ns && s->t1_ns <= a.makespan_ns);
                if (r->task[s->task].queue != 0) continue;
                assert_true(s->t0_ns >= busy_until);
                busy_until = s->t1_ns;
            }
            for (int t = 0; t < r->n_task; t++) {
                for (int d = r->dep_first[t]; d < r->dep_first[t + 1]; d++)
                    assert_true(by_task[t].t0_ns >= by_task[r->dep[d]].t1_ns);
            }
        }
        hp_arena_free(w.arena);
    }
}

/* A straggler at half the speed makes nothing faster; compute, bubble and exposed communication fill the
 * step. */
static void stragglers_slow_and_fractions_are_fractions(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_some(60); seed++) {
        world w = random_world(seed);
        const hp_sim_costs costs = {random_seconds, NULL, &w.seed};
        const hp_machine m = test_machine(1, 64, seed % 2 == 0);
        hp_sim_options o = {.straggler_rank = -1};
        hp_sim_result a, b;
        hp_error err;
        assert_int_equal(hp_sim_run(w.arena, w.p, w.g, &m, &costs, &o, &a, &err), HP_OK);
        o.straggler_rank = 0;
        o.straggler_factor = 20;
        assert_int_equal(hp_sim_run(w.arena, w.p, w.g, &m, &costs, &o, &b, &err), HP_OK);
        assert_true(b.makespan_ns > a.makespan_ns);
        assert_true(a.bubble >= 0 && a.exposed_comm >= 0 && a.bubble + a.exposed_comm < 1);
        hp_arena_free(w.arena);
    }
}

/* Data parallelism moves 2(d-1)/d of the gradients per rank (communication volume of a ring). */
static void data_parallel_volume_is_the_formula(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_graph *g;
    hp_error err;
    assert_int_equal(hp_net_build(arena, "resnet18", 64, 64, 10, &g, &err), HP_OK);
    for (int dp = 1; dp <= 8; dp++) {
        hp_strategy s = hp_strategy_default();
        s.dp = dp;
        const hp_program *p = lower_training(arena, g, &s, dp, false);
        const double gradients = 4.0 * (double)p->role[0].trained_elems, metric = 8.0 * HP_METRICS;
        assert_true(fabs((double)hp_program_sent_bytes(p) - 2.0 * (dp - 1) * (gradients + metric)) <= 1);
    }
    hp_arena_free(arena);
}

/* Whatever the order in time, memory in use never exceeds the planned allocation, and fills the fixed
 * part. */
static void the_memory_timeline_stays_within_the_plan(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_some(40); seed++) {
        world w = random_world(seed);
        const hp_sim_costs costs = {random_seconds, NULL, &w.seed};
        const hp_machine m = test_machine(1, 64, true);
        const hp_sim_options o = {.fold = true, .want_spans = true, .straggler_rank = -1};
        hp_sim_result r;
        hp_error err;
        const hp_program *placed = lower_training(w.arena, w.g, &w.s, w.p->batch, true);
        assert_int_equal(hp_sim_run(w.arena, placed, w.g, &m, &costs, &o, &r, &err), HP_OK);
        for (int i = 0; i < r.n_rank; i++) {
            hp_sample *sample;
            const int64_t n = hp_sim_memory_timeline(w.arena, &placed->role[i % placed->n_role], r.span[i],
                                                     r.n_span[i], &sample);
            assert_true(n >= 1);
            for (int64_t k = 0; k < n; k++)
                assert_true(sample[k].value <= (double)placed->role[i % placed->n_role].arena_bytes);
        }
        hp_arena_free(w.arena);
    }
}

/* MPI_Send and MPI_Recv in program order: 1F1B stops, and the message names both ranks. */
static void blocking_1f1b_stops_and_names_the_ranks(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_graph *g;
    hp_error err = {HP_OK, ""};
    assert_int_equal(hp_net_build(arena, "resnet18", 64, 64, 10, &g, &err), HP_OK);
    const hp_strategy s = strategy(2, 4, HP_SCHED_1F1B, 1);
    const hp_program *p = program_blocking(arena, lower_training(arena, g, &s, 4, false));
    uint64_t seed = 1;
    const hp_sim_costs costs = {random_seconds, NULL, &seed};
    const hp_machine m = test_machine(1, 2, false);
    const hp_sim_options o = {.straggler_rank = -1};
    hp_sim_result r;
    assert_int_equal(hp_sim_run(arena, p, g, &m, &costs, &o, &r, &err), HP_EPLAN);
    assert_non_null(strstr(err.text, "E-DEADLOCK"));
    assert_non_null(strstr(err.text, "rank 0"));
    assert_non_null(strstr(err.text, "rank 1"));
    assert_true(critical_path_ns(arena, p, g, &costs) == INT64_MAX);
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layer_parallelism_takes_all_stages_in_turn),
        cmocka_unit_test(gpipe_and_1f1b_take_m_plus_s_minus_1_passes),
        cmocka_unit_test(interleaving_divides_the_bubble_by_the_chunks),
        cmocka_unit_test(gems_refills_the_pipeline_from_the_other_end),
        cmocka_unit_test(replicas_and_accumulation_cost_their_compute),
        cmocka_unit_test(no_run_beats_its_critical_path),
        cmocka_unit_test(shared_cores_obey_conservation),
        cmocka_unit_test(runs_are_deterministic_and_orderly),
        cmocka_unit_test(stragglers_slow_and_fractions_are_fractions),
        cmocka_unit_test(data_parallel_volume_is_the_formula),
        cmocka_unit_test(the_memory_timeline_stays_within_the_plan),
        cmocka_unit_test(blocking_1f1b_stops_and_names_the_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
