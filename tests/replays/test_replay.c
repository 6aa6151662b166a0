/* test_replay.c - replays are proved programs: their messages add up to the volumes of the papers' formulas,
 * and their compute lasts as long as operations and bytes at the given rates. */
#include "replays/replay.h"

#include "base/rng.h"
#include "plan/check/check.h"
#include "networks/nets/nets.h"
#include "tests/support/plan/law_cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static hp_replay parsed(const char *text) {
    hp_replay r;
    hp_error err;
    if (hp_replay_parse(text, &r, &err) != HP_OK) fail_msg("%s: %s", text, err.text);
    return r;
}

static hp_graph *stand_in(hp_arena *arena) {
    hp_graph *g = NULL;
    hp_error err;
    assert_int_equal(hp_net_build(arena, "cnn", 28, 28, 10, &g, &err), HP_OK);
    return g;
}

static hp_replay_way way_of(int32_t ranks, const char *comm) {
    hp_error err;
    hp_replay_way way = {
        .ranks = ranks, .device = &hp_devices[HP_DEVICE_CPU], .flops_per_s = 1e12, .bytes_per_s = 1e11};
    assert_int_equal(hp_comm_parse(comm, way.comm, &err), HP_OK);
    return way;
}

/* --- text --- */

static void words_are_understood_or_explained(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "",           "dlr",          "dlrm:",         "dlrm:batch",
        "dlrm:b=3",   "dlrm:batch=0", "dlrm:batch=2,", "moe:batch=2",
        "moe:top=17", "dlrm,batch=2", "moe:layers=-1", "dlrm:batch=99999999999"};
    char text[HP_REPLAY_TEXT];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hp_replay r;
        hp_error err;
        if (hp_replay_parse(wrong[i], &r, &err) != HP_EUSAGE) fail_msg("'%s' is taken", wrong[i]);
    }
    const hp_replay r = parsed("moe:tokens=64,layers=3");
    assert_string_equal(hp_replay_text(&r, text), "moe:layers=3,hidden=512,tokens=64,top=1");
    const hp_replay again = parsed(text);
    assert_memory_equal(&again, &r, sizeof r);
}

/* --- volumes --- */

/* 13-512-256-128 and 479-1024-1024-512-256-1, weights and biases: MLPerf's model has 2,368,897 of them. */
static void mlperf_layers_have_their_parameters(void **state) {
    (void)state;
    hp_replay_volume v[HP_REPLAY_VOLUMES];
    const hp_replay r = parsed("dlrm");
    const double params =
        14 * 512 + 513 * 256 + 257 * 128 + 480 * 1024 + 1025 * 1024 + 1025 * 512 + 513 * 256 + 257;
    hp_replay_volumes(&r, 8, v);
    assert_true(v[1].what == HP_COLLECTIVE_ALLREDUCE && v[1].bytes == 4 * params);
    /* 26 tables on 8 ranks: four each; every rank sends 7 of 8 parts, forwards and backwards */
    assert_true(v[0].what == HP_COLLECTIVE_ALL_TO_ALL);
    assert_true(v[0].sent_bytes == 2.0 * 8 * 7 * 2048 * 4 * 128 * 4);
}

/* k c b s h e (E - 1) / E of each of two exchanges forwards and two backwards (k = top, c = 1). */
static void experts_exchange_their_tokens(void **state) {
    (void)state;
    hp_replay_volume v[HP_REPLAY_VOLUMES];
    const hp_replay r = parsed("moe:layers=3,hidden=64,tokens=256,top=2");
    hp_replay_volumes(&r, 4, v);
    assert_true(v[0].calls == 12 && v[0].sent_bytes == 4 * (12 * 2.0 * 256 * 64 * 4 * 3 / 4));
    assert_true(v[1].calls == 3 && v[1].sent_bytes == 2.0 * 3 * 3 * (16 * 64 * 64) * 4);
}

/* Bytes that all ranks send in the program's tasks of one collective, by its definition. */
static void add_up(const hp_program *p, hp_collective what, int *calls, double *sent) {
    const hp_role *r = &p->role[0];
    *calls = 0;
    *sent = 0;
    for (int t = 0; t < r->n_task; t++) {
        const hp_task *k = &r->task[t];
        if (!hp_task_is_collective(k) || hp_task_collective(k) != what) continue;
        ++*calls;
        *sent += (double)p->dp * hp_collective_volume(what, p->dp) * 4 * (double)k->collective.elems;
    }
}

static const char *draw_comm(uint64_t seed) {
    static const char *const comms[] = {"own",
                                        "mpi",
                                        "shm",
                                        "allreduce:own+alltoall:mpi",
                                        "allreduce:shm+alltoall:own",
                                        "allreduce:own.ring+alltoall:own"};
    return comms[hp_rng_below(seed, 9, 0, sizeof comms / sizeof *comms)];
}

static hp_replay draw_replay(uint64_t seed) {
    hp_replay r = parsed(seed % 2 ? "dlrm" : "moe");
    static const uint64_t most[HP_REPLAYS][HP_REPLAY_KEYS] = {{40, 50, 70, 1}, {5, 33, 130, 3}};
    for (int k = 0; k < HP_REPLAY_KEYS; k++)
        if (r.value[k]) r.value[k] = 1 + (int64_t)hp_rng_below(seed, 1, (uint64_t)k, most[r.kind][k]);
    return r;
}

static void programs_are_proved_and_add_up(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < law_cases(300); seed++) {
        hp_arena *arena = hp_arena_new();
        hp_error err;
        char text[HP_REPLAY_TEXT];
        hp_replay_volume v[HP_REPLAY_VOLUMES];
        const hp_graph *g = stand_in(arena);
        const hp_replay r = draw_replay(seed);
        const hp_replay_way way = way_of(2 + (int32_t)hp_rng_below(seed, 2, 0, 9), draw_comm(seed));
        hp_program *p = hp_replay_program(arena, g, &r, &way);
        hp_replay_text(&r, text);
        if (hp_program_check(p, g, &err) != HP_OK) fail_msg("seed %d, %s: %s", (int)seed, text, err.text);
        hp_replay_volumes(&r, way.ranks, v);
        for (int k = 0; k < HP_REPLAY_VOLUMES; k++) {
            int calls;
            double sent;
            add_up(p, v[k].what, &calls, &sent);
            if (calls != v[k].calls || fabs(sent - v[k].sent_bytes) > 1e-9 * sent)
                fail_msg("seed %d, %s, %s: %d calls send %.0f bytes, not %d and %.0f", (int)seed, text,
                         hp_collective_infos[v[k].what].name, calls, sent, v[k].calls, v[k].sent_bytes);
        }
        hp_arena_free(arena);
    }
}

/* --- compute --- */

/* Where bytes are free, operations decide: 6 times parameters times samples for a step's perceptrons, and
 * three times the interactions. */
static void compute_has_its_length(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    const hp_graph *g = stand_in(arena);
    const hp_replay r = parsed("dlrm");
    hp_replay_volume v[HP_REPLAY_VOLUMES];
    hp_replay_way way = way_of(4, "own");
    way.bytes_per_s = 1e30;
    const hp_program *p = hp_replay_program(arena, g, &r, &way);
    double ns = 0;
    for (int t = 0; t < p->role[0].n_task; t++)
        if (p->role[0].task[t].op == HP_TASK_DUMMY) ns += (double)p->role[0].task[t].dummy.ns;
    hp_replay_volumes(&r, 4, v);
    const double flops = 6 * 2048 * v[1].bytes / 4 + 3 * 2.0 * 2048 * 27 * 27 * 128;
    assert_true(fabs(ns - 1e9 * flops / 1e12) < 10);
    hp_arena_free(arena);
}

/* A stranger's program may not keep a rank busy for days. */
static void long_dummies_are_refused(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_error err;
    const hp_graph *g = stand_in(arena);
    const hp_replay r = parsed("moe:layers=1,hidden=8,tokens=8");
    const hp_replay_way way = way_of(2, "own");
    const hp_program *p = hp_replay_program(arena, g, &r, &way);
    assert_int_equal(hp_program_check(p, g, &err), HP_OK);
    p->role[0].task[0].dummy.ns = INT64_C(3600) * 1000000000 + 1;
    assert_int_equal(p->role[0].task[0].op, HP_TASK_DUMMY);
    assert_int_equal(hp_program_check(p, g, &err), HP_EPLAN);
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_understood_or_explained),
        cmocka_unit_test(mlperf_layers_have_their_parameters),
        cmocka_unit_test(experts_exchange_their_tokens),
        cmocka_unit_test(programs_are_proved_and_add_up),
        cmocka_unit_test(compute_has_its_length),
        cmocka_unit_test(long_dummies_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
