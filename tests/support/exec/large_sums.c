/* large_sums.c - sums over large maps on a device, against their definition in float64. */
#include "tests/support/exec/large_sums.h"

#include "networks/graph/graph_gather.h"

/* Half the distance between adjacent float32 numbers near 1: the loss of one rounding. */
static const double unit = 0x1p-24;

/* Loss of n terms added in sequence, plus roundings of a product and of the result. */
static double lost(const sums_law *l, double terms) {
    return l->ops->dtype == HP_F64 ? 0x1p-53 * (double)l->side * l->side : (terms + 3) * unit;
}

/* --- maps --- */

static double value(sums_pattern p, int64_t pixel, int stream) {
    const bool odd = stream ? pixel / 2 % 2 : pixel % 2;
    if (p == SUMS_CONSTANT) return (double)(stream ? 0.3f : 0.1f);
    if (p == SUMS_CANCELLING) return (double)((odd ? -0.7f : 0.7f) + (stream ? 0.002f : 0.001f));
    return (double)(float)hp_rng_uniform(11, (uint64_t)stream, (uint64_t)pixel);
}

static void put(const sums_law *l, rig *r, int32_t buffer, int stream) {
    const hp_box *b = &r->buffer[buffer].box;
    const int channels = hp_box_len(b, HP_AXIS_C);
    for (int64_t i = 0; i < rig_elems(r, buffer); i++)
        rig_set(r, buffer, i, value(l->pattern, i / channels, stream));
}

static rig *start(const sums_law *l, const draw *d) {
    hp_error err = {0};
    rig *r = build(l->ops, d);
    put(l, r, r->x[0], 0);
    put(l, r, r->dy, 1);
    rig_fill(r, HP_BUF_WEIGHTS, 21, 0.5, 1);
    for (int64_t i = 0; i < rig_elems(r, HP_BUF_STATE); i++) rig_set(r, HP_BUF_STATE, i, 0);
    if (rig_open(r, &err) != HP_OK) fail_msg("%s", err.text);
    return r;
}

static void run(rig *r, int task) {
    assert_int_equal(rig_run(r, task), HP_OK);
}

/* |got - sum| <= bound */
static void near(const sums_law *l, const char *what, int64_t i, double got, double sum, double bound) {
    if (fabs(got - sum) <= bound) return;
    fail_msg("%s of %s, %dx%d, pattern %d, element %lld: %.9g, should be %.9g +- %.3g", what, l->ops->name,
             l->side, l->side, (int)l->pattern, (long long)i, got, sum, bound);
}

/* --- pooling --- */

/* Window of an output's mean along one axis. */
static void window(const draw *d, bool adaptive, int o, int *from, int *to) {
    const hp_layer *k = &d->layer;
    const int in = d->in[0].h, out = d->out.h;
    *from = adaptive ? (int)((int64_t)o * in / out) : o * k->window.stride_h;
    *to = adaptive ? (int)(((int64_t)(o + 1) * in + out - 1) / out) : *from + k->window.kh;
}

static void check_pool(const sums_law *l, const draw *d) {
    const bool adaptive = d->layer.op == HP_ADAPTPOOL;
    const int n = d->in[0].h, m = d->out.h, c = d->out.c;
    rig *r = start(l, d);
    double *dx = calloc((size_t)n * (size_t)n, sizeof *dx);
    run(r, RIG_FWD);
    run(r, RIG_BWD);
    for (int o = 0; o < m * m; o++) {
        int y0, y1, x0, x1;
        double sum = 0;
        window(d, adaptive, o / m, &y0, &y1);
        window(d, adaptive, o % m, &x0, &x1);
        const double count = (double)(y1 - y0) * (x1 - x0), dy = rig_get(r, r->dy, (int64_t)o * c) / count;
        for (int64_t y = y0; y < y1; y++)
            for (int64_t x = x0; x < x1; x++) {
                sum += value(l->pattern, y * n + x, 0);
                dx[y * n + x] += dy;
            }
        for (int k = 0; k < c; k++)
            near(l, "mean", o, rig_get(r, r->y, (int64_t)o * c + k), sum / count,
                 lost(l, l->blocks.rows) * 1.1);
    }
    for (int64_t i = 0; i < (int64_t)n * n;
         i += 1 + i / 97) /* at most 2 windows' worth of 1.1, or 4 adaptive ones' */
        near(l, "mean's gradient", i, rig_get(r, r->dx[0], i * c), dx[i], lost(l, l->blocks.rows) * 4.4);
    free(dx);
    rig_free(r);
}

void sums_of_pools(const sums_law *l) {
    draw d = {.layer = {.op = HP_ADAPTPOOL,
                        .n_in = 1,
                        .groups = 1,
                        .window.kh = 1,
                        .window.kw = 1,
                        .window.stride_h = 1,
                        .window.stride_w = 1},
              .samples = 1,
              .in = {{.h = l->side, .w = l->side, .c = 2}},
              .out = {.c = 2}};
    for (int parts = 1; parts <= 3; parts += 2) {
        d.layer.out_h = d.layer.out_w = d.out.h = d.out.w = parts;
        check_pool(l, &d);
    }
    d.layer = (hp_layer){.op = HP_AVGPOOL, .n_in = 1, .groups = 1, .window.dil_h = 1, .window.dil_w = 1};
    d.in[0].h = d.in[0].w = l->side < 96 ? l->side : 96;
    d.layer.window.kh = d.layer.window.kw = d.in[0].h * 2 / 3;
    d.layer.window.stride_h = d.layer.window.stride_w = 1;
    finish_window(&d);
    check_pool(l, &d);
}

/* --- a vector spread over the map --- */

static void check_spread(const sums_law *l, const hp_layer *layer) {
    const draw d = {.layer = *layer,
                    .samples = 1,
                    .in = {{.h = 1, .w = 1, .c = 2}},
                    .out = {.h = l->side, .w = l->side, .c = 2}};
    const int64_t pixels = (int64_t)l->side * l->side;
    double sum = 0, size = 0;
    rig *r = start(l, &d);
    run(r, RIG_BWD);
    for (int64_t i = 0; i < pixels; i++) {
        sum += value(l->pattern, i, 1);
        size += fabs(value(l->pattern, i, 1));
    }
    for (int c = 0; c < 2; c++)
        near(l, "a spread vector's gradient", c, rig_get(r, r->dx[0], c), sum,
             lost(l, l->blocks.rows) * size);
    rig_free(r);
}

void sums_of_spread(const sums_law *l) {
    hp_layer k = {.op = HP_RESIZE, .n_in = 1, .groups = 1, .out_h = l->side, .out_w = l->side};
    for (k.resize.interpolation = HP_NEAREST; k.resize.interpolation <= HP_BILINEAR; k.resize.interpolation++)
        check_spread(l, &k);
    k = (hp_layer){.op = HP_GATHER,
                   .n_in = 1,
                   .groups = 2,
                   .window.kh = 1,
                   .window.kw = 1,
                   .gather.step = 1,
                   .gather.out_c = 2,
                   .out_h = l->side,
                   .out_w = l->side,
                   .gather.border = HP_BORDER_EDGE};
    check_spread(l, &k);
}

/* --- gradients of weights and biases --- */

/* Gradient of one weight, and the absolute sum of its terms: output channel o, input channel i of its group;
 * channels are alike. */
typedef struct total {
    double sum, size;
} total;

static void add(total *t, double term) {
    t->sum += term;
    t->size += fabs(term);
}

static total weight_of(const sums_law *l, const draw *d, int ky, int kx) {
    const hp_layer *k = &d->layer;
    total t = {0};
    for (int64_t y = 0; y < d->out.h; y++)
        for (int64_t x = 0; x < d->out.w; x++) {
            const int64_t iy = y * k->window.stride_h - k->window.pad_h + ky,
                          ix = x * k->window.stride_w - k->window.pad_w + kx;
            if (iy < 0 || ix < 0 || iy >= d->in[0].h || ix >= d->in[0].w) continue;
            add(&t, value(l->pattern, iy * d->in[0].w + ix, 0) * value(l->pattern, y * d->out.w + x, 1));
        }
    return t;
}

static void check_biases(const sums_law *l, const draw *d, const rig *r) {
    total t = {0};
    for (int64_t i = 0; i < (int64_t)d->out.h * d->out.w; i++) add(&t, value(l->pattern, i, 1));
    for (int o = 0; o < d->out.c; o++)
        near(l, "a bias's gradient", o, rig_get(r, HP_BUF_GRADS, r->place[1].offset + o), t.sum,
             lost(l, l->blocks.rows) * t.size);
}

void sums_of_conv(const sums_law *l, int ins, int outs, int kernel, int stride, int groups) {
    draw d = {.layer = {.op = HP_CONV,
                        .n_in = 1,
                        .groups = groups,
                        .window.kh = kernel,
                        .window.kw = kernel,
                        .window.stride_h = stride,
                        .window.stride_w = stride,
                        .window.dil_h = 1,
                        .window.dil_w = 1,
                        .window.pad_h = kernel / 2,
                        .window.pad_w = kernel / 2},
              .samples = 1,
              .in = {{.h = l->side, .w = l->side, .c = ins}},
              .out = {.c = outs},
              .bias = true};
    finish_window(&d);
    rig *r = start(l, &d);
    const double amplified =
        hp_conv_winograd(&r->graph, 1) ? 16 : 1; /* transforms of 4 and 4, times 4, for 4 terms */
    run(r, RIG_BWDW);
    check_biases(l, &d, r);
    for (int k = 0; k < kernel * kernel; k += 1 + kernel) {
        const total t = weight_of(l, &d, k / kernel, k % kernel);
        for (int64_t w = k; w < r->param[0].count; w += (int64_t)kernel * kernel)
            near(l, "a weight's gradient", w, rig_get(r, HP_BUF_GRADS, r->place[0].offset + w), t.sum,
                 lost(l, l->blocks.weights) * t.size * amplified);
    }
    rig_free(r);
}

/* Kernel and stride 2: an input pixel meets each of its four outputs under a different tap. */
void sums_of_transposed(const sums_law *l, int ins, int outs) {
    draw d = {.layer = {.op = HP_CONVT,
                        .n_in = 1,
                        .groups = 1,
                        .window.kh = 2,
                        .window.kw = 2,
                        .window.stride_h = 2,
                        .window.stride_w = 2,
                        .window.dil_h = 1,
                        .window.dil_w = 1},
              .samples = 1,
              .in = {{.h = l->side, .w = l->side, .c = ins}},
              .out = {.h = 2 * l->side, .w = 2 * l->side, .c = outs},
              .bias = true};
    rig *r = start(l, &d);
    run(r, RIG_BWDW);
    check_biases(l, &d, r);
    for (int k = 0; k < 4; k++) {
        total t = {0};
        for (int64_t i = 0; i < (int64_t)l->side * l->side; i++) {
            const int64_t y = 2 * (i / l->side) + k / 2, x = 2 * (i % l->side) + k % 2;
            add(&t, value(l->pattern, i, 0) * value(l->pattern, y * d.out.w + x, 1));
        }
        for (int64_t w = k; w < r->param[0].count; w += 4)
            near(l, "a transposed weight's gradient", w, rig_get(r, HP_BUF_GRADS, r->place[0].offset + w),
                 t.sum, lost(l, l->blocks.weights) * t.size);
    }
    rig_free(r);
}

/* --- batch norm --- */

void sums_of_norm(const sums_law *l) {
    draw d = {.layer = {.op = HP_BN, .n_in = 1, .eps = 1e-5f, .momentum = 0.1f},
              .samples = 1,
              .out = {.h = l->side, .w = l->side, .c = 2}};
    d.in[0] = d.out;
    rig *r = start(l, &d);
    const int64_t n = (int64_t)l->side * l->side;
    const double first = value(l->pattern, 0, 0), e = lost(l, l->blocks.rows);
    double mean = 0, var = 0, shifted = 0;
    total dot = {0}, sum = {0};
    run(r, RIG_FWD);
    run(r, RIG_BWD);
    for (int64_t i = 0; i < n; i++) mean += value(l->pattern, i, 0) / (double)n;
    for (int64_t i = 0; i < n; i++) {
        const double x = value(l->pattern, i, 0), dy = value(l->pattern, i, 1);
        var += (x - mean) * (x - mean) / (double)n;
        shifted += (x - first) * (x - first) / (double)n;
        add(&sum, dy);
        add(&dot, dy * (x - mean));
    }
    /* Sums are of x - first. The stored mean is rounded, and so is x - mean. */
    const double mean_lost = e * (sqrt(shifted) + fabs(mean)), inverse = 1 / sqrt(var + (double)d.layer.eps),
                 inverse_lost = inverse * (2 * e * shifted * inverse * inverse + e);
    for (int c = 0; c < 2; c++) {
        near(l, "a mean", c, rig_get(r, r->save, c), mean, mean_lost);
        near(l, "a deviation", c, rig_get(r, r->save, 2 + c), inverse, inverse_lost);
        near(l, "beta's gradient", c, rig_get(r, HP_BUF_GRADS, r->place[1].offset + c), sum.sum,
             e * sum.size);
        near(l, "gamma's gradient", c, rig_get(r, HP_BUF_GRADS, r->place[0].offset + c), dot.sum * inverse,
             (e * dot.size + mean_lost * sum.size) * inverse + fabs(dot.sum) * inverse_lost);
    }
    rig_free(r);
}

/* --- other layers --- */

void sums_of_linear(const sums_law *l) {
    draw d = {.layer = {.op = HP_LINEAR, .n_in = 1},
              .samples = 1,
              .in = {{.h = l->side, .w = l->side, .c = 1}},
              .out = {.h = 1, .w = 1, .c = 2},
              .bias = true};
    rig *r = start(l, &d);
    const int64_t n = (int64_t)l->side * l->side;
    run(r, RIG_PACK);
    run(r, RIG_FWD);
    for (int o = 0; o < 2; o++) {
        total t = {0};
        add(&t, rig_get(r, HP_BUF_WEIGHTS, r->place[1].offset + o));
        for (int64_t i = 0; i < n; i++)
            add(&t, value(l->pattern, i, 0) * rig_get(r, HP_BUF_WEIGHTS, r->place[0].offset + o * n + i));
        near(l, "a product with the map", o, rig_get(r, r->y, o), t.sum, lost(l, l->blocks.weights) * t.size);
    }
    rig_free(r);
}

/* Two classes: log(1 + exp(other - label)); half of the pixels have each. */
void sums_of_loss(const sums_law *l) {
    draw d = {.layer = {.op = HP_ACT, .n_in = 1}, .samples = 1, .out = {.h = l->side, .w = l->side, .c = 2}};
    const int64_t n = (int64_t)l->side * l->side;
    double sum = 0;
    d.in[0] = d.out;
    rig *r = start(l, &d);
    int32_t *labels = rig_at(r, r->labels);
    for (int64_t i = 0; i < n; i++) {
        rig_set(r, r->y, 2 * i, value(l->pattern, i, 0));
        rig_set(r, r->y, 2 * i + 1, value(l->pattern, i, 1));
        labels[i] = (int32_t)(i % 2);
        sum += log1p(exp((i % 2 ? 1 : -1) * (value(l->pattern, i, 0) - value(l->pattern, i, 1))));
    }
    run(r, RIG_LOSS_EVAL);
    const double *metric = rig_at(r, HP_BUF_METRIC);
    near(l, "the loss", 0, metric[HP_METRIC_LOSS], sum, 0x1p-52 * (double)n * sum);
    rig_free(r);
}
