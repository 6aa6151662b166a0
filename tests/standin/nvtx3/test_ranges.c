/* test_ranges.c - what a profiler hears of a run on a GPU: a range for each task that is launched, named by
 * task and phase; nothing at all where no profiler is attached. */
#include "exec/cuda/runtime/cuda_runtime_device.h"
#include "tests/support/exec/run_ranks.h"
#include "tests/support/plan/random_net.h"
#include "tests/support/standin/standin_child.h"
#include "tests/standin/nvtx3/nvToolsExt.h"
#include "plan/lower/lower.h"
#include "plan/program/print.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { STEPS = 3, BATCH = 4, SEED = 1, LABEL = 256 };

static const hp_graph *graph;
static hp_program *program;
static int *heard; /* per task of the role: ranges */

static void lower_net(hp_arena *arena) {
    hp_error err = {HP_OK, ""};
    const hp_strategy s = hp_strategy_default();
    const hp_lower_options o = {.mode = HP_MODE_TRAIN,
                                .dtype = HP_F32,
                                .batch = BATCH,
                                .device = &hp_devices[HP_DEVICE_CUDA],
                                .place = true};
    graph = random_net(arena, SEED, 5);
    CHECK(hp_lower(arena, graph, &s, &o, &program, &err) == HP_OK);
    heard = HP_NEW(arena, int, program->role[0].n_task);
}

static hp_comm *staged(hp_comm *inner, const hp_memory *memory) {
    return hp_comm_staged(inner, memory);
}

/* Trains, every task launched by itself: a replayed graph has no ranges. */
static void train(hp_arena *arena) {
    hp_stream_ops streams = *hp_device_cuda.memory->streams;
    hp_memory_ops memory = *hp_device_cuda.memory;
    hp_device_ops ops = hp_device_cuda;
    double loss[STEPS];
    streams.capture = NULL;
    memory.streams = &streams;
    ops.memory = &memory;
    ranks_job job = {.g = graph,
                     .p = program,
                     .ops = &ops,
                     .comm = staged,
                     .steps = STEPS,
                     .lr = 0.05,
                     .seed = SEED,
                     .loss = loss,
                     .weights = HP_NEW(arena, double, ranks_param_elems(graph))};
    CHECK(run_ranks(&job) == HP_OK);
}

static bool is_launched(const hp_task *t) {
    return hp_task_infos[t->op].queue == HP_QUEUE_COMPUTE && !hp_task_of_executor(t->op);
}

/* Tasks of equal names share their count. */
static void hear(const char *domain, const char *category, const char *name, int depth) {
    const hp_role *r = &program->role[0];
    CHECK(strcmp(domain, "hplan") == 0 && depth == 1);
    for (int i = 0; i < r->n_task; i++) {
        char label[LABEL];
        if (!is_launched(&r->task[i])) continue;
        if (strcmp(hp_task_label(program, graph, r, i, label, sizeof label), name) != 0) continue;
        CHECK(strcmp(hp_phase_names[hp_task_infos[r->task[i].op].phase], category) == 0);
        heard[i]++;
        return;
    }
    const bool names_a_task = false;
    CHECK(names_a_task);
}

static void every_launch(void) {
    hp_arena *arena = hp_arena_new();
    lower_net(arena);
    nvtx_standin_attach(hear);
    train(arena);
    int ranges = 0, launched = 0;
    for (int i = 0; i < program->role[0].n_task; i++) {
        ranges += heard[i];
        launched += is_launched(&program->role[0].task[i]);
    }
    CHECK(launched > 10 && ranges == STEPS * launched && nvtx_standin_depth() == 0);
    hp_arena_free(arena);
}

static void nobody_listens(void) {
    hp_arena *arena = hp_arena_new();
    lower_net(arena);
    train(arena);
    CHECK(nvtx_standin_calls() == 0);
    hp_arena_free(arena);
}

static void each_launched_task_is_a_range(void **state) {
    (void)state;
    assert_int_equal(children_failed(every_launch, 1), 0);
}

static void without_a_profiler_nothing_is_called(void **state) {
    (void)state;
    assert_int_equal(children_failed(nobody_listens, 1), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_launched_task_is_a_range),
                                       cmocka_unit_test(without_a_profiler_nothing_is_called)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
