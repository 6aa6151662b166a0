/* test_infer.c - inference gives the result of one device, however images are split: bit for bit if stored in
 * 8 or 16 bits, otherwise within rounding; and the result of training's own evaluation. */
#include "exec/data/weights/weights.h"
#include "tests/support/plan/random_deployed.h"
#include "tests/support/plan/random_tokens.h"
#include "tests/support/exec/run_ranks.h"
#include "plan/lower/lower.h"
#include "plan/check/check.h"
#include "tests/support/plan/law_cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

enum { MAX_RANKS = 12 };

/* --- weights of every kind in a file --- */

typedef struct drawn {
    const hp_graph *g;
    uint64_t seed;
    float *value;
} drawn;

static const void *draw_param(void *self, int param, hp_error *err) {
    drawn *d = self;
    const hp_param *p = &d->g->param[param];
    (void)err;
    for (int64_t e = 0; e < p->count; e++) {
        const double u = 2 * hp_rng_uniform(d->seed, 991 + (uint64_t)param, (uint64_t)e) - 1;
        const bool weight = p->kind == HP_PARAM_CONV_W || p->kind == HP_PARAM_LINEAR_W;
        const bool near_one = p->kind == HP_PARAM_BN_GAMMA || p->kind == HP_PARAM_BN_VAR;
        d->value[e] = (float)(weight ? u * sqrt(3.0 / (double)p->fan_in) : near_one ? 1 + 0.4 * u : 0.3 * u);
    }
    return d->value;
}

static void write_weights(hp_arena *a, const hp_graph *g, uint64_t seed, const char *path) {
    int64_t most = 1;
    hp_error err;
    for (int i = 0; i < g->n_param; i++) most = g->param[i].count > most ? g->param[i].count : most;
    drawn d = {g, seed, HP_NEW(a, float, most)};
    const hp_weights_source source = {draw_param, &d};
    if (hp_weights_save(path, g, HP_F32, &source, 0, &err) != HP_OK) fail_msg("%s", err.text);
}

/* The same numbers, in the form of a training program. */
static const double *file_params(hp_arena *a, const hp_graph *g, uint64_t seed) {
    double *all = HP_NEW(a, double, ranks_param_elems(g)), *to = all;
    for (int i = 0; i < g->n_param; i++) {
        drawn d = {g, seed, HP_NEW(a, float, g->param[i].count)};
        draw_param(&d, i, NULL);
        for (int64_t e = 0; e < g->param[i].count; e++) *to++ = (double)d.value[e];
    }
    return all;
}

static const hp_qparam *draw_qparams(hp_arena *a, const hp_graph *g, dice *d) {
    hp_qparam *q = HP_NEW(a, hp_qparam, g->n_tensor);
    for (int t = 0; t < g->n_tensor; t++)
        q[t] = (hp_qparam){(float)roll(d, 30, 90) / 3000.0f, coin(d) ? 0 : roll(d, 0, 255)};
    return q;
}

/* --- a run --- */

typedef struct subject {
    hp_arena *a;
    const hp_graph *g;
    const hp_device_ops *ops;
    const hp_qparam *qparam;
    const char *weights;
    uint64_t seed;
    int64_t batch;
} subject;

static int64_t output_elems(const subject *s) {
    return s->batch * hp_tensor_elems(s->g, s->g->layer[s->g->n_layer - 1].out);
}

static double *outputs(const subject *s, const hp_strategy *strategy) {
    hp_error err;
    hp_program *p = NULL;
    char text[HP_STRATEGY_TEXT];
    const hp_lower_options o = {
        .mode = HP_MODE_INFER, .dtype = s->ops->dtype, .batch = s->batch, .place = true};
    hp_strategy_text(strategy, text);
    if (hp_lower(s->a, s->g, strategy, &o, &p, &err) != HP_OK || hp_program_check(p, s->g, &err) != HP_OK)
        fail_msg("seed %llu %s: %s", (unsigned long long)s->seed, text, err.text);
    assert_int_equal(p->n_group, 1); /* no sums: the only group is that of all ranks */
    const int64_t n = output_elems(s);
    ranks_job job = {.g = s->g,
                     .p = p,
                     .ops = s->ops,
                     .steps = 1,
                     .seed = s->seed,
                     .constants = s->weights,
                     .qparam = s->qparam,
                     .output = HP_NEW(s->a, double, n)};
    for (int64_t i = 0; i < n; i++) job.output[i] = NAN;
    if (run_ranks(&job) != HP_OK)
        fail_msg("seed %llu %s: %s", (unsigned long long)s->seed, text, job.err.text);
    for (int64_t i = 0; i < n; i++)
        if (isnan(job.output[i]))
            fail_msg("seed %llu %s: output %lld is missing", (unsigned long long)s->seed, text, (long long)i);
    return job.output;
}

static double worst(const double *a, const double *b, int64_t n) {
    double most = 0, size = 1;
    for (int64_t i = 0; i < n; i++) {
        if (fabs(a[i]) > size) size = fabs(a[i]);
        if (!(fabs(a[i] - b[i]) <= most)) most = fabs(a[i] - b[i]);
    }
    return most / size;
}

/* Draws a network of training's layers, possibly with inference's; or of transformers; or of maps. */
static hp_graph *draw_net(hp_arena *a, uint64_t seed, dice *d) {
    const int n = roll(d, 2, 7);
    if (seed % 4 == 1) return random_layers(a, seed / 4, 1 + n / 2);
    if (seed % 8 == 7) return random_dense_net(a, seed, 1 + n / 3);
    return seed % 3 == 0 ? random_net(a, seed, n) : random_infer_net(a, seed, n);
}

static void holds(uint64_t seed, int prec, const hp_device_ops *ops, double bound) {
    char path[] = "/tmp/hplan-infer-XXXXXX";
    dice d = {seed, 5000};
    subject s = {.a = hp_arena_new(), .ops = ops, .weights = path, .seed = seed};
    const hp_graph *trained = draw_net(s.a, seed, &d);
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    s.g = random_deployed(s.a, trained, prec);
    s.qparam = draw_qparams(s.a, s.g, &d);
    write_weights(s.a, trained, seed, path);
    hp_strategy one = hp_strategy_default();
    one.prec = prec;
    const hp_strategy other = random_infer_strategy(&d, s.g, MAX_RANKS, &s.batch);
    const double *want = outputs(&s, &one), *have = outputs(&s, &other);
    const int64_t n = output_elems(&s);
    char text[HP_STRATEGY_TEXT];
    const bool same =
        bound > 0 ? worst(want, have, n) <= bound : memcmp(want, have, sizeof *want * (size_t)n) == 0;
    if (!same)
        fail_msg("seed %llu, %s, batch %lld: differs by %g", (unsigned long long)seed,
                 hp_strategy_text(&other, text), (long long)s.batch, worst(want, have, n));
    unlink(path);
    hp_arena_free(s.a);
}

/* Behind the last quantised map, the rest is float and the same for every split: even the logits are
 * equal. */
static void int8_is_one_devices_bit_for_bit(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(150); seed++)
        holds(seed, HP_PREC_INT8, &hp_device_cpu_infer, 0);
}

static void int8_on_ref_too(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(80); seed++) holds(seed, HP_PREC_INT8, &hp_device_ref_infer, 0);
}

/* Ranges are per sample: replicas, stages and micro-batches change nothing. */
static void int8_dynamic_is_one_devices_bit_for_bit(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(80); seed++)
        holds(seed, HP_PREC_INT8_DYNAMIC, &hp_device_cpu_infer, 0);
    for (uint64_t seed = 1; seed <= law_cases(30); seed++)
        holds(seed, HP_PREC_INT8_DYNAMIC, &hp_device_ref_infer, 0);
}

static void float64_agrees_to_1e_12(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(100); seed++)
        holds(seed, HP_PREC_FP32, &hp_device_ref_infer, 1e-12);
}

/* Sums of at most 9 * 40 products, once per layer, in another order: n eps each, some ten layers deep. */
static void float32_agrees_within_rounding(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(100); seed++)
        holds(seed, HP_PREC_FP32, &hp_device_cpu_infer, 360 * 10 * 0x1p-24);
}

/* Stored in 16 bits and computed in float32: every element is summed in the same order for any split. */
static void stored_in_16_bits_it_is_one_devices_bit_for_bit(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(120); seed++)
        holds(seed, seed % 2 ? HP_PREC_BF16 : HP_PREC_FP16, &hp_device_cpu_infer, 0);
}

/* Training's own evaluation, layer by layer with running statistics, has the same loss: folding changes
 * nothing. */
static void folding_keeps_the_loss(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(60); seed++) {
        char path[] = "/tmp/hplan-infer-XXXXXX";
        dice d = {seed, 9000};
        hp_arena *a = hp_arena_new();
        const int n = roll(&d, 3, 7);
        hp_graph *g = seed % 3 == 2 ? random_dense_net(a, seed, n / 2) : random_net(a, seed, n);
        const int fd = mkstemp(path);
        assert_true(fd >= 0);
        close(fd);
        write_weights(a, g, seed, path);
        double loss[2];
        for (int k = 0; k < 2; k++) {
            hp_graph *used = k ? random_deployed(a, g, HP_PREC_FP32) : g;
            const hp_tensor *y = &used->tensor[used->layer[used->n_layer - 1].out];
            const hp_strategy one = hp_strategy_default();
            const hp_lower_options o = {.mode = HP_MODE_INFER, .dtype = HP_F64, .batch = 3, .place = true};
            hp_program *p = NULL;
            hp_error err;
            if ((int64_t)y->h * y->w > 1) break; /* maps are not scored by deployed programs */
            assert_int_equal(hp_lower(a, used, &one, &o, &p, &err), HP_OK);
            ranks_job job = {.g = used,
                             .p = p,
                             .ops = k ? &hp_device_ref_infer : &hp_device_ref,
                             .steps = 1,
                             .seed = seed,
                             .start = file_params(a, g, seed),
                             .constants = path,
                             .bytes = true,
                             .loss = &loss[k],
                             .weights = HP_NEW(a, double, ranks_param_elems(g))};
            if (run_ranks(&job) != HP_OK) fail_msg("%s", job.err.text);
            if (k && !(fabs(loss[1] - loss[0]) <= 1e-5 * (1 + fabs(loss[0])))) /* constants are float32 */
                fail_msg("seed %llu: loss %.9g, layer by layer %.9g", (unsigned long long)seed, loss[1],
                         loss[0]);
        }
        unlink(path);
        hp_arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folding_keeps_the_loss),
        cmocka_unit_test(float64_agrees_to_1e_12),
        cmocka_unit_test(float32_agrees_within_rounding),
        cmocka_unit_test(stored_in_16_bits_it_is_one_devices_bit_for_bit),
        cmocka_unit_test(int8_on_ref_too),
        cmocka_unit_test(int8_is_one_devices_bit_for_bit),
        cmocka_unit_test(int8_dynamic_is_one_devices_bit_for_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
