/* test_sums.c - sums over large maps on the processor's devices: constant terms, terms that nearly cancel,
 * and drawn ones are summed with an error that does not grow with the map. */
#include "exec/device/infer/infer_loops.h"
#include "exec/device/kernels/kernels.h"
#include "exec/device/ref/ref.h"
#include "plan/memory/gradient_bands.h"
#include "tests/support/exec/large_sums.h"
#include "tests/support/plan/law_cases.h"

static const sums_blocks of_cpu = {64, HP_GRADIENT_PIXELS};

typedef void sums_fn(const sums_law *l);

/* Every pattern, on maps of `side` by `side`, and of eight times that in the whole suite; on smaller ones for
 * the reference, which computes in float64. */
static void every(int side, sums_fn *check) {
    const bool large = law_all("sums over maps of up to 2^26 pixels");
    for (int p = 0; p < SUMS_PATTERNS; p++) {
        check(&(sums_law){&hp_device_cpu, of_cpu, side, (sums_pattern)p});
        check(&(sums_law){&hp_device_ref, of_cpu, side / 4, (sums_pattern)p});
        if (large) check(&(sums_law){&hp_device_cpu, of_cpu, 8 * side, (sums_pattern)p});
    }
}

static void means_of_large_maps_are_exact_to_a_block(void **state) {
    (void)state;
    every(1024, sums_of_pools);
}

static void what_is_spread_over_large_maps_has_exact_gradients(void **state) {
    (void)state;
    every(1024, sums_of_spread);
}

static void norms_of_large_maps_are_exact_to_a_block(void **state) {
    (void)state;
    every(1024, sums_of_norm);
}

static void losses_of_large_maps_are_exact(void **state) {
    (void)state;
    every(512, sums_of_loss);
}

static void products_with_large_maps_are_exact_to_a_block(void **state) {
    (void)state;
    every(1024, sums_of_linear);
}

static void library(const sums_law *l) {
    sums_of_conv(l, 3, 16, 3, 2, 1);
    if (l->side <= 2048) sums_of_conv(l, 16, 16, 3, 1, 16); /* a larger one takes 5 GB */
    sums_of_conv(l, 3, 2, 1, 1, 1);
}

static void own(const sums_law *l) {
    sums_of_conv(l, 32, 32, 1, 1, 1);
    sums_of_conv(l, 32, 32, 3, 2, 1);
}

static void winograd(const sums_law *l) {
    if (l->ops == &hp_device_cpu) sums_of_conv(l, 32, 32, 3, 1, 1);
}

static void transposed(const sums_law *l) {
    sums_of_transposed(l, 3, 2);
}

static void gradients_over_large_maps_are_exact_to_a_band(void **state) {
    (void)state;
    every(512, library);
    every(256, own);
    every(256, winograd);
    every(512, transposed);
}

/* --- bands of a weight's gradient --- */

/* Bands of whole samples, or of rows of one sample; windows that cross a band's edge, leave gaps,
 * or lie in padding. */
static const struct {
    int samples, side, ins, outs, kernel, stride, pad, dil, groups;
} banded[] = {
    {5, 40, 5, 7, 3, 1, 1, 1, 1},    {2, 75, 3, 4, 5, 1, 2, 2, 1},   {1, 150, 6, 4, 3, 2, 1, 1, 2},
    {1, 81, 16, 16, 3, 1, 1, 1, 16}, {3, 71, 32, 32, 3, 1, 1, 1, 1}, {2, 131, 32, 48, 1, 1, 0, 1, 1},
    {1, 140, 33, 32, 3, 2, 0, 1, 1}, {1, 70, 3, 2, 3, 1, 2, 1, 1},   {1, 203, 2, 3, 1, 3, 0, 1, 1},
};

/* Small integers sum exactly, so no rounding can hide a wrong index. Multiples of four, because
 * Winograd halves twice. */
static void put_whole(rig *r) {
    const int32_t buffers[] = {r->x[0], r->dy, HP_BUF_GRADS};
    fill(r, -3, 3);
    for (int k = 0; k < 3; k++)
        for (int64_t i = 0; i < rig_elems(r, buffers[k]); i++)
            rig_set(r, buffers[k], i, 4 * round(rig_get(r, buffers[k], i)));
}

static void check_bands(const draw *d) {
    rig *const both[] = {build(&hp_device_cpu, d), build(&hp_device_ref, d)};
    const hp_shape shape = hp_shape_between(&both[0]->graph, 1, &both[0]->boxes.in[0], &both[0]->boxes.out);
    hp_error err;
    assert_true(hp_gradient_bands(&shape) > 1);
    for (int k = 0; k < 2; k++) {
        put_whole(both[k]);
        assert_int_equal(rig_open(both[k], &err), HP_OK);
        assert_int_equal(rig_run(both[k], RIG_BWDW), HP_OK);
    }
    for (int p = 0; p < both[0]->graph.n_param; p++)
        for (int64_t i = both[0]->place[p].offset; i < both[0]->place[p].offset + both[0]->param[p].count;
             i++)
            if (rig_get(both[0], HP_BUF_GRADS, i) != rig_get(both[1], HP_BUF_GRADS, i))
                fail_msg("%dx%d c%d, kernel %d: gradient %lld is %g, should be %g", d->in[0].h, d->in[0].w,
                         d->in[0].c, d->layer.window.kh, (long long)i, rig_get(both[0], HP_BUF_GRADS, i),
                         rig_get(both[1], HP_BUF_GRADS, i));
    rig_free(both[0]);
    rig_free(both[1]);
}

static void bands_of_a_gradient_join_exactly(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof banded / sizeof *banded; k++) {
        draw d = {.layer = {.op = HP_CONV, .n_in = 1, .groups = banded[k].groups},
                  .samples = banded[k].samples};
        d.layer.window.kh = d.layer.window.kw = banded[k].kernel;
        d.layer.window.stride_h = d.layer.window.stride_w = banded[k].stride;
        d.layer.window.pad_h = d.layer.window.pad_w = banded[k].pad;
        d.layer.window.dil_h = d.layer.window.dil_w = banded[k].dil;
        d.in[0] = (hp_tensor){.h = banded[k].side, .w = banded[k].side + 1, .c = banded[k].ins};
        d.out.c = banded[k].outs;
        d.bias = k % 2;
        d.flags = k % 3 ? HP_FLAG_ADD : 0;
        finish_window(&d);
        check_bands(&d);
    }
}

/* --- kernels, of every instruction set that the processor has --- */

enum { ROWS = 1 << 18, CHANNELS = 3, LISTED = 5 };

typedef void kernel_fn(const hp_f32_kernels *k, const float *x);

static void every_kernel(kernel_fn *check) {
    const hp_f32_kernels *const sets[] = {&hp_f32_kernels_base, &hp_f32_kernels_avx2, &hp_f32_kernels_avx512};
    float *x = malloc(ROWS * CHANNELS * sizeof *x);
    for (int i = 0; i < ROWS * CHANNELS; i++) x[i] = 0.1f;
    for (int k = 0; k < 3; k++) {
        check(sets[k], x);
        if (sets[k] == hp_kernels_pick()->f32) break; /* the best on this processor */
    }
    free(x);
}

/* |got - want| <= 67 units of the sum of the terms, which all have one sign. */
static void near_block(double got, double want) {
    if (fabs(got - want) > 67 * 0x1p-24 * fabs(want)) fail_msg("%.9g, should be %.9g", got, want);
}

static void check_rows(const hp_f32_kernels *k, const float *x) {
    const int listed = ROWS / LISTED;
    float sum[CHANNELS] = {1, 2, 3};
    int32_t *next = malloc(ROWS * sizeof *next);
    k->sum.rows(sum, x, ROWS, CHANNELS, true);
    for (int c = 0; c < CHANNELS; c++) near_block((double)sum[c], 1 + c + ROWS * (double)0.1f);
    for (int i = 0; i < ROWS; i++) next[i] = i + LISTED < ROWS ? i + LISTED : -1;
    k->sum.listed(sum, x, LISTED - 1, next, CHANNELS, false);
    for (int c = 0; c < CHANNELS; c++) near_block((double)sum[c], listed * (double)0.1f);
    near_block(k->point.squares(x, ROWS), ROWS * (double)0.1f * (double)0.1f);
    free(next);
}

static void sums_of_rows_are_exact_to_a_block(void **state) {
    (void)state;
    every_kernel(check_rows);
}

/* RMS norm turns equal channels into 1. */
static void check_layernorm(const hp_f32_kernels *k, const float *x) {
    double dgamma[CHANNELS], dbeta[CHANNELS];
    float tmp[2 * CHANNELS];
    const float gamma[CHANNELS] = {1, 1, 1};
    const hp_layernorm l = {.pixels = ROWS, .ins = CHANNELS, .outs = CHANNELS};
    k->layernorm.bwd(NULL, dgamma, dbeta, x, x, gamma, &l, tmp);
    for (int c = 0; c < CHANNELS; c++) {
        near_block(dgamma[c], ROWS * (double)0.1f);
        near_block(dbeta[c], ROWS * (double)0.1f);
    }
}

static void layer_norms_gradients_are_exact_to_a_block(void **state) {
    (void)state;
    every_kernel(check_layernorm);
}

/* Attention of one head: what it reads and makes, the gradients' bounds, and the definition's in float64. */
enum { HEAD = CHANNELS, MADE = 5 };
typedef struct attended {
    int n[2];       /* queries, keys */
    float *read[4]; /* q, k, v, dy */
    float *made[MADE];
    double *want[MADE], *size[MADE]; /* y, log_sum, dq, dk, dv; sums of absolute terms */
} attended;

static int queries_of(int made) {
    return made < 3 ? 0 : 1; /* dk and dv have a row for each key */
}

/* Values alike; nearly cancelling; scores that grow from key to key, so that each block has a new maximum. */
typedef enum attend_pattern { ATTEND_ALIKE, ATTEND_CANCELS, ATTEND_GROWS, ATTEND_PATTERNS } attend_pattern;

static void attend_fill(attended *t, attend_pattern p) {
    for (int m = 0; m < 4; m++)
        for (int i = 0; i < t->n[m == 1 || m == 2]; i++)
            for (int c = 0; c < HEAD; c++) {
                const float sign = (i + m) % 2 ? 1.0f : -1.0f, small = 0x1p-12f * (float)(i % 7);
                float x = 0.1f;
                if (p == ATTEND_CANCELS && m >= 2) x = sign + small;
                if (p == ATTEND_GROWS && m == 1) x = 0.1f + 0x1p-19f * (float)i;
                t->read[m][i * HEAD + c] = x;
            }
}

static double inner(const float *x, const float *y) {
    double sum = 0;
    for (int c = 0; c < HEAD; c++) sum += (double)x[c] * (double)y[c];
    return sum;
}

static void add_to(double *want, double *size, double term) {
    *want += term;
    *size += fabs(term);
}

/* One query, by the definition. */
static void attend_define(attended *t, int i, double *score) {
    const float *q = t->read[0] + i * HEAD, *dy = t->read[3] + i * HEAD;
    double most = -INFINITY, sum = 0, mean = 0, mean_size = 0;
    for (int j = 0; j < t->n[1]; j++) most = fmax(most, score[j] = inner(q, t->read[1] + j * HEAD));
    for (int j = 0; j < t->n[1]; j++) sum += score[j] = exp(score[j] - most);
    t->want[1][i] = most + log(sum);
    t->size[1][i] = fabs(t->want[1][i]);
    for (int j = 0; j < t->n[1]; j++) {
        const float *v = t->read[2] + j * HEAD;
        score[j] /= sum;
        for (int c = 0; c < HEAD; c++)
            add_to(&t->want[0][i * HEAD + c], &t->size[0][i * HEAD + c], score[j] * (double)v[c]);
        mean += score[j] * inner(v, dy);
        for (int c = 0; c < HEAD; c++) mean_size += score[j] * fabs((double)v[c] * (double)dy[c]);
    }
    for (int j = 0; j < t->n[1]; j++) {
        const float *k = t->read[1] + j * HEAD, *v = t->read[2] + j * HEAD;
        const double ds = score[j] * (inner(v, dy) - mean);
        double ds_size = score[j] * mean_size;
        for (int c = 0; c < HEAD; c++) ds_size += score[j] * fabs((double)v[c] * (double)dy[c]);
        for (int c = 0; c < HEAD; c++) {
            t->want[2][i * HEAD + c] += ds * (double)k[c];
            t->size[2][i * HEAD + c] += ds_size * fabs((double)k[c]);
            t->want[3][j * HEAD + c] += ds * (double)q[c];
            t->size[3][j * HEAD + c] += ds_size * fabs((double)q[c]);
            add_to(&t->want[4][j * HEAD + c], &t->size[4][j * HEAD + c], score[j] * (double)dy[c]);
        }
    }
}

static attended attend_new(int queries, int keys, attend_pattern p) {
    attended t = {.n = {queries, keys}};
    double *score = malloc((size_t)keys * sizeof *score);
    for (int m = 0; m < 4; m++) t.read[m] = malloc((size_t)t.n[m == 1 || m == 2] * HEAD * sizeof(float));
    for (int m = 0; m < MADE; m++) {
        const size_t n = (size_t)t.n[queries_of(m)] * HEAD;
        t.made[m] = calloc(n, sizeof(float));
        t.want[m] = calloc(n, sizeof(double));
        t.size[m] = calloc(n, sizeof(double));
    }
    attend_fill(&t, p);
    for (int i = 0; i < queries; i++) attend_define(&t, i, score);
    free(score);
    return t;
}

static void attend_free(attended *t) {
    for (int m = 0; m < 4; m++) free(t->read[m]);
    for (int m = 0; m < MADE; m++) {
        free(t->made[m]);
        free(t->want[m]);
        free(t->size[m]);
    }
}

/* Units of a block of 64, of the 16 of a group, of as many new maxima, and of a few roundings of the
 * weights. */
static void attend_compare(const attended *t, attend_pattern p) {
    static const char *const names[MADE] = {"y", "log_sum", "dq", "dk", "dv"};
    for (int m = 0; m < MADE; m++)
        for (int i = 0; i < t->n[queries_of(m)] * (m == 1 ? 1 : HEAD); i++) {
            const double off = fabs((double)t->made[m][i] - t->want[m][i]);
            if (off > 128 * 0x1p-24 * t->size[m][i])
                fail_msg("%d queries, %d keys, pattern %d: %s of %d is %.9g, should be %.9g: %.0f units off",
                         t->n[0], t->n[1], (int)p, names[m], i, (double)t->made[m][i], t->want[m][i],
                         off / (0x1p-24 * t->size[m][i]));
        }
}

/* Queries [from, to) of a column of them; the others' gradients stay 0. */
static void attend_run(const hp_f32_kernels *k, attended *t, int from, int to, bool causal) {
    const hp_rect queries = {from, 0, to - from, 1}, keys = {0, 0, t->n[1], 1};
    enum { WIDTH = HP_WINOGRAD_PANEL };
    float *room = malloc(4 * (size_t)hp_attend_scratch(HEAD));
    double *sums = malloc((size_t)t->n[0] * WIDTH * sizeof *sums);
    memset(room, 0xff, 4 * (size_t)hp_attend_scratch(HEAD)); /* what was there is not read */
    hp_attend a = {.channels = HEAD,
                   .to = HEAD,
                   .map_w = 1,
                   .scale = 1,
                   .causal = causal,
                   .queries = queries,
                   .keys = keys,
                   .scratch = room,
                   .dq_sums = sums};
    hp_attend_map *const read[] = {&a.q, &a.k, &a.v, &a.dy}, *const made[] = {&a.y, &a.log_sum, &a.dq, &a.dk,
                                                                              &a.dv};
    for (int m = 0; m < 4; m++) *read[m] = (hp_attend_map){.at = t->read[m], .w = 1, .step = HEAD};
    for (int m = 0; m < MADE; m++) {
        memset(t->made[m], 0, (size_t)t->n[queries_of(m)] * HEAD * sizeof(float));
        *made[m] = (hp_attend_map){.at = t->made[m], .w = 1, .step = m == 1 ? 1 : HEAD};
    }
    k->attend.fwd(&a);
    k->attend.bwd(&a);
    free(sums);
    free(room);
}

/* Few queries with many keys, over which they sum; many queries, over which keys do. */
static const int attended_by[][2] = {{3, 1 << 17}, {1 << 17, 3}, {130, 2500}};

static void check_attention(const hp_f32_kernels *k, const float *x) {
    (void)x;
    for (size_t i = 0; i < sizeof attended_by / sizeof *attended_by; i++)
        for (int p = 0; p < ATTEND_PATTERNS; p++) {
            attended t = attend_new(attended_by[i][0], attended_by[i][1], (attend_pattern)p);
            attend_run(k, &t, 0, t.n[0], false);
            attend_compare(&t, (attend_pattern)p);
            attend_free(&t);
        }
}

/* A query's results have the same bits whichever queries are computed with it, even if these see more groups
 * of keys. */
static void check_queries(const hp_f32_kernels *k, const float *x) {
    static const int parts[][2] = {{0, 1000}, {1000, 1050}, {1050, 1500}, {0, 1}, {1499, 1500}};
    enum { TOKENS = 1500 };
    (void)x;
    attended whole = attend_new(TOKENS, TOKENS, ATTEND_GROWS),
             part = attend_new(TOKENS, TOKENS, ATTEND_GROWS);
    attend_run(k, &whole, 0, TOKENS, true);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const int from = parts[i][0], n = parts[i][1] - from;
        attend_run(k, &part, from, from + n, true);
        for (int m = 0; m < 3; m++) {
            const int each = m == 1 ? 1 : HEAD;
            assert_memory_equal(part.made[m] + from * each, whole.made[m] + from * each,
                                (size_t)(n * each) * sizeof(float));
        }
    }
    attend_free(&whole);
    attend_free(&part);
}

static void queries_do_not_see_each_other(void **state) {
    (void)state;
    every_kernel(check_queries);
}

static void attention_over_many_tokens_is_exact_to_a_block(void **state) {
    (void)state;
    every_kernel(check_attention);
}

/* Means in inference, with every set of loops. */
static void means_in_inference_are_exact_to_a_block(void **state) {
    (void)state;
    enum { SIDE = 1024 };
    const hp_infer_loops *const sets[] = {&hp_ref_loops_f64, &hp_infer_loops_base, &hp_infer_loops_avx2,
                                          &hp_infer_loops_avx512};
    const hp_layer layer = {.op = HP_ADAPTPOOL, .out_h = 1, .out_w = 1};
    float *x = malloc((size_t)SIDE * SIDE * sizeof *x), y[1];
    double *wide = malloc((size_t)SIDE * SIDE * sizeof *wide), wide_y[1];
    for (int i = 0; i < SIDE * SIDE; i++) wide[i] = (double)(x[i] = i % 2 ? 0.1f : 0.3f);
    for (int k = 0; k < 4; k++) {
        const hp_dtype type = k == 0 ? HP_F64 : HP_F32;
        hp_qparams of = {type, 1, 1, 0};
        const hp_infer_op op = {.x = &of, .y = of, .clamps = true, .lo = -INFINITY, .hi = INFINITY};
        hp_bound b = {
            .layer = &layer, .in_elems = SIDE * SIDE, .out_elems = 1, .stored.x = {type}, .stored.y = type};
        b.shape = (hp_shape){.n = 1, .ih = SIDE, .iw = SIDE, .ic = 1, .oh = 1, .ow = 1, .oc = 1};
        b.shape.full.ih = b.shape.full.iw = SIDE;
        b.shape.full.oh = b.shape.full.ow = 1;
        b.x[0] = k == 0 ? (void *)wide : (void *)x;
        b.y = k == 0 ? (void *)wide_y : (void *)y;
        sets[k]->run[HP_ADAPTPOOL](&op, &b);
        near_block(k == 0 ? wide_y[0] : (double)y[0], ((double)0.1f + (double)0.3f) / 2);
        if (sets[k] == hp_kernels_pick()->loops) break;
    }
    free(x);
    free(wide);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_of_large_maps_are_exact_to_a_block),
        cmocka_unit_test(what_is_spread_over_large_maps_has_exact_gradients),
        cmocka_unit_test(norms_of_large_maps_are_exact_to_a_block),
        cmocka_unit_test(losses_of_large_maps_are_exact),
        cmocka_unit_test(products_with_large_maps_are_exact_to_a_block),
        cmocka_unit_test(gradients_over_large_maps_are_exact_to_a_band),
        cmocka_unit_test(bands_of_a_gradient_join_exactly),
        cmocka_unit_test(sums_of_rows_are_exact_to_a_block),
        cmocka_unit_test(layer_norms_gradients_are_exact_to_a_block),
        cmocka_unit_test(attention_over_many_tokens_is_exact_to_a_block),
        cmocka_unit_test(queries_do_not_see_each_other),
        cmocka_unit_test(means_in_inference_are_exact_to_a_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
