/* init.c - counter-based initial weights: Philox words of (seed, parameter, element / 4), four elements per
 * call. */
#include "exec/base/streams.h"
#include "exec/data/weights/weights.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

/* Draws four values with mean 0 and the parameter's scale. */
typedef void (*draw_fn)(hp_rng4 r, float scale, float out[4]);

static double unit(uint32_t word) {
    return ((double)word + 0.5) * 0x1p-32; /* in (0, 1), symmetric about 1/2 */
}

/* Box, Muller 1958: two normals from two uniforms, twice. 32-bit words reach 6.7 standard deviations. */
static void draw_normal(hp_rng4 r, float scale, float out[4]) {
    for (int i = 0; i < 4; i += 2) {
        const float radius = scale * sqrtf(-2.0f * (float)log(unit(r.v[i])));
        const float angle = 6.28318530717958647692f * (float)unit(r.v[i + 1]);
        out[i] = radius * cosf(angle);
        out[i + 1] = radius * sinf(angle);
    }
}

static void draw_uniform(hp_rng4 r, float scale, float out[4]) {
    for (int i = 0; i < 4; i++) out[i] = scale * (float)(2.0 * unit(r.v[i]) - 1.0);
}

static void draw_constant(hp_rng4 r, float scale, float out[4]) {
    (void)r;
    for (int i = 0; i < 4; i++) out[i] = scale;
}

/* torch.nn.init._calculate_fan_in_and_fan_out: dim 0 times the receptive field, ignoring groups. */
static double fan_out(const hp_param *p) {
    double n = p->dim[0];
    for (int i = 2; i < p->n_dim; i++) n *= p->dim[i];
    return n;
}

static double scale_zero(const hp_param *p) {
    (void)p;
    return 0.0;
}

static double scale_one(const hp_param *p) {
    (void)p;
    return 1.0;
}

static double scale_fan_out(const hp_param *p) {
    return sqrt(2.0 / fan_out(p));
}

static double scale_fan_in(const hp_param *p) {
    return sqrt(2.0 / (double)p->fan_in);
}

static double scale_001(const hp_param *p) {
    (void)p;
    return 0.01;
}

static double scale_bound(const hp_param *p) {
    return 1.0 / sqrt((double)p->fan_in);
}

static double scale_own(const hp_param *p) {
    return p->init_scale;
}

static const struct scheme {
    draw_fn draw;
    double (*scale)(const hp_param *p); /* standard deviation, or half the width of the interval */
} schemes[] = {
    [HP_INIT_ZERO] = {draw_constant, scale_zero},
    [HP_INIT_ONE] = {draw_constant, scale_one},
    [HP_INIT_KAIMING_FAN_OUT] = {draw_normal, scale_fan_out},
    [HP_INIT_KAIMING_FAN_IN] = {draw_normal, scale_fan_in},
    [HP_INIT_NORMAL_001] = {draw_normal, scale_001},
    [HP_INIT_TORCH_DEFAULT] = {draw_uniform, scale_bound},
    [HP_INIT_NORMAL] = {draw_normal, scale_own},
    [HP_INIT_UNIFORM] = {draw_uniform, scale_own},
    [HP_INIT_CONSTANT] = {draw_constant, scale_own},
};

/* Elements first .. first+count-1; the range may begin and end within a draw of four. */
static void draw_range(const struct scheme *s, float scale, uint64_t seed, uint64_t stream, int64_t first,
                       int64_t count, float *out) {
    float four[4];
    const bool random = s->draw != draw_constant;
    const int64_t end = first + count;
    for (int64_t e = first, n; e < end; e += n) {
        s->draw(random ? hp_philox(seed, stream, (uint64_t)e / 4) : (hp_rng4){0}, scale, four);
        n = 4 - e % 4 < end - e ? 4 - e % 4 : end - e;
        memcpy(out + (e - first), four + e % 4, (size_t)n * sizeof *out);
    }
}

void hp_param_draw(const hp_graph *g, int param, uint64_t seed, int64_t first, int64_t count, float *out) {
    const hp_param *p = &g->param[param];
    const struct scheme *s = &schemes[hp_param_trained(p) ? p->init : HP_INIT_ZERO];
    const float scale = p->kind == HP_PARAM_BN_VAR ? 1.0f : (float)s->scale(p);
    draw_range(s, scale, seed, HP_STREAM_WEIGHTS | (uint64_t)param, first, count, out);
}

bool hp_weights_start(const hp_weights *w, const hp_param_place *at) {
    return w->mode == HP_MODE_INFER || (w->replica == 0 && (at->here & HP_START));
}

/* Fills parameter i's place in a float64 buffer. */
static void fill_param_f64(const hp_weights *w, int i, uint64_t seed, double *to) {
    enum { CHUNK = 256 };
    const hp_param_place *at = &w->role->place[i];
    float drawn[CHUNK];
    for (int64_t e = 0, n; e < at->count; e += n) {
        n = at->count - e < CHUNK ? at->count - e : CHUNK;
        hp_param_draw(w->graph, i, seed, at->first + e, n, drawn);
        for (int64_t k = 0; k < n; k++) to[e + k] = (double)drawn[k];
    }
}

static void fill_param(const hp_weights *w, int i, uint64_t seed, void *buffer) {
    const hp_param_place *at = &w->role->place[i];
    if (w->dtype == HP_F32)
        hp_param_draw(w->graph, i, seed, at->first, at->count, (float *)buffer + at->offset);
    else
        fill_param_f64(w, i, seed, (double *)buffer + at->offset);
}

void hp_weights_init(const hp_weights *w, uint64_t seed) {
    HP_ASSERT(w->dtype == HP_F32 || w->dtype == HP_F64);
    const size_t bytes = (size_t)hp_dtype_bytes((hp_dtype)w->dtype);
    memset(w->weights, 0, (size_t)w->role->trained_elems * bytes);
    for (int32_t i = 0; i < w->graph->n_param; i++) {
        const hp_param_place *at = &w->role->place[i];
        if (!at->here) continue;
        if (hp_param_trained(&w->graph->param[i]))
            fill_param(w, i, seed, w->weights);
        else if (hp_weights_start(w, at))
            fill_param(w, i, seed, w->state);
        else
            memset((char *)w->state + (size_t)at->offset * bytes, 0, (size_t)at->count * bytes);
    }
}
