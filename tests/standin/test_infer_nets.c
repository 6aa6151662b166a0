/* test_infer_nets.c - deployed networks on a GPU or its stand-in: however they are cut, they give what one
 * rank gives on the processor. Numbers between quantised maps are summed in another order, so a byte may be
 * off by one now and then. Ranks are threads that share the GPU and its streams. */
#include "exec/cuda/runtime/cuda_runtime_device.h"
#include "tests/support/plan/random_deployed.h"
#include "tests/support/plan/random_tokens.h"
#include "tests/support/exec/run_ranks.h"
#include "plan/lower/lower.h"
#include "networks/nets/nets.h"
#include "plan/check/check.h"
#include "tests/support/plan/law_cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { MAX_RANKS = 4 };

typedef struct subject {
    hp_arena *a;
    const hp_graph *g;
    const hp_qparam *qparam;
    uint64_t seed;
    int64_t batch, n; /* elements of the output */
    bool scored;      /* classes per image, not per pixel */
} subject;

typedef struct outcome {
    double *y, loss;
} outcome;

static hp_comm *staged(hp_comm *inner, const hp_memory *memory) {
    return hp_comm_staged(inner, memory);
}

static hp_strategy by_way_of_the_host(hp_strategy s) {
    for (int t = 0; t < HP_TRAFFICS; t++) s.comm[t] = hp_comm_choice(HP_BACKEND_OWN, HP_ALGORITHM_LIBRARY);
    return s;
}

static outcome run(const subject *s, hp_device_kind device, const hp_device_ops *ops,
                   const hp_strategy *strategy) {
    hp_error err;
    hp_program *p = NULL;
    char text[HP_STRATEGY_TEXT];
    const hp_lower_options o = {.mode = HP_MODE_INFER,
                                .dtype = HP_F32,
                                .batch = s->batch,
                                .place = true,
                                .device = &hp_devices[device]};
    hp_strategy_text(strategy, text);
    if (hp_lower(s->a, s->g, strategy, &o, &p, &err) != HP_OK || hp_program_check(p, s->g, &err) != HP_OK)
        fail_msg("seed %llu %s: %s", (unsigned long long)s->seed, text, err.text);
    outcome out = {.y = HP_NEW(s->a, double, s->n)};
    ranks_job job = {.g = s->g,
                     .p = p,
                     .ops = ops,
                     .comm = ops->memory->host ? NULL : staged,
                     .steps = 1,
                     .seed = s->seed,
                     .qparam = s->qparam,
                     .output = out.y,
                     .loss = s->scored ? &out.loss : NULL};
    for (int64_t i = 0; i < s->n; i++) out.y[i] = NAN;
    if (run_ranks(&job) != HP_OK)
        fail_msg("seed %llu %s: %s", (unsigned long long)s->seed, text, job.err.text);
    return out;
}

static const hp_qparam *draw_qparams(hp_arena *a, const hp_graph *g, dice *d) {
    hp_qparam *q = HP_NEW(a, hp_qparam, g->n_tensor);
    for (int t = 0; t < g->n_tensor; t++)
        q[t] = (hp_qparam){(float)roll(d, 30, 90) / 3000.0f, coin(d) ? 0 : roll(d, 0, 255)};
    return q;
}

typedef hp_graph *net_fn(hp_arena *arena, uint64_t seed, int n_block);

/* worst: relative to the largest output. */
static void agrees(net_fn *net, uint64_t seed, int prec, double worst) {
    dice d = {seed, 5000};
    subject s = {.a = hp_arena_new(), .seed = seed};
    hp_strategy one = hp_strategy_default();
    char text[HP_STRATEGY_TEXT];
    double size = 1;
    s.g = random_deployed(s.a, net(s.a, seed, roll(&d, 2, 5)), prec);
    s.qparam = draw_qparams(s.a, s.g, &d);
    one.prec = prec;
    const hp_strategy other = by_way_of_the_host(random_infer_strategy(&d, s.g, MAX_RANKS, &s.batch));
    const hp_tensor *y = &s.g->tensor[s.g->layer[s.g->n_layer - 1].out];
    s.scored = y->h * y->w == 1;
    s.n = s.batch * y->h * y->w * y->c;
    const outcome want = run(&s, HP_DEVICE_CPU, &hp_device_cpu_infer, &one),
                  have = run(&s, HP_DEVICE_CUDA, &hp_device_cuda_infer, &other);
    for (int64_t i = 0; i < s.n; i++) size = fmax(size, fabs(want.y[i]));
    for (int64_t i = 0; i < s.n; i++)
        if (!(fabs(want.y[i] - have.y[i]) <= worst * size))
            fail_msg("seed %llu %s %s: output %lld is %g instead of %g", (unsigned long long)seed,
                     hp_prec_names[prec], hp_strategy_text(&other, text), (long long)i, have.y[i], want.y[i]);
    if (!(fabs(want.loss - have.loss) <= 2 * worst * size))
        fail_msg("seed %llu %s: loss %g instead of %g", (unsigned long long)seed, hp_prec_names[prec],
                 have.loss, want.loss);
    hp_arena_free(s.a);
}

static void in_float32(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(10); seed++) agrees(random_infer_net, seed, HP_PREC_FP32, 1e-5);
}

static void in_16_bits(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(10); seed++)
        agrees(random_infer_net, seed, seed % 2 ? HP_PREC_BF16 : HP_PREC_FP16, seed % 2 ? 0x1p-4 : 0x1p-7);
}

static void in_8_bits(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(10); seed++) agrees(random_infer_net, seed, HP_PREC_INT8, 0.05);
}

static void in_8_bits_found_at_run_time(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(6); seed++)
        agrees(random_infer_net, seed, HP_PREC_INT8_DYNAMIC, 0.05);
}

/* Transformers: products of at most 512 terms in some forty layers. */
static void tokens_in_float32(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(12); seed++)
        agrees(random_tokens, seed, HP_PREC_FP32, 512 * 40 * 0x1p-24);
}

static void tokens_in_16_bits(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(12); seed++)
        agrees(random_tokens, seed, seed % 2 ? HP_PREC_BF16 : HP_PREC_FP16, seed % 2 ? 0x1p-4 : 0x1p-7);
}

static void maps_that_gather_and_normalise(void **state) {
    static const int32_t precs[] = {HP_PREC_FP32, HP_PREC_BF16, HP_PREC_FP16, HP_PREC_INT8,
                                    HP_PREC_INT8_DYNAMIC};
    static const double worst[] = {512 * 40 * 0x1p-24, 0x1p-4, 0x1p-7, 0.05, 0.05};
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(30); seed++)
        agrees(random_maps, seed, precs[seed % 5], worst[seed % 5]);
}

/* Heads of multiples of 16 bytes, as real networks have: a text, an image, a text with heads of
 * more than 64 channels. */
static hp_graph *wide_heads(hp_arena *arena, uint64_t seed, int n_block) {
    static const char *const nets[] = {"gpt:1,64,2,20,48", "vit:1,128,2,4", "gpt:1,160,2,12,48"};
    hp_graph *g = NULL;
    hp_error err;
    (void)n_block;
    if (hp_net_build(arena, nets[seed % 3], 20, 20, 10, &g, &err) != HP_OK) fail_msg("%s", err.text);
    return g;
}

static void wide_heads_in_16_bits(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(6); seed++)
        agrees(wide_heads, seed, seed % 2 ? HP_PREC_BF16 : HP_PREC_FP16, seed % 2 ? 0x1p-4 : 0x1p-7);
}

static void tokens_in_8_bits(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(12); seed++) agrees(random_tokens, seed, HP_PREC_INT8, 0.05);
}

static void tokens_in_8_bits_found_at_run_time(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(6); seed++)
        agrees(random_tokens, seed, HP_PREC_INT8_DYNAMIC, 0.05);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_float32),
                                       cmocka_unit_test(in_16_bits),
                                       cmocka_unit_test(in_8_bits),
                                       cmocka_unit_test(in_8_bits_found_at_run_time),
                                       cmocka_unit_test(tokens_in_float32),
                                       cmocka_unit_test(tokens_in_16_bits),
                                       cmocka_unit_test(wide_heads_in_16_bits),
                                       cmocka_unit_test(maps_that_gather_and_normalise),
                                       cmocka_unit_test(tokens_in_8_bits),
                                       cmocka_unit_test(tokens_in_8_bits_found_at_run_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
