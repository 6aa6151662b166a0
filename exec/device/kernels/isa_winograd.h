/* isa_winograd.h - 3x3 convolutions of stride 1 by Winograd's minimal filtering F(2x2, 3x3) (Lavin and Gray,
 * "Fast Algorithms for Convolutional Neural Networks", 2015): 16 multiplications for 4 outputs instead of 36.
 *
 * An output tile of 2x2 pixels needs a 4x4 input tile d. With V = B'dB, U = GgG' and M = sum over channels of
 * U*V, the outputs are A'MA. The weight gradient is the adjoint of the same bilinear form: G'[sum over tiles
 * V*(A dy A')]G. The transforms only add, halve and keep, so the rounding error stays that of the direct sum.
 */
#ifndef HP_ISA_WINOGRAD_H
#define HP_ISA_WINOGRAD_H

enum { POINTS = 16 }; /* of the transform: 4x4 */

/* Geometry of one pass; the backward pass is a forward pass with flipped weights and padding 2 - p. */
typedef struct wino_geometry {
    int64_t n, tiles, block; /* samples, tiles in all, tiles per block */
    int ih, iw, ic, oh, ow, oc, ph, pw, across, down, panels;
} wino_geometry;

static wino_geometry wino_geometry_of(const hp_shape *s, bool backward_weights) {
    wino_geometry g = {.n = s->n,
                       .ih = s->ih,
                       .iw = s->iw,
                       .ic = s->ic,
                       .oh = s->oh,
                       .ow = s->ow,
                       .oc = s->oc,
                       .ph = s->ph,
                       .pw = s->pw,
                       .across = (s->ow + 1) / 2,
                       .down = (s->oh + 1) / 2,
                       .panels = (s->oc + GEMM_PANEL - 1) / GEMM_PANEL};
    g.tiles = g.n * g.across * g.down;
    g.block = hp_winograd_block(s->ic, s->oc, g.tiles, backward_weights);
    return g;
}

/* --- weights: U = G g G', stored (point, panel, input channel, GEMM_PANEL outputs) --- */

static inline __attribute__((always_inline)) void wino_filter3(vec g0, vec g1, vec g2, vec *u0, vec *u1,
                                                               vec *u2, vec *u3) {
    const vec ends = g0 + g2;
    *u0 = g0;
    *u1 = 0.5f * (ends + g1);
    *u2 = 0.5f * (ends - g1);
    *u3 = g2;
}

/* LANES filters, tap-major, into their POINTS. */
static void wino_filter(float g[9][GEMM_PANEL], int at, float *pack, int64_t point_step) {
    vec t[12], u[4];
    UNROLL
    for (int j = 0; j < 3; j++)
        wino_filter3(vec_load(&g[j][at]), vec_load(&g[3 + j][at]), vec_load(&g[6 + j][at]), &t[j], &t[3 + j],
                     &t[6 + j], &t[9 + j]);
    UNROLL
    for (int i = 0; i < 4; i++) {
        wino_filter3(t[3 * i], t[3 * i + 1], t[3 * i + 2], &u[0], &u[1], &u[2], &u[3]);
        for (int j = 0; j < 4; j++) vec_store(pack + (4 * i + j) * point_step, u[j]);
    }
}

/* One input channel of one panel: `step` apart are the filters of its `count` outputs. */
static void wino_pack_row(float *pack, int64_t point_step, const float *w, int64_t step, int count,
                          bool flip) {
    float g[9][GEMM_PANEL] = {{0}};
    for (int o = 0; o < count && o < GEMM_PANEL; o++)
        for (int k = 0; k < 9; k++) g[k][o] = w[o * step + (flip ? 8 - k : k)];
    for (int at = 0; at < GEMM_PANEL; at += LANES) wino_filter(g, at, pack + at, point_step);
}

/* w (oc, ic, 3, 3). Backward: gradients of the inputs are outputs, and the filters are flipped. */
static void wino_pack(float *pack, const float *w, int oc, int ic, bool backward) {
    const int outs = backward ? ic : oc, ins = backward ? oc : ic,
              panels = (outs + GEMM_PANEL - 1) / GEMM_PANEL;
    const int64_t out_step = backward ? 9 : (int64_t)ic * 9, in_step = backward ? (int64_t)ic * 9 : 9;
    for (int p = 0; p < panels; p++)
        for (int i = 0; i < ins; i++)
            wino_pack_row(pack + ((int64_t)p * ins + i) * GEMM_PANEL, (int64_t)panels * ins * GEMM_PANEL,
                          w + (int64_t)p * GEMM_PANEL * out_step + i * in_step, out_step,
                          outs - p * GEMM_PANEL, backward);
}

/* --- input tiles: V = B' d B --- */

/* Where channel c of tile t lies: channels together, (tile, channel), or in strips of 16, (strip, tile, 16).
 */
typedef struct wino_layout {
    int64_t tile_step, strip_step, point_step;
} wino_layout;

static inline int64_t wino_at(const wino_layout *l, int64_t tile, int c) {
    return tile * l->tile_step + c / 16 * l->strip_step + c % 16;
}

/* Rows and columns outside the image read `zero`. */
static void wino_tile_rows(const wino_geometry *g, const float *x, int64_t tile, const float *zero,
                           const float *at[POINTS]) {
    const int tx = (int)(tile % g->across), ty = (int)(tile / g->across % g->down);
    const float *image = x + tile / g->across / g->down * g->ih * g->iw * g->ic;
    for (int i = 0; i < POINTS; i++) {
        const int iy = 2 * ty - g->ph + i / 4, ix = 2 * tx - g->pw + i % 4;
        const bool inside = iy >= 0 && iy < g->ih && ix >= 0 && ix < g->iw;
        at[i] = inside ? image + ((int64_t)iy * g->iw + ix) * g->ic : zero;
    }
}

static inline __attribute__((always_inline)) void wino_input4(vec d0, vec d1, vec d2, vec d3, vec *v0,
                                                              vec *v1, vec *v2, vec *v3) {
    *v0 = d0 - d2;
    *v1 = d1 + d2;
    *v2 = d2 - d1;
    *v3 = d1 - d3;
}

static void wino_input_tile(const float *const at[POINTS], int channels, int64_t tile, const wino_layout *l,
                            float *v) {
    for (int c = 0; c < channels; c += LANES) {
        vec t[POINTS], u[4];
        UNROLL
        for (int j = 0; j < 4; j++)
            wino_input4(vec_load(at[j] + c), vec_load(at[4 + j] + c), vec_load(at[8 + j] + c),
                        vec_load(at[12 + j] + c), &t[j], &t[4 + j], &t[8 + j], &t[12 + j]);
        UNROLL
        for (int i = 0; i < 4; i++) {
            wino_input4(t[4 * i], t[4 * i + 1], t[4 * i + 2], t[4 * i + 3], &u[0], &u[1], &u[2], &u[3]);
            for (int j = 0; j < 4; j++)
                vec_store(v + (4 * i + j) * l->point_step + wino_at(l, tile, c), u[j]);
        }
    }
}

/* Tiles first .. first+block-1; those past the end become zero. */
static void wino_input(const wino_geometry *g, const float *x, int64_t first, const float *zero,
                       const wino_layout *l, float *v) {
    const float *at[POINTS];
    for (int64_t t = 0; t < g->block; t++) {
        if (first + t < g->tiles)
            wino_tile_rows(g, x, first + t, zero, at);
        else
            for (int i = 0; i < POINTS; i++) at[i] = zero;
        wino_input_tile(at, g->ic, t, l, v);
    }
}

/* --- output tiles: y = A' M A --- */

static inline __attribute__((always_inline)) void wino_output_vec(const float *m, int64_t point_step,
                                                                  vec bias, vec y[4]) {
    vec t[8];
    UNROLL
    for (int j = 0; j < 4; j++) {
        const vec m0 = vec_load(m + j * point_step), m1 = vec_load(m + (4 + j) * point_step);
        const vec m2 = vec_load(m + (8 + j) * point_step), m3 = vec_load(m + (12 + j) * point_step);
        t[j] = m0 + m1 + m2;
        t[4 + j] = m1 - m2 - m3;
    }
    UNROLL
    for (int i = 0; i < 2; i++) {
        y[2 * i] = t[4 * i] + t[4 * i + 1] + t[4 * i + 2] + bias;
        y[2 * i + 1] = t[4 * i + 1] - t[4 * i + 2] - t[4 * i + 3] + bias;
    }
}

static void wino_output(const wino_geometry *g, float *y, int64_t tile, const float *m, const float *bias) {
    const int64_t point_step = g->block * g->panels * GEMM_PANEL;
    const int ox = 2 * (int)(tile % g->across), oy = 2 * (int)(tile / g->across % g->down);
    const bool right = ox + 1 < g->ow, below = oy + 1 < g->oh;
    float *p = y + (((tile / g->across / g->down) * g->oh + oy) * g->ow + ox) * g->oc;
    for (int c = 0; c < g->oc; c += LANES, p += LANES) {
        vec out[4];
        wino_output_vec(m + c, point_step, bias ? vec_load(bias + c) : (vec){0}, out);
        vec_store(p, out[0]);
        if (right) vec_store(p + g->oc, out[1]);
        if (below) vec_store(p + (int64_t)g->ow * g->oc, out[2]);
        if (right && below) vec_store(p + ((int64_t)g->ow + 1) * g->oc, out[3]);
    }
}

/* --- the passes --- */

/* Scratch: one row of zeros, V, M. */
static void wino_fwd(float *y, const float *x, const float *pack, const float *bias, const hp_shape *s,
                     float *scratch) {
    const wino_geometry g = wino_geometry_of(s, false);
    const int64_t v_step = g.block * g.ic, m_step = g.block * g.panels * GEMM_PANEL;
    const int64_t u_step = (int64_t)g.panels * g.ic * GEMM_PANEL;
    const wino_layout layout = {g.ic, 16, v_step};
    float *v = scratch + HP_WINOGRAD_ZEROS(g.ic), *m = v + POINTS * v_step;
    memset(scratch, 0, (size_t)g.ic * sizeof *scratch);
    for (int64_t first = 0; first < g.tiles; first += g.block) {
        const int64_t left = g.tiles - first, count = left < g.block ? left : g.block;
        const int64_t rows = (count + HP_WINOGRAD_ROWS - 1) / HP_WINOGRAD_ROWS * HP_WINOGRAD_ROWS;
        wino_input(&g, x, first, scratch, &layout, v);
        for (int p = 0; p < POINTS; p++)
            gemm_panels(m + p * m_step, v + p * v_step, pack + p * u_step, rows, g.ic, g.panels);
        for (int64_t t = 0; t < count; t++)
            wino_output(&g, y, first + t, m + t * g.panels * GEMM_PANEL, bias);
    }
}

/* W = A dy A' of one tile: the adjoint of wino_output. */
static void wino_gradient_tile(const wino_geometry *g, const float *dy, int64_t tile, const float *zero,
                               float *w) {
    const int64_t point_step = g->block * g->panels * GEMM_PANEL;
    const int ox = 2 * (int)(tile % g->across), oy = 2 * (int)(tile / g->across % g->down);
    const float *p = dy + (((tile / g->across / g->down) * g->oh + oy) * g->ow + ox) * g->oc;
    const bool right = ox + 1 < g->ow, below = oy + 1 < g->oh;
    const float *at[4] = {p, right ? p + g->oc : zero, below ? p + (int64_t)g->ow * g->oc : zero,
                          right && below ? p + ((int64_t)g->ow + 1) * g->oc : zero};
    for (int c = 0; c < g->oc; c += LANES) {
        const vec a = vec_load(at[0] + c), b = vec_load(at[1] + c), d = vec_load(at[2] + c),
                  e = vec_load(at[3] + c);
        const vec left[4] = {a, a + d, a - d, -d}, down[4] = {b, b + e, b - e, -e};
        UNROLL
        for (int i = 0; i < 4; i++) {
            float *out = w + 4 * i * point_step + c / GEMM_PANEL * g->block * GEMM_PANEL + c % GEMM_PANEL;
            vec_store(out, left[i]);
            vec_store(out + point_step, left[i] + down[i]);
            vec_store(out + 2 * point_step, left[i] - down[i]);
            vec_store(out + 3 * point_step, -down[i]);
        }
    }
}

/* dg = G' S G for one input channel and LANES output channels; g[k] holds tap k. */
static inline __attribute__((always_inline)) void wino_weight3(vec s0, vec s1, vec s2, vec s3, vec *g0,
                                                               vec *g1, vec *g2) {
    const vec half = 0.5f * (s1 + s2);
    *g0 = s0 + half;
    *g1 = 0.5f * (s1 - s2);
    *g2 = half + s3;
}

static void wino_weight(const float *s, int64_t point_step, float g[9][LANES]) {
    vec t[12], out[3];
    UNROLL
    for (int i = 0; i < 4; i++) {
        const float *row = s + 4 * i * point_step;
        wino_weight3(vec_load(row), vec_load(row + point_step), vec_load(row + 2 * point_step),
                     vec_load(row + 3 * point_step), &t[3 * i], &t[3 * i + 1], &t[3 * i + 2]);
    }
    UNROLL
    for (int j = 0; j < 3; j++) {
        wino_weight3(t[j], t[3 + j], t[6 + j], t[9 + j], &out[0], &out[1], &out[2]);
        for (int i = 0; i < 3; i++) vec_store(g[3 * i + j], out[i]);
    }
}

/* LANES outputs' filters from tap-major to canonical order, `step` apart. */
static void wino_weights_out(float g[9][LANES], float *dw, int64_t step, bool add) {
    for (int i = 0; i < LANES; i++, dw += step)
        for (int k = 0; k < 9; k++) dw[k] = (add ? dw[k] : 0.0f) + g[k][i];
}

/* All weights: dw (oc, ic, 3, 3) from the sums (point, ic, padded oc), a strip of outputs at a time so that
 * both sides are read and written in whole cache lines. */
static void wino_weights(const wino_geometry *g, const float *sum, float *dw, bool add) {
    enum { STRIP = 64 };
    const int64_t outs = (int64_t)g->panels * GEMM_PANEL, filters = (int64_t)g->ic * 9;
    float t[9][LANES];
    for (int strip = 0; strip < g->oc; strip += STRIP)
        for (int c = 0; c < g->ic; c++)
            for (int o = strip; o < strip + STRIP && o < g->oc; o += LANES) {
                wino_weight(sum + c * outs + o, g->ic * outs, t);
                wino_weights_out(t, dw + o * filters + c * 9, filters, add);
            }
}

/* Scratch: zeros, V, W, S (point, input channel, output channel). */
static void wino_bwdw(float *dw, const float *x, const float *dy, const hp_shape *s, bool add,
                      float *scratch) {
    const wino_geometry g = wino_geometry_of(s, true);
    const int64_t outs = (int64_t)g.panels * GEMM_PANEL, v_step = g.block * g.ic, w_step = g.block * outs;
    const int64_t s_step = g.ic * outs;
    const wino_layout layout = {16, 16 * g.block, v_step};
    const int zeros = g.ic > g.oc ? g.ic : g.oc;
    float *v = scratch + HP_WINOGRAD_ZEROS(zeros), *w = v + POINTS * v_step, *sum = w + POINTS * w_step;
    memset(scratch, 0, (size_t)zeros * sizeof *scratch);
    memset(w, 0, (size_t)(POINTS * w_step) * sizeof *w); /* columns past oc stay zero */
    for (int64_t first = 0; first < g.tiles; first += g.block) {
        const int64_t left = g.tiles - first, count = left < g.block ? left : g.block;
        wino_input(&g, x, first, scratch, &layout, v);
        for (int64_t t = 0; t < count; t++)
            wino_gradient_tile(&g, dy, first + t, scratch, w + t * GEMM_PANEL);
        for (int p = 0; p < POINTS; p++)
            gemm_transposed(sum + p * s_step, v + p * v_step, w + p * w_step, g.ic, count, g.block, g.panels,
                            first > 0);
    }
    wino_weights(&g, sum, dw, add);
}

#endif
