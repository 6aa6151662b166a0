/* test_gradients.c - when gradients are synchronised: as soon as they are final, at one server after another
 * or at several at once; compared with closed forms. */
#include "tests/support/sim/random_world.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Passes through a stage, and sums of gradients, take time; everything else is free. */
typedef struct times {
    double forward_s, backward_s, sum_s, message_s;
} times;

static bool of_gradients(const hp_role *r, const hp_task *t) {
    return hp_task_is_collective(t) && !(t->flags & HP_FLAG_METRIC) && r->operand[t->operand] == HP_BUF_GRADS;
}

static bool first_of_pass(const hp_role *r, int task) {
    const hp_task *t = &r->task[task];
    for (int i = 0; i < task; i++) {
        const hp_task *k = &r->task[i];
        if (k->micro == t->micro && k->chunk == t->chunk &&
            (k->op == HP_TASK_FWD) == (t->op == HP_TASK_FWD) &&
            (k->op == HP_TASK_FWD || k->op == HP_TASK_BWD || k->op == HP_TASK_BWDW))
            return false;
    }
    return true;
}

static double seconds(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    (void)g;
    const times *c = self;
    const hp_role *r = &p->role[rank % p->n_role];
    const hp_task *t = &r->task[task];
    if (t->op == HP_TASK_REDUCE || t->op == HP_TASK_BROADCAST)
        return c->message_s * (hp_task_case(p, r, t).size - 1);
    if (of_gradients(r, t)) return c->sum_s;
    if ((t->op != HP_TASK_FWD && t->op != HP_TASK_BWD && t->op != HP_TASK_BWDW) || !first_of_pass(r, task))
        return 0;
    return t->op == HP_TASK_FWD ? c->forward_s : c->backward_s;
}

static double message_seconds(void *self, const hp_program *p, const hp_task *t, int from, int to,
                              double bytes) {
    (void)from, (void)to, (void)bytes;
    const times *c = self;
    (void)p, (void)t;
    return c->message_s;
}

static hp_program *lower(hp_arena *arena, const char *text, hp_graph **g) {
    hp_strategy s;
    hp_error err = {HP_OK, ""};
    if (hp_net_build(arena, "vgg19", 32, 32, 10, g, &err) != HP_OK ||
        hp_strategy_parse(text, &s, &err) != HP_OK)
        fail_msg("%s", err.text);
    return lower_training(arena, *g, &s, hp_strategy_batch(&s, 1), false);
}

static hp_sim_result simulate(hp_arena *arena, const hp_program *p, const hp_graph *g, times *c, bool cores) {
    const hp_machine m = test_machine(1, 64, cores);
    const hp_sim_costs costs = {seconds, NULL, c, message_seconds};
    const hp_sim_options o = {.want_spans = true, .straggler_rank = -1};
    hp_sim_result result;
    hp_error err = {HP_OK, ""};
    if (hp_sim_run(arena, p, g, &m, &costs, &o, &result, &err) != HP_OK) fail_msg("%s", err.text);
    return result;
}

/* --- GEMS --- */

/* Start and end of each task of a rank. */
typedef struct trace {
    int64_t *t0_ns, *t1_ns;
} trace;

static trace trace_of(hp_arena *arena, const hp_program *p, const hp_sim_result *r, int rank) {
    const int n = p->role[rank].n_task;
    const trace t = {HP_NEW(arena, int64_t, n), HP_NEW(arena, int64_t, n)};
    assert_int_equal(r->n_span[rank], n);
    for (int64_t i = 0; i < r->n_span[rank]; i++) {
        t.t0_ns[r->span[rank][i].task] = r->span[rank][i].t0_ns;
        t.t1_ns[r->span[rank][i].task] = r->span[rank][i].t1_ns;
    }
    return t;
}

/* The k-th sum that a role makes in a group; NULL: it makes fewer. */
static const hp_task *sum_of(const hp_role *r, int group, int k) {
    for (int i = 0; i < r->n_task; i++)
        if (of_gradients(r, &r->task[i]) && r->queue[r->task[i].queue].peer == group && k-- == 0)
            return &r->task[i];
    return NULL;
}

/* Each sum ends one duration after its last member has the gradients. All sums except that of the first
 * stage, which ends the backward pass, meet some members without work. Returns the number of sums. */
static int expect_at_once(const hp_program *p, const trace *of, int64_t sum_ns, int64_t computed_ns) {
    int sums = 0, hidden = 0, groups = 0;
    for (int group = 1; group < p->n_group; group++) {
        const hp_group *m = &p->group[group];
        for (int k = 0; sum_of(&p->role[p->member[m->first]], group, k); k++) {
            int64_t final_ns = 0, end_ns = 0;
            for (int i = 0; i < m->n; i++) {
                const int rank = p->member[m->first + i];
                const hp_role *r = &p->role[rank];
                const int t = (int)(sum_of(r, group, k) - r->task);
                end_ns = of[rank].t1_ns[t];
                for (int d = r->dep_first[t]; d < r->dep_first[t + 1]; d++)
                    if (of[rank].t1_ns[r->dep[d]] > final_ns) final_ns = of[rank].t1_ns[r->dep[d]];
            }
            assert_int_equal(end_ns, final_ns + sum_ns);
            hidden += final_ns < computed_ns;
            sums++;
        }
        groups += sum_of(&p->role[p->member[m->first]], group, 0) != NULL;
    }
    assert_int_equal(hidden, sums - 1);
    assert_true(groups > 0);
    return sums;
}

/* A mirrored pass leaves the last stages first: their sums hide in the bubble behind it, and only the first
 * stage's sum lengthens the step. */
static void gems_sums_gradients_in_the_bubble(void **state) {
    (void)state;
    for (int stages = 2; stages <= 7; stages++)
        for (int k = 0; k < 4; k++) {
            hp_arena *arena = hp_arena_new();
            hp_graph *g;
            char text[80];
            times c = {3e-6, 7e-6, 0, 0};
            snprintf(text, sizeof text, "stages=%d,micro=%d,sched=gems,gems=%d,fuse=1G", stages, 1 + k % 2,
                     k < 2 ? 2 : 4);
            hp_program *p = lower(arena, text, &g);
            const int64_t computed_ns = simulate(arena, p, g, &c, false).makespan_ns;
            c.sum_s = k == 3 ? c.backward_s : 2e-6;
            const hp_sim_result r = simulate(arena, p, g, &c, false);
            trace *of = HP_NEW(arena, trace, stages);
            for (int rank = 0; rank < stages; rank++) of[rank] = trace_of(arena, p, &r, rank);
            assert_int_equal(expect_at_once(p, of, llround(1e9 * c.sum_s), computed_ns), stages - stages % 2);
            assert_int_equal(r.makespan_ns, computed_ns + llround(1e9 * c.sum_s));
            hp_arena_free(arena);
        }
}

/* --- parameter servers --- */

/* n ranks, B <= n buckets that are all ready at once. A single server receives and sends n-1 messages for
 * each, one after the other; with a separate server per bucket, these proceed concurrently. */
static void servers_work_at_once_and_one_is_a_bottleneck(void **state) {
    (void)state;
    for (int n = 2; n <= 24; n++)
        for (int shared = 0; shared < 2; shared++) {
            hp_arena *arena = hp_arena_new();
            hp_graph *g;
            char text[80];
            times c = {.message_s = 5e-6};
            snprintf(text, sizeof text, "dp=%d,fuse=%dM,%s", n, n < 12 ? 1000 : 20,
                     shared ? "sync=ps" : "sync=ps:1");
            hp_program *p = lower(arena, text, &g);
            int buckets = 0;
            for (int i = 0; i < p->role[0].n_task; i++) buckets += p->role[0].task[i].op == HP_TASK_REDUCE;
            assert_in_range(buckets, n < 12 ? 1 : 2, n);
            const int64_t ns = simulate(arena, p, g, &c, false).makespan_ns;
            assert_int_equal(ns, INT64_C(2) * (shared ? 1 : buckets) * (n - 1) * 5000);
            /* on cores, messages also wait for the other end's core */
            const int64_t cores_ns = simulate(arena, p, g, &c, true).makespan_ns;
            assert_in_range(cores_ns, ns, shared ? 3 * ns : ns);
            hp_arena_free(arena);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gems_sums_gradients_in_the_bubble),
        cmocka_unit_test(servers_work_at_once_and_one_is_a_bottleneck),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
