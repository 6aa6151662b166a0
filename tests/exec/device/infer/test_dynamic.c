/* test_dynamic.c - layers that quantise their input at run time. They compute what the formula of ONNX's
 * DynamicQuantizeLinear and exact integer sums give, sample by sample, with the same bytes on every
 * instruction set. Non-finite numbers affect only their sample. */
#include "networks/graph/acts.h"
#include "tests/support/exec/infer_matrix.h"
#include "tests/support/plan/law_cases.h"
#include "tests/support/plan/exact_activation.h"

/* --- a drawn layer --- */

static matrix_cell *dynamic_cell(uint64_t seed) {
    matrix_cell *m = matrix_cell_new(seed);
    for (int t = 0; t <= layer_of(m)->out; t++) m->c.s.tensor[t].store = HP_STORE_REAL;
    m->c.s.tensor[0].producer = draw(&m->c.d, 0, 1);
    m->weight_error = 0;
    layer_of(m)->deployed.dynamic = 1;
    hp_constants_close(m->c.constants);
    open_matrix_constants(m);
    m->c.config.constants = m->c.constants;
    return m;
}

static int64_t sample_elems(const matrix_cell *m) {
    const hp_tensor *x = &m->c.s.tensor[0];
    return (int64_t)x->h * x->w * x->c;
}

static float input_at(const matrix_cell *m, int64_t i) {
    const void *data = m->c.data[0];
    return m->c.real == HP_F64 ? (float)((const double *)data)[i] : ((const float *)data)[i];
}

static void set_input(matrix_cell *m, int64_t i, float v) {
    if (m->c.real == HP_F64)
        ((double *)(void *)m->c.data[0])[i] = (double)v;
    else
        ((float *)(void *)m->c.data[0])[i] = v;
}

/* Samples of all kinds: mixed signs, none negative, none positive, all 0, a single nonzero, tiny ones. */
static void shape_inputs(matrix_cell *m) {
    const int64_t n = sample_elems(m);
    for (int64_t i = 0; i < n * m->c.s.samples; i++) {
        const float v = input_at(m, i);
        const float kinds[] = {v, fmaxf(v, 0), -fabsf(v), 0, i % n ? 0 : v, v * 0x1p-140f};
        set_input(m, i, kinds[(m->c.d.seed + (uint64_t)(i / n)) % 6]);
    }
}

/* Runs the whole layer into its output's data; kernels NULL: the processor's default. */
static void run_dynamic(matrix_cell *m, int device, const hp_panel_kernels *kernels,
                        const hp_infer_loops *loops) {
    matrix_part p = {.out = hp_box_whole(&m->c.s.g, layer_of(m)->out, m->c.s.samples)};
    prepare_matrix_part(m, &p, device);
    hp_matrix *self = p.kernel.self;
    if (kernels) {
        self->kernels = kernels;
        self->dynamic.loops = loops;
        m->c.infer.packed[1] = false;
        assert_int_equal(hp_matrix_pack(&m->c.infer, &p.b, self, NULL), HP_OK);
    }
    assert_int_equal(p.kernel.run(p.kernel.self, &p.b, NULL), HP_OK);
    move_box(&m->c, layer_of(m)->out, &p.out, p.b.y, true);
    matrix_part_end(&p);
}

static unsigned char *copy_output(const matrix_cell *m, size_t *bytes) {
    const int y = m->c.s.layer[1].out;
    *bytes = (size_t)(elems_of(&m->c, y) * hp_dtype_bytes(dtype_of(&m->c, y)));
    unsigned char *copy = malloc(*bytes + 1);
    assert_non_null(copy);
    return memcpy(copy, m->c.data[y], *bytes);
}

/* --- the formula --- */

typedef struct formula {
    float scale;
    int zero;
    int *q; /* bytes of one sample */
} formula;

static int saturate(float v) {
    return v < 0 ? 0 : v > 255 ? 255 : (int)v;
}

static void quantise_sample(const matrix_cell *m, int64_t sample, formula *f) {
    const int64_t n = sample_elems(m);
    float lo = 0, hi = 0;
    for (int64_t i = 0; i < n; i++) {
        lo = fminf(lo, input_at(m, sample * n + i));
        hi = fmaxf(hi, input_at(m, sample * n + i));
    }
    f->scale = (hi - lo) / 255;
    if (f->scale == 0) f->scale = 1;
    f->zero = saturate(rintf(-lo / f->scale));
    for (int64_t i = 0; i < n; i++)
        f->q[i] = saturate(rintf(input_at(m, sample * n + i) / f->scale) + (float)f->zero);
}

typedef struct place {
    int64_t y, x, c;
} place;

static bool tap_input(const hp_layer *l, const hp_tensor *x, place p, int ky, int kx, int64_t *iy,
                      int64_t *ix) {
    const bool up = l->op == HP_CONVT;
    *iy = up ? p.y + l->window.pad_h - ky * l->window.dil_h
             : p.y * l->window.stride_h - l->window.pad_h + ky * l->window.dil_h;
    *ix = up ? p.x + l->window.pad_w - kx * l->window.dil_w
             : p.x * l->window.stride_w - l->window.pad_w + kx * l->window.dil_w;
    if (up && (*iy < 0 || *ix < 0 || *iy % l->window.stride_h || *ix % l->window.stride_w)) return false;
    *iy /= up ? l->window.stride_h : 1;
    *ix /= up ? l->window.stride_w : 1;
    return *iy >= 0 && *ix >= 0 && *iy < x->h && *ix < x->w;
}

/* Exact: taps outside the map are real zeros and add nothing. */
static int64_t conv_sum(const matrix_cell *m, const formula *f, const int8_t *w, place p) {
    const hp_layer *l = &m->c.s.layer[1];
    const hp_tensor *x = &m->c.s.tensor[0];
    const int outs = m->c.s.tensor[l->out].c / l->groups, ins = x->c / l->groups, g = (int)p.c / outs;
    int64_t sum = 0, iy, ix;
    for (int ky = 0; ky < l->window.kh; ky++)
        for (int kx = 0; kx < l->window.kw; kx++)
            for (int i = 0; i < ins && tap_input(l, x, p, ky, kx, &iy, &ix); i++) {
                const int64_t row =
                    l->op == HP_CONVT ? (int64_t)(g * ins + i) * outs + p.c % outs : p.c * ins + i;
                sum += (int64_t)w[(row * l->window.kh + ky) * l->window.kw + kx] *
                       (f->q[(iy * x->w + ix) * x->c + g * ins + i] - f->zero);
            }
    return sum;
}

/* Weights are in (C, H, W) order, maps in (H, W, C). */
static int64_t linear_sum(const matrix_cell *m, const formula *f, const int8_t *w, place p) {
    const hp_tensor *x = &m->c.s.tensor[0];
    const int64_t pixels = (int64_t)x->h * x->w;
    int64_t sum = 0;
    for (int64_t i = 0; i < pixels * x->c; i++)
        sum += (int64_t)w[p.c * pixels * x->c + i] * (f->q[i % pixels * x->c + i / pixels] - f->zero);
    return sum;
}

/* Rounded to float32: the sum, the product of the scales, their product, and two additions. Slopes of
 * activations are at most 1.5. Products of tiny scales have a step of the smallest float. */
static void compare_element(const matrix_cell *m, const formula *f, const hp_filter *w, int64_t i,
                            double got) {
    const hp_layer *l = &m->c.s.layer[1];
    const hp_tensor *t = &m->c.s.tensor[l->out];
    const place p = {i / t->c / t->w % t->h, i / t->c % t->w, i % t->c};
    const int64_t sum = l->op == HP_LINEAR ? linear_sum(m, f, w->weight8, p) : conv_sum(m, f, w->weight8, p);
    const double product = (double)f->scale * (double)w->weight_scale[p.c] * (double)sum,
                 bias = w->bias ? (double)w->bias[p.c] : 0,
                 added = hp_layer_adds(l) ? value_of(&m->c, 1, i) : 0;
    const double want = exact_activation(l, product + bias + added),
                 size = fabs(product) + fabs(bias) + fabs(added) + fabs(want);
    if (!(fabs(got - want) <= 1.5 * (6 * 0x1p-24 * size + 0x1p-149 * (fabs((double)sum) + 2))))
        fail_msg("%s, element %lld: %.9g instead of %.9g", cell_said(&m->c), (long long)i, got, want);
}

static void compare(matrix_cell *m) {
    const int y = layer_of(m)->out;
    const int64_t n = elems_of(&m->c, y), each = n / m->c.s.samples, step = n > 4000 ? n / 1500 : 1;
    hp_filter w;
    formula f = {.q = calloc((size_t)sample_elems(m), sizeof *f.q)};
    assert_non_null(f.q);
    assert_int_equal(hp_constants_filter(m->c.constants, 1, 0, m->c.s.tensor[y].c, true, &w, NULL), HP_OK);
    for (int64_t i = 0, last = -1; i < n; i += step) {
        if (i / each != last) quantise_sample(m, last = i / each, &f);
        compare_element(m, &f, &w, i, value_of(&m->c, y, i));
    }
    free(f.q);
}

static void layers_are_what_the_formula_says(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(300); seed++)
        for (int device = ON_REF; device <= ON_CPU; device++) {
            matrix_cell *m = dynamic_cell(seed);
            fill_tensors(m, device == ON_REF ? HP_F64 : HP_F32);
            shape_inputs(m);
            run_dynamic(m, device, NULL, NULL);
            compare(m);
            matrix_cell_free(m);
        }
}

/* --- bytes --- */

/* Instruction sets of the products, and of the passes that go with them. */
static const struct {
    const hp_panel_kernels *kernels;
    const hp_infer_loops *loops;
} sets[] = {{&hp_panel_base, &hp_infer_loops_base},
            {&hp_panel_avx2, &hp_infer_loops_avx2},
            {&hp_panel_avx512, &hp_infer_loops_avx512},
            {&hp_panel_vnni, &hp_infer_loops_avx512},
            {&hp_panel_bf16, &hp_infer_loops_avx512}};

static void every_instruction_set_has_the_same_bytes(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(200); seed++) {
        size_t bytes;
        unsigned char *best = NULL;
        matrix_cell *m = dynamic_cell(seed);
        for (int i = -1; i < 0 || sets[i].kernels != hp_kernels_pick()->panel; i++) {
            fill_tensors(m, HP_F32);
            shape_inputs(m);
            run_dynamic(m, ON_CPU, i < 0 ? NULL : sets[i].kernels, i < 0 ? NULL : sets[i].loops);
            if (i < 0)
                best = copy_output(m, &bytes);
            else if (memcmp(best, m->c.data[layer_of(m)->out], bytes) != 0)
                fail_msg("%s: %s", cell_said(&m->c), sets[i].kernels->isa);
        }
        free(best);
        matrix_cell_free(m);
    }
}

/* --- numbers that are not finite --- */

static bool keeps_nan(int act) {
    return act <= HP_ACT_CLIP || act == HP_ACT_HSWISH;
}

/* All outputs of their sample are NaN; those of other samples are unchanged. */
static void what_is_not_finite_stays_with_its_sample(void **state) {
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(200); seed++)
        for (int device = ON_REF; device <= ON_CPU; device++) {
            size_t bytes;
            matrix_cell *m = dynamic_cell(seed);
            const int y = layer_of(m)->out;
            if (!keeps_nan(layer_of(m)->act)) layer_of(m)->act = HP_ACT_NONE;
            fill_tensors(m, device == ON_REF ? HP_F64 : HP_F32);
            run_dynamic(m, device, NULL, NULL);
            unsigned char *before = copy_output(m, &bytes);
            const int64_t n = sample_elems(m), each = elems_of(&m->c, y) / m->c.s.samples;
            const int bad = draw(&m->c.d, 0, m->c.s.samples - 1);
            fill_tensors(m, m->c.real);
            set_input(m, bad * n + draw(&m->c.d, 0, (int)n - 1), odd[seed % 3]);
            run_dynamic(m, device, NULL, NULL);
            for (int64_t i = 0; i < elems_of(&m->c, y); i++) {
                const double was = value_at(before, m->c.real, m->c.q[y], i), is = value_of(&m->c, y, i);
                if (i / each == bad ? !isnan(is) : is != was) // NOLINT: the same bits
                    fail_msg("%s, element %lld: %g", cell_said(&m->c), (long long)i, is);
            }
            free(before);
            matrix_cell_free(m);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_what_the_formula_says),
        cmocka_unit_test(every_instruction_set_has_the_same_bytes),
        cmocka_unit_test(what_is_not_finite_stays_with_its_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
