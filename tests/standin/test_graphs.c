/* test_graphs.c - training with its steps captured as graphs, on the stand-in for a GPU: the same bits as
 * with individual launches, in far fewer calls; failures within a graph are reported. One rank in its own
 * process, as programs run. */
#include "exec/cuda/runtime/cuda_runtime_device.h"
#include "tests/support/plan/random_net.h"
#include "tests/support/exec/run_ranks.h"
#include "tests/standin/probe.h"
#include "tests/support/standin/standin_child.h"
#include "tests/support/plan/law_cases.h"
#include "plan/lower/lower.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { STEPS = 5, FAULTY_STEP = 4, NETS = 6 };

typedef struct outcome {
    double loss[STEPS], *weights;
    int64_t n;
    probe_calls calls; /* calls of this run */
    hp_status status;
    hp_error err;
} outcome;

static hp_program *lowered(hp_arena *arena, const hp_graph *g, int batch) {
    hp_error err = {HP_OK, ""};
    hp_program *p = NULL;
    const hp_strategy s = hp_strategy_default();
    const hp_lower_options o = {.mode = HP_MODE_TRAIN,
                                .dtype = HP_F32,
                                .batch = batch,
                                .device = &hp_devices[HP_DEVICE_CUDA],
                                .place = true};
    CHECK(hp_lower(arena, g, &s, &o, &p, &err) == HP_OK);
    return p;
}

static hp_comm *staged(hp_comm *inner, const hp_memory *memory) {
    return hp_comm_staged(inner, memory);
}

static outcome run(hp_arena *arena, const hp_device_ops *ops, uint64_t seed) {
    const hp_graph *g = random_net(arena, seed, 5);
    outcome out = {.n = ranks_param_elems(g)};
    probe_calls before;
    out.weights = HP_NEW(arena, double, out.n);
    ranks_job job = {.g = g,
                     .p = lowered(arena, g, 4),
                     .ops = ops,
                     .comm = staged,
                     .steps = STEPS,
                     .lr = 0.05,
                     .lr_falls = 0.01,
                     .momentum = 0.9,
                     .weight_decay = 1e-4,
                     .seed = seed,
                     .loss = out.loss,
                     .weights = out.weights};
    probe_count_calls(&before);
    out.status = run_ranks(&job);
    out.err = job.err;
    probe_count_calls(&out.calls);
    out.calls.given -= before.given;
    out.calls.graphs -= before.graphs;
    out.calls.replayed -= before.replayed;
    return out;
}

/* Runs with individual launches. */
static outcome run_directly(hp_arena *arena, uint64_t seed) {
    hp_stream_ops streams = *hp_device_cuda.memory->streams;
    hp_memory_ops memory = *hp_device_cuda.memory;
    hp_device_ops ops = hp_device_cuda;
    streams.capture = NULL;
    memory.streams = &streams;
    ops.memory = &memory;
    return run(arena, &ops, seed);
}

/* The work is the same either way. With graphs, a step's remaining calls load images and set what changes. */
static void both_ways(void) {
    for (uint64_t seed = 1; seed <= law_cases(NETS); seed++) {
        hp_arena *arena = hp_arena_new();
        const outcome apart = run_directly(arena, seed), kept = run(arena, &hp_device_cuda, seed);
        CHECK(apart.status == HP_OK && kept.status == HP_OK);
        CHECK(memcmp(apart.loss, kept.loss, sizeof apart.loss) == 0 && apart.loss[0] != apart.loss[1]);
        CHECK(memcmp(apart.weights, kept.weights, sizeof(double) * (size_t)apart.n) == 0);
        CHECK(apart.calls.graphs == 0 && apart.calls.replayed == 0);
        CHECK(kept.calls.given + kept.calls.replayed == apart.calls.given);
        CHECK(kept.calls.graphs >= STEPS - 1 && kept.calls.graphs * 8 < kept.calls.replayed);
        CHECK(kept.calls.given + kept.calls.graphs < apart.calls.given / 2);
        hp_arena_free(arena);
    }
}

static void graphs_have_the_bits_of_launches_and_fewer_calls(void **state) {
    (void)state;
    assert_int_equal(children_failed(both_ways, 2), 0);
}

/* --- faults --- */

static probe_calls *counted; /* shared by children and parent */

static void count(void) {
    hp_arena *arena = hp_arena_new();
    *counted = run(arena, &hp_device_cuda, 1).calls;
    hp_arena_free(arena);
}

static void faulty(void) {
    const outcome have = run(hp_arena_new(), &hp_device_cuda, 1);
    CHECK(have.status == HP_EUNAVAIL && strstr(have.err.text, "illegal memory access"));
    CHECK(have.calls.graphs == counted->graphs / (STEPS - 1) * (FAULTY_STEP - 1));
    _exit(0); /* the GPU is lost */
}

static void a_fault_within_a_graph_is_that_step_s_error(void **state) {
    (void)state;
    char kernel[40];
    counted = mmap(NULL, sizeof *counted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(counted != MAP_FAILED);
    assert_true(child_law(count, NULL, NULL, false));
    assert_int_equal(counted->kernels % STEPS, 0);
    snprintf(kernel, sizeof kernel, "kernel:%lld", (long long)(counted->kernels / STEPS * FAULTY_STEP - 2));
    assert_true(child_law(faulty, "HPLAN_STANDIN_FAIL", kernel, false));
    munmap(counted, sizeof *counted);
}

/* All segments but one are kept. */
static void refused(void) {
    hp_arena *arena = hp_arena_new();
    const outcome have = run(arena, &hp_device_cuda, 1);
    CHECK(have.status == HP_OK && have.calls.graphs == counted->graphs - (STEPS - 1));
    CHECK(have.calls.given + have.calls.replayed == counted->given + counted->replayed);
    CHECK(have.calls.given > counted->given);
    hp_arena_free(arena);
}

static void what_cannot_be_captured_is_launched(void **state) {
    (void)state;
    char launch[40];
    counted = mmap(NULL, sizeof *counted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(counted != MAP_FAILED);
    assert_true(child_law(count, NULL, NULL, false));
    snprintf(launch, sizeof launch, "cudaLaunchKernel:%lld", (long long)counted->kernels / STEPS + 1);
    const char *const calls[] = {"cudaStreamBeginCapture:1", launch, "cudaGraphInstantiate:1",
                                 "cudaGraphUpload:1"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        assert_true(child_law(refused, "HPLAN_STANDIN_FAIL", calls[i], false));
    munmap(counted, sizeof *counted);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_have_the_bits_of_launches_and_fewer_calls),
        cmocka_unit_test(a_fault_within_a_graph_is_that_step_s_error),
        cmocka_unit_test(what_cannot_be_captured_is_launched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
