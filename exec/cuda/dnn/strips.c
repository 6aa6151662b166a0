/* strips.c - convolutions split into samples or strips of rows. */
#include "exec/cuda/dnn/strips.h"

#include <stdlib.h>

static int32_t reach(int32_t k, int32_t dil) {
    return (k - 1) * dil + 1;
}

static int32_t positive(int32_t v) {
    return v > 0 ? v : 0;
}

static int32_t up(int32_t v, int32_t by) {
    return v > 0 ? (v + by - 1) / by : 0;
}

static bool agree(int32_t in, int32_t out, int32_t k, int32_t stride, int32_t before, int32_t after) {
    const int32_t room = in + before + after - k;
    return in > 0 && out > 0 && before >= 0 && room >= 0 && room / stride + 1 == out;
}

/* Reduces the guaranteed alignment to what the offset leaves. */
static void align(hp_dnn_piece *p) {
    const int64_t bytes = hp_dtype_bytes((hp_dtype)p->conv.dtype);
    while ((p->x_at * bytes | p->y_at * bytes) % p->conv.alignment) p->conv.alignment /= 2;
}

/* Rows or columns to crop: all unread ones in front; at the end, cuDNN itself ignores less than a stride. */
typedef struct margin {
    int32_t top, left, bottom, right;
} margin;

static margin margin_of(const hp_dnn_conv *c) {
    return (margin){.top = positive(-c->pad.top),
                    .left = positive(-c->pad.left),
                    .bottom = c->pad.bottom <= -c->stride_h ? -c->pad.bottom : 0,
                    .right = c->pad.right <= -c->stride_w ? -c->pad.right : 0};
}

static bool is_some(const margin *m) {
    return m->top || m->left || m->bottom || m->right;
}

bool hp_dnn_leaves(const hp_dnn_conv *c) {
    const margin m = margin_of(c);
    return c->kind == HP_DNN_DGRAD && !c->add && is_some(&m);
}

/* Crops unread inputs. Cropping only rows of a single sample leaves it dense, so the strides stay 0. */
static void crop(hp_dnn_piece *p) {
    hp_dnn_conv *c = &p->conv;
    const margin m = margin_of(c);
    if (is_some(&m) && (c->n > 1 || m.left || m.right)) {
        c->x_sample = hp_dnn_x_sample(c);
        c->x_row = hp_dnn_x_row(c);
    }
    p->x_at = m.top * hp_dnn_x_row(c) + m.left * (int64_t)c->ic;
    c->ih -= m.top + m.bottom;
    c->iw -= m.left + m.right;
    c->pad.top = positive(c->pad.top);
    c->pad.left = positive(c->pad.left);
    c->pad.bottom = positive(c->pad.bottom);
    c->pad.right = positive(c->pad.right);
    align(p);
}

static hp_status whole(const hp_dnn_conv *asked, hp_dnn_piece *p, hp_error *err) {
    const hp_dnn_conv *c = &p->conv;
    *p = (hp_dnn_piece){.conv = *asked};
    p->conv.alignment = asked->alignment ? asked->alignment : 16;
    crop(p);
    if (c->n > 0 && c->stride_h > 0 && c->stride_w > 0 && c->groups > 0 && c->ic % c->groups == 0 &&
        c->oc % c->groups == 0 &&
        agree(c->ih, c->oh, reach(c->kh, c->dil_h), c->stride_h, c->pad.top, c->pad.bottom) &&
        agree(c->iw, c->ow, reach(c->kw, c->dil_w), c->stride_w, c->pad.left, c->pad.right))
        return HP_OK;
    return hp_fail(err, HP_EUNAVAIL,
                   "a convolution of %dx%dx%d to %dx%dx%d, kernel %dx%d, padded by %d,%d,%d,%d: sizes do not "
                   "belong together",
                   (int)asked->ih, (int)asked->iw, (int)asked->ic, (int)asked->oh, (int)asked->ow,
                   (int)asked->oc, (int)asked->kh, (int)asked->kw, (int)asked->pad.top, (int)asked->pad.left,
                   (int)asked->pad.bottom, (int)asked->pad.right);
}

static int64_t row_of(int32_t w, int32_t c) {
    return (int64_t)w * c;
}

/* --- samples --- */

static void samples(const hp_dnn_piece *all, int64_t lo, int64_t hi, hp_dnn_piece *p) {
    const hp_dnn_conv *c = &all->conv;
    *p = *all;
    p->conv.n = hi - lo;
    p->x_at += lo * hp_dnn_x_sample(c);
    p->y_at = lo * c->oh * row_of(c->ow, c->oc);
    align(p);
}

/* --- strips of one sample --- */

/* Rows [x0, x1) and [y0, y1) of a sample, as an operation of their own. */
static void rows(const hp_dnn_piece *sample, int32_t x0, int32_t x1, int32_t y0, int32_t y1,
                 hp_dnn_piece *p) {
    const hp_dnn_conv *c = &sample->conv;
    *p = *sample;
    p->conv.ih = x1 - x0;
    p->conv.oh = y1 - y0;
    p->conv.pad.top = c->pad.top + x0 - y0 * c->stride_h;
    p->conv.pad.bottom =
        positive((p->conv.oh - 1) * c->stride_h + reach(c->kh, c->dil_h) - p->conv.pad.top - p->conv.ih);
    p->x_at += x0 * hp_dnn_x_row(c);
    p->y_at += y0 * row_of(c->ow, c->oc);
    align(p);
}

/* Outputs [lo, hi) of equal shares, and the inputs that they read. */
static void output_strip(const hp_dnn_piece *sample, int k, int count, hp_dnn_piece *p) {
    const hp_dnn_conv *c = &sample->conv;
    const int32_t lo = hp_split_at(c->oh, count, k), hi = hp_split_at(c->oh, count, k + 1);
    const int32_t first = lo * c->stride_h - c->pad.top,
                  end = (hi - 1) * c->stride_h - c->pad.top + reach(c->kh, c->dil_h);
    rows(sample, positive(first), end < c->ih ? end : c->ih, lo, hi, p);
}

/* Cuts the input only where a window may begin, so that no strip starts with rows that its
 * first output skips. */
static int32_t input_bound(const hp_dnn_conv *c, int k, int count) {
    if (k == 0 || k == count) return k ? c->ih : 0;
    const int32_t at = hp_split_at(c->ih, count, k) + c->pad.top;
    return positive(at - at % c->stride_h - c->pad.top);
}

static void input_strip(const hp_dnn_piece *sample, int k, int count, hp_dnn_piece *p) {
    const hp_dnn_conv *c = &sample->conv;
    const int32_t lo = input_bound(c, k, count), hi = input_bound(c, k + 1, count);
    const int32_t first = up(lo + c->pad.top - reach(c->kh, c->dil_h) + 1, c->stride_h),
                  end = (hi - 1 + c->pad.top) / c->stride_h + 1;
    rows(sample, lo, hi, first, end < c->oh ? end : c->oh, p);
}

static void strip(const hp_dnn_piece *sample, int k, int count, hp_dnn_piece *p) {
    if (sample->conv.kind == HP_DNN_DGRAD)
        input_strip(sample, k, count, p);
    else
        output_strip(sample, k, count, p);
}

/* --- how many --- */

static int64_t sample_elements(const hp_dnn_conv *c) {
    const int64_t x = c->ih * hp_dnn_x_row(c), y = c->oh * row_of(c->ow, c->oc);
    return x > y ? x : y;
}

static bool fits(const hp_dnn_piece *p, int64_t limit) {
    return p->conv.ih > 0 && p->conv.oh > 0 && sample_elements(&p->conv) <= limit;
}

/* Smallest number of strips such that all fit; 0: even single rows do not. */
static int strips_of(const hp_dnn_piece *sample, int64_t limit) {
    const int32_t most = sample->conv.kind == HP_DNN_DGRAD ? sample->conv.ih : sample->conv.oh;
    for (int count = 1; count <= most; count++) {
        int k = 0;
        hp_dnn_piece p;
        do strip(sample, k, count, &p);
        while (fits(&p, limit) && ++k < count);
        if (k == count) return count;
    }
    return 0;
}

static hp_dnn_piece *new_pieces(int64_t n) {
    hp_dnn_piece *p = calloc((size_t)n, sizeof *p);
    HP_ASSERT(p);
    return p;
}

static void split_samples(const hp_dnn_piece *all, int64_t limit, hp_dnn_piece **piece, int *n) {
    const int64_t x = hp_dnn_x_sample(&all->conv), most = sample_elements(&all->conv),
                  at_once = x <= limit ? limit / (x > most ? x : most) : 1;
    *n = (int)((all->conv.n + at_once - 1) / at_once);
    *piece = new_pieces(*n);
    for (int k = 0; k < *n; k++) samples(all, all->conv.n * k / *n, all->conv.n * (k + 1) / *n, &(*piece)[k]);
}

static hp_status split_rows(const hp_dnn_piece *all, int64_t limit, hp_dnn_piece **piece, int *n,
                            hp_error *err) {
    hp_dnn_piece sample;
    samples(all, 0, 1, &sample);
    const int count = strips_of(&sample, limit);
    if (!count)
        return hp_fail(err, HP_EUNAVAIL, "a row of %d x %d pixels and channels is too long for cuDNN",
                       (int)all->conv.iw, (int)all->conv.ic);
    *n = (int)all->conv.n * count;
    *piece = new_pieces(*n);
    for (int64_t i = 0; i < all->conv.n; i++) {
        samples(all, i, i + 1, &sample);
        for (int k = 0; k < count; k++) strip(&sample, k, count, &(*piece)[i * count + k]);
    }
    return HP_OK;
}

hp_status hp_dnn_split(const hp_dnn_conv *c, int64_t limit, hp_dnn_piece **piece, int *n, hp_error *err) {
    hp_dnn_piece all;
    HP_TRY(whole(c, &all, err));
    if (sample_elements(&all.conv) <= limit)
        split_samples(&all, limit, piece, n);
    else
        HP_TRY(split_rows(&all, limit, piece, n, err));
    for (int k = 1; k < *n && c->kind == HP_DNN_WGRAD; k++) (*piece)[k].conv.add = true;
    return HP_OK;
}
