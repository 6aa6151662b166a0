/* test_lanes.c - messages that run as device work: every strategy's groups are proved to complete, move what
 * MPI would move, and run on the virtual clock; possible faults of a lowering or a file are rejected. (On
 * streams, with threads: tests/laws/test_late.c.) */
#include "plan/program/lanes.h"
#include "plan/check/check_inside.h"
#include "sim/engine/sim.h"
#include "tests/support/plan/damage.h"
#include "tests/support/plan/integer_ranks.h"
#include "tests/support/plan/odd_net.h"
#include "tests/support/plan/seed_faults.h"
#include "plan/lower/lower.h"
#include "tests/support/plan/law_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

typedef struct drawn {
    hp_arena *arena;
    const hp_graph *g;
    hp_strategy s;
    hp_lower_options o;
    char text[HP_STRATEGY_TEXT + 40];
} drawn;

static drawn draw(uint64_t seed, int max_ranks) {
    dice d = {seed, 4200};
    char text[HP_STRATEGY_TEXT];
    drawn w = {.arena = hp_arena_new()};
    w.g = any_net(w.arena, seed, roll(&d, 3, 8));
    const int groups = roll(&d, 1, 6);
    w.s = random_strategy_of(&d, w.g, groups, max_ranks, DRAW_ALL);
    draw_comm(&d, &w.s);
    w.o = (hp_lower_options){.mode = seed % 4 ? HP_MODE_TRAIN : HP_MODE_INFER,
                             .dtype = HP_F64,
                             .batch = hp_strategy_batch(&w.s, groups),
                             .place = seed % 8 != 1};
    snprintf(w.text, sizeof w.text, "seed %llu, %s", (unsigned long long)seed, hp_strategy_text(&w.s, text));
    return w;
}

static hp_program *lowered(const drawn *w) {
    hp_error err = {HP_OK, ""};
    hp_program *p = NULL;
    if (hp_lower(w->arena, w->g, &w->s, &w->o, &p, &err) != HP_OK) fail_msg("%s: %s", w->text, err.text);
    return p;
}

/* The same strategy with MPI only. */
static hp_program *by_mpi(const drawn *w) {
    drawn plain = *w;
    memset(plain.s.comm, 0, sizeof plain.s.comm);
    return lowered(&plain);
}

/* --- every strategy --- */

static double same_seconds(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    (void)self, (void)p, (void)g, (void)rank, (void)task;
    return 1e-6;
}

static hp_sim_result simulated(const drawn *w, const hp_program *p) {
    const hp_machine m = {
        .nodes = 1, .devices_per_node = 64, .nics_per_node = 1, .intra = {"link", 1e-6, 1e9}};
    const hp_sim_costs costs = {same_seconds, NULL, NULL};
    const hp_sim_options o = {.fold = true, .straggler_rank = -1};
    hp_sim_result r;
    hp_error err;
    if (hp_sim_run(w->arena, p, w->g, &m, &costs, &o, &r, &err) != HP_OK)
        fail_msg("%s: %s", w->text, err.text);
    return r;
}

static void any_strategy_is_proved_and_moves_the_same_bytes(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(300); seed++) {
        drawn w = draw(seed, 64);
        hp_error err;
        const hp_program *p = lowered(&w), *plain = by_mpi(&w);
        if (w.o.place && hp_program_check(p, w.g, &err) != HP_OK) fail_msg("%s: %s", w.text, err.text);
        assert_int_equal(simulated(&w, p).comm_bytes, simulated(&w, plain).comm_bytes);
        for (int r = 0; r < p->n_role; r++) {
            assert_int_equal(p->role[r].n_task, plain->role[r].n_task);
            assert_int_equal(p->role[r].arena_bytes, plain->role[r].arena_bytes);
        }
        hp_arena_free(w.arena);
    }
}

/* However late messages arrive, layers read their tensors: nothing is overwritten too early. */
static void any_strategy_moves_what_layers_read(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(200); seed++) {
        drawn w = draw(seed, 16);
        w.o.place = true;
        integer_ranks *r = integer_ranks_new(w.arena, w.g, lowered(&w), false);
        if (!integer_ranks_run(r)) fail_msg("%s: %s", w.text, r->why);
        hp_arena_free(w.arena);
    }
}

/* --- faults --- */

static int random_task(victim *v, int stream) {
    const int n = v->r->n_task, from = roll(&v->d, 0, n - 1);
    for (int i = 0; i < n; i++) {
        const int t = (from + i) % n;
        if (hp_lane_stream_of(&v->r->queue[v->r->task[t].queue]) == stream) return t;
    }
    return -1;
}

static bool wrong_backend(victim *v, int stream) {
    const int t = random_task(v, stream);
    if (t < 0) return false;
    if (stream == HP_LANE_SUMS && v->p->group[v->r->queue[v->r->task[t].queue].peer].n == 1) return false;
    v->r->queue[v->r->task[t].queue].backend = HP_BACKEND_MPI;
    return true;
}

static bool message_by_two(victim *v) {
    return wrong_backend(v, HP_LANE_MESSAGES);
}

static bool sum_by_two(victim *v) {
    return wrong_backend(v, HP_LANE_SUMS);
}

/* A task no longer waits for an earlier task of its stream. */
static bool unchained(victim *v, int stream) {
    const int t = random_task(v, stream);
    if (t < 0) return false;
    hp_role *r = v->r;
    int last = -1; /* the latest of its own stream, from the previous lane */
    for (int i = r->dep_first[t]; i < r->dep_first[t + 1]; i++)
        if (hp_lane_stream_of(&r->queue[r->task[r->dep[i]].queue]) == stream &&
            (last < 0 || r->dep[i] > r->dep[last]))
            last = i;
    if (last < 0) return false;
    memmove(&r->dep[last], &r->dep[last + 1], sizeof *r->dep * (size_t)(--r->n_dep - last));
    for (int i = t + 1; i <= r->n_task; i++) r->dep_first[i]--;
    return true;
}

static bool loose_message(victim *v) {
    return unchained(v, HP_LANE_MESSAGES);
}

static bool loose_sum(victim *v) {
    return unchained(v, HP_LANE_SUMS);
}

/* Swaps two messages to one rank, of different channels and lanes. */
static bool crossed_messages(victim *v) {
    hp_role *r = v->r;
    const int t = random_task(v, HP_LANE_MESSAGES);
    for (int u = t + 1; t >= 0 && u < r->n_task; u++) {
        const hp_queue *a = &r->queue[r->task[t].queue], *b = &r->queue[r->task[u].queue];
        if (a == b || a->kind != b->kind || a->peer != b->peer) continue;
        const hp_task kept = r->task[t];
        r->task[t] = r->task[u];
        r->task[u] = kept;
        return true;
    }
    return false;
}

static const struct {
    const char *name;
    bool (*inject)(victim *v);
} lane_faults[] = {
    {"one end by another back end", message_by_two},      {"one member by another back end", sum_by_two},
    {"message not after the lane before", loose_message}, {"sum not after the sum before", loose_sum},
    {"messages of a pair crossed", crossed_messages},
};
enum { LANE_FAULTS = sizeof lane_faults / sizeof *lane_faults };

static const char *const STRATEGIES[] = {
    "sp=2x2,micro=2,comm=nccl",
    "sp=2x2:1x2,stages=3,dp=2,comm=nccl",
    "stages=2,chunks=2,micro=4,dp=2,comm=nccl",
    "sp=2x1,stages=2,tail=shared,micro=2,comm=nccl",
    "sp=2x1,stages=2,sched=gems,dp=2,comm=halo:nccl+stage:nccl+stats:nccl",
    "sp=3x1,stages=2,ldp=2,halo=2,fuse=4k,comm=stage:nccl+allreduce:nccl+stats:nccl",
    "dp=2,stages=3,micro=4,sched=1f1b,comm=nccl",
};

static void seeded_faults_are_refused(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_error err = {HP_OK, ""};
    hp_graph *g = NULL;
    int caught[LANE_FAULTS] = {0};
    assert_int_equal(hp_net_build(arena, "unet:4", 37, 41, 10, &g, &err), HP_OK);
    for (size_t i = 0; i < sizeof STRATEGIES / sizeof *STRATEGIES; i++) {
        drawn w = {.arena = arena, .g = g};
        if (hp_strategy_parse(STRATEGIES[i], &w.s, &err) != HP_OK)
            fail_msg("%s: %s", STRATEGIES[i], err.text);
        w.o = (hp_lower_options){.dtype = HP_F32, .batch = hp_strategy_batch(&w.s, 8), .place = true};
        const hp_program *p = lowered(&w);
        if (hp_program_check(p, g, &err) != HP_OK) fail_msg("%s: %s", STRATEGIES[i], err.text);
        for (int seed = 0; seed < 40 * LANE_FAULTS; seed++) {
            const int f = seed % LANE_FAULTS;
            victim v = {.arena = hp_arena_new(), .g = g, .d = {(uint64_t)seed, 5100 + i}};
            v.p = copy_program(v.arena, g, p);
            v.role = roll(&v.d, 0, p->n_role - 1);
            v.r = &v.p->role[v.role];
            if (lane_faults[f].inject(&v)) {
                caught[f]++;
                if (hp_check_lanes(v.arena, hp_wiring_new(v.arena, v.p), g, &err) != HP_EPLAN ||
                    strncmp(err.text, "E-LANE", 6) != 0)
                    fail_msg("%s in rank %d of %s was not caught", lane_faults[f].name, v.role,
                             STRATEGIES[i]);
                assert_int_equal(hp_program_check(v.p, g, &err), HP_EPLAN);
            }
            hp_arena_free(v.arena);
        }
    }
    for (int f = 0; f < LANE_FAULTS; f++)
        if (caught[f] < 10) fail_msg("only %d faults of kind: %s", caught[f], lane_faults[f].name);
    hp_arena_free(arena);
}

/* The checker handles any file content. */
static void damage_of_any_kind_is_survived(void **state) {
    (void)state;
    hp_error err;
    for (uint64_t seed = 1; seed <= law_cases(300); seed++) {
        drawn w = draw(seed, 16);
        victim v = {.arena = w.arena, .g = w.g, .d = {seed, 6100}};
        const hp_program *whole = lowered(&w);
        for (int k = 0; k < 8; k++) {
            damage(&v, whole);
            hp_program_check(v.p, v.g, &err);
        }
        hp_arena_free(w.arena);
    }
}

/* --- the key --- */

static void back_ends_are_read_and_written(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"comm=auto", "dp=1"},
        {"comm=nccl,dp=2", "dp=2,comm=nccl"},
        {"comm=mpi", "comm=mpi"},
        {"comm=halo:auto", "dp=1"},
        {"comm=allreduce:nccl+halo:mpi", "comm=halo:mpi+allreduce:nccl"},
        {"comm=stats:nccl+halo:nccl+allreduce:nccl+stage:nccl", "comm=nccl"},
        {"comm=stats:nccl,fuse=1M", "comm=stats:nccl,fuse=1M"},
    };
    hp_strategy s;
    hp_error err;
    char text[HP_STRATEGY_TEXT];
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (int again = 0; again < 2; again++) {
            assert_int_equal(hp_strategy_parse(pairs[i][again], &s, &err), HP_OK);
            assert_string_equal(hp_strategy_text(&s, text), pairs[i][1]);
        }
    static const char *const bad[] = {
        "comm=",           "comm=gloo",      "comm=halo", "comm=halo:gloo", "comm=halo:mpi+halo:nccl",
        "comm=metric:mpi", "comm=halo:mpi+", "comm=:mpi"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (hp_strategy_parse(bad[i], &s, &err) != HP_EUSAGE) fail_msg("%s was read", bad[i]);
}

/* Each queue has the back end of its traffic. Either the device supports it, or the fix leads to one that it
 * supports. */
static void devices_have_their_back_ends(void **state) {
    (void)state;
    hp_strategy s;
    hp_error err;
    hp_reject why;
    assert_int_equal(hp_strategy_parse("comm=stage:nccl", &s, &err), HP_OK);
    assert_true(hp_device_allows(&hp_devices[HP_DEVICE_CUDA], &s, false, &why));
    assert_false(hp_device_allows(&hp_devices[HP_DEVICE_CPU], &s, false, &why));
    assert_int_equal(why.code, HP_REJECT_COMM);
    assert_string_equal(why.fix, "comm=auto");
    assert_int_equal(hp_comm_backend(HP_COMM_AUTO, HP_TRAFFIC_ALLREDUCE, &hp_devices[HP_DEVICE_CPU], 1),
                     HP_BACKEND_OWN);
    assert_int_equal(hp_comm_backend(HP_COMM_AUTO, HP_TRAFFIC_HALO, &hp_devices[HP_DEVICE_CUDA], 1),
                     HP_BACKEND_NCCL);
    assert_int_equal(hp_comm_backend(HP_COMM_AUTO, HP_TRAFFIC_HALO, &hp_devices[HP_DEVICE_CUDA], 2),
                     HP_BACKEND_MPI);
}

static void ranks_that_share_a_device_have_no_nccl(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_graph *g = random_net(arena, 1, 4);
    hp_strategy s;
    hp_error err;
    hp_reject why;
    assert_int_equal(hp_strategy_parse("dp=2,clients=2,comm=stats:nccl", &s, &err), HP_OK);
    assert_false(hp_strategy_legal(&s, g, 4, 0, &why));
    assert_int_equal(why.code, HP_REJECT_COMM);
    assert_int_equal(hp_strategy_parse("dp=2,clients=2,comm=mpi", &s, &err), HP_OK);
    assert_true(hp_strategy_legal(&s, g, 4, 0, &why));
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_strategy_is_proved_and_moves_the_same_bytes),
        cmocka_unit_test(any_strategy_moves_what_layers_read),
        cmocka_unit_test(seeded_faults_are_refused),
        cmocka_unit_test(damage_of_any_kind_is_survived),
        cmocka_unit_test(back_ends_are_read_and_written),
        cmocka_unit_test(devices_have_their_back_ends),
        cmocka_unit_test(ranks_that_share_a_device_have_no_nccl),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
