/* test_framework.c - what frameworks add to a layer, counted by hand. Their rows are readable and take
 * precedence over others. Figures of a device that was not fitted are within the stated error. */
#include "costmodels/framework/framework.h"

#include "costmodels/cost_rows.h"
#include "networks/deploy/deploy.h"
#include "networks/graph/precision.h"
#include "networks/nets/nets.h"
#include "sim/costs/costs.h"
#include "sim/search/evaluate.h"
#include "tests/support/plan/built/layers.h"
#include "tests/support/sim/search_world.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void names_are_found_or_listed(void **state) {
    (void)state;
    const hp_framework *f = framework_named("pytorch-1.13");
    hp_error err;
    assert_string_equal(f->name, "pytorch-1.13");
    assert_null(framework_named(NULL));
    assert_null(framework_named("hplan"));
    assert_int_equal(hp_framework_find("torch", &f, &err), HP_EUSAGE);
    for (const hp_framework *k = hp_frameworks; k->name; k++) {
        assert_non_null(strstr(err.text, k->name));
        assert_true(k->source && *k->source && k->layout && *k->layout);
    }
}

static void their_rows_stand_before_others(void **state) {
    (void)state;
    world w = make_world("thesis-a100", "cnn", 28, 4);
    for (const hp_framework *k = hp_frameworks; k->name; k++) {
        const hp_cost_table *t = hp_framework_table(w.arena, k, w.t);
        const hp_row *mpi = hp_rows_find(t, HP_ROW_PATH, "ib-hdr", "mpi");
        assert_non_null(mpi);
        if (k->rows[0]) assert_true(mpi->y[HP_PATH_COPIES] == 0); /* over the link */
        assert_true(hp_rows_find(t, HP_ROW_LINK, "ib-hdr", "") ==
                    hp_rows_find(w.t, HP_ROW_LINK, "ib-hdr", ""));
    }
    hp_arena_free(w.arena);
}

/* --- passes --- */

static hp_framework_passes passes(const hp_framework *f, const hp_machine *m, const hp_graph *g, int layer,
                                  hp_task_op op) {
    const hp_tensor *y = &g->tensor[g->layer[layer].out];
    const hp_box out = {{0, 0, 0, 0}, {2, y->h, y->w, y->c}};
    const hp_work_case c = hp_work_case_at(g, layer, op, &out);
    return hp_framework_passes_of(f, m, g, HP_F32, &c);
}

static double bytes_of(const hp_graph *g, int tensor, int each) {
    const hp_tensor *t = &g->tensor[tensor];
    return 2.0 * t->h * t->w * t->c * each;
}

static void want(hp_framework_passes p, int kernels, double bytes) {
    if (p.kernels != kernels || fabs(p.bytes - bytes) > 0.5)
        fail_msg("%d kernels move %.0f bytes, not %d and %.0f", p.kernels, p.bytes, kernels, bytes);
}

static void eager_layers_have_kernels_of_their_own(void **state) {
    (void)state;
    world w = make_world("thesis-a100", "resnet18", 64, 2);
    const hp_framework *torch = framework_named("pytorch-1.13"), *fused = framework_named("tensorrt");
    const int norm = layer_named(w.g, "bn1"), conv = layer_named(w.g, "layer1.0.conv1");
    const double y = bytes_of(w.g, w.g->layer[norm].out, 4);
    want(passes(torch, &w.m, w.g, norm, HP_TASK_FWD), 1, 2 * y); /* its ReLU */
    want(passes(torch, &w.m, w.g, norm, HP_TASK_BWD), 1, 3 * y);
    want(passes(torch, &w.m, w.g, conv, HP_TASK_FWD), 0, 0); /* torchvision's have no bias */
    want(passes(fused, &w.m, w.g, norm, HP_TASK_FWD), 0, 0);
    /* 16 bits on matrix units: converts to channels last, and half of it back */
    const hp_graph *half = hp_graph_train_in(w.arena, w.g, HP_PREC_FP16);
    const double x = bytes_of(w.g, w.g->layer[conv].in[0], 2), out = bytes_of(w.g, w.g->layer[conv].out, 2);
    const double cast = 6.0 * 64 * 64 * 3 * 3; /* its weights: reads 4 bytes, writes 2 */
    want(passes(torch, &w.m, half, conv, HP_TASK_FWD), 3, 2 * x + out + cast);
    want(passes(framework_named("pytorch-1.13-channels-last"), &w.m, half, conv, HP_TASK_FWD), 1, cast);
    /* inference folds norm and ReLU into the convolution; the framework runs both */
    hp_graph *deployed = NULL;
    const hp_deploy_options o = {.prec = HP_PREC_FP32};
    assert_int_equal(hp_graph_deploy(w.arena, w.g, &o, &deployed, NULL), HP_OK);
    const int folded = layer_named(deployed, "layer1.0.conv1");
    want(passes(torch, &w.m, deployed, folded, HP_TASK_FWD), 2,
         4 * bytes_of(deployed, deployed->layer[folded].out, 4));
    hp_arena_free(w.arena);
}

static void float32_is_multiplied_in_tf32_where_it_can_be(void **state) {
    (void)state;
    world a = make_world("thesis-a100", "cnn", 28, 4), v = make_world("lassen", "cnn", 28, 4);
    hp_work conv = {.key = "fwd.conv k3x3 s1 d1 g1 i64 o64 f32 w56"}, norm = {.key = "fwd.bn c64 f32 w56"},
            old = conv;
    hp_framework_units(framework_named("pytorch-1.13"), &a.m, &conv);
    hp_framework_units(framework_named("pytorch-1.13"), &a.m, &norm);
    hp_framework_units(framework_named("pytorch-1.13"), &v.m, &old); /* a V100 has no such units */
    assert_string_equal(conv.key, "fwd.conv k3x3 s1 d1 g1 i64 o64 tf32 w56");
    assert_string_equal(norm.key, "fwd.bn c64 f32 w56");
    assert_string_equal(old.key, "fwd.conv k3x3 s1 d1 g1 i64 o64 f32 w56");
    hp_arena_free(a.arena);
    hp_arena_free(v.arena);
}

/* n samples of t tokens have n a t t scores in a heads; a causal mask is applied to all. A bias is fused with
 * its product, which is float32 and works on rows, so nothing is transposed. */
static void scores_are_stored(void **state) {
    (void)state;
    world w = make_world("thesis-a100", "gpt:1,64,4,32,256", 32, 2);
    const hp_framework *torch = framework_named("pytorch-1.13"), *megatron = framework_named("megatron-lm");
    const int attention = layer_named(w.g, "h.0.attn.attention"), product = layer_named(w.g, "h.0.mlp.c_fc");
    const double scores = 2.0 * 4 * 32 * 32 * 4;
    const double map = bytes_of(w.g, w.g->layer[attention].out, 4); /* copies q, k, v and the result */
    want(passes(torch, &w.m, w.g, attention, HP_TASK_FWD), 2 + 4, 4 * scores + 4 * 2 * map);
    want(passes(torch, &w.m, w.g, attention, HP_TASK_BWD), 4 + 4, 7 * scores + 4 * 2 * map);
    want(passes(framework_named("pytorch-2"), &w.m, w.g, attention, HP_TASK_FWD), 1, 2 * map);
    want(passes(megatron, &w.m, w.g, attention, HP_TASK_FWD), 4, 6.5 * scores);
    want(passes(framework_named("tensorrt"), &w.m, w.g, attention, HP_TASK_FWD), 0, 0);
    want(passes(torch, &w.m, w.g, product, HP_TASK_FWD), 0, 0);
    const hp_graph *half = hp_graph_train_in(w.arena, w.g, HP_PREC_FP16);
    want(passes(torch, &w.m, half, product, HP_TASK_FWD), 2, 6.0 * (64 * 256 + 256)); /* casts */
    const hp_box out = {{0, 0, 0, 0}, {2, 32, 1, 64}};
    const hp_work_case c = hp_work_case_at(w.g, attention, HP_TASK_FWD, &out);
    hp_work own = hp_work_of_case(w.g, HP_F32, &c), theirs = own;
    hp_framework_amounts(torch, &w.m, w.g, HP_F32, &c, &theirs);
    assert_true(own.flops ==
                2.0 * 2 * 2 * 64 * 528); /* two products of 32 queries, each with the keys up to its own */
    assert_true(theirs.flops == 2.0 * 2 * 2 * 64 * 32 * 32);
    hp_arena_free(w.arena);
}

/* Under autocast, norms and softmax are float32. Scores in units of 2 bytes: bmm writes one, scaling reads
 * and writes one, softmax reads one and writes two, the cast reads two and writes one, and bmm reads one:
 * ten. */
static void autocast_keeps_norms_and_softmax_in_float32(void **state) {
    (void)state;
    world w = make_world("thesis-a100", "gpt:1,64,4,32,256", 32, 2);
    const hp_framework *torch = framework_named("pytorch-1.13");
    const hp_graph *half = hp_graph_train_in(w.arena, w.g, HP_PREC_FP16);
    const int attention = layer_named(w.g, "h.0.attn.attention"), norm = layer_named(w.g, "h.0.ln_1");
    const double scores = 2.0 * 4 * 32 * 32 * 2, map = bytes_of(half, half->layer[norm].out, 2);
    want(passes(torch, &w.m, half, attention, HP_TASK_FWD), 5 + 4, 10 * scores + 4 * 2 * map);
    want(passes(torch, &w.m, half, norm, HP_TASK_FWD), 1, 2 * map + 3 * map); /* its own, wider, and a cast */
    want(passes(framework_named("megatron-lm"), &w.m, half, norm, HP_TASK_FWD), 0, 0);
    want(passes(framework_named("deepspeed"), &w.m, half, norm, HP_TASK_FWD), 0, 0); /* a model of 16 bits */
    want(passes(framework_named("deepspeed"), &w.m, half, attention, HP_TASK_FWD), 2 + 4,
         4 * scores + 4 * 2 * map);
    hp_arena_free(w.arena);
}

/* Swin: windows are cut out and put back; shifted ones are rolled before and after; biases and masks are
 * added to the scores. */
static void windows_are_copied(void **state) {
    (void)state;
    world w = make_world("thesis-a100", "swin-t", 224, 2);
    const hp_framework *torch = framework_named("pytorch-1.13");
    const int plain = layer_named(w.g, "features.1.0.attn.attention"),
              shifted = layer_named(w.g, "features.1.1.attn.attention");
    const double map = bytes_of(w.g, w.g->layer[plain].out, 4), scores = 2.0 * 3 * 56 * 56 * 49 * 4;
    want(passes(torch, &w.m, w.g, plain, HP_TASK_FWD), 3 + 6, (4 + 2) * scores + (4 + 2) * 2 * map);
    want(passes(torch, &w.m, w.g, shifted, HP_TASK_FWD), 4 + 8, (4 + 2 + 2) * scores + (4 + 4) * 2 * map);
    /* one kernel for attention: the mask is repeated (1), biased (2), padded (2) and read (1); its gradient
     * is added up */
    const hp_framework *fused = framework_named("pytorch-2");
    want(passes(fused, &w.m, w.g, plain, HP_TASK_FWD), 1 + 2, (1 + 2) * 2 * map);
    want(passes(fused, &w.m, w.g, shifted, HP_TASK_FWD), 3 + 1 + 4,
         (1 + 2 + 2 + 1) * scores + (1 + 4) * 2 * map);
    want(passes(fused, &w.m, w.g, shifted, HP_TASK_BWD), 1 + 1 + 4, 2 * scores + (1 + 4) * 2 * map);
    hp_arena_free(w.arena);
}

/* MXNet and TensorFlow run an inference norm as one kernel with the following addition and ReLU. */
static void norms_of_inference_may_stay_kernels(void **state) {
    (void)state;
    world w = make_world("thesis-a100", "resnet18", 64, 2);
    hp_graph *g = NULL;
    const hp_deploy_options o = {.prec = HP_PREC_FP32};
    assert_int_equal(hp_graph_deploy(w.arena, w.g, &o, &g, NULL), HP_OK);
    const int first = layer_named(g, "layer1.0.conv1"), adds = layer_named(g, "layer1.0.conv2");
    const double y = bytes_of(g, g->layer[first].out, 4);
    want(passes(framework_named("mxnet"), &w.m, g, first, HP_TASK_FWD), 1, 2 * y);
    want(passes(framework_named("mxnet"), &w.m, g, adds, HP_TASK_FWD), 1, 3 * y);
    want(passes(framework_named("tensorrt"), &w.m, g, adds, HP_TASK_FWD), 0, 0);
    hp_arena_free(w.arena);
}

/* No kernel is faster than the data sheet, except on cards that exceed their rated clock. For norms, the
 * count includes more than some kernels move. */
static void rates_are_physical(void **state) {
    (void)state;
    world w = make_world("thesis-a100", "cnn", 28, 4);
    for (const hp_framework *k = hp_frameworks; k->name; k++)
        for (int i = 0; i < HP_FRAMEWORK_ROWS; i++) {
            hp_cost_table *t = NULL;
            hp_error err;
            if (!k->rows[i]) continue;
            if (hp_rows_parse(w.arena, k->rows[i], k->name, &t, &err) != HP_OK)
                fail_msg("%s: %s", k->name, err.text);
            for (int r = 0; r < t->n; r++) {
                const hp_row *row = &t->row[r];
                if (row->kind != HP_ROW_EFFICIENCY) continue;
                const bool memory = strcmp(row->class, "*") == 0;
                const double flops = row->y[HP_EFFICIENCY_FLOPS], bytes = row->y[HP_EFFICIENCY_BYTES];
                if (!(flops > 0 && bytes > 0 && (memory || (flops <= 1.15 && bytes <= 1.2))))
                    fail_msg("%s: %s %s: %g, %g", k->name, row->class, row->key, flops, bytes);
            }
        }
    hp_arena_free(w.arena);
}

/* If a framework sums all tokens, a rank with a quarter of the tokens norms and adds all of them. Work split
 * by channels or heads does not change. The all-reduce does the sum of summands, so it stays the copy that it
 * is on a single part. */
static void all_parts_norm_all_tokens(void **state) {
    (void)state;
    world w = make_world("thesis-a100", "gpt:1,64,4,32,256", 32, 2);
    const hp_framework *megatron = framework_named("megatron-lm"), *torch = framework_named("pytorch-1.13");
    static const struct {
        const char *layer;
        bool whole;
    } wanted[] = {
        {"h.0.ln_1", true}, {"h.0.add_1", true}, {"h.0.mlp.c_fc", false}, {"h.0.attn.attention", false}};
    static const hp_task_op ops[] = {HP_TASK_FWD, HP_TASK_BWD};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        for (size_t k = 0; k < 2; k++) {
            const int layer = layer_named(w.g, wanted[i].layer);
            const hp_tensor *y = &w.g->tensor[w.g->layer[layer].out];
            const hp_box all = {{0, 0, 0, 0}, {2, 32, 1, y->c}}, part = {{0, 8, 0, 0}, {2, 16, 1, y->c}};
            const hp_work_case of_all = hp_work_case_at(w.g, layer, ops[k], &all),
                               of_part = hp_work_case_at(w.g, layer, ops[k], &part);
            const hp_work whole = hp_work_of_case(w.g, HP_F32, &of_all),
                          quarter = hp_work_of_case(w.g, HP_F32, &of_part);
            hp_work theirs = quarter, torchs = quarter;
            hp_framework_amounts(megatron, &w.m, w.g, HP_F32, &of_part, &theirs);
            hp_framework_amounts(torch, &w.m, w.g, HP_F32, &of_part, &torchs);
            const double want = wanted[i].whole ? whole.bytes : quarter.bytes;
            if (fabs(theirs.bytes / want - 1) > 0.02)
                fail_msg("%s: %g bytes, expected %g", wanted[i].layer, theirs.bytes, want);
            assert_true(torchs.bytes <= quarter.bytes);
        }
    hp_arena_free(w.arena);
}

/* Winograd's F(2x2, 3x3) needs 16 of 36 products, in every pass, for float32 and windows that move by one. */
static void three_by_three_in_float32_multiplies_less(void **state) {
    (void)state;
    world a = make_world("thesis-a100", "resnet50", 64, 2), v = make_world("lassen", "resnet50", 64, 2);
    const hp_framework *torch = framework_named("pytorch-1.13");
    static const struct {
        const char *layer;
        double left;
    } wanted[] = {{"layer1.0.conv2", 16.0 / 36}, {"layer2.0.conv2", 1}, {"layer1.0.conv1", 1}};
    static const hp_task_op ops[] = {HP_TASK_FWD, HP_TASK_BWD, HP_TASK_BWDW};
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 3; k++) {
            const int layer = layer_named(v.g, wanted[i].layer);
            const hp_tensor *y = &v.g->tensor[v.g->layer[layer].out];
            const hp_box out = {{0, 0, 0, 0}, {2, y->h, y->w, y->c}};
            const hp_work_case c = hp_work_case_at(v.g, layer, ops[k], &out);
            const hp_work plain = hp_work_of_case(v.g, HP_F32, &c);
            hp_work on_v100 = plain, on_a100 = plain;
            hp_framework_units(torch, &v.m, &on_v100);
            hp_framework_amounts(torch, &v.m, v.g, HP_F32, &c, &on_v100);
            hp_framework_units(torch, &a.m, &on_a100);
            hp_framework_amounts(torch, &a.m, v.g, HP_F32, &c, &on_a100); /* multiplies in tf32 */
            assert_true(fabs(on_v100.flops / plain.flops - wanted[i].left) < 1e-12);
            assert_true(on_a100.flops == plain.flops);
        }
    hp_arena_free(a.arena);
    hp_arena_free(v.arena);
}

/* Converting between layouts and back takes two passes over each map. Forward kernels read either layout. */
static void gradients_in_tf32_are_transposed(void **state) {
    (void)state;
    world a = make_world("thesis-a100", "resnet18", 64, 2), v = make_world("lassen", "resnet18", 64, 2);
    const hp_framework *torch = framework_named("pytorch-1.13");
    const int conv = layer_named(a.g, "layer1.0.conv1");
    const double x = bytes_of(a.g, a.g->layer[conv].in[0], 4), y = bytes_of(a.g, a.g->layer[conv].out, 4);
    want(passes(torch, &a.m, a.g, conv, HP_TASK_FWD), 0, 0);
    want(passes(torch, &a.m, a.g, conv, HP_TASK_BWD), 2, 2 * (x + y));
    want(passes(torch, &a.m, a.g, conv, HP_TASK_BWDW), 2, 2 * (x + y));
    want(passes(torch, &v.m, v.g, conv, HP_TASK_BWD), 0, 0); /* a V100 has no tf32 */
    hp_arena_free(a.arena);
    hp_arena_free(v.arena);
}

/* The gradient of an activation after a norm is a separate kernel with two reads (the output and its
 * gradient) and one write. The norm's gradient then reads its input and that gradient twice, and writes one
 * gradient. */
static void an_activation_of_its_own_reads_the_output_alone(void **state) {
    (void)state;
    world w = make_world("thesis-a100", "resnet-v2-110", 1024, 1);
    const hp_framework *torch = framework_named("pytorch-1.13");
    const int layer = layer_named(w.g, "layer3.1.bn1");
    const double map = bytes_of(w.g, w.g->layer[layer].out, 4);
    const hp_tensor *y = &w.g->tensor[w.g->layer[layer].out];
    const hp_box out = {{0, 0, 0, 0}, {2, y->h, y->w, y->c}};
    const hp_work_case c = hp_work_case_at(w.g, layer, HP_TASK_BWD, &out);
    hp_work work = hp_work_of_case(w.g, HP_F32, &c);
    assert_true(fabs(work.bytes - 7 * map) < 1);
    hp_framework_amounts(torch, &w.m, w.g, HP_F32, &c, &work);
    assert_true(fabs(work.bytes - 5 * map) < 1);
    want(passes(torch, &w.m, w.g, layer, HP_TASK_BWD), 1, 3 * map);
    hp_arena_free(w.arena);
}

/* --- vectors --- */

static hp_work padded(const world *w, const hp_graph *g, int layer) {
    const hp_tensor *y = &g->tensor[g->layer[layer].out];
    const hp_box out = {{0, 0, 0, 0}, {1, y->h, y->w, y->c}};
    const hp_work_case c = hp_work_case_at(g, layer, HP_TASK_FWD, &out);
    hp_work work = hp_work_of_case(g, HP_F32, &c);
    hp_framework_pad(framework_named("tensorrt"), &w->m, g, &c, &work);
    return work;
}

/* Byte maps of 16 channels move as 32, between layers with 16 and 64; from 64 on, nothing is added. */
static void bytes_come_in_vectors(void **state) {
    (void)state;
    world w = make_world("thesis-a100", "resnet-v2-110", 256, 1);
    hp_graph *g = NULL;
    const hp_deploy_options o = {.prec = HP_PREC_INT8};
    assert_int_equal(hp_graph_deploy(w.arena, w.g, &o, &g, NULL), HP_OK);
    const int narrow = layer_named(g, "layer1.1.conv2"), wide = layer_named(g, "layer2.1.conv2");
    for (int i = 0; i < 2; i++) {
        const int layer = i ? wide : narrow;
        const hp_tensor *y = &g->tensor[g->layer[layer].out];
        const hp_box out = {{0, 0, 0, 0}, {1, y->h, y->w, y->c}};
        const hp_work_case c = hp_work_case_at(g, layer, HP_TASK_FWD, &out);
        const hp_work plain = hp_work_of_case(g, HP_F32, &c), vector = padded(&w, g, layer);
        const double maps = i ? 0 : 16.0 * (double)y->h * y->w; /* 16 more channels of each */
        const double more = vector.bytes - plain.bytes;
        if (fabs(more - 2 * maps) > 0.02 * maps || fabs(vector.depth - (i ? 1 : 2) * plain.depth) > 0.5)
            fail_msg("%s: %g bytes more, not %g", g->layer[layer].name, more, 2 * maps);
    }
    hp_arena_free(w.arena);
}

/* --- the host at messages --- */

static double step_of(world *w, const hp_framework *f, const char *strategy) {
    return evaluate_under(w, f, strategy).figures.step_s;
}

/* Forward operations of ResNet-50 in training: 53 convolutions and norms, 49 activations, two poolings, the
 * classifier. */
enum { FORWARD_OPERATIONS = 53 + 53 + 49 + 3 };

static void halos_cost_a_host_time_and_a_gradient_its_copies(void **state) {
    (void)state;
    world w = make_world("thesis-a100", "resnet-v2-110", 1024, 1);
    hp_framework none = *framework_named("mpi4dl"), host = none, paste = none;
    none.host.message_ops = none.host.sum_ops = 0;
    none.memory.pastes = false;
    host.memory.pastes = false;
    host.host.sum_ops = 0;
    paste.host.message_ops = paste.host.sum_ops = 0;
    static const char *const tiled = "sp=2x2,stages=2,cut=19:19";
    const double before = step_of(&w, &none, tiled);
    assert_true(step_of(&w, &host, tiled) > before && step_of(&w, &paste, tiled) > before);
    assert_true(step_of(&w, &paste, "dp=1") == step_of(&w, &none, "dp=1"));
    hp_arena_free(w.arena);
}

/* With one small image, the host is slower than the device: a forward pass takes the modules' time, and twice
 * as much if they take twice as long. With large batches, modules add nothing. */
static void modules_take_their_time_forward(void **state) {
    (void)state;
    world w = make_world("lassen", "resnet50", 32, 1);
    hp_framework slow = *framework_named("pytorch-1.13"), twice = slow, none = slow;
    slow.host.module_s = 1e-3;
    twice.host.module_s = 2e-3;
    none.host.module_s = 0;
    const double more = step_of(&w, &slow, "dp=1") - step_of(&w, &none, "dp=1"),
                 most = step_of(&w, &twice, "dp=1") - step_of(&w, &none, "dp=1");
    if (more <= 0 || fabs((most - more) - 1e-3 * FORWARD_OPERATIONS) > 1e-6)
        fail_msg("another ms for each operation takes %g s", most - more);
    hp_arena_free(w.arena);
}

/* The host's work per step is added to any step; each operation on a processor begins and ends a parallel
 * region. */
static void a_step_has_a_beginning(void **state) {
    (void)state;
    world w = make_world("lassen", "resnet50", 32, 4), p = make_world("local", "cnn", 28, 4);
    hp_framework none = *framework_named("mxnet-graphs"), fed = none,
                 regions = *framework_named("pytorch-2-compiled"), twice = regions;
    fed.host.step_s = 5e-3;
    assert_true(fabs(step_of(&w, &fed, "dp=1") - step_of(&w, &none, "dp=1") - 5e-3) < 1e-9);
    twice.host.region_s *= 2;
    if (p.m.device.is_cpu) assert_true(step_of(&p, &twice, "dp=1") > step_of(&p, &regions, "dp=1"));
    assert_true(step_of(&w, &twice, "dp=1") == step_of(&w, &regions, "dp=1"));
    hp_arena_free(w.arena);
    hp_arena_free(p.arena);
}

/* --- numbers --- */

static void numbers_are_counted(void **state) {
    (void)state;
    hp_framework f = {.name = "f"};
    assert_int_equal(hp_framework_numbers(&f), 0);
    f.host.dispatch_s = 1;
    f.kernels.tf32 = true;
    assert_int_equal(hp_framework_numbers(&f), 1);
    f.rows[0] = "path * mpi | guess 0.5 0 x | latency:1 copies:0 host:0 hop:0\n";
    assert_int_equal(hp_framework_numbers(&f), 2);
    f.rows[1] = "efficiency * a | guess 0.5 0 x | flops:1 bytes:1\nefficiency * b | guess 0.5 0 x | flops:1 "
                "bytes:1\n";
    assert_int_equal(hp_framework_numbers(&f), 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_or_listed),
        cmocka_unit_test(their_rows_stand_before_others),
        cmocka_unit_test(eager_layers_have_kernels_of_their_own),
        cmocka_unit_test(float32_is_multiplied_in_tf32_where_it_can_be),
        cmocka_unit_test(scores_are_stored),
        cmocka_unit_test(all_parts_norm_all_tokens),
        cmocka_unit_test(three_by_three_in_float32_multiplies_less),
        cmocka_unit_test(gradients_in_tf32_are_transposed),
        cmocka_unit_test(an_activation_of_its_own_reads_the_output_alone),
        cmocka_unit_test(bytes_come_in_vectors),
        cmocka_unit_test(halos_cost_a_host_time_and_a_gradient_its_copies),
        cmocka_unit_test(modules_take_their_time_forward),
        cmocka_unit_test(autocast_keeps_norms_and_softmax_in_float32),
        cmocka_unit_test(windows_are_copied),
        cmocka_unit_test(norms_of_inference_may_stay_kernels),
        cmocka_unit_test(rates_are_physical),
        cmocka_unit_test(a_step_has_a_beginning),
        cmocka_unit_test(numbers_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
