/* test_point.c - layers of deployed graphs that are no matrix product: every operator and store is
 * what its definition says, computed element by element in float64; any part of an output has the whole's
 * bits; so has every instruction set. */
#include "exec/device/ref/ref.h"
#include "networks/graph/acts.h"
#include "tests/support/exec/infer_layer.h"
#include "tests/support/plan/law_cases.h"
#include "tests/support/plan/exact_activation.h"

static const int ops[] = {HP_BN,     HP_ACT, HP_ADD,   HP_MAXPOOL, HP_AVGPOOL, HP_ADAPTPOOL, HP_PAD,
                          HP_CONCAT, HP_MUL, HP_SCALE, HP_RESIZE,  HP_SOFTMAX, HP_QUANT,     HP_DEQUANT};
enum { N_OPS = sizeof ops / sizeof *ops };

/* --- definitions --- */

typedef struct element {
    int n, y, x, c;
} element;

/* The exact value, and the magnitude of its terms, which bounds rounding. */
typedef struct exact {
    double value, size;
} exact;

static double input(const cell *c, int k, int n, int y, int x, int ch) {
    const hp_tensor *t = &c->s.tensor[k];
    return value_of(c, k, (((int64_t)n * t->h + y) * t->w + x) * t->c + ch);
}

static double same_input(const cell *c, int k, element e) {
    const bool one = c->s.tensor[k].h == 1 && c->s.tensor[k].w == 1;
    return input(c, k, e.n, one ? 0 : e.y, one ? 0 : e.x, e.c);
}

static exact exact_point(const cell *c, element e) {
    const hp_layer *l = &c->s.layer[1];
    const double x = same_input(c, 0, e), other = l->n_in > 1 ? same_input(c, 1, e) : 0;
    const double factor = c->factor ? (double)c->factor[e.c] : 1, bias = c->bias ? (double)c->bias[e.c] : 0;
    if (l->op == HP_MUL) return (exact){exact_activation(l, x * other), fabs(x * other)};
    return (exact){exact_activation(l, x * factor + bias + other),
                   fabs(x * factor) + fabs(bias) + fabs(other)};
}

static exact exact_concat(const cell *c, element e) {
    int k = 0;
    const double factor = c->factor ? (double)c->factor[e.c] : 1, bias = c->bias ? (double)c->bias[e.c] : 0;
    while (e.c >= c->s.tensor[k].c) e.c -= c->s.tensor[k++].c;
    const double v = input(c, k, e.n, e.y, e.x, e.c);
    return (exact){exact_activation(&c->s.layer[1], v * factor + bias), fabs(v * factor) + fabs(bias)};
}

static exact exact_softmax(const cell *c, element e) {
    double sum = 0;
    for (int ch = 0; ch < c->s.tensor[0].c; ch++) sum += exp(input(c, 0, e.n, e.y, e.x, ch));
    const double v = exp(input(c, 0, e.n, e.y, e.x, e.c)) / sum;
    return (exact){v, 4 * v};
}

/* --- windows --- */

enum { MOST_TAPS = 64 };
typedef struct tap_list {
    int n, lo, hi, counted; /* number of items that count; taps between lo - pad and hi + pad */
    int from, to;
    int in[MOST_TAPS];
} tap_list;

static void tap_add(void *state, int in, int weight) {
    tap_list *t = state;
    (void)weight;
    t->counted += in >= t->from && in < t->to;
    if (in < t->lo || in >= t->hi) return;
    assert_true(t->n < MOST_TAPS);
    t->in[t->n++] = in;
}

static tap_list taps(const cell *c, int axis, int o) {
    const hp_layer *l = &c->s.layer[1];
    const bool rows = axis == HP_AXIS_H;
    const int pad = rows ? l->window.pad_h : l->window.pad_w, sized = rows ? l->out_h : l->out_w,
              in = axis_of(&c->s.tensor[0], axis);
    tap_list t = {.hi = in, .from = -pad, .to = sized > 0 ? INT32_MAX : in + pad};
    brute_taps(&c->s.g, 1, 0, axis, o, tap_add, &t);
    return t;
}

static exact exact_window(const cell *c, element e) {
    const tap_list rows = taps(c, HP_AXIS_H, e.y), cols = taps(c, HP_AXIS_W, e.x);
    const hp_layer *l = &c->s.layer[1];
    exact sum = {0, 0};
    double most = -(double)INFINITY;
    for (int i = 0; i < rows.n; i++)
        for (int k = 0; k < cols.n; k++) {
            const double v = input(c, 0, e.n, rows.in[i], cols.in[k], e.c);
            sum.value += v;
            sum.size += fabs(v);
            most = fmax(most, v);
        }
    const bool counts = l->op == HP_AVGPOOL && l->window.count_include_pad;
    const double n = counts ? (double)rows.counted * cols.counted : (double)rows.n * cols.n;
    if (l->op == HP_PAD && n == 0) return (exact){0, 0};
    if (l->op == HP_MAXPOOL) return (exact){most, fabs(most)};
    return (exact){sum.value / n, sum.size / n};
}

/* --- resizing --- */

/* ONNX Resize: coordinate of output item o of m in an input of n items. */
static double position(const hp_layer *l, bool rows, int n, int m, int o) {
    const double given = rows ? l->resize.scale_h : l->resize.scale_w,
                 scale = given > 0 ? given : (double)m / n, half = (o + 0.5) / scale - 0.5;
    if (l->resize.corners == HP_CORNERS_ASYMMETRIC) return o / scale;
    if (l->resize.corners == HP_CORNERS_ALIGN) return m == 1 ? 0 : (double)o * (n - 1) / (m - 1);
    return l->resize.corners == HP_CORNERS_PYTORCH_HALF_PIXEL && m == 1 ? 0 : half;
}

/* Keys (1981): the kernel of cubic convolution. */
static double kernel(double a, double d) {
    if (d <= 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
    return d < 2 ? a * (d * d * d - 5 * d * d + 8 * d - 4) : 0;
}

/* Weight of item i at a coordinate; items beyond the map are replaced by the nearest, or left out. */
static double cubic_share(const hp_layer *l, int n, double at, int i) {
    double sum = 0, all = 0;
    for (int k = -2; k < n + 2; k++) {
        const double weight = kernel(l->resize.cubic, fabs(at - k));
        const bool outside = k < 0 || k >= n;
        if (l->resize.inside && outside) continue;
        all += weight;
        if ((k < 0 ? 0 : k >= n ? n - 1 : k) == i) sum += weight;
    }
    return l->resize.inside ? sum / all : sum;
}

static double share(const hp_layer *l, bool rows, int n, int m, int o, int i) {
    const double at = position(l, rows, n, m, o);
    if (l->resize.interpolation == HP_CUBIC) return cubic_share(l, n, at, i);
    return fmax(0, 1 - fabs(fmin(fmax(at, 0), n - 1) - i));
}

static exact exact_shares(const cell *c, element e) {
    const hp_tensor *x = &c->s.tensor[0], *y = &c->s.tensor[1];
    const hp_layer *l = &c->s.layer[1];
    exact r = {0, 0};
    for (int i = 0; i < x->h; i++)
        for (int k = 0; k < x->w; k++) {
            const double weight = share(l, true, x->h, y->h, e.y, i) * share(l, false, x->w, y->w, e.x, k);
            if (weight == 0) continue;
            const double v = input(c, 0, e.n, i, k, e.c);
            r.value += weight * v;
            r.size += fabs(v);
        }
    return r;
}

static exact exact_resize(const cell *c, element e) {
    return c->s.layer[1].resize.interpolation == HP_NEAREST ? exact_window(c, e) : exact_shares(c, e);
}

typedef exact exact_fn(const cell *c, element e);
static exact_fn *const exacts[HP_LAYER_OPS] = {
    [HP_BN] = exact_point,       [HP_ACT] = exact_point,      [HP_ADD] = exact_point,
    [HP_MAXPOOL] = exact_window, [HP_AVGPOOL] = exact_window, [HP_ADAPTPOOL] = exact_window,
    [HP_PAD] = exact_window,     [HP_CONCAT] = exact_concat,  [HP_MUL] = exact_point,
    [HP_SCALE] = exact_point,    [HP_RESIZE] = exact_resize,  [HP_SOFTMAX] = exact_softmax,
    [HP_QUANT] = exact_point,    [HP_DEQUANT] = exact_point};

/* --- laws --- */

/* Rounding of a store: bytes to the nearest within their range, others relative to their magnitude. */
static bool near(const cell *c, double got, exact want) {
    const int out = c->s.layer[1].out;
    const hp_qparam q = c->q[out];
    const double size = want.size + fabs(want.value) + (c->s.layer[1].act > HP_ACT_CLIP ? 1 : 0),
                 arithmetic = size * (c->real == HP_F64 ? 1e-7 : 1e-6) + 1e-30;
    const double lo = (double)q.scale * -q.zero, hi = (double)q.scale * (255 - q.zero);
    switch (dtype_of(c, out)) {
    case HP_U8:
        return fabs(got - fmin(fmax(want.value, lo), hi)) <= 0.5001 * (double)q.scale + arithmetic;
    case HP_BF16:
        return fabs(got - want.value) <= fabs(want.value) * 0x1p-8 + arithmetic;
    case HP_F16:
        return fabs(got - want.value) <= fabs(want.value) * 0x1p-11 + 0x1p-25 + arithmetic;
    default:
        return fabs(got - want.value) <= arithmetic;
    }
}

static void check_whole(const cell *c) {
    const int out = c->s.layer[1].out;
    const hp_tensor *t = &c->s.tensor[out];
    for (int64_t i = 0; i < elems_of(c, out); i++) {
        const int64_t pixel = i / t->c;
        const element e = {(int)(pixel / t->w / t->h), (int)(pixel / t->w % t->h), (int)(pixel % t->w),
                           (int)(i % t->c)};
        const exact want = exacts[c->s.layer[1].op](c, e);
        const double got = value_of(c, out, i);
        if (isinf(want.value) || isnan(want.value)) continue; /* a window outside the image */
        if (!near(c, got, want))
            fail_msg("%s: sample %d, %d,%d channel %d is %.9g, not %.9g", cell_said(c), e.n, e.y, e.x, e.c,
                     got, want.value);
    }
}

static void layers_are_their_definitions(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(300); seed++) {
        cell *c = cell_new(seed, ops[seed % N_OPS]);
        run_whole(c);
        check_whole(c);
        cell_free(c);
    }
}

/* Parts of a layout, computed one by one. */
static void parts_have_the_bits_of_the_whole(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(300); seed++) {
        cell *c = cell_new(seed, ops[seed % N_OPS]);
        const int out = c->s.layer[1].out;
        const size_t bytes = (size_t)(elems_of(c, out) * hp_dtype_bytes(dtype_of(c, out)));
        unsigned char *whole = malloc(bytes);
        assert_non_null(whole);
        run_whole(c);
        memcpy(whole, c->data[out], bytes);
        memset(c->data[out], 0, bytes);
        const hp_layout l = draw_layout(&c->d);
        for (int p = 0; p < hp_layout_parts(&l); p++) {
            const hp_box box = hp_layout_own(&l, &c->s.g, out, c->s.samples, p);
            if (!hp_box_empty(&box)) run_part(c, &box, true);
        }
        if (memcmp(whole, c->data[out], bytes) != 0) fail_msg("%s: parts differ", cell_said(c));
        free(whole);
        cell_free(c);
    }
}

static void every_instruction_set_gives_the_same_bits(void **state) {
    (void)state;
    static const hp_infer_loops *const sets[] = {&hp_infer_loops_base, &hp_infer_loops_avx2,
                                                 &hp_infer_loops_avx512};
    const char *best = hp_kernels_pick()->loops->isa;
    for (uint64_t seed = 1; seed <= law_cases(300); seed++) {
        cell *c = cell_new(seed, ops[seed % N_OPS]);
        const hp_box out = hp_box_whole(&c->s.g, c->s.layer[1].out, c->s.samples);
        const size_t bytes =
            (size_t)hp_box_elems(&out) * (size_t)hp_dtype_bytes(dtype_of(c, c->s.layer[1].out));
        part p;
        run_whole(c);
        for (size_t i = 0; i < 3 && c->real == HP_F32; i++) {
            part_start(c, &p, &out, false);
            hp_infer_task *t = p.kernel.self;
            t->loop = sets[i]->run[c->s.layer[1].op];
            t->loop(&t->op, &p.b);
            if (memcmp(p.b.y, c->data[c->s.layer[1].out], bytes) != 0)
                fail_msg("%s: %s differs from %s", cell_said(c), sets[i]->isa, best);
            part_end(&p);
            if (sets[i]->isa == best) break; /* the processor has no more */
        }
        cell_free(c);
    }
}

/* op.h has one arithmetic for quantised numbers: the reference's plain loops and the processor's agree bit
 * for bit. */
static void bytes_are_those_of_the_reference(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(300); seed++) {
        cell *c = cell_new(seed, ops[seed % N_OPS]);
        const int op = c->s.layer[1].op, made = c->s.layer[1].out;
        const hp_box out = hp_box_whole(&c->s.g, made, c->s.samples);
        bool bytes = c->real == HP_F32 && dtype_of(c, made) == HP_U8;
        part p;
        for (int k = 0; k < c->s.layer[1].n_in; k++) bytes &= dtype_of(c, k) == HP_U8;
        if (bytes) {
            run_whole(c);
            part_start(c, &p, &out, false);
            const hp_infer_task *t = p.kernel.self;
            hp_ref_loops_f32.run[op](&t->op, &p.b);
            if (memcmp(p.b.y, c->data[made], (size_t)hp_box_elems(&out)) != 0)
                fail_msg("%s: not the bytes of the reference", cell_said(c));
            part_end(&p);
        }
        cell_free(c);
    }
}

/* A byte is the nearest there is: quantised numbers come back as they were. */
static void quantised_numbers_survive(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(200); seed++) {
        cell *there = cell_new(seed, HP_DEQUANT), *back = cell_new(seed, HP_QUANT);
        run_whole(there);
        assert_int_equal(elems_of(there, 1), elems_of(there, 0));
        hp_constants_set_qparam(back->constants, 1, there->q[0]);
        const int64_t n = elems_of(there, 0) < elems_of(back, 0) ? elems_of(there, 0) : elems_of(back, 0);
        for (int64_t i = 0; i < n; i++) {
            if (back->real == HP_F64)
                ((double *)back->data[0])[i] = value_of(there, 1, i);
            else
                ((float *)back->data[0])[i] = (float)value_of(there, 1, i);
        }
        run_whole(back);
        assert_memory_equal(back->data[1], there->data[0], (size_t)n);
        cell_free(there);
        cell_free(back);
    }
}

/* --- raw pixels --- */

static void raw_pixels_become_numbers_channel_by_channel(void **state) {
    (void)state;
    cell *c = cell_new(5, HP_DEQUANT);
    const hp_constants_options o = {
        .graph = &c->s.g, .n_mean = 3, .mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}};
    const int64_t n = 3 * c->s.samples * c->s.tensor[0].h * c->s.tensor[0].w;
    c->s.tensor[0].producer = 0;
    for (int t = 0; t < 2; t++) {
        c->s.tensor[t].c = 3;
        c->data[t] = realloc(c->data[t], (size_t)n * 8);
        assert_non_null(c->data[t]);
    }
    for (int64_t i = 0; i < n; i++) c->data[0][i] = (unsigned char)(i * 37);
    hp_constants_close(c->constants);
    assert_int_equal(hp_constants_open(&o, &c->constants, NULL), HP_OK);
    c->config.constants = c->constants;
    run_whole(c);
    for (int64_t i = 0; i < n; i++) {
        const double want = (c->data[0][i] / 255.0 - o.mean[i % 3]) / o.std[i % 3];
        assert_true(fabs(value_of(c, 1, i) - want) < 2e-6);
    }
    cell_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_their_definitions),
        cmocka_unit_test(parts_have_the_bits_of_the_whole),
        cmocka_unit_test(every_instruction_set_gives_the_same_bits),
        cmocka_unit_test(bytes_are_those_of_the_reference),
        cmocka_unit_test(quantised_numbers_survive),
        cmocka_unit_test(raw_pixels_become_numbers_channel_by_channel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
