/* test_sync_faults.c - programs of parameter servers and of local SGD: the servers' traffic, and one seeded
 * fault in each: an update where the sum is not, parameters from elsewhere, too early or never, and incorrect
 * averages. */
#include "plan/check/check.h"
#include "tests/support/plan/law_cases.h"
#include "tests/support/plan/seed_faults.h"
#include "plan/lower/lower.h"
#include "plan/strategy/axes/axis_sync.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PROGRAMS = 120, MAX_RANKS = 12, LEAST = 20 };

static hp_program *draw(hp_arena *arena, dice *d, hp_sync sync, hp_graph **g, hp_strategy *s) {
    hp_error err = {HP_OK, ""};
    hp_program *p = NULL;
    *g = random_net(arena, d->seed, roll(d, 3, 7));
    const int groups = roll(d, 2, 6);
    *s = random_strategy_of(d, *g, groups, MAX_RANKS, DRAW_ALL - DRAW_SHARES);
    s->zero.stage = 0;
    s->sync.how = (int32_t)sync;
    s->sync.servers = sync == HP_SYNC_PS ? roll(d, 0, 3) : 0;
    s->sync.local = sync == HP_SYNC_LOCAL ? roll(d, 1, 9) : 0;
    s->fuse_bytes = 64;
    if (!hp_strategy_legal(s, *g, hp_strategy_batch(s, groups), 0, NULL)) return NULL; /* pixels */
    const hp_lower_options o = {
        .mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = hp_strategy_batch(s, groups), .place = true};
    if (hp_lower(arena, *g, s, &o, &p, &err) != HP_OK || hp_program_check(p, *g, &err) != HP_OK)
        fail_msg("seed %llu: %s", (unsigned long long)d->seed, err.text);
    return p;
}

/* --- volume --- */

/* Number of elements that a member sends, or receives, in a task. */
static int64_t moved(const hp_program *p, const hp_role *r, const hp_task *t, int member, bool received) {
    const hp_collective_case c = hp_task_case(p, r, t);
    const hp_collective_data data = hp_task_data(p, t);
    const hp_collective_plan plan = hp_collective_whole((hp_algorithm)t->algorithm, &c, member, &data);
    int64_t n = 0;
    for (int32_t step = 0; step < plan.steps; step++) {
        const hp_block_step at = hp_collective_at(&plan, 0, step);
        if (!received && at.send_to >= 0) n += hp_collective_elems(&plan, 0, &at.send);
        if (received && at.recv_from >= 0) n += hp_collective_elems(&plan, 0, &at.recv);
    }
    return n;
}

/* A bucket of m elements among n ranks: every rank except the server sends m and receives m; the server
 * receives and sends (n-1) m. Servers take turns. */
static void expect_volume(const hp_strategy *s, const hp_program *p, int role) {
    const hp_role *r = &p->role[role];
    int *turn = calloc((size_t)p->n_group, sizeof *turn);
    for (int i = 0; i < r->n_task; i++) {
        const hp_task *t = &r->task[i];
        if (t->op != HP_TASK_REDUCE && t->op != HP_TASK_BROADCAST) continue;
        int first = 0; /* first of the groups with these members */
        while (!hp_group_equal(p, first, r->queue[t->queue].peer) || first == 0) first++;
        const int n = hp_group_size(p, first), server = hp_task_call(p, t).root;
        if (t->op == HP_TASK_REDUCE) assert_int_equal(server, hp_sync_server(s, n, turn[first]++));
        assert_in_range(server, 0, (s->sync.servers && s->sync.servers < n ? s->sync.servers : n) - 1);
        for (int m = 0; m < n; m++) {
            const bool up = t->op == HP_TASK_REDUCE;
            assert_int_equal(moved(p, r, t, m, !up), m == server ? 0 : t->collective.elems);
            assert_int_equal(moved(p, r, t, m, up), m == server ? (n - 1) * t->collective.elems : 0);
        }
    }
    free(turn);
}

static void workers_send_each_bucket_once_and_servers_to_all_others(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(PROGRAMS); seed++) {
        dice d = {seed, 7200};
        hp_arena *arena = hp_arena_new();
        hp_graph *g;
        hp_strategy s;
        const hp_program *p = draw(arena, &d, HP_SYNC_PS, &g, &s);
        for (int role = 0; role < p->n_role; role++) expect_volume(&s, p, role);
        hp_arena_free(arena);
    }
}

/* --- faults --- */

static bool is_reduce(const victim *v, const hp_task *t) {
    (void)v;
    return t->op == HP_TASK_REDUCE;
}

static bool is_broadcast(const victim *v, const hp_task *t) {
    (void)v;
    return t->op == HP_TASK_BROADCAST;
}

static bool is_served(const victim *v, const hp_task *t) {
    (void)v;
    return t->op == HP_TASK_UPDATE && t->update.call;
}

/* Changes the same task on all members, so that they agree with each other. */
static void of_all(victim *v, const hp_task *like, void (*change)(victim *v, hp_role *r, hp_task *t)) {
    const int group = v->r->queue[like->queue].peer;
    int nth = 0;
    for (const hp_task *t = v->r->task; t < like; t++) nth += t->queue == like->queue;
    for (int i = 0; i < v->p->n_role; i++) {
        hp_role *r = &v->p->role[i];
        for (int k = 0, n = 0; k < r->n_task; k++) {
            hp_task *t = &r->task[k];
            if (!hp_task_is_collective(t) || r->queue[t->queue].peer != group || n++ != nth) continue;
            change(v, r, t);
            break;
        }
    }
}

static void to_next_root(victim *v, hp_role *r, hp_task *t) {
    hp_call call = hp_task_call(v->p, t);
    call.root = (call.root + 1) % hp_task_case(v->p, r, t).size;
    hp_call *longer = hp_arena_alloc(v->arena, sizeof call * (size_t)(v->p->n_call + 1));
    memcpy(longer, v->p->call, sizeof call * (size_t)v->p->n_call);
    longer[v->p->n_call] = call;
    v->p->call = longer;
    t->collective.call = ++v->p->n_call;
}

static void forget_it(victim *v, hp_role *r, hp_task *t) {
    (void)v;
    drop(r, t);
}

static bool summed_elsewhere(victim *v) {
    const hp_task *t = pick_task(v, is_reduce);
    if (t) of_all(v, t, to_next_root);
    return t != NULL;
}

static bool sent_from_elsewhere(victim *v) {
    const hp_task *t = pick_task(v, is_broadcast);
    if (t) of_all(v, t, to_next_root);
    return t != NULL;
}

static bool never_summed(victim *v) {
    const hp_task *t = pick_task(v, is_reduce);
    if (t) of_all(v, t, forget_it);
    return t != NULL;
}

static bool never_sent(victim *v) {
    const hp_task *t = pick_task(v, is_broadcast);
    if (t) of_all(v, t, forget_it);
    return t != NULL;
}

static bool updated_by_all(victim *v) {
    hp_task *t = pick_task(v, is_served);
    if (t) t->update.call = 0;
    return t != NULL;
}

static bool updated_elsewhere(victim *v) {
    hp_task *t = pick_task(v, is_served);
    hp_role *r = v->r;
    if (!t) return false;
    for (int i = 0; i < r->n_task; i++) {
        if (r->task[i].op != HP_TASK_REDUCE || r->task[i].collective.bucket != t->update.bucket) continue;
        hp_task like = r->task[i];
        to_next_root(v, r, &like);
        t->update.call = like.collective.call;
        return true;
    }
    return false;
}

/* The rank named as the bucket's server is counted among other members. */
static bool of_another_bucket(victim *v) {
    hp_task *t = pick_task(v, is_served);
    if (t) t->update.bucket = 1 << 20;
    return t != NULL;
}

/* The send no longer waits for the update. */
static bool sent_too_early(victim *v) {
    const hp_task *t = pick_task(v, is_broadcast);
    if (!t) return false;
    const int id = (int)(t - v->r->task);
    for (int i = v->r->dep_first[id]; i < v->r->dep_first[id + 1]; i++) v->r->dep[i] = 0;
    return true;
}

static bool empty_sent(victim *v) {
    hp_task *t = pick_task(v, is_broadcast);
    if (t) t->collective.elems = 0;
    return t != NULL;
}

static bool is_average(const victim *v, const hp_task *t) {
    (void)v;
    return t->flags & HP_FLAG_AVERAGE;
}

static bool never_averaged(victim *v) {
    const hp_task *t = pick_task(v, is_average);
    if (t) of_all(v, t, forget_it);
    return t != NULL;
}

static void always(victim *v, hp_role *r, hp_task *t) {
    (void)v, (void)r;
    t->flags = 0;
}

static bool averaged_always(victim *v) {
    const hp_task *t = pick_task(v, is_average);
    if (t) of_all(v, t, always);
    return t != NULL;
}

static void added(victim *v, hp_role *r, hp_task *t) {
    (void)v, (void)r;
    t->collective.call = 0;
}

static bool added_up(victim *v) {
    const hp_task *t = pick_task(v, is_average);
    if (t) of_all(v, t, added);
    return t != NULL;
}

/* Momentum follows in the same queue. */
static bool is_average_of_params(const victim *v, const hp_task *t) {
    return is_average(v, t) && v->r->operand[t->operand] == HP_BUF_WEIGHTS;
}

static bool averaged_too_early(victim *v) {
    const hp_task *t = pick_task(v, is_average_of_params);
    if (!t) return false;
    const int id = (int)(t - v->r->task);
    for (int i = v->r->dep_first[id]; i < v->r->dep_first[id + 1]; i++) v->r->dep[i] = 0;
    return true;
}

/* The program claims that there is nothing to average. */
static bool replicas_alike(victim *v) {
    v->p->local = 0;
    return pick_task(v, is_average) != NULL;
}

static const struct fault local[] = {
    {"never averaged", never_averaged},
    {"averaged in every step", averaged_always},
    {"added up", added_up},
    {"averaged too early", averaged_too_early},
    {"replicas alike", replicas_alike},
};
enum { LOCAL = sizeof local / sizeof *local };

static const struct fault served[] = {
    {"summed elsewhere", summed_elsewhere},   {"sent from elsewhere", sent_from_elsewhere},
    {"never summed", never_summed},           {"never sent", never_sent},
    {"updated by all", updated_by_all},       {"updated elsewhere", updated_elsewhere},
    {"of another bucket", of_another_bucket}, {"sent too early", sent_too_early},
    {"sent without parameters", empty_sent},
};
enum { SERVED = sizeof served / sizeof *served };

static void try_faults(hp_arena *arena, hp_graph *g, const hp_program *p, uint64_t seed,
                       const struct fault *fault, int n, int *caught) {
    hp_error err = {HP_OK, ""};
    for (int f = 0; f < n; f++) {
        victim v = {.arena = arena, .g = g, .d = {seed * (uint64_t)n + (uint64_t)f, 7400}};
        v.p = copy_program(arena, g, p);
        v.role = roll(&v.d, 0, p->n_role - 1);
        v.r = &v.p->role[v.role];
        if (!fault[f].inject(&v)) continue;
        if (hp_program_check(v.p, g, &err) != HP_EPLAN)
            fail_msg("seed %llu: %s in rank %d was not caught", (unsigned long long)seed, fault[f].name,
                     v.role);
        assert_memory_equal(err.text, "E-", 2);
        caught[f]++;
    }
}

static void expect_caught(hp_sync sync, const struct fault *fault, int n) {
    int caught[SERVED + LOCAL] = {0};
    for (uint64_t seed = 1; seed <= law_cases(PROGRAMS); seed++) {
        dice d = {seed, 7300};
        hp_arena *arena = hp_arena_new();
        hp_graph *g;
        hp_strategy s;
        const hp_program *p = draw(arena, &d, sync, &g, &s);
        if (p) try_faults(arena, g, p, seed, fault, n, caught);
        hp_arena_free(arena);
    }
    for (int f = 0; f < n; f++)
        if (caught[f] < (int)(LEAST * law_cases(PROGRAMS) / PROGRAMS))
            fail_msg("only %d faults of kind %s", caught[f], fault[f].name);
}

static void faults_of_servers_are_all_caught(void **state) {
    (void)state;
    expect_caught(HP_SYNC_PS, served, SERVED);
}

static void faults_of_averages_are_all_caught(void **state) {
    (void)state;
    expect_caught(HP_SYNC_LOCAL, local, LOCAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_send_each_bucket_once_and_servers_to_all_others),
        cmocka_unit_test(faults_of_servers_are_all_caught),
        cmocka_unit_test(faults_of_averages_are_all_caught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
