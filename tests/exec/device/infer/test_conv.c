/* test_conv.c - matrix layers of deployed graphs. They match their definition in real arithmetic, element by
 * element. Where outputs are quantised, the processor gives the reference's bytes. Every part of an output
 * has the whole's bits, in any store; quantised outputs also on every instruction set. */
#include "tests/support/exec/infer_matrix.h"
#include "tests/support/plan/law_cases.h"
#include "tests/support/plan/exact_activation.h"

/* --- the definition --- */

/* The exact value, and the sums of magnitudes of its terms and inputs, which bound rounding. */
typedef struct exact {
    double value, size, inputs;
    int64_t terms;
} exact;

static double input_value(const matrix_cell *m, int64_t i) {
    const cell *c = &m->c;
    float scale[4], zero[4];
    if (c->s.tensor[0].producer) return value_of(c, 0, i);
    hp_constants_pixels(c->constants, scale, zero);
    const int64_t ch = i % c->s.tensor[0].c;
    return (double)scale[ch] * (c->data[0][i] - (double)zero[ch]);
}

/* The weight as the layer uses it: 8 bits if its input has. */
static double weight_value(const matrix_cell *m, const hp_filter *f, int o, int64_t i, int64_t channel) {
    float scale[4], zero[4];
    if (f->weight) return (double)f->weight[i];
    const double w = (double)f->weight_scale[o] * f->weight8[i];
    if (m->c.s.tensor[0].producer) return w;
    hp_constants_pixels(m->c.constants, scale, zero);
    return w / (double)scale[channel];
}

typedef struct place {
    int64_t n, y, x, c;
} place;

static bool tap_input(const hp_layer *l, const hp_tensor *x, int64_t oy, int64_t ox, int ky, int kx,
                      int64_t *iy, int64_t *ix) {
    if (l->op == HP_CONVT) {
        *iy = oy + l->window.pad_h - ky * l->window.dil_h;
        *ix = ox + l->window.pad_w - kx * l->window.dil_w;
        if (*iy < 0 || *ix < 0 || *iy % l->window.stride_h || *ix % l->window.stride_w) return false;
        *iy /= l->window.stride_h;
        *ix /= l->window.stride_w;
    } else {
        *iy = oy * l->window.stride_h - l->window.pad_h + ky * l->window.dil_h;
        *ix = ox * l->window.stride_w - l->window.pad_w + kx * l->window.dil_w;
    }
    return *iy >= 0 && *ix >= 0 && *iy < x->h && *ix < x->w;
}

static void add_term(exact *e, double v) {
    e->value += v;
    e->size += fabs(v);
    e->terms++;
}

/* Raw pixels and their zero points are multiplied unscaled. */
static void add_product(const matrix_cell *m, exact *e, double x, double w) {
    add_term(e, x * w);
    e->inputs += fabs(x);
    if (!m->c.s.tensor[0].producer) e->size += 10 * fabs(w);
}

/* Sum of a linear layer: its input in (C, H, W) order. */
static exact linear_sum(matrix_cell *m, const hp_filter *f, place p) {
    const hp_tensor *x = &m->c.s.tensor[0];
    const int64_t pixels = (int64_t)x->h * x->w;
    exact e = {0};
    for (int64_t i = 0; i < pixels * x->c; i++)
        add_product(m, &e, input_value(m, (p.n * pixels + i % pixels) * x->c + i / pixels),
                    weight_value(m, f, (int)p.c, p.c * pixels * x->c + i, i / pixels));
    return e;
}

static exact conv_sum(matrix_cell *m, const hp_filter *f, place p) {
    const hp_layer *l = layer_of(m);
    const hp_tensor *x = &m->c.s.tensor[0];
    const int outs = m->c.s.tensor[l->out].c / l->groups, ins = x->c / l->groups, g = (int)p.c / outs;
    exact e = {0};
    for (int ky = 0; ky < l->window.kh; ky++)
        for (int kx = 0; kx < l->window.kw; kx++) {
            int64_t iy, ix;
            if (!tap_input(l, x, p.y, p.x, ky, kx, &iy, &ix)) continue;
            for (int i = 0; i < ins; i++) {
                const int64_t row =
                    l->op == HP_CONVT ? (int64_t)(g * ins + i) * outs + p.c % outs : p.c * ins + i;
                add_product(
                    m, &e, input_value(m, ((p.n * x->h + iy) * x->w + ix) * x->c + g * ins + i),
                    weight_value(m, f, (int)p.c, (row * l->window.kh + ky) * l->window.kw + kx, g * ins + i));
            }
        }
    return e;
}

static exact exact_at(matrix_cell *m, const hp_filter *f, place p, int64_t i) {
    const hp_layer *l = layer_of(m);
    exact e = l->op == HP_LINEAR ? linear_sum(m, f, p) : conv_sum(m, f, p);
    if (f->bias) add_term(&e, (double)f->bias[p.c]);
    if (hp_layer_adds(l)) add_term(&e, value_of(&m->c, 1, i));
    e.value = exact_activation(l, e.value);
    return e;
}

/* Half a unit in the last place of the stored value, plus the rounding of the sum; activations have slopes of
 * at most 1.5. Real outputs and weights are in the program's type. */
static double bound_of(const matrix_cell *m, const exact *e, int device) {
    const double eps = device == ON_REF ? 0x1p-53 : 0x1p-24;
    const int y = m->c.s.layer[1].out;
    const double half = m->c.s.tensor[y].store == HP_STORE_BF16  ? 0x1p-8
                        : m->c.s.tensor[y].store == HP_STORE_F16 ? 0x1p-11
                                                                 : 0;
    double sum = ((double)e->terms + 8) * eps * e->size;
    if (device == ON_CPU) sum += (double)m->weight_error * e->size;
    if (device == ON_CPU && m->c.s.tensor[0].store == HP_STORE_F16)
        sum += 0x1p-25 * e->inputs; /* half the smallest step of a weight */
    if (m->c.s.tensor[0].store == HP_STORE_U8) sum += 4 * 0x1p-24 * e->size; /* scales are floats */
    sum = 1.5 * sum + (fabs(e->value) + sum) * half +
          (half > 0 ? 0x1p-25 : 0); /* the smallest step of a binary16 */
    return m->c.s.tensor[y].store == HP_STORE_U8 ? sum + (double)m->c.q[y].scale * (0.5 + 1e-4)
                                                 : sum + 1e-30 + 4 * eps * fabs(e->value);
}

/* Clamps values to the range that bytes represent. */
static double within_range(const matrix_cell *m, double v) {
    const int y = m->c.s.layer[1].out;
    const hp_qparam q = m->c.q[y];
    if (m->c.s.tensor[y].store != HP_STORE_U8) return v;
    return fmin(fmax(v, (double)q.scale * (0 - q.zero)), (double)q.scale * (255 - q.zero));
}

static void compare(matrix_cell *m, int device, const unsigned char *data) {
    const int y = layer_of(m)->out;
    const hp_tensor *t = &m->c.s.tensor[y];
    const bool quantised = m->c.s.tensor[0].store == HP_STORE_U8;
    const int64_t n = elems_of(&m->c, y), step = n > 4000 ? n / 1500 : 1;
    hp_filter f;
    assert_int_equal(hp_constants_filter(m->c.constants, 1, 0, t->c, quantised, &f, NULL), HP_OK);
    for (int64_t i = 0; i < n; i += step) {
        const place p = {i / t->c / t->w / t->h, i / t->c / t->w % t->h, i / t->c % t->w, i % t->c};
        const exact e = exact_at(m, &f, p, i);
        const double got = value_at(data, dtype_of(&m->c, y), m->c.q[y], i), want = within_range(m, e.value);
        if (!(fabs(got - want) <= bound_of(m, &e, device)))
            fail_msg("%s, element %lld: %.9g instead of %.9g, bound %g", cell_said(&m->c), (long long)i, got,
                     want, bound_of(m, &e, device));
    }
}

static void is_what_its_definition_says(matrix_cell *m, int device) {
    size_t bytes;
    unsigned char *data = run_matrix(m, device, NULL, &bytes);
    compare(m, device, data);
    free(data);
}

static void layers_are_what_their_definition_says(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(200); seed++)
        for (int device = ON_REF; device <= ON_CPU; device++) {
            matrix_cell *m = matrix_cell_new(seed);
            is_what_its_definition_says(m, device);
            matrix_cell_free(m);
        }
}

/* --- bits --- */

static void same_as_ref(matrix_cell *m) {
    size_t bytes, same;
    if (m->c.s.tensor[layer_of(m)->out].store != HP_STORE_U8) return;
    unsigned char *ref = run_matrix(m, ON_REF, NULL, &bytes), *cpu = run_matrix(m, ON_CPU, NULL, &same);
    assert_int_equal(bytes, same);
    for (size_t i = 0; i < bytes; i++)
        if (ref[i] != cpu[i]) fail_msg("%s: byte %zu is %d, on ref %d", cell_said(&m->c), i, cpu[i], ref[i]);
    free(ref);
    free(cpu);
}

static void quantised_outputs_have_the_references_bytes(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(300); seed++) {
        matrix_cell *m = matrix_cell_new(seed);
        same_as_ref(m);
        matrix_cell_free(m);
    }
}

/* Parts: rows, columns, samples, single rows, channel slices. */
static void run_in_parts(matrix_cell *m, int device) {
    const hp_layout l = draw_layout(&m->c.d);
    for (int k = 0; k < hp_layout_parts(&l); k++) {
        const hp_box out = hp_layout_own(&l, &m->c.s.g, layer_of(m)->out, m->c.s.samples, k);
        run_matrix_part(m, &out, device, NULL);
    }
}

static void parts_are_the_whole(matrix_cell *m) {
    size_t bytes;
    unsigned char *whole = run_matrix(m, ON_CPU, NULL, &bytes);
    fill_tensors(m, HP_F32);
    run_in_parts(m, ON_CPU);
    if (memcmp(whole, m->c.data[layer_of(m)->out], bytes) != 0) fail_msg("%s", cell_said(&m->c));
    free(whole);
}

static void parts_have_the_wholes_bits(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(200); seed++) {
        matrix_cell *m = matrix_cell_new(seed);
        parts_are_the_whole(m);
        matrix_cell_free(m);
    }
}

/* All instruction sets, in order up to the processor's best one. */
static const hp_panel_kernels *const sets[] = {&hp_panel_base, &hp_panel_avx2, &hp_panel_avx512,
                                               &hp_panel_vnni, &hp_panel_bf16};

static void same_on_every_set(matrix_cell *m) {
    size_t bytes;
    if (m->c.s.tensor[layer_of(m)->out].store != HP_STORE_U8) return;
    unsigned char *best = run_matrix(m, ON_CPU, NULL, &bytes);
    for (int i = 0; sets[i] != hp_kernels_pick()->panel; i++) {
        unsigned char *other = run_matrix(m, ON_CPU, sets[i], &bytes);
        if (memcmp(best, other, bytes) != 0) fail_msg("%s: %s", cell_said(&m->c), sets[i]->isa);
        free(other);
    }
    free(best);
}

static void every_instruction_set_has_the_same_bytes(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(200); seed++) {
        matrix_cell *m = matrix_cell_new(seed);
        same_on_every_set(m);
        matrix_cell_free(m);
    }
}

/* --- unusual depthwise filters --- */

/* Sizes, strides, dilations, down and across: as many rows and columns as kernels handle
 * at a time, and more. */
static const int filters[][6] = {{17, 17, 1, 1, 1, 1}, {16, 31, 1, 1, 1, 1}, {20, 25, 2, 1, 1, 1},
                                 {1, 31, 1, 1, 1, 1},  {31, 1, 1, 1, 1, 1},  {1, 128, 1, 3, 1, 1},
                                 {1, 129, 1, 1, 1, 1}, {512, 1, 3, 1, 1, 1}, {513, 1, 1, 1, 1, 1},
                                 {7, 7, 3, 3, 3, 3},   {3, 43, 1, 2, 1, 3},  {3, 44, 1, 1, 2, 3},
                                 {3, 3, 1, 1, 1, 1},   {3, 3, 1, 50, 1, 1},  {3, 3, 1, 1, 1, 63},
                                 {5, 3, 2, 2, 1, 1},   {33, 11, 1, 1, 1, 1}, {4, 3, 1, 1, 9, 1}};

static void try_depthwise(throws *d, const int *f, single *s) {
    static const int channels[] = {3, 16, 64, 70, 130};
    const int high = f[4] * (f[0] - 1), wide = f[5] * (f[1] - 1), c = draw_of(d, channels, 5);
    *s = (single){.samples = draw(d, 1, 2)};
    s->layer[1] = (hp_layer){.name = "layer",
                             .op = HP_CONV,
                             .n_in = draw(d, 1, 2),
                             .in = {0, 1},
                             .groups = c,
                             .window.kh = f[0],
                             .window.kw = f[1],
                             .window.stride_h = f[2],
                             .window.stride_w = f[3],
                             .window.dil_h = f[4],
                             .window.dil_w = f[5],
                             .window.pad_h = draw(d, 0, high),
                             .window.pad_w = draw(d, 0, wide)};
    s->tensor[0] = (hp_tensor){.h = draw(d, 1, 9), .w = draw(d, 1, 60), .c = c};
}

static matrix_cell *depthwise_cell(uint64_t seed, const int *filter) {
    matrix_cell *m = matrix_cell_begin(seed);
    single *s = &m->c.s;
    hp_layer *l = layer_of(m);
    hp_tensor y;
    do try_depthwise(&m->c.d, filter, s);
    while (hp_layer_shape(&(hp_graph){.layer = s->layer, .tensor = s->tensor}, l, s->tensor[0].c, &y, NULL) !=
           HP_OK);
    s->layer[0] = (hp_layer){.name = "image", .op = HP_INPUT};
    s->g = (hp_graph){.n_layer = 2, .n_tensor = l->n_in + 1};
    l->out = l->n_in;
    s->tensor[1] = s->tensor[l->out] = y;
    return matrix_cell_end(m);
}

static void depthwise_filters_have_any_size(void **state) {
    (void)state;
    const bool all = law_all("ten depthwise layers of each size, not one");
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        for (uint64_t seed = 1; seed <= (all ? law_cases(100) / 10 : 1); seed++) {
            matrix_cell *m = depthwise_cell(seed + i % 10 * !all, filters[i]);
            is_what_its_definition_says(m, ON_CPU);
            same_as_ref(m);
            same_on_every_set(m);
            parts_are_the_whole(m);
            matrix_cell_free(m);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_what_their_definition_says),
        cmocka_unit_test(quantised_outputs_have_the_references_bytes),
        cmocka_unit_test(parts_have_the_wholes_bits),
        cmocka_unit_test(every_instruction_set_has_the_same_bytes),
        cmocka_unit_test(depthwise_filters_have_any_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
