/* infer_layer.c - one drawn layer of a deployed graph. */
#include "tests/support/exec/infer_layer.h"

#include "exec/device/ref/ref.h"
#include "networks/graph/acts.h"

/* --- elements --- */

hp_dtype dtype_of(const cell *c, int tensor) {
    return hp_tensor_dtype(&c->s.tensor[tensor], c->real);
}

int64_t elems_of(const cell *c, int tensor) {
    const hp_box whole = hp_box_whole(&c->s.g, tensor, c->s.samples);
    return hp_box_elems(&whole);
}

/* Value by definition: sign, exponent, fraction. */
static double half_value(uint16_t h) {
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    const double v = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return h >> 15 ? -v : v;
}

static double brain_value(uint16_t h) {
    const uint32_t bits = (uint32_t)h << 16;
    float v;
    memcpy(&v, &bits, sizeof v);
    return (double)v;
}

double value_at(const void *data, hp_dtype dtype, hp_qparam q, int64_t i) {
    const uint16_t *half = data;
    switch (dtype) {
    case HP_U8:
        return (double)q.scale * (((const uint8_t *)data)[i] - q.zero);
    case HP_F16:
        return half_value(half[i]);
    case HP_BF16:
        return brain_value(half[i]);
    case HP_F64:
        return ((const double *)data)[i];
    default:
        return (double)((const float *)data)[i];
    }
}

double value_of(const cell *c, int tensor, int64_t i) {
    return value_at(c->data[tensor], dtype_of(c, tensor), c->q[tensor], i);
}

void draw_element(cell *c, int tensor, int64_t i) {
    const uint32_t bits = hp_philox(c->d.seed, (uint64_t)tensor + 60, (uint64_t)i).v[0];
    const float single_v = (float)(8 * (bits * 0x1p-32) - 4);
    uint32_t word;
    memcpy(&word, &single_v, sizeof word);
    switch (dtype_of(c, tensor)) {
    case HP_U8:
        c->data[tensor][i] = (unsigned char)bits;
        break;
    case HP_F16: /* up to 4: exponents 0 .. 16 */
        ((uint16_t *)c->data[tensor])[i] = (uint16_t)((bits & 0x83ff) | (bits >> 16) % 17 << 10);
        break;
    case HP_BF16:
        ((uint16_t *)c->data[tensor])[i] = (uint16_t)(word >> 16);
        break;
    case HP_F64:
        ((double *)c->data[tensor])[i] = (double)single_v;
        break;
    default:
        ((float *)c->data[tensor])[i] = single_v;
    }
}

/* --- drawing --- */

static void draw_stores(cell *c) {
    const int op = c->s.layer[1].op, n = c->s.layer[1].n_in;
    const bool bytes = draw(&c->d, 0, 2) == 0, equal = draw(&c->d, 0, 2) == 0;
    c->real = draw(&c->d, 0, 3) ? HP_F32 : HP_F64;
    for (int t = 0; t <= n; t++) {
        int store = bytes ? HP_STORE_U8 : draw(&c->d, 0, HP_STORES - 1);
        if (op == HP_SOFTMAX && c->s.tensor[0].c > HP_INFER_ROW) store = HP_STORE_REAL;
        if (op == HP_QUANT) store = t ? HP_STORE_U8 : HP_STORE_REAL;
        if (op == HP_DEQUANT) store = t ? HP_STORE_REAL : HP_STORE_U8;
        c->s.tensor[t].store = store;
        c->q[t] = (hp_qparam){(float)ldexp(1 + hp_rng_uniform(c->d.seed, 70, (uint64_t)t), -5),
                              draw(&c->d, 0, 4) ? draw(&c->d, 0, 255) : 0};
        if (t && equal) c->q[t] = c->q[0];
    }
}

int32_t continuous_act(int32_t act) {
    return act == HP_ACT_THRESHOLDED ? HP_ACT_LEAKY : act;
}

static void draw_act(cell *c) {
    static const int acting[] = {HP_BN, HP_ACT, HP_ADD, HP_MUL, HP_SCALE, HP_CONCAT};
    hp_layer *l = &c->s.layer[1];
    for (size_t i = 0; i < sizeof acting / sizeof *acting; i++)
        if (l->op == acting[i]) l->act = draw(&c->d, 0, HP_ACTS - 1);
    if (l->op != HP_ACT) l->act = continuous_act(l->act);
    l->act_arg.a = l->act == HP_ACT_CLIP ? -1.5 : 0.25;
    l->act_arg.b = l->act == HP_ACT_CLIP ? 2.25 : 0.5;
}

static void add_vector_param(cell *c, hp_param_kind kind, hp_init init) {
    hp_layer *l = &c->s.layer[1];
    const int channels = c->s.tensor[l->out].c;
    c->param[l->n_param] = (hp_param){.name = "p",
                                      .kind = (int32_t)kind,
                                      .init = (int32_t)init,
                                      .layer = 1,
                                      .n_dim = 1,
                                      .dim = {channels},
                                      .count = channels,
                                      .fan_in = channels};
    l->param[l->n_param] = l->n_param;
    l->n_param++;
}

static void add_params(cell *c) {
    hp_layer *l = &c->s.layer[1];
    l->eps = 1e-5;
    const int after = l->op == HP_CONCAT ? draw(&c->d, 0, 2) : 0; /* it may be a scale's, or a norm's */
    if (l->op == HP_SCALE || after == 1) {
        add_vector_param(c, HP_PARAM_FACTOR, HP_INIT_ONE);
        if (draw(&c->d, 0, 1)) add_vector_param(c, HP_PARAM_BIAS, HP_INIT_ZERO);
    }
    if (l->op != HP_BN && after != 2) return;
    add_vector_param(c, HP_PARAM_BN_GAMMA, HP_INIT_ONE);
    add_vector_param(c, HP_PARAM_BN_BETA, HP_INIT_ZERO);
    add_vector_param(c, HP_PARAM_BN_MEAN, HP_INIT_ZERO);
    add_vector_param(c, HP_PARAM_BN_VAR, HP_INIT_ONE);
}

/* Changes the source's factors and biases to random ones. */
static void draw_constants(cell *c) {
    const int channels = c->s.tensor[c->s.layer[1].out].c;
    hp_filter f;
    assert_int_equal(hp_constants_open(&(hp_constants_options){.graph = &c->s.g}, &c->constants, NULL),
                     HP_OK);
    for (int t = 0; t <= c->s.layer[1].n_in; t++)
        if (c->s.tensor[t].store == HP_STORE_U8) hp_constants_set_qparam(c->constants, t, c->q[t]);
    if (c->s.layer[1].n_param == 0) return;
    c->factor = HP_NEW(c->arena, float, channels);
    c->bias = HP_NEW(c->arena, float, channels);
    for (int i = 0; i < channels; i++) {
        c->factor[i] = (float)(4 * hp_rng_uniform(c->d.seed, 80, (uint64_t)i) - 2);
        c->bias[i] = (float)(2 * hp_rng_uniform(c->d.seed, 81, (uint64_t)i) - 1);
    }
    hp_constants_set_factors(c->constants, 1, NULL, c->factor);
    if (draw(&c->d, 0, 3)) hp_constants_set_correction(c->constants, 1, c->bias);
    assert_int_equal(hp_constants_filter(c->constants, 1, 0, channels, false, &f, NULL), HP_OK);
    for (int i = 0; i < channels; i++) {
        c->factor[i] = f.weight[i];
        c->bias[i] = f.bias ? f.bias[i] : 0;
    }
}

/* Draws more channels than the usual few, sometimes more than kernels handle at a time. */
static void draw_channels(cell *c) {
    static const int times[] = {1, 1, 5, 16, 33};
    hp_layer *l = &c->s.layer[1];
    const int64_t pixels = c->s.samples * (elems_of(c, l->out) / c->s.tensor[l->out].c + elems_of(c, 0));
    int factor = draw_of(&c->d, times, 5);
    if (pixels < 40 && draw(&c->d, 0, 3) == 0) factor = 700;
    for (int t = 0; t <= l->n_in; t++) c->s.tensor[t].c *= factor;
}

void cell_free(cell *c) {
    for (int t = 0; t <= c->s.layer[1].n_in; t++) free(c->data[t]);
    hp_constants_close(c->constants);
    hp_arena_free(c->arena);
    free(c);
}

static void start_devices(cell *c) {
    c->program = (hp_program){.mode = HP_MODE_INFER, .dtype = (int32_t)c->real};
    c->config = (hp_device_config){.program = &c->program, .graph = &c->s.g, .constants = c->constants};
    c->infer = (hp_infer){.config = &c->config, .arena = c->arena, .packed = HP_NEW(c->arena, bool, 2)};
}

cell *cell_new(uint64_t seed, int op) {
    cell *c = calloc(1, sizeof *c);
    assert_non_null(c);
    c->d = (throws){seed, 0};
    c->arena = hp_arena_new();
    while (!try_layer(&c->d, op, &c->s) || (op == HP_ADD && c->s.layer[1].n_in < 2)) continue;
    point_at_own(&c->s);
    hp_layer *l = &c->s.layer[1];
    c->s.g.param = c->param;
    c->s.g.deployed = 1;
    for (int t = 0; t <= l->n_in; t++) c->s.tensor[t].producer = 1; /* no raw pixels */
    draw_channels(c);
    draw_stores(c);
    draw_act(c);
    add_params(c);
    c->s.g.n_param = l->n_param;
    draw_constants(c);
    start_devices(c);
    for (int t = 0; t <= l->n_in; t++) {
        c->data[t] = malloc((size_t)(elems_of(c, t) * hp_dtype_bytes(dtype_of(c, t))));
        assert_non_null(c->data[t]);
        for (int64_t i = 0; i < elems_of(c, t); i++) draw_element(c, t, i);
    }
    return c;
}

/* --- running --- */

void move_box(cell *c, int tensor, const hp_box *box, unsigned char *packed, bool back) {
    const hp_tensor *t = &c->s.tensor[tensor];
    const int bytes = hp_dtype_bytes(dtype_of(c, tensor));
    const size_t run = (size_t)hp_box_len(box, HP_AXIS_C) * (size_t)bytes;
    for (int n = box->lo[0]; n < box->hi[0]; n++)
        for (int y = box->lo[1]; y < box->hi[1]; y++)
            for (int x = box->lo[2]; x < box->hi[2]; x++, packed += run) {
                const int64_t at = (((int64_t)n * t->h + y) * t->w + x) * t->c + box->lo[3];
                unsigned char *whole = c->data[tensor] + at * bytes;
                memcpy(back ? whole : packed, back ? packed : whole, run);
            }
}

static void *part_memory(const cell *c, int tensor, const hp_box *box) {
    const size_t bytes = (size_t)hp_box_elems(box) * (size_t)hp_dtype_bytes(dtype_of(c, tensor));
    unsigned char *at = malloc(bytes + 1);
    assert_non_null(at);
    memset(at, 0x5a, bytes + 1);
    return at;
}

static void bind_part(cell *c, part *p) {
    const hp_layer *l = &c->s.layer[1];
    hp_bound *b = &p->b;
    int before = 0;
    b->layer = l;
    b->layer_id = 1;
    b->n_in = l->n_in;
    b->shape = hp_shape_between(&c->s.g, 1, &p->in[0], &p->out);
    b->in_elems = hp_box_elems(&p->in[0]);
    b->out_elems = hp_box_elems(&p->out);
    b->stored.y = dtype_of(c, l->out);
    for (int k = 0; k < l->n_in; k++) {
        b->map.in_c[k] = hp_box_len(&p->in[k], HP_AXIS_C);
        b->map.in_at[k] = before + p->in[k].lo[HP_AXIS_C] - p->out.lo[HP_AXIS_C];
        b->stored.x[k] = dtype_of(c, k);
        before += c->s.tensor[k].c;
        if (hp_box_empty(&p->in[k])) continue;
        b->x[k] = p->memory[k] = part_memory(c, k, &p->in[k]);
        move_box(c, k, &p->in[k], b->x[k], false);
    }
}

/* May the output overwrite the first input? Only elementwise, and if both have the same type. */
static bool may_replace(const cell *c, const part *p) {
    const hp_layer *l = &c->s.layer[1];
    const bool point = l->op == HP_ACT || l->op == HP_ADD || l->op == HP_BN || l->op == HP_SCALE;
    return point && p->b.x[0] && p->b.stored.x[0] == p->b.stored.y;
}

void part_start(cell *c, part *p, const hp_box *out, bool in_place) {
    hp_error err = {0};
    *p = (part){.out = *out};
    for (int k = 0; k < c->s.layer[1].n_in; k++) p->in[k] = hp_layer_need(&c->s.g, 1, k, out);
    bind_part(c, p);
    p->b.y = in_place && may_replace(c, p) ? p->b.x[0]
                                           : (p->memory[MOST_IN] = part_memory(c, c->s.layer[1].out, out));
    p->pack = calloc((size_t)p->b.shape.oc + 1, 8);
    p->b.pack.forward = p->pack;
    c->infer.packed[1] = false;
    const hp_infer_host host = {.loops = c->real == HP_F64 ? &hp_ref_loops_f32 : hp_kernels_pick()->loops,
                                .wide = &hp_ref_loops_f64};
    if (hp_infer_prepare(&host, &c->infer, &p->b, &p->kernel, &err) != HP_OK) fail_msg("%s", err.text);
}

void part_end(part *p) {
    for (int k = 0; k <= MOST_IN; k++) free(p->memory[k]);
    free(p->pack);
}

void run_part(cell *c, const hp_box *out, bool in_place) {
    part p;
    part_start(c, &p, out, in_place);
    assert_int_equal(p.kernel.run(p.kernel.self, &p.b, NULL), HP_OK);
    move_box(c, c->s.layer[1].out, out, p.b.y, true);
    part_end(&p);
}

void run_whole(cell *c) {
    const hp_box out = hp_box_whole(&c->s.g, c->s.layer[1].out, c->s.samples);
    run_part(c, &out, false);
}

const char *cell_said(const cell *c) {
    static char text[400];
    const hp_layer *l = &c->s.layer[1];
    snprintf(text, sizeof text, "%s, %s%s, out %s %dx%dx%d, in %s %s, n_in %d, interpolation %d corners %d",
             said(&c->s, c->d.seed), l->act ? "act " : "", hp_act_names[l->act],
             hp_dtype_names[dtype_of(c, l->out)], c->s.tensor[l->out].h, c->s.tensor[l->out].w,
             c->s.tensor[l->out].c, hp_dtype_names[dtype_of(c, 0)], hp_dtype_names[dtype_of(c, l->n_in > 1)],
             l->n_in, l->resize.interpolation, l->resize.corners);
    return text;
}
