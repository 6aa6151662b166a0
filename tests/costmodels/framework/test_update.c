/* test_update.c - what frameworks add to an update: kernels of an optimiser, and the host that waits before
 * it or is slower than the device. */
#include "costmodels/framework/framework.h"

#include "networks/graph/precision.h"
#include "sim/search/evaluate.h"
#include "tests/support/sim/search_world.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static double step_of(world *w, const hp_framework *f, const char *strategy) {
    return evaluate_under(w, f, strategy).figures.step_s;
}

/* ResNet-50 has 161 trained tensors: 53 convolutions, two of each of 53 norms, two of the classifier. With
 * 64 images the host is ahead of the device, unless it has read whether float16's gradients are finite:
 * then all operations of the update take their time. */
static void an_update_waits_for_finite_gradients(void **state) {
    (void)state;
    world w = make_world("thesis-a100", "resnet50", 224, 64), b = w;
    w.setup.graph = w.g = hp_graph_train_in(w.arena, w.g, HP_PREC_FP16);
    b.setup.graph = b.g = hp_graph_train_in(b.arena, b.g, HP_PREC_BF16);
    hp_framework some = *framework_named("pytorch-1.13"), more = some, ahead = some;
    some.host.update_ops[HP_SGD] = 50;
    more.host.update_ops[HP_SGD] = 100;
    ahead.host.update_ops[HP_SGD] = 0;
    const double longer = step_of(&w, &more, "dp=1,prec=fp16") - step_of(&w, &some, "dp=1,prec=fp16");
    if (fabs(longer - 50 * 161 * 10e-6) > 1e-6) fail_msg("50 operations more take %g s", longer);
    some.host.update_ops[HP_SGD] = 4;
    assert_true(step_of(&w, &some, "dp=1,prec=fp16") > step_of(&w, &ahead, "dp=1,prec=fp16"));
    assert_true(step_of(&b, &some, "dp=1,prec=bf16") == step_of(&b, &ahead, "dp=1,prec=bf16"));
    hp_arena_free(w.arena);
}

/* AdamW of torch.optim, a kernel for each line, reading and writing arrays of all parameters: p *= 1 - lr
 * decay (2), m *= b1 (2), m += (1 - b1) g (3), v *= b2 (2), v += (1 - b2) g g (3), d = sqrt v (2), d /= c
 * (2), d += eps (2), p -= step m / d (4). SGD: g = g + decay p (3), m *= momentum (2), m += g (3), p -= lr
 * m (3). One kernel reads p, g, m, v and writes p, m, v; SGD without v. */
static void optimizers_of_many_kernels_move_more(void **state) {
    (void)state;
    world w = make_world("thesis-a100", "cnn", 28, 4);
    hp_graph g = *w.g;
    g.optimizer = HP_ADAMW;
    assert_true(fabs(hp_framework_update_factor(framework_named("pytorch-1.13"), &g) - 22.0 / 7) < 1e-12);
    assert_true(fabs(hp_framework_update_factor(framework_named("deepspeed"), &g) - 1) <
                1e-12); /* FusedAdam */
    g.optimizer = HP_SGD;
    assert_true(fabs(hp_framework_update_factor(framework_named("pytorch-1.13"), &g) - 11.0 / 5) < 1e-12);
    hp_arena_free(w.arena);
}

/* One image through ResNet-50 takes 10.4 ms on a V100 and 10.7 on a T4 (NVIDIA/DeepLearningExamples): the
 * host's time. */
static void a_small_batch_is_bound_by_the_host(void **state) {
    (void)state;
    world one = make_world("lassen", "resnet50", 224, 1), many = make_world("lassen", "resnet50", 224, 256);
    assert_string_equal(evaluate_under(&one, framework_named("pytorch-1.13"), "dp=1").bound_by, "host");
    assert_string_equal(evaluate_under(&many, framework_named("pytorch-1.13"), "dp=1").bound_by, "compute");
    assert_string_equal(evaluate_under(&one, NULL, "dp=1").bound_by, "compute");
    hp_arena_free(one.arena);
    hp_arena_free(many.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_update_waits_for_finite_gradients),
        cmocka_unit_test(a_small_batch_is_bound_by_the_host),
        cmocka_unit_test(optimizers_of_many_kernels_move_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
