/* test_exec_onnx_int8.c - quantised ONNX models as int8 programs: their integers are those of the operators'
 * definitions (QLinearConv, QuantizeLinear: exact sums, round to nearest even, saturate), evaluated here in
 * float64, whichever form the model has; what cannot be had in 8 bits stays real, and is named. */
#include "exec/data/quantised.h"
#include "plan/base/rng.h"
#include "plan/fuse.h"
#include "plan/onnx/onnx_int8.h"
#include "tests/data_files.h"
#include "tests/infer_once.h"
#include "tests/onnx_write.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* The image has more channels than raw pixels may have: it is real. */
enum { H = 6, W = 7, IMAGE_C = 5, MOST = 512, MOST_CONVS = 5, UINT8 = 2, INT8 = 3, INT32 = 6, BY_TENSOR = 1 };

/* --- a model --- */

typedef struct map { /* (c, H, W) of integers: real = scale (q - zero) */
    int c, type, zero;
    float scale;
    int q[MOST];
} map;

typedef struct conv {
    int in, out, k, groups, weights, type, w_zero;
    int8_t w[MOST]; /* the stored integer less w_zero */
    float w_scale[8];
    int32_t bias[8];
} conv;

typedef struct world {
    uint64_t seed, drawn;
    bool qdq;
    onnx_writer w;
    int n_conv, n_map;
    bool near_half; /* a number that rounding may take either way */
} world;

static int draw(world *s, int low, int high) {
    return low + (int)(hp_rng_uniform(s->seed, 17, s->drawn++) * (high - low + 1));
}

static float draw_scale(world *s, double about) {
    return (float)(about * (0.6 + hp_rng_uniform(s->seed, 18, s->drawn++)));
}

static int low_of(int type) {
    return type == INT8 ? -128 : 0;
}

/* The definition: saturate(round(v) + zero). */
static int level(world *s, double v, const map *y) {
    const double whole = nearbyint(v), q = whole + y->zero, low = low_of(y->type);
    if (fabs(fabs(v - whole) - 0.5) < 1e-4) s->near_half = true;
    return (int)(q < low ? low : q > low + 255 ? low + 255 : q);
}

/* --- the definitions --- */

static double conv_at(const conv *c, const map *x, int o, int row, int col) {
    const int ins = c->in / c->groups, first = o / (c->out / c->groups) * ins, pad = c->k / 2;
    int64_t sum = c->bias[o];
    for (int i = 0; i < ins; i++)
        for (int ky = 0; ky < c->k; ky++)
            for (int kx = 0; kx < c->k; kx++) {
                const int y = row + ky - pad, z = col + kx - pad;
                if (y < 0 || z < 0 || y >= H || z >= W) continue;
                sum += (int64_t)c->w[((o * ins + i) * c->k + ky) * c->k + kx] *
                       (x->q[((first + i) * H + y) * W + z] - x->zero);
            }
    return (double)sum;
}

static void apply_conv(world *s, const conv *c, const map *x, map *y) {
    for (int o = 0; o < c->out; o++)
        for (int p = 0; p < H * W; p++) {
            const double scale = (double)x->scale * (double)c->w_scale[o] / (double)y->scale;
            y->q[o * H * W + p] = level(s, scale * conv_at(c, x, o, p / W, p % W), y);
        }
}

static void apply_add(world *s, const map *a, const map *b, map *y) {
    for (int e = 0; e < y->c * H * W; e++)
        y->q[e] = level(s,
                        ((double)a->scale * (a->q[e] - a->zero) + (double)b->scale * (b->q[e] - b->zero)) /
                            (double)y->scale,
                        y);
}

static void apply_pool(const map *x, map *y) {
    for (int e = 0; e < y->c * H * W; e++) {
        const int c = e / (H * W), row = e / W % H, col = e % W;
        y->q[e] = -200;
        for (int k = 0; k < 9; k++) {
            const int at_y = row + k / 3 - 1, at_x = col + k % 3 - 1;
            if (at_y < 0 || at_x < 0 || at_y >= H || at_x >= W) continue;
            const int v = x->q[(c * H + at_y) * W + at_x];
            if (v > y->q[e]) y->q[e] = v;
        }
    }
}

/* --- the same as ONNX --- */

static const char *text(world *s, const char *fmt, int n) {
    char room[64];
    snprintf(room, sizeof room, fmt, n);
    return hp_arena_strdup(s->w.arena, room);
}

static const char *join(world *s, const char *a, const char *b) {
    return hp_arena_printf(s->w.arena, "%s %s", a, b);
}

/* "scale zero" of a map, made constants. */
static const char *quant(world *s, const map *m, int number) {
    const uint8_t zero = (uint8_t)m->zero;
    const char *scale = text(s, "s%d", number), *z = text(s, "z%d", number);
    onnx_write_floats(&s->w, scale, 0, NULL, &m->scale);
    onnx_write_bytes(&s->w, z, m->type, 0, NULL, &zero, 1);
    return join(s, scale, z);
}

/* A value of the model and the map that it is. */
typedef struct value {
    const char *name, *quant; /* quant: "scale zero" */
    map m;
} value;

/* Draws how `v` is quantised; its channels are known. */
static void name_value(world *s, value *v, int zero, float scale) {
    const int number = s->n_map++;
    v->m.type = draw(s, 0, 1) ? UINT8 : INT8;
    v->m.zero = zero + low_of(v->m.type);
    v->m.scale = scale;
    v->name = text(s, "v%d", number);
    v->quant = quant(s, &v->m, number);
}

/* QDQ: the real tensor `from` becomes v's levels as reals; else v is the integers already. */
static void write_pair(world *s, const char *from, const value *v) {
    const char *q = hp_arena_printf(s->w.arena, "%s.q", v->name);
    onnx_write_node(&s->w, "QuantizeLinear", join(s, from, v->quant), q);
    onnx_write_node(&s->w, "DequantizeLinear", join(s, q, v->quant), v->name);
}

/* "w scale zero" */
static const char *write_weights(world *s, const conv *c, int number) {
    const int64_t dim[4] = {c->out, c->in / c->groups, c->k, c->k},
                  scales = c->weights == BY_TENSOR ? 1 : c->out;
    uint8_t stored[MOST], zero[8];
    const int n = c->out * (int)dim[1] * c->k * c->k;
    for (int e = 0; e < n; e++) stored[e] = (uint8_t)(c->w[e] + c->w_zero);
    memset(zero, c->w_zero, sizeof zero);
    const char *w = text(s, "w%d", number), *scale = text(s, "ws%d", number), *z = text(s, "wz%d", number);
    onnx_write_bytes(&s->w, w, c->type, 4, dim, stored, (size_t)n);
    onnx_write_floats(&s->w, scale, scales > 1, &scales, c->w_scale);
    onnx_write_bytes(&s->w, z, c->type, scales > 1, &scales, zero, (size_t)scales);
    return join(s, join(s, w, scale), z);
}

static const char *write_bias(world *s, const conv *c, int number) {
    const int64_t n = c->out;
    const char *name = text(s, "b%d", number);
    onnx_write_bytes(&s->w, name, INT32, 1, &n, c->bias, (size_t)n * sizeof *c->bias);
    return name;
}

static void set_window(world *s, Onnx__NodeProto *n, int k, int groups) {
    const int64_t kernel[2] = {k, k}, pads[4] = {k / 2, k / 2, k / 2, k / 2};
    onnx_write_ints(&s->w, n, "kernel_shape", 2, kernel);
    onnx_write_ints(&s->w, n, "pads", 4, pads);
    if (groups > 1) onnx_write_int(&s->w, n, "group", groups);
}

/* The bias as reals: its scale is that of x times the weights'. */
static const char *write_real_bias(world *s, const conv *c, const map *x, const char *b) {
    const int64_t n = c->out;
    float scale[8];
    for (int o = 0; o < c->out; o++) scale[o] = x->scale * c->w_scale[o];
    onnx_write_floats(&s->w, hp_arena_printf(s->w.arena, "%s.scale", b), 1, &n, scale);
    const char *real = hp_arena_printf(s->w.arena, "%s.real", b);
    onnx_write_int(
        &s->w,
        onnx_write_node(&s->w, "DequantizeLinear", hp_arena_printf(s->w.arena, "%s %s.scale", b, b), real),
        "axis", 0);
    return real;
}

static void write_conv(world *s, const conv *c, const value *x, const value *y) {
    const int number = s->n_conv++;
    const char *w = write_weights(s, c, number), *b = write_bias(s, c, number);
    if (!s->qdq) {
        const char *in = join(s, join(s, x->name, x->quant), join(s, w, join(s, y->quant, b)));
        set_window(s, onnx_write_node(&s->w, "QLinearConv", in, y->name), c->k, c->groups);
        return;
    }
    const char *real = text(s, "wr%d", number), *sum = text(s, "sum%d", number);
    onnx_write_int(&s->w, onnx_write_node(&s->w, "DequantizeLinear", w, real), "axis", 0);
    b = write_real_bias(s, c, &x->m, b);
    set_window(s, onnx_write_node(&s->w, "Conv", join(s, x->name, join(s, real, b)), sum), c->k, c->groups);
    write_pair(s, sum, y);
}

static void write_add(world *s, const value *a, const value *b, const value *y) {
    if (s->qdq) {
        onnx_write_node(&s->w, "Add", join(s, a->name, b->name), "added");
        write_pair(s, "added", y);
        return;
    }
    const char *in = join(s, join(s, a->name, a->quant), join(s, b->name, join(s, b->quant, y->quant)));
    onnx_write_node(&s->w, "QLinearAdd", in, y->name)->domain = hp_arena_strdup(s->w.arena, "com.microsoft");
}

/* --- steps: the model grows, and its integers --- */

static conv draw_conv(world *s, int in, int out, int k, int groups) {
    conv c = {.in = in,
              .out = out,
              .k = k,
              .groups = groups,
              .weights = draw(s, 0, 1),
              .type = draw(s, INT8, INT8)};
    if (draw(s, 0, 2) == 0) c.type = UINT8;
    c.w_zero = c.type == UINT8 ? 128 : 0;
    for (int e = 0; e < out * in / groups * k * k; e++) c.w[e] = (int8_t)draw(s, -127, 127);
    for (int o = 0; o < out; o++) {
        c.w_scale[o] = c.weights == BY_TENSOR && o ? c.w_scale[0] : draw_scale(s, 0.01);
        c.bias[o] = draw(s, -3000, 3000);
    }
    return c;
}

/* zero 0: saturation is a ReLU. */
static void step_conv(world *s, const value *x, int out, int k, int groups, value *y) {
    const conv c = draw_conv(s, x->m.c, out, k, groups);
    y->m.c = out;
    name_value(s, y, draw(s, 0, 1) ? 0 : draw(s, 90, 160), draw_scale(s, 0.02 * k * sqrt(x->m.c / groups)));
    write_conv(s, &c, x, y);
    apply_conv(s, &c, &x->m, &y->m);
}

static void step_add(world *s, const value *a, const value *b, value *y) {
    y->m.c = a->m.c;
    name_value(s, y, draw(s, 0, 255), draw_scale(s, (double)(a->m.scale + b->m.scale)));
    write_add(s, a, b, y);
    apply_add(s, &a->m, &b->m, &y->m);
}

static void step_pool(world *s, const value *x, value *y) {
    *y = *x;
    y->name = text(s, "p%d", s->n_map++);
    const char *to = s->qdq ? hp_arena_printf(s->w.arena, "%s.real", y->name) : y->name;
    set_window(s, onnx_write_node(&s->w, "MaxPool", x->name, to), 3, 1);
    if (s->qdq) write_pair(s, to, y);
    apply_pool(&x->m, &y->m);
}

/* One to one, so that the last integers come out as reals: an int8 program's last layer is real. */
static void step_out(world *s, const value *x) {
    value y = {.m = {.c = x->m.c}};
    conv c = {.in = x->m.c, .out = x->m.c, .k = 1, .groups = x->m.c, .type = INT8, .weights = BY_TENSOR};
    for (int o = 0; o < c.out; o++) c.w[o] = 1;
    for (int o = 0; o < c.out; o++) c.w_scale[o] = 1;
    name_value(s, &y, x->m.zero - low_of(x->m.type), x->m.scale);
    write_conv(s, &c, x, &y);
    if (!s->qdq) onnx_write_node(&s->w, "DequantizeLinear", join(s, y.name, y.quant), "out");
    onnx_write_output(&s->w, s->qdq ? y.name : "out");
}

static void step_image(world *s, value *x, double *image) {
    static const int64_t dim[4] = {1, IMAGE_C, H, W};
    x->m.c = IMAGE_C;
    name_value(s, x, draw(s, 0, 255), draw_scale(s, 0.02));
    onnx_write_input(&s->w, "image", 4, dim);
    for (int e = 0; e < IMAGE_C * H * W; e++) {
        const float real = (float)(4 * hp_rng_uniform(s->seed, 19, (uint64_t)e) - 2);
        x->m.q[e] = level(s, (double)real / (double)x->m.scale, &x->m);
        image[e % (H * W) * IMAGE_C + e / (H * W)] = (double)real;
    }
    if (s->qdq)
        write_pair(s, "image", x);
    else
        onnx_write_node(&s->w, "QuantizeLinear", join(s, "image", x->quant), x->name);
}

/* A residual block behind a pool: every operator, and a convolution whose output is rounded before it is
 * added.
 */
static value draw_model(world *s, double *image) {
    value x = {0}, a = {0}, b = {0}, c = {0}, d = {0}, e = {0};
    step_image(s, &x, image);
    step_conv(s, &x, 4, 3, 1, &a);
    step_pool(s, &a, &b);
    step_conv(s, &b, 4, 3, 4, &c);
    step_conv(s, &c, 4, 1, 2, &d);
    step_add(s, &d, &b, &e);
    step_out(s, &e);
    return e;
}

/* --- the program --- */

static hp_onnx_model read_model(world *s) {
    size_t size;
    hp_error err = {0};
    hp_onnx_model m;
    const void *data = onnx_writer_pack(&s->w, &size);
    if (hp_onnx_parse(s->w.arena, "q.onnx", data, size, false, 0, 0, true, &m, &err) != HP_OK)
        fail_msg("%s", err.text);
    return m;
}

static hp_onnx_int8 write_file(world *s, const hp_onnx_model *m, const char *path) {
    static const hp_onnx_pixels pixels = {1, {0.5}, {0.5}};
    hp_error err = {0};
    hp_onnx_int8 p;
    if (hp_onnx_deploy_int8(s->w.arena, m, &p, &err) != HP_OK ||
        hp_onnx_write_int8(path, m, &p, &pixels, "a test", &err) != HP_OK)
        fail_msg("%s", err.text);
    return p;
}

static void run_int8(world *s, const hp_onnx_model *m, const hp_onnx_int8 *p, const char *device,
                     const char *path, double *image, double *out) {
    const hp_deploy_options o = {.prec = HP_PREC_INT8, .float_layers = p->float_layers};
    infer_once r;
    hp_error err = {0};
    if (infer_once_open_as(&r, hp_graph_fuse(s->w.arena, m->graph), &o, device, path, &err) != HP_OK ||
        infer_once_run(&r, image, out, &err) != HP_OK)
        fail_msg("%s: %s", device, err.text);
    infer_once_close(&r);
}

static void assert_same_integers(const world *s, const map *wanted, const double *out, const char *device) {
    for (int e = 0; e < wanted->c * H * W; e++) {
        const double real = out[e % (H * W) * wanted->c + e / (H * W)];
        const int q = (int)nearbyint(real / (double)wanted->scale) + wanted->zero;
        if (q != wanted->q[e])
            fail_msg("seed %d, %s, %s: element %d is %d, by definition %d", (int)s->seed,
                     s->qdq ? "QDQ" : "QOperator", device, e, q, wanted->q[e]);
    }
}

static world start(hp_arena *a, uint64_t seed, bool qdq) {
    return (world){.seed = seed, .qdq = qdq, .w = onnx_writer_start(a, 13)};
}

/* Returns false where rounding may go either way. */
static bool one_draw(uint64_t seed, bool qdq) {
    hp_arena *a = hp_arena_new();
    world s = start(a, seed, qdq);
    double image[IMAGE_C * H * W], out[MOST];
    const value last = draw_model(&s, image);
    const char *path = scratch_path("q.safetensors");
    if (!s.near_half) {
        const hp_onnx_model m = read_model(&s);
        const hp_onnx_int8 p = write_file(&s, &m, path);
        assert_string_equal(p.float_layers, "");
        assert_int_equal(p.n_weights8, 4);
        for (int k = 0; k < 2; k++) {
            run_int8(&s, &m, &p, k ? "cpu" : "ref", path, image, out);
            assert_same_integers(&s, &last.m, out, k ? "cpu" : "ref");
        }
    }
    hp_arena_free(a);
    return !s.near_half;
}

static void integers_are_those_of_the_definition(void **state) {
    (void)state;
    int done = 0;
    for (uint64_t seed = 1; seed <= 60; seed++)
        for (int qdq = 0; qdq < 2; qdq++) done += one_draw(seed, qdq);
    assert_true(done >= 60);
}

/* --- what stays real --- */

static void layers_that_are_no_8_bit_numbers_stay_real(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    world s = start(a, 5, true);
    value x = {0}, y = {0}, z = {0};
    double image[IMAGE_C * H * W];
    step_image(&s, &x, image);
    conv c = draw_conv(&s, IMAGE_C, 4, 3, 1);
    c.type = UINT8;
    c.w_zero = 10; /* 255 - 10 is more than 127 */
    memset(c.w, 100, sizeof c.w);
    c.w[0] = -10;
    c.w[1] = 127;
    y.m.c = 4;
    name_value(&s, &y, 100, 0.5f);
    write_conv(&s, &c, &x, &y);
    step_conv(&s, &y, 4, 3, 1, &z);
    onnx_write_node(&s.w, "Sigmoid", z.name, "no_scale");
    onnx_write_output(&s.w, "no_scale");
    hp_onnx_model m = read_model(&s);
    const hp_onnx_int8 all = write_file(&s, &m, scratch_path("q.safetensors"));
    assert_string_equal(all.float_layers, ""); /* about zero and small enough all the same */
    int8_t *w = (int8_t *)(uintptr_t)m.param[m.graph->layer[1].param[0]].data8;
    w[0] = INT8_MIN;
    const hp_onnx_int8 less = write_file(&s, &m, scratch_path("q.safetensors"));
    assert_string_equal(less.float_layers, m.graph->layer[1].name);
    assert_int_equal(less.n_weights8, 1);
    hp_arena_free(a);
}

static void a_model_without_scales_is_no_int8_program(void **state) {
    (void)state;
    static const int64_t dim[4] = {1, IMAGE_C, H, W}, w_dim[4] = {2, IMAGE_C, 1, 1};
    static const float w[2 * IMAGE_C] = {1, 2, 3};
    hp_arena *a = hp_arena_new();
    world s = start(a, 1, true);
    onnx_write_input(&s.w, "image", 4, dim);
    onnx_write_floats(&s.w, "w", 4, w_dim, w);
    onnx_write_node(&s.w, "Conv", "image w", "y");
    onnx_write_output(&s.w, "y");
    const hp_onnx_model m = read_model(&s);
    hp_onnx_int8 p;
    hp_error err = {0};
    assert_int_equal(hp_onnx_deploy_int8(a, &m, &p, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "hplan quantize"));
    hp_arena_free(a);
}

/* --- malformed quantisation --- */

typedef struct fault {
    float scale;
    int64_t scales;
    int zero_type;
    const char *says;
} fault;

static void malformed_quantisation_is_refused(void **state) {
    (void)state;
    static const fault faults[] = {
        {0, 1, UINT8, "positive"},           {-1, 1, UINT8, "positive"},
        {NAN, 1, UINT8, "positive"},         {INFINITY, 1, UINT8, "positive"},
        {1e-42f, 1, UINT8, "positive"},      {0.1f, 3, UINT8, "3 scales for 5 channels"},
        {0.1f, 1, INT8, "its integers are"}, {0.1f, 1, INT32, "8-bit"}};
    static const int64_t dim[4] = {1, IMAGE_C, H, W};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const fault *f = &faults[i];
        hp_arena *a = hp_arena_new();
        world s = start(a, 1, true);
        const float scale[3] = {f->scale, f->scale, f->scale};
        const float good = 0.1f;
        const int32_t zero = 0;
        hp_onnx_model m;
        hp_error err = {0};
        size_t size;
        onnx_write_input(&s.w, "image", 4, dim);
        onnx_write_floats(&s.w, "s", f->scales > 1, &f->scales, scale);
        onnx_write_floats(&s.w, "good", 0, NULL, &good);
        onnx_write_bytes(&s.w, "z", f->zero_type, 0, NULL, &zero, f->zero_type == INT32 ? 4 : 1);
        onnx_write_bytes(&s.w, "u", UINT8, 0, NULL, &zero, 1);
        onnx_write_node(&s.w, "QuantizeLinear", f->zero_type == INT8 ? "image good u" : "image s z", "q");
        onnx_write_node(&s.w, "DequantizeLinear", "q s z", "y");
        onnx_write_output(&s.w, "y");
        const void *data = onnx_writer_pack(&s.w, &size);
        assert_int_equal(hp_onnx_parse(a, "q.onnx", data, size, false, 0, 0, true, &m, &err), HP_EDATA);
        if (!strstr(err.text, f->says)) fail_msg("fault %d says: %s", (int)i, err.text);
        hp_arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_those_of_the_definition),
        cmocka_unit_test(layers_that_are_no_8_bit_numbers_stay_real),
        cmocka_unit_test(a_model_without_scales_is_no_int8_program),
        cmocka_unit_test(malformed_quantisation_is_refused),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
