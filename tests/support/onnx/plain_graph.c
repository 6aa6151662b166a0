/* plain_graph.c - a network computed from the operators' definitions, one sample, in double. */
#include "tests/support/onnx/plain_graph.h"
#include "networks/graph/graph_gather.h"
#include "tests/support/plan/exact_activation.h"

static double plain_at(const plain *p, int tensor, int64_t y, int64_t x, int64_t c) {
    const hp_tensor *t = &p->g->tensor[tensor];
    return p->tensor[tensor][(y * t->w + x) * t->c + c];
}

static bool plain_inside(const hp_tensor *t, int64_t y, int64_t x) {
    return y >= 0 && y < t->h && x >= 0 && x < t->w;
}

static double plain_weight(const plain *p, const hp_layer *l, int i, int64_t at) {
    return i < l->n_param ? (double)p->param[l->param[i]][at] : 0;
}

static double plain_conv(const plain *p, const hp_layer *l, int64_t y, int64_t x, int64_t o) {
    const hp_tensor *in = &p->g->tensor[l->in[0]], *out = &p->g->tensor[l->out];
    const int64_t ins = in->c / l->groups, first = o / (out->c / l->groups) * ins;
    double sum = plain_weight(p, l, 1, o);
    for (int64_t i = 0; i < ins; i++)
        for (int64_t ky = 0; ky < l->window.kh; ky++)
            for (int64_t kx = 0; kx < l->window.kw; kx++) {
                const int64_t iy = y * l->window.stride_h - l->window.pad_h + ky * l->window.dil_h,
                              ix = x * l->window.stride_w - l->window.pad_w + kx * l->window.dil_w;
                if (plain_inside(in, iy, ix))
                    sum += plain_at(p, l->in[0], iy, ix, first + i) *
                           plain_weight(p, l, 0, ((o * ins + i) * l->window.kh + ky) * l->window.kw + kx);
            }
    return sum;
}

static double plain_convt(const plain *p, const hp_layer *l, int64_t y, int64_t x, int64_t o) {
    const hp_tensor *in = &p->g->tensor[l->in[0]], *out = &p->g->tensor[l->out];
    const int64_t ins = in->c / l->groups, outs = out->c / l->groups;
    double sum = plain_weight(p, l, 1, o);
    for (int64_t i = 0; i < ins; i++)
        for (int64_t ky = 0; ky < l->window.kh; ky++)
            for (int64_t kx = 0; kx < l->window.kw; kx++) {
                const int64_t fy = y + l->window.pad_h - ky * l->window.dil_h,
                              fx = x + l->window.pad_w - kx * l->window.dil_w, c = o / outs * ins + i;
                if (fy % l->window.stride_h == 0 && fx % l->window.stride_w == 0 && fy >= 0 && fx >= 0 &&
                    plain_inside(in, fy / l->window.stride_h, fx / l->window.stride_w))
                    sum += plain_at(p, l->in[0], fy / l->window.stride_h, fx / l->window.stride_w, c) *
                           plain_weight(p, l, 0,
                                        ((c * outs + o % outs) * l->window.kh + ky) * l->window.kw + kx);
            }
    return sum;
}

static double plain_linear(const plain *p, const hp_layer *l, int64_t o) {
    const hp_tensor *in = &p->g->tensor[l->in[0]];
    const int64_t ins = (int64_t)in->h * in->w * in->c;
    double sum = plain_weight(p, l, 1, o);
    for (int64_t c = 0, i = 0; c < in->c; c++)
        for (int64_t y = 0; y < in->h; y++)
            for (int64_t x = 0; x < in->w; x++, i++)
                sum += plain_at(p, l->in[0], y, x, c) * plain_weight(p, l, 0, o * ins + i);
    return sum;
}

static double plain_pool(const plain *p, const hp_layer *l, int64_t y, int64_t x, int64_t c) {
    const hp_tensor *in = &p->g->tensor[l->in[0]];
    const int64_t y0 = y * l->window.stride_h - l->window.pad_h,
                  x0 = x * l->window.stride_w - l->window.pad_w;
    double sum = 0, most = -INFINITY, n = 0, padded = 0;
    for (int64_t ky = 0; ky < l->window.kh; ky++)
        for (int64_t kx = 0; kx < l->window.kw; kx++) {
            const int64_t iy = y0 + ky * l->window.dil_h, ix = x0 + kx * l->window.dil_w;
            padded += iy < in->h + l->window.pad_h && ix < in->w + l->window.pad_w;
            if (!plain_inside(in, iy, ix)) continue;
            sum += plain_at(p, l->in[0], iy, ix, c);
            most = fmax(most, plain_at(p, l->in[0], iy, ix, c));
            n++;
        }
    return l->op == HP_MAXPOOL ? most : sum / (l->window.count_include_pad ? padded : n);
}

static double plain_adaptpool(const plain *p, const hp_layer *l, int64_t y, int64_t x, int64_t c) {
    const hp_tensor *in = &p->g->tensor[l->in[0]];
    const int64_t y0 = y * in->h / l->out_h, y1 = ((y + 1) * in->h + l->out_h - 1) / l->out_h;
    const int64_t x0 = x * in->w / l->out_w, x1 = ((x + 1) * in->w + l->out_w - 1) / l->out_w;
    double sum = 0;
    for (int64_t iy = y0; iy < y1; iy++)
        for (int64_t ix = x0; ix < x1; ix++) sum += plain_at(p, l->in[0], iy, ix, c);
    return sum / (double)((y1 - y0) * (x1 - x0));
}

static double plain_resize(const plain *p, const hp_layer *l, int64_t y, int64_t x, int64_t c) {
    const hp_tensor *in = &p->g->tensor[l->in[0]];
    const hp_resampling down = hp_resampling_of(l, true, in->h, l->out_h),
                        along = hp_resampling_of(l, false, in->w, l->out_w);
    const hp_taps rows = hp_taps_at(&down, y), cols = hp_taps_at(&along, x);
    double sum = 0;
    for (int j = 0; j < rows.n; j++)
        for (int k = 0; k < cols.n; k++)
            sum += rows.share[j] * cols.share[k] * plain_at(p, l->in[0], rows.at[j], cols.at[k], c);
    return sum;
}

static double plain_concat(const plain *p, const hp_layer *l, int64_t y, int64_t x, int64_t c) {
    int k = 0;
    for (; c >= p->g->tensor[l->in[k]].c; k++) c -= p->g->tensor[l->in[k]].c;
    return plain_at(p, l->in[k], y, x, c);
}

static double plain_softmax(const plain *p, const hp_layer *l, int64_t y, int64_t x, int64_t c) {
    double most = -INFINITY, sum = 0;
    for (int64_t k = 0; k < p->g->tensor[l->out].c; k++) most = fmax(most, plain_at(p, l->in[0], y, x, k));
    for (int64_t k = 0; k < p->g->tensor[l->out].c; k++) sum += exp(plain_at(p, l->in[0], y, x, k) - most);
    return exp(plain_at(p, l->in[0], y, x, c) - most) / sum;
}

static double plain_bn(const plain *p, const hp_layer *l, double v, int64_t c) {
    const double scale = plain_weight(p, l, 0, c) / sqrt(plain_weight(p, l, 3, c) + l->eps);
    return (v - plain_weight(p, l, 2, c)) * scale + plain_weight(p, l, 1, c);
}

/* Element of the second input: per pixel, or one vector. */
static double plain_second(const plain *p, const hp_layer *l, int64_t y, int64_t x, int64_t c) {
    const hp_tensor *t = &p->g->tensor[l->in[1]];
    return plain_at(p, l->in[1], t->h == 1 ? 0 : y, t->w == 1 ? 0 : x, c);
}

static double plain_crop(const plain *p, const hp_layer *l, int64_t y, int64_t x, int64_t c) {
    return plain_at(p, l->in[0], y + l->window.pad_h, x + l->window.pad_w, c);
}

static double plain_embedding(const plain *p, const hp_layer *l, int64_t y, int64_t x, int64_t c) {
    const int64_t id = (int64_t)plain_at(p, l->in[0], y, x, 0);
    return plain_weight(p, l, 0, id * p->g->tensor[l->out].c + c);
}

static double plain_layernorm(const plain *p, const hp_layer *l, int64_t y, int64_t x, int64_t c) {
    const int64_t n = p->g->tensor[l->out].c;
    double mean = 0, square = 0;
    for (int64_t k = 0; k < n; k++) mean += plain_at(p, l->in[0], y, x, k) / (double)n;
    for (int64_t k = 0; k < n; k++) {
        const double d = plain_at(p, l->in[0], y, x, k) - mean;
        square += d * d / (double)n;
    }
    return (plain_at(p, l->in[0], y, x, c) - mean) / sqrt(square + l->eps) * plain_weight(p, l, 0, c) +
           plain_weight(p, l, 1, c);
}

static double plain_gather(const plain *p, const hp_layer *l, int64_t y, int64_t x, int64_t c) {
    const hp_tensor *in = &p->g->tensor[l->in[0]];
    const int64_t iy = hp_gather_row(l->gather.border, y - l->window.pad_h, (int64_t)in->h * l->window.kh),
                  ix = hp_gather_row(l->gather.border, x - l->window.pad_w, (int64_t)in->w * l->window.kw);
    const hp_gathering g = hp_gathering_of(l);
    const int64_t i = (iy % l->window.kh * l->window.kw + ix % l->window.kw) * l->gather.out_c + c;
    return plain_at(p, l->in[0], iy / l->window.kh, ix / l->window.kw, hp_gather_channel(&g, i));
}

static double plain_reduce(const plain *p, const hp_layer *l, int64_t y, int64_t x) {
    const int n = p->g->tensor[l->in[0]].c;
    double sum = 0, most = -INFINITY;
    int at = 0;
    for (int c = 0; c < n; c++) {
        const double v = plain_at(p, l->in[0], y, x, c);
        sum += v;
        at = v > most ? c : at;
        most = fmax(most, v);
    }
    return l->reduction == HP_CHANNELS_MEAN ? sum / n : l->reduction == HP_CHANNELS_MAX ? most : at;
}

static double plain_groupnorm(const plain *p, const hp_layer *l, int64_t y, int64_t x, int64_t c) {
    const hp_tensor *in = &p->g->tensor[l->in[0]];
    const int64_t width = in->c / l->groups, first = c / width * width, n = in->h * in->w * width;
    double mean = 0, square = 0;
    for (int64_t i = 0; i < n; i++)
        mean += plain_at(p, l->in[0], i / width / in->w, i / width % in->w, first + i % width) / (double)n;
    for (int64_t i = 0; i < n; i++) {
        const double d =
            plain_at(p, l->in[0], i / width / in->w, i / width % in->w, first + i % width) - mean;
        square += d * d / (double)n;
    }
    return (plain_at(p, l->in[0], y, x, c) - mean) / sqrt(square + l->eps) * plain_weight(p, l, 0, c) +
           plain_weight(p, l, 1, c);
}

static double plain_value(const plain *p, const hp_layer *l, int64_t y, int64_t x, int64_t c) {
    switch ((hp_layer_op)l->op) {
    case HP_CONV:
        return plain_conv(p, l, y, x, c);
    case HP_CONVT:
        return plain_convt(p, l, y, x, c);
    case HP_LINEAR:
        return plain_linear(p, l, c);
    case HP_MAXPOOL:
    case HP_AVGPOOL:
        return plain_pool(p, l, y, x, c);
    case HP_ADAPTPOOL:
        return plain_adaptpool(p, l, y, x, c);
    case HP_RESIZE:
        return plain_resize(p, l, y, x, c);
    case HP_CONCAT:
        return plain_concat(p, l, y, x, c);
    case HP_SOFTMAX:
        return plain_softmax(p, l, y, x, c);
    case HP_PAD:
        return plain_inside(&p->g->tensor[l->in[0]], y - l->window.pad_h, x - l->window.pad_w)
                   ? plain_at(p, l->in[0], y - l->window.pad_h, x - l->window.pad_w, c)
                   : 0;
    case HP_CROP:
        return plain_crop(p, l, y, x, c);
    case HP_GATHER:
        return plain_gather(p, l, y, x, c);
    case HP_REDUCE:
        return plain_reduce(p, l, y, x);
    case HP_GROUPNORM:
        return plain_groupnorm(p, l, y, x, c);
    case HP_EMBEDDING:
        return plain_embedding(p, l, y, x, c);
    case HP_LAYERNORM:
        return plain_layernorm(p, l, y, x, c);
    case HP_POSITION:
        return plain_at(p, l->in[0], y, x, c) +
               plain_weight(p, l, 0, (y * p->g->tensor[l->out].w + x) * p->g->tensor[l->out].c + c);
    case HP_BN:
        return plain_bn(p, l, plain_at(p, l->in[0], y, x, c), c) +
               (l->n_in > 1 ? plain_second(p, l, y, x, c) : 0);
    case HP_SCALE:
        return plain_at(p, l->in[0], y, x, c) * plain_weight(p, l, 0, c) + plain_weight(p, l, 1, c);
    case HP_PRELU: {
        const double v = plain_at(p, l->in[0], y, x, c);
        return v < 0 ? v * plain_weight(p, l, 0, l->groups == 1 ? 0 : c) : v;
    }
    case HP_ADD:
        return plain_at(p, l->in[0], y, x, c) + plain_second(p, l, y, x, c);
    case HP_MUL:
        return plain_at(p, l->in[0], y, x, c) * plain_second(p, l, y, x, c);
    default: /* act, dropout */
        return plain_at(p, l->in[0], y, x, c);
    }
}

static void plain_layer(const plain *p, const hp_layer *l, double *out) {
    const hp_tensor *t = &p->g->tensor[l->out];
    for (int64_t y = 0; y < t->h; y++)
        for (int64_t x = 0; x < t->w; x++)
            for (int64_t c = 0; c < t->c; c++)
                out[(y * t->w + x) * t->c + c] = exact_activation(l, plain_value(p, l, y, x, c));
}

static void plain_round(const plain *p, int tensor, double *v, int64_t n) {
    const double s = p->scale ? p->scale[tensor] : 0, z = p->scale ? p->zero[tensor] : 0;
    for (int64_t i = 0; s > 0 && i < n; i++) v[i] = s * (fmin(fmax(nearbyint(v[i] / s) + z, 0), 255) - z);
}

const double *plain_run(hp_arena *a, plain *p, const double *image) {
    const hp_graph *g = p->g;
    p->tensor = HP_NEW(a, double *, g->n_tensor);
    for (int at = 0; at < g->n_layer; at++) {
        const int tensor = g->layer[at].out;
        const int64_t n = (int64_t)g->tensor[tensor].h * g->tensor[tensor].w * g->tensor[tensor].c;
        double *out = p->tensor[tensor] = HP_NEW(a, double, n);
        if (at == 0)
            memcpy(out, image, sizeof *out * (size_t)n);
        else
            plain_layer(p, &g->layer[at], out);
        plain_round(p, tensor, out, n);
    }
    return p->tensor[g->layer[g->n_layer - 1].out];
}
