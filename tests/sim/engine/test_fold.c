/* test_fold.c - ranks that cannot be told apart are simulated once: the times are those of all. */
#include "tests/support/sim/critical_path.h"
#include "tests/support/plan/law_cases.h"
#include "tests/support/sim/random_world.h"
#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Nodes and devices that are filled evenly or not, shared, or too few. */
static hp_machine odd_machine(dice *d) {
    const int nodes = roll(d, 1, 5), here = roll(d, 1, 9);
    hp_machine m = test_machine(nodes, here, coin(d));
    if (coin(d)) m = test_machine(coin(d) ? 1 : 32, coin(d) ? 64 : 4, m.share_cpu);
    m.nics_per_node = roll(d, 1, 4);
    m.nic_use = roll(d, 0, HP_NIC_USES - 1);
    m.taper = roll(d, 1, 3);
    m.leaf = roll(d, 1, 3);
    if (coin(d)) snprintf(m.intra.name, sizeof m.intra.name, "nvlink");
    return m;
}

static double random_share(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    (void)g;
    const uint64_t *seed = self;
    return hp_rng_uniform(*seed + 1, (uint64_t)(rank % p->n_role), (uint64_t)task);
}

/* Latency of transfers, up to their whole time. */
static double random_latency(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    (void)g;
    const uint64_t *seed = self;
    return 1.2e-3 * hp_rng_uniform(*seed + 2, (uint64_t)(rank % p->n_role), (uint64_t)task);
}

static hp_sim_result run_of(const world *w, const hp_machine *m, bool fold, int straggler, bool spans) {
    const hp_sim_options o = {
        .fold = fold, .straggler_rank = straggler, .straggler_factor = 1.5, .want_spans = spans};
    hp_sim_result r;
    hp_error err = {HP_OK, ""};
    if (hp_sim_run(w->arena, w->p, w->g, m, &w->costs, &o, &r, &err) != HP_OK) fail_msg("%s", err.text);
    return r;
}

static void same_result(const world *w, const hp_machine *m, const hp_sim_result *one,
                        const hp_sim_result *all) {
    char text[HP_STRATEGY_TEXT];
    if (one->makespan_ns != all->makespan_ns)
        fail_msg("seed %d, %d nodes of %d %s, %s: folded %lld ns (%d classes), all %lld ns (%d ranks)",
                 (int)w->seed, m->nodes, m->devices_per_node, m->share_cpu ? "cores" : "devices",
                 hp_strategy_text(&w->s, text), (long long)one->makespan_ns, one->simulated,
                 (long long)all->makespan_ns, all->simulated);
    assert_true(one->simulated <= all->simulated && all->simulated == hp_program_ranks(w->p));
    assert_true(fabs(one->bubble - all->bubble) < 1e-9);
    assert_true(fabs(one->exposed_comm - all->exposed_comm) < 1e-9);
    assert_true(one->comm_bytes == all->comm_bytes);
    for (int i = 0; i < all->n_rank; i++)
        assert_memory_equal(one->span[i], all->span[i], sizeof(hp_span) * (size_t)all->n_span[i]);
}

static void folded_equals_unfolded(void **state) {
    (void)state;
    int64_t folded = 0, ranks = 0;
    for (uint64_t seed = 1; seed <= law_cases(30); seed++) {
        world w = random_world(seed);
        w.costs = (hp_sim_costs){.seconds = random_seconds,
                                 .share = seed % 2 ? random_share : NULL,
                                 .self = &w.seed,
                                 .latency = seed % 4 > 1 ? random_latency : NULL};
        dice d = {seed, 9100};
        for (int i = 0; i < 3; i++) {
            const hp_machine m = odd_machine(&d);
            const int straggler = i == 2 ? roll(&d, 0, hp_program_ranks(w.p) - 1) : -1;
            const hp_sim_result one = run_of(&w, &m, true, straggler, true),
                                all = run_of(&w, &m, false, straggler, true);
            same_result(&w, &m, &one, &all);
            assert_true(one.makespan_ns >= critical_path_ns(w.arena, w.p, w.g, &w.costs));
            folded += one.simulated;
            ranks += all.simulated;
        }
        hp_arena_free(w.arena);
    }
    assert_true(folded < ranks); /* there was something to fold */
}

/* --- micro-batches --- */

/* Equal tasks of two micro-batches take equally long. */
static double repeated_seconds(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    (void)g;
    const uint64_t *seed = self;
    const int role = rank % p->n_role;
    const hp_task *t = &p->role[role].task[task];
    const double bytes = (double)hp_task_bytes(t);
    const uint64_t kind = (uint64_t)(t->op + 100 * (t->layer + 1));
    if (hp_task_infos[t->op].queue != HP_QUEUE_COMPUTE) return 2e-6 + bytes * 1e-10;
    return 5e-5 * hp_rng_uniform(*seed, (uint64_t)role, kind);
}

static double repeated_share(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    (void)g;
    const hp_task *t = &p->role[rank % p->n_role].task[task];
    return hp_rng_uniform(*(const uint64_t *)self + 1, (uint64_t)(rank % p->n_role), t->op);
}

static double repeated_latency(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    return 0.4 * repeated_seconds(self, p, g, rank, task);
}

static world many_micro_batches(uint64_t seed) {
    dice d = {seed, 9300};
    world w = {.arena = hp_arena_new(), .seed = seed};
    const int groups = roll(&d, 12, 48);
    w.g = random_net(w.arena, seed, roll(&d, 4, 9));
    w.s = random_strategy_of(&d, w.g, groups, 12, DRAW_ALL);
    w.g = random_precision(&d, w.arena, w.g, &w.s);
    w.p = lower_training(w.arena, w.g, &w.s, hp_strategy_batch(&w.s, groups), coin(&d));
    w.costs = (hp_sim_costs){.seconds = repeated_seconds, .share = coin(&d) ? repeated_share : NULL};
    if (coin(&d)) w.costs.latency = repeated_latency;
    return w;
}

static int64_t all_tasks(const hp_program *p) {
    int64_t n = 0;
    for (int r = 0; r < p->n_role; r++) n += p->role[r].n_task;
    return n;
}

/* Skipping periods changes nothing: neither the step nor where its time goes. */
static void passing_over_periods_changes_nothing(void **state) {
    (void)state;
    int64_t passed = 0, tasks = 0;
    for (uint64_t seed = 1; seed <= law_cases(30); seed++) {
        world w = many_micro_batches(seed);
        w.costs.self = &w.seed;
        dice d = {seed, 9400};
        for (int i = 0; i < 3; i++) {
            const hp_machine m = odd_machine(&d);
            const hp_sim_result one = run_of(&w, &m, true, -1, false), all = run_of(&w, &m, false, -1, false);
            same_result(&w, &m, &one, &all);
            passed += one.passed_over;
            tasks += all_tasks(w.p);
            assert_true(all.passed_over == 0);
        }
        hp_arena_free(w.arena);
    }
    assert_true(passed > 0); /* some periods were skipped */
    if (law_cases(30) >= 30) assert_true(passed > tasks / 10);
}

/* Replicas that fill nodes evenly, one per device, are one class per role, whatever their number. */
static void even_replicas_are_one(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_graph *g = random_net(arena, 3, 5);
    hp_strategy s = hp_strategy_default();
    s.stages = 2;
    for (int dp = 2; dp <= 64; dp *= 2) {
        s.dp = dp;
        const hp_program *p = lower_training(arena, g, &s, dp, false);
        for (int kind = 0; kind < 4; kind++) {
            const hp_machine m = test_machine(kind < 2 ? 1 : 2 * dp / 4, kind < 2 ? 2 * dp : 4, kind % 2);
            const hp_sim_options o = {.fold = true, .straggler_rank = -1};
            uint64_t seed = 1;
            const hp_sim_costs costs = {random_seconds, NULL, &seed};
            hp_sim_result r;
            hp_error err;
            if (m.nodes * m.devices_per_node != 2 * dp) continue;
            assert_int_equal(hp_sim_run(arena, p, g, &m, &costs, &o, &r, &err), HP_OK);
            assert_int_equal(r.simulated, 2);
        }
    }
    hp_arena_free(arena);
}

/* A straggler is alone; all others of its role are affected equally, except those beside it on its node. */
static void a_straggler_is_alone(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_graph *g = random_net(arena, 3, 5);
    hp_strategy s = hp_strategy_default();
    s.dp = 16;
    const hp_program *p = lower_training(arena, g, &s, 16, false);
    uint64_t seed = 1;
    const hp_sim_costs costs = {random_seconds, NULL, &seed};
    const hp_machine m = test_machine(4, 4, false);
    const hp_sim_options o = {.fold = true, .straggler_rank = 5, .straggler_factor = 2};
    hp_sim_result r;
    hp_error err;
    assert_int_equal(hp_sim_run(arena, p, g, &m, &costs, &o, &r, &err), HP_OK);
    assert_int_equal(r.simulated, 3);
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folded_equals_unfolded),
        cmocka_unit_test(passing_over_periods_changes_nothing),
        cmocka_unit_test(even_replicas_are_one),
        cmocka_unit_test(a_straggler_is_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
