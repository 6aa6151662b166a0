/* test_gpu.c - programs for a GPU: the plan holds the weights in the GPU's layout, once for both directions,
 * and scratch for every task; the checker rejects a program planned for another device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "networks/deploy/deploy.h"
#include "plan/memory/memory_device.h"
#include "plan/memory/gpu_scratch.h"
#include "plan/program/program.h"
#include "plan/lower/lower.h"
#include "plan/check/check.h"
#include "tests/support/plan/built/whole_shape.h"

static const char *const NETS[] = {"cnn", "resnet18", "mobilenetv2", "unet:4", "vgg19", "densenet121"};
static const char *const STRATEGIES[] = {"dp=1", "dp=2", "stages=2,micro=2", "sp=2x1", "cp=2"};
enum { N_NETS = sizeof NETS / sizeof *NETS, N_STRATEGIES = sizeof STRATEGIES / sizeof *STRATEGIES };

static hp_graph *build(hp_arena *a, const char *net) {
    hp_graph *g = NULL;
    hp_error err = {0};
    if (hp_net_build(a, net, 64, 64, 10, &g, &err) != HP_OK) fail_msg("%s: %s", net, err.text);
    return g;
}

/* NULL: illegal for this network. */
static hp_program *lowered(hp_arena *a, const hp_graph *g, const char *text, hp_mode mode,
                           hp_device_kind device) {
    hp_strategy s;
    hp_reject why;
    hp_error err = {0};
    hp_program *p = NULL;
    const hp_lower_options o = {
        .mode = mode, .dtype = HP_F32, .batch = 4, .device = &hp_devices[device], .place = true};
    if (hp_strategy_parse(text, &s, &err) != HP_OK) fail_msg("%s: %s", text, err.text);
    s.prec = g->prec;
    if (!hp_strategy_legal(&s, g, 4, 0, &why)) return NULL;
    if (hp_lower(a, g, &s, &o, &p, &err) != HP_OK) fail_msg("%s: %s", text, err.text);
    return p;
}

static void assert_checks(const hp_program *p, const hp_graph *g, const char *net, const char *text) {
    hp_error err = {0};
    if (hp_program_check(p, g, &err) != HP_OK) fail_msg("%s %s: %s", net, text, err.text);
}

/* Every product has packed weights, and the backward pass reads the same bytes. */
static void assert_packs(const hp_program *p, const hp_graph *g) {
    for (int i = 0; i < p->n_role; i++) {
        const hp_role *r = &p->role[i];
        for (int t = 0; t < r->n_task; t++) {
            const hp_task *task = &r->task[t];
            const hp_layer *l = task->layer < 0 ? NULL : &g->layer[task->layer];
            if (!l || (l->op != HP_CONV && l->op != HP_CONVT && l->op != HP_LINEAR)) continue;
            if (task->op == HP_TASK_FWD) assert_true(r->pack_forward[task->layer] >= 0);
            if (task->op == HP_TASK_BWD)
                assert_int_equal(r->pack_backward[task->layer], r->pack_forward[task->layer]);
        }
        assert_true(r->buffer[HP_BUF_SCRATCH].bytes >= (p->mode == HP_MODE_TRAIN ? hp_gpu_loss_bytes() : 0));
    }
}

static void training_programs_for_a_gpu_are_proved(void **state) {
    (void)state;
    int proved = 0;
    for (int n = 0; n < N_NETS; n++)
        for (int k = 0; k < N_STRATEGIES; k++) {
            hp_arena *a = hp_arena_new();
            hp_graph *g = build(a, NETS[n]);
            hp_program *p = lowered(a, g, STRATEGIES[k], HP_MODE_TRAIN, HP_DEVICE_CUDA);
            if (p) {
                assert_int_equal(p->device, HP_DEVICE_CUDA);
                assert_checks(p, g, NETS[n], STRATEGIES[k]);
                if (p->n_role == 1) assert_packs(p, g);
                proved++;
            }
            hp_arena_free(a);
        }
    assert_true(proved > N_NETS * N_STRATEGIES / 2);
}

static void deployed_programs_for_a_gpu_are_proved(void **state) {
    (void)state;
    for (int n = 0; n < N_NETS; n++)
        for (int prec = HP_PREC_FP32; prec < HP_PRECS; prec++) {
            hp_arena *a = hp_arena_new();
            hp_graph *g = build(a, NETS[n]), *d = NULL;
            hp_error err = {0};
            const hp_deploy_options o = {.prec = prec};
            if (hp_graph_deploy(a, g, &o, &d, &err) != HP_OK) fail_msg("%s: %s", NETS[n], err.text);
            for (int k = 0; k < N_STRATEGIES; k++) {
                hp_program *p = lowered(a, d, STRATEGIES[k], HP_MODE_INFER, HP_DEVICE_CUDA);
                if (p) assert_checks(p, d, NETS[n], STRATEGIES[k]);
            }
            hp_arena_free(a);
        }
}

/* A program with a CPU's packs and scratch is not valid for a GPU, nor the other way round. */
static void programs_of_another_device_are_refused(void **state) {
    (void)state;
    static const hp_device_kind devices[] = {HP_DEVICE_CPU, HP_DEVICE_CUDA};
    for (int i = 0; i < 2; i++) {
        hp_arena *a = hp_arena_new();
        hp_graph *g = build(a, "resnet18");
        hp_program *p = lowered(a, g, "dp=1", HP_MODE_TRAIN, devices[i]);
        hp_error err = {0};
        assert_non_null(p);
        p->device = i ? HP_DEVICE_CPU : HP_DEVICE_CUDA;
        assert_int_not_equal(hp_program_check(p, g, &err), HP_OK);
        hp_arena_free(a);
    }
}

/* Twice the tensors and 4 MiB, at most 64 MiB. */
static void the_workspace_is_bounded(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    hp_graph *g = build(a, "vgg19");
    for (int l = 1; l < g->n_layer; l++) {
        if (g->layer[l].op != HP_CONV) continue;
        for (int64_t n = 1; n <= 4096; n *= 16) {
            const hp_shape s = whole_shape(g, l, n);
            const int64_t bytes = hp_gpu_workspace_bytes(g, l, &s, HP_F32);
            assert_in_range(bytes, 4 << 20, 64 << 20);
            assert_true(bytes <= hp_gpu_workspace_bytes(g, l, &s, HP_F64));
        }
    }
    hp_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(training_programs_for_a_gpu_are_proved),
                                       cmocka_unit_test(deployed_programs_for_a_gpu_are_proved),
                                       cmocka_unit_test(programs_of_another_device_are_refused),
                                       cmocka_unit_test(the_workspace_is_bounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
