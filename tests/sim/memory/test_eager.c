/* test_eager.c - what a framework keeps for transformers, compared with published formulas and closed forms;
 * and networks that ran or ran out of memory. */
#include "networks/deploy/deploy.h"
#include "plan/lower/lower.h"
#include "networks/nets/nets.h"
#include "sim/memory/eager.h"
#include "sim/memory/eager_store.h"
#include "tests/support/sim/frameworks.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum {
    S = 128,
    B = 2,
    H = 64,
    A = 4
}; /* tokens, sequences, channels, heads: tensors are whole blocks of memory */

static void must(hp_status status, const hp_error *err) {
    if (status != HP_OK) fail_msg("%s", err->text);
}

static void near(double bytes, double wanted) {
    if (fabs(bytes - wanted) > 1) fail_msg("%.0f bytes, not %.0f", bytes, wanted);
}

typedef struct world {
    hp_arena *arena;
    hp_graph *g;
    hp_program *p;
} world;

static world lowered(const char *net, int image, int64_t batch, hp_prec prec, hp_mode mode) {
    world w = {.arena = hp_arena_new()};
    hp_error err = {HP_OK, ""};
    hp_strategy s = hp_strategy_default();
    const hp_deploy_options d = {.prec = (int32_t)prec};
    const hp_lower_options o = {.mode = mode, .dtype = HP_F32, .batch = batch};
    must(hp_net_build(w.arena, net, image, image, 1000, &w.g, &err), &err);
    if (mode == HP_MODE_TRAIN)
        w.g = hp_graph_train_in(w.arena, w.g, (int32_t)prec);
    else
        must(hp_graph_deploy(w.arena, w.g, &d, &w.g, &err), &err);
    s.prec = (int32_t)prec;
    must(hp_lower(w.arena, w.g, &s, &o, &w.p, &err), &err);
    return w;
}

static double parameters(const hp_graph *g) {
    double n = 0;
    for (int i = 0; i < g->n_param; i++) n += (double)g->param[i].count;
    return n;
}

/* Those that products read. */
static double matrices(const hp_graph *g) {
    double n = 0;
    for (int i = 0; i < g->n_param; i++)
        if (g->param[i].kind == HP_PARAM_LINEAR_W || g->param[i].kind == HP_PARAM_CONV_W)
            n += (double)g->param[i].count;
    return n;
}

/* Bytes that a block of a GPT adds, besides its parameters: 12 for each parameter, and 2 more for cast
 * matrices. */
static double of_a_block(const char *framework, hp_prec prec, int heads) {
    const bool casts = prec != HP_PREC_FP32 && !framework_named(framework)->memory.half_model;
    double bytes[2];
    for (int i = 0; i < 2; i++) {
        char net[64];
        snprintf(net, sizeof net, "gpt:%d,%d,%d,%d,512", 2 + 2 * i, H, heads, S);
        const world w = lowered(net, S, B, prec, HP_MODE_TRAIN);
        bytes[i] = (double)hp_eager_bytes(w.p, w.g, framework_named(framework), 0) - 12 * parameters(w.g) -
                   (casts ? 2 : 0) * matrices(w.g);
        hp_arena_free(w.arena);
    }
    return (bytes[1] - bytes[0]) / 2;
}

/* Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", equation 1: s b h (34
 * + 5 a s / h) in 16 bits; section 5: 34 s b h if only attention is recomputed. */
static void megatron_keeps_what_is_published(void **state) {
    (void)state;
    static const hp_prec precs[] = {HP_PREC_FP16, HP_PREC_BF16};
    for (int i = 0; i < 2; i++)
        for (int heads = A; heads <= 4 * A; heads *= 2) {
            const double sbh = (double)S * B * H;
            near(of_a_block("megatron-lm", precs[i], heads), sbh * (34 + 5.0 * heads * S / H));
            near(of_a_block("megatron-selective", precs[i], heads), 34 * sbh);
        }
}

/* Without dropout, according to what autograd saves. In float32, per s b h elements: inputs of two norms, two
 * products of one, q, k, v, the projection's input, GELU's of four, the next product's of four: 16 of 4
 * bytes; and softmax's output. Under autocast, inputs of norms have 4 bytes, those of products 2, GELU's 2:
 * 36; and softmax's output of 4 bytes with its cast of 2. */
static void pytorch_keeps_what_autograd_saves(void **state) {
    (void)state;
    const double sbh = (double)S * B * H;
    for (int heads = A; heads <= 4 * A; heads *= 2) {
        const double scores = (double)heads * S * S * B;
        near(of_a_block("pytorch-1.13", HP_PREC_FP32, heads), 64 * sbh + 4 * scores);
        near(of_a_block("pytorch-1.13", HP_PREC_FP16, heads), 36 * sbh + 6 * scores);
        near(of_a_block("pytorch-1.13", HP_PREC_BF16, heads), 36 * sbh + 6 * scores);
    }
}

/* Logits, the logarithm of softmax and both gradients: 16 bytes per logit in float32; under autocast, the
 * logits have 2. If they dominate memory, a larger vocabulary adds that much. */
static void logits_come_in_fours(void **state) {
    (void)state;
    static const struct {
        hp_prec prec;
        int bytes, of_weights;
    } cases[] = {{HP_PREC_FP32, 16, 12}, {HP_PREC_FP16, 14, 14}};
    for (int i = 0; i < 2; i++) {
        double bytes[2];
        for (int k = 0; k < 2; k++) {
            char net[64];
            snprintf(net, sizeof net, "gpt:1,%d,%d,%d,%d", H, A, S, 8192 << k);
            const world w = lowered(net, S, B, cases[i].prec, HP_MODE_TRAIN);
            bytes[k] = (double)hp_eager_bytes(w.p, w.g, framework_named("pytorch-1.13"), 0);
            hp_arena_free(w.arena);
        }
        near(bytes[1] - bytes[0], 8192.0 * (cases[i].bytes * S * B + cases[i].of_weights * H));
    }
}

/* One layer's out-of-place softmax: scores and probabilities, for all heads and pairs of tokens. */
static void inference_holds_two_maps_of_scores(void **state) {
    (void)state;
    for (int image = 512; image <= 1024; image *= 2) {
        const world w = lowered("vit-b16", image, 1, HP_PREC_FP32, HP_MODE_INFER);
        const double tokens = image / 16.0 * image / 16 + 1, maps = 2 * 12 * tokens * tokens * 4;
        const double bytes = (double)hp_eager_infer_bytes(w.p, w.g, framework_named("pytorch-1.13"), 0);
        assert_true(bytes >= maps && bytes < maps + 12 * tokens * 768 * 4);
        assert_true((double)hp_eager_infer_bytes(w.p, w.g, framework_named("tensorrt"), 0) < maps / 3);
        hp_arena_free(w.arena);
    }
}

/* A bottleneck of ResNet-v2, in units of 16-bit maps with 64 channels. The block's input waits for the
 * addition; a convolution has its input of 64 channels, again in its workspace as channels last, and its
 * output of 16: 1 + 2 + 1/4. Without the workspace: the input, its norm, and that one's activation. */
static void a_workspace_holds_the_input_once_more(void **state) {
    (void)state;
    const world w = lowered("resnet-v2-110", 256, 2, HP_PREC_FP16, HP_MODE_INFER);
    hp_framework last = *framework_named("pytorch-1.13");
    last.kernels.channels_first = false;
    const double map = 2.0 * 64 * 256 * 256 * 2, labels = 2 * 4;
    near((double)hp_eager_infer_bytes(w.p, w.g, &last, 0), 3 * map + labels);
    near((double)hp_eager_infer_bytes(w.p, w.g, framework_named("pytorch-1.13"), 0), 3.25 * map + labels);
    hp_arena_free(w.arena);
}

/* Swin's queries meet the 49 keys of their window, masked if the map was rolled: 56 x 56 queries, three
 * heads. */
static void windows_have_the_scores_of_their_own_keys(void **state) {
    (void)state;
    const world w = lowered("swin-t", 224, 1, HP_PREC_FP32, HP_MODE_TRAIN);
    const hp_eager_store s = hp_eager_store_of(w.arena, w.g, framework_named("pytorch-1.13"), HP_F32);
    for (int l = 0; l < w.g->n_layer; l++) {
        const hp_tensor *y = &w.g->tensor[w.g->layer[l].out];
        if (w.g->layer[l].op != HP_ATTENTION || y->h != 56) continue;
        const hp_box out = {{0, 0, 0, 0}, {1, y->h, y->w, y->c}};
        near(hp_eager_scores_of(&s, l, &out).kept, 4.0 * 3 * 56 * 56 * 49);
    }
    hp_arena_free(w.arena);
}

/* timm's training benchmark on a GPU of 24 GB (fp16 autocast, contiguous, PyTorch 1.12): the batch that ran,
 * and the next one tried, which ran out of memory; 0: none. */
static void what_ran_fits_and_what_ran_out_does_not(void **state) {
    (void)state;
    static const struct {
        const char *net;
        int image, ran, ran_out;
    } cases[] = {{"vit:12,384,6,16", 224, 384, 512}, {"resnet50", 224, 512, 0},
                 {"densenet121", 224, 256, 384},     {"swin-t", 224, 256, 384},
                 {"resnet101", 224, 256, 384},       {"vgg16", 224, 384, 512},
                 {"vit-b16", 224, 192, 256},         {"vit-b16", 384, 32, 48}};
    const hp_framework *f = framework_named("pytorch-1.13");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int out = 0; out < (cases[i].ran_out ? 2 : 1); out++) {
            const int batch = out ? cases[i].ran_out : cases[i].ran;
            const world w = lowered(cases[i].net, cases[i].image, batch, HP_PREC_FP16, HP_MODE_TRAIN);
            const double bytes = (double)hp_eager_bytes(w.p, w.g, f, 0) + f->memory.context_bytes;
            if ((bytes > 24e9) != out)
                fail_msg("%s at %d, batch %d: %g GB", cases[i].net, cases[i].image, batch, bytes * 1e-9);
            hp_arena_free(w.arena);
        }
}

/* Its inference benchmark there, PyTorch 1.13: batches of 1024, the largest tried. */
static void what_was_inferred_fits(void **state) {
    (void)state;
    static const char *const nets[] = {"vgg16",      "vgg19", "resnet101", "swin-b", "vit:24,1024,16,16",
                                       "densenet121"};
    const hp_framework *f = framework_named("pytorch-1.13");
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        const world w = lowered(nets[i], 224, 1024, HP_PREC_FP16, HP_MODE_INFER);
        const double bytes = (double)hp_eager_infer_bytes(w.p, w.g, f, 0) + f->memory.context_bytes;
        if (bytes > 24e9) fail_msg("%s: %g GB", nets[i], bytes * 1e-9);
        hp_arena_free(w.arena);
    }
}

/* CUDACachingAllocator: blocks of 512 bytes; from 10 MiB on, segments of whole 2 MiB. */
static void allocations_come_in_blocks(void **state) {
    (void)state;
    static const int64_t MI = 1 << 20;
    const hp_framework *torch = framework_named("pytorch-1.13");
    const struct {
        int64_t bytes, block;
    } cases[] = {{0, 0},
                 {1, 512},
                 {512, 512},
                 {513, 1024},
                 {10 * MI - 1, 10 * MI},
                 {10 * MI, 10 * MI},
                 {10 * MI + 1, 12 * MI},
                 {33 * MI, 34 * MI}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(hp_framework_block(torch, cases[i].bytes), cases[i].block);
    assert_int_equal(hp_framework_block(framework_named("tensorrt"), 513), 513);
}

/* 16 bytes a parameter in 16 bits with Adam: 2 and 2 of the model and its gradients, 12 of the optimizer's
 * (Rajbhandari et al., ZeRO, SC 2020, section 3.1), of a network whose maps are nothing beside them. */
static void models_of_16_bits_have_16_bytes_a_parameter(void **state) {
    (void)state;
    static const char *const frameworks[] = {"deepspeed", "megatron-lm"};
    world w = {.arena = hp_arena_new()};
    hp_error err = {HP_OK, ""};
    hp_strategy s = hp_strategy_default();
    const hp_lower_options o = {.mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = 1};
    must(hp_net_build(w.arena, "gpt:2,1024,16,4,64", 1, 1, 64, &w.g, &err), &err);
    w.g = hp_graph_train_in(w.arena, w.g, HP_PREC_BF16);
    w.g->optimizer = HP_ADAMW;
    s.prec = HP_PREC_BF16;
    must(hp_lower(w.arena, w.g, &s, &o, &w.p, &err), &err);
    for (int i = 0; i < 2; i++) {
        const double each =
            (double)hp_eager_bytes(w.p, w.g, framework_named(frameworks[i]), 0) / parameters(w.g);
        if (each < 16 || each > 16.2) fail_msg("%s: %.2f bytes a parameter", frameworks[i], each);
    }
    hp_arena_free(w.arena);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(megatron_keeps_what_is_published),
        cmocka_unit_test(models_of_16_bits_have_16_bytes_a_parameter),
        cmocka_unit_test(pytorch_keeps_what_autograd_saves),
        cmocka_unit_test(logits_come_in_fours),
        cmocka_unit_test(inference_holds_two_maps_of_scores),
        cmocka_unit_test(what_was_inferred_fits),
        cmocka_unit_test(a_workspace_holds_the_input_once_more),
        cmocka_unit_test(windows_have_the_scores_of_their_own_keys),
        cmocka_unit_test(what_ran_fits_and_what_ran_out_does_not),
        cmocka_unit_test(allocations_come_in_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
