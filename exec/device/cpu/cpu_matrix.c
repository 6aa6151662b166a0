/* cpu_matrix.c - prepares convolutions, transposed convolutions and linear layers of a deployed graph. */
#include "exec/device/cpu/cpu_matrix.h"
#include "exec/device/kernels/kernels.h"

#include <math.h>

/* MOST_PRODUCTS: products of a byte and a weight, 255 * 127 at most, that fit into a sum of 32 bits. */
enum { MOST_PRODUCTS = 66000 };

static void run_whole(const hp_matrix *m, const hp_bound *b) {
    if (m->p.depthwise)
        hp_matrix_run_depthwise(m, b);
    else
        hp_matrix_run_panels(m, b);
}

static hp_status run(void *self, const hp_bound *b, hp_error *err) {
    hp_matrix *m = self;
    (void)err;
    if (b->out_elems == 0) return HP_OK;
    if (!m->p.map) run_whole(m, b);
    for (int64_t n = 0; n < b->shape.n && m->p.map; n++) {
        const hp_bound one = hp_dynamic_bound(&m->dynamic, b, n);
        m->units.in_zero = hp_dynamic_sample(&m->dynamic, b, n);
        run_whole(m, &one);
    }
    return HP_OK;
}

/* --- outputs --- */

/* Is every v within the range of integers? */
static bool within_integers(const hp_matrix *m) {
    const hp_panels *p = &m->p;
    double input = 255;
    for (int i = 0; i < 4 && m->units.pixels; i++)
        input = fmax(input, 255 + fabs((double)m->units.pixel_zero[i]));
    const double sum = input * 127 * p->kh * p->kw * p->ins, added = 255 * fabs((double)m->units.add_scale);
    for (int64_t o = 0; o < (int64_t)p->groups * p->padded; o++)
        if (!(fabs((double)m->scale[o]) * sum + fabs((double)m->shift[o]) + added < 0x1p30)) return false;
    return true;
}

static void set_out(hp_matrix *m) {
    hp_panel_out *o = &m->out;
    o->adds = o->op.adds;
    o->add_scale = m->units.add_scale;
    o->units = m->units.bytes;
    o->lo8 = m->units.lo8;
    o->hi8 = m->units.hi8;
    const bool floats = o->op.y.dtype == HP_F32 && o->op.clamps;
    if (!hp_panels_quantised(&m->p))
        o->fast = m->p.x == HP_F32 && floats;
    else
        o->fast = o->units ? within_integers(m) : floats && !m->p.depthwise;
}

/* --- preparing --- */

static void set_terms(hp_matrix *m, const hp_bound *b) {
    const unsigned char *pack = b->pack.forward;
    m->scale = (const float *)(const void *)(pack + m->at.scale);
    m->shift = (const float *)(const void *)(pack + m->at.shift);
    if (!m->p.map) return;
    m->dynamic = hp_dynamic_places_of(&m->p, &m->at, b, hp_kernels_pick()->loops);
    m->scale = m->dynamic.scale;
}

static hp_status check(const hp_infer *in, const hp_bound *b, const hp_matrix *m, hp_error *err) {
    const hp_role *r = in->config->role;
    const int64_t pack = r->buffer[r->pack_forward[b->layer_id]].bytes,
                  scratch = hp_panels_scratch_of(&m->p).bytes;
    const int64_t products = (int64_t)m->p.kh * m->p.kw * m->p.ins;
    if (m->at.bytes > pack || scratch > b->scratch.bytes)
        return hp_fail(
            err, HP_EPLAN,
            "layer %s needs %lld bytes of constants and %lld of scratch, the plan has %lld and %lld: plan "
            "again with this version",
            b->layer->name, (long long)m->at.bytes, (long long)scratch, (long long)pack,
            (long long)b->scratch.bytes);
    if (hp_panels_quantised(&m->p) && products > MOST_PRODUCTS)
        return hp_fail(err, HP_EUNAVAIL,
                       "layer %s sums up %lld products of bytes, %d fit in 32 bits: keep it real",
                       b->layer->name, (long long)products, MOST_PRODUCTS);
    return HP_OK;
}

static const char *name_of(hp_infer *in, const hp_matrix *m) {
    return hp_arena_printf(in->arena, "own %s%s %s:%s", m->p.map ? "dynamic " : "",
                           m->p.depthwise ? "depthwise" : "panels", hp_dtype_names[m->p.x], m->kernels->isa);
}

hp_status hp_cpu_prepare_matrix(hp_infer *in, const hp_bound *b, hp_infer_kernel *k, hp_error *err) {
    const hp_dtype real = (hp_dtype)in->config->program->dtype;
    hp_matrix *m = HP_NEW(in->arena, hp_matrix, 1);
    m->kernels = hp_kernels_pick()->panel;
    m->p = hp_panels_of(in->config->graph, b->layer_id, &b->shape, real);
    m->at = hp_panels_place(&m->p);
    HP_TRY(check(in, b, m, err));
    m->out.op = hp_matrix_op(in, b);
    if (hp_panels_quantised(&m->p)) m->units = hp_matrix_units_of(in, b, &m->out.op);
    m->rows = hp_axis_of(in->arena, &b->shape, m->p.transposed, true);
    m->cols = hp_axis_of(in->arena, &b->shape, m->p.transposed, false);
    m->run = HP_NEW(in->arena, hp_panel_run, m->p.kh * m->p.kw);
    HP_TRY(hp_matrix_pack(in, b, m, err));
    set_terms(m, b);
    set_out(m);
    *k = (hp_infer_kernel){run, m, name_of(in, m)};
    return HP_OK;
}
