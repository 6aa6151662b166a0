/* infer_matrix.c - one drawn matrix layer of a deployed graph. */
#include "tests/support/exec/infer_matrix.h"

#include "networks/graph/acts.h"

static hp_infer_prepare_fn *const matrix_prepares[2] = {hp_ref_prepare_matrix, hp_cpu_prepare_matrix};

hp_layer *layer_of(matrix_cell *m) {
    return &m->c.s.layer[1];
}

/* --- drawing --- */

/* Draws more channels than the usual few: whole panels, and parts of them. */
static void draw_matrix_channels(matrix_cell *m) {
    static const int times[] = {1, 1, 2, 4, 5, 12, 16};
    single *s = &m->c.s;
    hp_layer *l = layer_of(m);
    const int ins = draw_of(&m->c.d, times, 7), outs = draw_of(&m->c.d, times, 7);
    const bool small = (int64_t)s->tensor[0].h * s->tensor[0].w < 100;
    if (draw(&m->c.d, 0, 2) && !small) return;
    s->tensor[0].c *= ins;
    s->tensor[l->out].c *= outs;
    if (l->n_in > 1) s->tensor[1].c = s->tensor[l->out].c;
    if (l->op == HP_CONV && draw(&m->c.d, 0, 3) == 0) { /* depthwise */
        l->groups = s->tensor[l->out].c = s->tensor[0].c;
        if (l->n_in > 1) s->tensor[1].c = s->tensor[0].c;
    }
}

/* Input and output stores that occur in deployed graphs. */
static void draw_matrix_stores(matrix_cell *m) {
    static const int pairs[][2] = {
        {HP_STORE_U8, HP_STORE_U8},     {HP_STORE_U8, HP_STORE_U8},     {HP_STORE_U8, HP_STORE_U8},
        {HP_STORE_U8, HP_STORE_REAL},   {HP_STORE_REAL, HP_STORE_REAL}, {HP_STORE_BF16, HP_STORE_BF16},
        {HP_STORE_BF16, HP_STORE_REAL}, {HP_STORE_F16, HP_STORE_F16},   {HP_STORE_F16, HP_STORE_REAL}};
    single *s = &m->c.s;
    hp_layer *l = layer_of(m);
    const int *pair = pairs[draw(&m->c.d, 0, 8)];
    s->tensor[0].store = pair[0];
    for (int t = 1; t <= l->out; t++) s->tensor[t].store = pair[1];
    for (int t = 1; t <= l->out; t++) s->tensor[t].producer = 1;
    for (int t = 0; t <= l->out; t++) {
        const double scale = ldexp(1 + hp_rng_uniform(m->c.d.seed, 70, (uint64_t)t), t == 0 ? -6 : -5);
        m->c.q[t] = (hp_qparam){(float)scale, draw(&m->c.d, 0, 2) ? draw(&m->c.d, 0, 255) : 0};
    }
    s->tensor[0].producer = pair[0] == HP_STORE_U8 && s->tensor[0].c <= 4 && draw(&m->c.d, 0, 1) ? 0 : 1;
    m->weight_error = pair[0] == HP_STORE_BF16 ? 0x1p-8f : pair[0] == HP_STORE_F16 ? 0x1p-11f : 0;
}

static void add_matrix_params(matrix_cell *m) {
    const single *s = &m->c.s;
    hp_layer *l = layer_of(m);
    const int ic = s->tensor[0].c, oc = s->tensor[l->out].c, g = l->groups;
    hp_param *w = &m->c.param[0], *b = &m->c.param[1];
    *w = (hp_param){.name = "layer.weight",
                    .kind = HP_PARAM_CONV_W,
                    .init = HP_INIT_TORCH_DEFAULT,
                    .layer = 1,
                    .n_dim = 4,
                    .dim = {oc, ic / g, l->window.kh, l->window.kw}};
    if (l->op == HP_CONVT) memcpy(w->dim, (int32_t[]){ic, oc / g, l->window.kh, l->window.kw}, sizeof w->dim);
    if (l->op == HP_LINEAR) {
        w->kind = HP_PARAM_LINEAR_W;
        w->n_dim = 2;
        memcpy(w->dim, (int32_t[]){oc, ic * s->tensor[0].h * s->tensor[0].w, 1, 1}, sizeof w->dim);
    }
    w->count = (int64_t)w->dim[0] * w->dim[1] * w->dim[2] * w->dim[3];
    w->fan_in = w->count / (l->op == HP_CONVT ? ic : oc);
    *b = (hp_param){.name = "layer.bias",
                    .kind = HP_PARAM_BIAS,
                    .init = HP_INIT_TORCH_DEFAULT,
                    .layer = 1,
                    .n_dim = 1,
                    .dim = {oc},
                    .count = oc,
                    .fan_in = w->fan_in};
    l->n_param = draw(&m->c.d, 0, 3) ? 2 : 1;
    l->param[1] = 1;
    m->c.s.g.n_param = l->n_param;
}

void open_matrix_constants(matrix_cell *m) {
    hp_constants_options o = {
        .graph = &m->c.s.g, .seed = m->c.d.seed, .n_mean = m->c.s.tensor[0].c <= 4 ? m->c.s.tensor[0].c : 1};
    for (int i = 0; i < 4; i++) {
        o.mean[i] = 0.3 + 0.1 * i;
        o.std[i] = 0.2 + 0.05 * i;
    }
    m->c.s.g.image_c = o.n_mean;
    assert_int_equal(hp_constants_open(&o, &m->c.constants, NULL), HP_OK);
    for (int t = 0; t <= layer_of(m)->out; t++)
        if (hp_tensor_wants_qparam(&m->c.s.g, t)) hp_constants_set_qparam(m->c.constants, t, m->c.q[t]);
}

static void set_real(matrix_cell *m, hp_dtype real) {
    m->c.real = real;
    m->c.program = (hp_program){.mode = HP_MODE_INFER, .dtype = (int32_t)real};
}

matrix_cell *matrix_cell_begin(uint64_t seed) {
    matrix_cell *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->c.d = (throws){seed, 0};
    m->c.arena = hp_arena_new();
    return m;
}

matrix_cell *matrix_cell_end(matrix_cell *m) {
    cell *c = &m->c;
    point_at_own(&c->s);
    c->s.g.param = c->param;
    c->s.g.deployed = 1;
    draw_matrix_stores(m);
    layer_of(m)->act = draw(&c->d, 0, 1) ? draw(&c->d, 0, 2) : draw(&c->d, 0, HP_ACTS - 1);
    layer_of(m)->act = continuous_act(layer_of(m)->act);
    layer_of(m)->act_arg.a = layer_of(m)->act == HP_ACT_CLIP ? -0.5 : 0.25;
    layer_of(m)->act_arg.b = layer_of(m)->act == HP_ACT_CLIP ? 0.75 : 0.5;
    add_matrix_params(m);
    open_matrix_constants(m);
    m->role = (hp_role){.buffer = m->buffer, .pack_forward = m->pack_of};
    c->config = (hp_device_config){
        .program = &c->program, .graph = &c->s.g, .role = &m->role, .constants = c->constants};
    c->infer = (hp_infer){.config = &c->config, .arena = c->arena, .packed = HP_NEW(c->arena, bool, 2)};
    set_real(m, HP_F32);
    return m;
}

/* Does each pixel's output depend only on that pixel's inputs? */
static bool is_pointwise(const hp_layer *l) {
    return l->window.kh == 1 && l->window.kw == 1 && l->window.stride_h == 1 && l->window.stride_w == 1 &&
           l->window.pad_h == 0 && l->window.pad_w == 0;
}

matrix_cell *matrix_cell_new(uint64_t seed) {
    static const int ops[] = {HP_CONV, HP_CONV, HP_CONV, HP_CONVT, HP_LINEAR};
    matrix_cell *m = matrix_cell_begin(seed);
    const int op = draw_of(&m->c.d, ops, 5);
    const bool pointwise = op != HP_LINEAR && draw(&m->c.d, 0, 3) == 0;
    while (!try_layer(&m->c.d, op, &m->c.s) || (pointwise && !is_pointwise(&m->c.s.layer[1]))) continue;
    point_at_own(&m->c.s);
    draw_matrix_channels(m);
    return matrix_cell_end(m);
}

void fill_tensors(matrix_cell *m, hp_dtype real) {
    cell *c = &m->c;
    set_real(m, real);
    for (int t = 0; t <= layer_of(m)->out; t++) {
        free(c->data[t]);
        c->data[t] = malloc((size_t)(elems_of(c, t) * hp_dtype_bytes(dtype_of(c, t))));
        assert_non_null(c->data[t]);
        for (int64_t i = 0; i < elems_of(c, t); i++) draw_element(c, t, i);
    }
    if (hp_layer_adds(layer_of(m))) /* y holds the addend on entry */
        memcpy(c->data[layer_of(m)->out], c->data[1],
               (size_t)(elems_of(c, 1) * hp_dtype_bytes(dtype_of(c, 1))));
}

void matrix_cell_free(matrix_cell *m) {
    for (int t = 0; t <= layer_of(m)->out; t++) free(m->c.data[t]);
    hp_constants_close(m->c.constants);
    hp_arena_free(m->c.arena);
    free(m);
}

/* --- running --- */

static void *exactly(int64_t bytes) {
    void *at = bytes ? aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64) : NULL;
    if (at) memset(at, 0x5a, (size_t)bytes);
    return at;
}

static void bind_matrix_part(matrix_cell *m, matrix_part *p) {
    cell *c = &m->c;
    hp_bound *b = &p->b;
    hp_layer *l = layer_of(m);
    const hp_box whole_in = hp_box_whole(&c->s.g, 0, c->s.samples),
                 whole = hp_box_whole(&c->s.g, l->out, c->s.samples);
    const hp_shape s = hp_shape_between(&c->s.g, 1, &whole_in, &whole);
    *b = (hp_bound){.layer = l, .layer_id = 1, .n_in = l->n_in};
    p->in = hp_layer_need(&c->s.g, 1, 0, &p->out);
    b->shape = hp_shape_between(&c->s.g, 1, &p->in, &p->out);
    b->out_elems = hp_box_elems(&p->out);
    b->in_elems = hp_box_elems(&p->in);
    b->stored.x[0] = dtype_of(c, 0);
    b->stored.y = dtype_of(c, l->out);
    b->x[0] = malloc((size_t)(b->in_elems * hp_dtype_bytes(b->stored.x[0])) + 1);
    b->y = malloc((size_t)(b->out_elems * hp_dtype_bytes(b->stored.y)) + 1);
    assert_true(b->x[0] && b->y);
    move_box(c, 0, &p->in, b->x[0], false);
    move_box(c, l->out, &p->out, b->y, false);
    m->buffer[0].bytes = hp_infer_pack_bytes(&c->s.g, 1, &s, c->real);
    b->pack.forward = p->pack = exactly(m->buffer[0].bytes);
    b->scratch.bytes = hp_infer_scratch_bytes(&c->s.g, 1, &b->shape, c->real);
    b->scratch.at = p->scratch = exactly(b->scratch.bytes);
}

void prepare_matrix_part(matrix_cell *m, matrix_part *p, int device) {
    hp_error err = {0};
    bind_matrix_part(m, p);
    m->c.infer.packed[1] = false;
    if (matrix_prepares[device](&m->c.infer, &p->b, &p->kernel, &err) != HP_OK)
        fail_msg("%s: %s", cell_said(&m->c), err.text);
}

void matrix_part_end(matrix_part *p) {
    free(p->b.x[0]);
    free(p->b.y);
    free(p->pack);
    free(p->scratch);
}

void run_matrix_part(matrix_cell *m, const hp_box *out, int device, const hp_panel_kernels *kernels) {
    matrix_part p = {.out = *out};
    if (hp_box_empty(out)) return;
    prepare_matrix_part(m, &p, device);
    if (kernels) {
        hp_matrix *self = p.kernel.self;
        self->kernels = kernels;
        m->c.infer.packed[1] = false;
        assert_int_equal(hp_matrix_pack(&m->c.infer, &p.b, self, NULL), HP_OK);
    }
    assert_int_equal(p.kernel.run(p.kernel.self, &p.b, NULL), HP_OK);
    move_box(&m->c, layer_of(m)->out, out, p.b.y, true);
    matrix_part_end(&p);
}

unsigned char *run_matrix(matrix_cell *m, int device, const hp_panel_kernels *kernels, size_t *bytes) {
    cell *c = &m->c;
    const int y = layer_of(m)->out;
    const hp_box out = hp_box_whole(&c->s.g, y, c->s.samples);
    fill_tensors(m, device == ON_REF ? HP_F64 : HP_F32);
    run_matrix_part(m, &out, device, kernels);
    *bytes = (size_t)(elems_of(c, y) * hp_dtype_bytes(dtype_of(c, y)));
    unsigned char *copy = malloc(*bytes + 1);
    assert_non_null(copy);
    return memcpy(copy, c->data[y], *bytes);
}
