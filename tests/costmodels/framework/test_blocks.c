/* test_blocks.c - kernels of frameworks with fewer thread blocks than a device has multiprocessors. */
#include "costmodels/framework/framework.h"

#include "costmodels/cost_rows.h"
#include "sim/costs/costs.h"
#include "tests/support/plan/built/layers.h"
#include "tests/support/sim/search_world.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static double norm_seconds(const world *w, const hp_framework *f, int layer, hp_task_op op, hp_work *work) {
    const hp_tensor *y = &w->g->tensor[w->g->layer[layer].out];
    const hp_box out = {{0, 0, 0, 0}, {1, y->h, y->w, y->c}};
    const hp_work_case c = hp_work_case_at(w->g, layer, op, &out);
    double share;
    *work = hp_work_of_case(w->g, HP_F32, &c);
    return hp_costs_case(hp_cost_cache_new(w->arena, w->t, &w->m, f), w->g, HP_F32, &c, &share).seconds;
}

/* PyTorch on an A100-SXM4-40GB took 0.871 ms forward and 2.319 ms backward for one map of 112 x 112 x 112 and
 * 16 channels, in three and five passes; the rows come from 16 such maps. If there are as few blocks as
 * channels, they limit the rate; many blocks reach the memory's bandwidth. */
static void few_channels_leave_a_norm_few_blocks(void **state) {
    (void)state;
    static const struct {
        const char *kernel;
        double ms, passes;
    } seen[] = {{"fwd.bn", 0.871, 3}, {"bwd.bn", 2.319, 5}};
    world w = make_world("thesis-a100", "resnet-v2-110", 1024, 1);
    for (int i = 0; i < 2; i++) {
        const double each_s = hp_cost_block_seconds(w.t, &w.m, seen[i].kernel, 16);
        const double ms = 1e3 * each_s * seen[i].passes * pow(112, 3);
        if (fabs(ms / seen[i].ms - 1) > 0.05) fail_msg("%s: %g ms, not %g", seen[i].kernel, ms, seen[i].ms);
    }
    const hp_framework *torch = framework_named("pytorch-1.13");
    const int few = layer_named(w.g, "layer1.1.bn2"), many = layer_named(w.g, "layer3.1.bn1");
    hp_work work;
    const double own = norm_seconds(&w, NULL, few, HP_TASK_STATS, &work),
                 theirs = norm_seconds(&w, torch, few, HP_TASK_STATS, &work),
                 each_s = hp_cost_block_seconds(w.t, &w.m, "fwd.bn", 16);
    assert_true(fabs(theirs - w.m.device.launch_s - each_s * work.bytes / 4 / 16) < 1e-9 && theirs > own);
    assert_true(fabs(norm_seconds(&w, torch, many, HP_TASK_STATS, &work) -
                     norm_seconds(&w, NULL, many, HP_TASK_STATS, &work)) < 1e-9);
    hp_arena_free(w.arena);
}

/* Gradients of a layer norm of 56 x 56 tokens and 96 channels: six blocks add 16 x 3136 elements each.
 * PyTorch took 235 us forward and backward for 8192 tokens of 1024 channels in float32 on an A100 (211.9
 * after pull request 87445, which gained 11 %), about 100 of them for these sums: 16 x 8192 elements a
 * block. */
static void few_channels_leave_sums_over_tokens_few_blocks(void **state) {
    (void)state;
    world w = make_world("thesis-a100", "swin-t", 224, 2);
    const hp_framework *torch = framework_named("pytorch-1.13");
    hp_framework one_kernel = *torch;
    one_kernel.kernels.column_channels = 0;
    const double each_s = hp_cost_block_seconds(w.t, &w.m, "bwd.layernorm", 6);
    if (fabs(each_s * 16 * 8192 / 100e-6 - 1) > 0.15) fail_msg("%g s for an element", each_s);
    const int layer = layer_named(w.g, "features.1.0.norm1");
    hp_work work;
    const double longer = norm_seconds(&w, torch, layer, HP_TASK_BWD, &work) -
                          norm_seconds(&w, &one_kernel, layer, HP_TASK_BWD, &work);
    const double want_s = w.m.device.launch_s + each_s * 16 * 56 * 56;
    if (fabs(longer / want_s - 1) > 1e-6) fail_msg("%g s longer, not %g", longer, want_s);
    assert_true(norm_seconds(&w, torch, layer, HP_TASK_FWD, &work) ==
                norm_seconds(&w, &one_kernel, layer, HP_TASK_FWD, &work));
    hp_arena_free(w.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_channels_leave_a_norm_few_blocks),
        cmocka_unit_test(few_channels_leave_sums_over_tokens_few_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
