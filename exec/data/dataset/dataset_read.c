/* dataset_read.c - reads a box of a sample: from pixels to the network's input. The only place where
 * samples become numbers. */
#include "exec/base/half.h"
#include "exec/data/dataset/dataset_kind.h"

#include <string.h>

/* --resize S as torchvision's Resize(S): the shorter side becomes S, the longer keeps the
 * ratio, rounded down. */
hp_status hp_dataset_fit(const hp_dataset *d, int32_t h, int32_t w, hp_resize *fit, hp_error *err) {
    const hp_data_options *o = &d->o;
    int64_t full_h = o->image_h, full_w = o->image_w;
    if (o->resize) {
        full_h = h <= w ? o->resize : (int64_t)o->resize * h / w;
        full_w = w <= h ? o->resize : (int64_t)o->resize * w / h;
    }
    if (full_h > HP_MAX_SIDE || full_w > HP_MAX_SIDE)
        return hp_fail(err, HP_EDATA, "--resize %d of a %d x %d image is too large", o->resize, h, w);
    *fit = (hp_resize){h, w, (int32_t)full_h, (int32_t)full_w, o->image_h, o->image_w};
    return HP_OK;
}

static bool changes_nothing(const hp_resize *r) {
    return r->full_h == r->h && r->full_w == r->w && r->out_h == r->h && r->out_w == r->w;
}

typedef struct sample {
    hp_dataset *d;
    int64_t index;
} sample;

static hp_status file_pixels(void *self, const hp_crop *window, hp_pixels *view, hp_error *err) {
    const sample *s = self;
    hp_pulse_beat(&s->d->o.pulse);
    return s->d->kind->pixels(s->d, s->index, window, view, err);
}

/* Pixels of the network's image, covering at least `window`. */
static hp_status fetch(hp_dataset *d, int64_t index, const hp_crop *window, hp_pixels *view, hp_error *err) {
    sample self = {d, index};
    const hp_pixel_source file = {.get = file_pixels, .self = &self};
    hp_resize fit;
    HP_TRY(d->kind->size(d, index, view, err));
    HP_TRY(hp_dataset_fit(d, view->h, view->w, &fit, err));
    if (changes_nothing(&fit)) return file_pixels(&self, window, view, err);
    HP_TRY(hp_image_resize_from(&fit, &file, window, &d->resized, err));
    *view = hp_image_pixels(&d->resized);
    return HP_OK;
}

/* ITU-R 601 luma in 16-bit fixed point, as Pillow converts to "L". */
static uint8_t luma(const uint8_t *px) {
    return (uint8_t)((px[0] * 19595u + px[1] * 38470u + px[2] * 7471u + 0x8000u) >> 16);
}

/* Spreads n pixels of a row, with nc channels, as grey (converted if necessary) to every
 * channel of the box. */
static void spread(const uint8_t *px, int32_t nc, int32_t n, const hp_box *box, uint8_t *to) {
    for (int32_t i = 0; i < n; i++) {
        const uint8_t value = nc == 3 ? luma(px + 3 * (size_t)i) : px[i];
        for (int32_t c = box->lo[HP_AXIS_C]; c < box->hi[HP_AXIS_C]; c++) *to++ = value;
    }
}

static void copy(const uint8_t *px, int32_t nc, int32_t n, const hp_box *box, uint8_t *to) {
    for (int32_t i = 0; i < n; i++, px += nc)
        for (int32_t c = box->lo[HP_AXIS_C]; c < box->hi[HP_AXIS_C]; c++) *to++ = px[c];
}

static hp_crop window_of(const hp_box *b) {
    return (hp_crop){b->lo[HP_AXIS_H], b->lo[HP_AXIS_W], b->hi[HP_AXIS_H], b->hi[HP_AXIS_W]};
}

/* Pixels covering at least the box, with the network's channels; *grey: one value for all of them. */
static hp_status find_pixels(hp_dataset *d, int64_t index, const hp_box *box, hp_pixels *view, bool *grey,
                             hp_error *err) {
    HP_ASSERT(index >= 0 && index < d->count);
    const hp_data_options *o = &d->o;
    const hp_crop w = window_of(box);
    HP_TRY(fetch(d, index, &w, view, err));
    *grey = view->c == 1 || (view->c == 3 && (o->image_c == 1 || o->channels == 1));
    if (*grey || view->c == o->image_c) return HP_OK;
    return hp_fail(
        err, HP_EDATA,
        "--data %s: sample %lld has %d bands, the network takes %d channels; give images of %d bands, or "
        "simulate a network of %d channels",
        o->name, (long long)index, view->c, o->image_c, o->image_c, view->c);
}

/* A row of the box as the network's bytes: the view's own where they are the same, else made in `room`. */
static const uint8_t *row_bytes(const hp_pixels *view, bool grey, const hp_box *box, int32_t y,
                                uint8_t *room) {
    const hp_crop w = window_of(box);
    const uint8_t *from = hp_pixels_row(view, y) + (size_t)(w.x0 - view->window.x0) * (size_t)view->c;
    if (hp_box_len(box, HP_AXIS_C) == view->c && (view->c == 1 || !grey)) return from;
    (grey ? spread : copy)(from, view->c, hp_crop_columns(&w), box, room);
    return room;
}

/* Looks up every byte of a row in its channel's table. Bytes may lie at the end of the output's memory, which
 * is filled from its start: no output overwrites a byte that is still needed. Three channels, the usual case,
 * are a loop that the compiler unrolls. */
#define EXPAND(name, type, table)                                                                            \
    static inline __attribute__((always_inline)) void name##_of(                                             \
        const hp_dataset *d, int32_t c0, int nc, size_t pixels, const uint8_t *from, type *x) {              \
        for (size_t i = 0; i < pixels; i++)                                                                  \
            for (int c = 0; c < nc; c++) *x++ = d->table[c0 + c][*from++];                                   \
    }                                                                                                        \
    static void name(const hp_dataset *d, const hp_box *box, size_t pixels, const uint8_t *from, void *x) {  \
        const int nc = hp_box_len(box, HP_AXIS_C);                                                           \
        if (nc == 3)                                                                                         \
            name##_of(d, box->lo[HP_AXIS_C], 3, pixels, from, x);                                            \
        else                                                                                                 \
            name##_of(d, box->lo[HP_AXIS_C], nc, pixels, from, x);                                           \
    }
EXPAND(expand_f32, float, f32)
EXPAND(expand_f64, double, f32)
EXPAND(expand_bf16, uint16_t, bf16)
EXPAND(expand_f16, uint16_t, f16)
#undef EXPAND

static void expand_u8(const hp_dataset *d, const hp_box *box, size_t pixels, const uint8_t *from, void *x) {
    (void)d;
    if (from != x) memcpy(x, from, pixels * (size_t)hp_box_len(box, HP_AXIS_C));
}

/* --- samples of more than 8 bits --- */

/* A pixel's sample of channel c as stored; its grey value if colour is converted. */
static double held(const hp_pixels *view, const void *px, bool grey, int32_t c) {
    if (!grey || view->c == 1) return hp_sample_held(view->type, px, grey ? 0 : (size_t)c);
    const double r = hp_sample_held(view->type, px, 0), g = hp_sample_held(view->type, px, 1),
                 b = hp_sample_held(view->type, px, 2);
    return (r * 19595 + g * 38470 + b * 7471) / 65536;
}

static void put_number(hp_dtype dtype, void *x, size_t i, float v) {
    if (dtype == HP_F32) ((float *)x)[i] = v;
    if (dtype == HP_F64) ((double *)x)[i] = (double)v;
    if (dtype == HP_BF16) ((uint16_t *)x)[i] = to_bf16(v);
    if (dtype == HP_F16) ((uint16_t *)x)[i] = to_f16(v);
    if (dtype == HP_U8) ((uint8_t *)x)[i] = (uint8_t)(v + 0.5f);
}

/* Converts a row of the box to numbers; for bytes, to the nearest of 256 levels. */
static void expand_wide(const hp_dataset *d, const hp_pixels *view, bool grey, const hp_box *box, int32_t y,
                        hp_dtype dtype, void *x) {
    const size_t pixel = hp_pixel_bytes(view->c, view->type);
    const hp_data_options *o = &d->o;
    const uint8_t *px = hp_pixels_row(view, y) + (size_t)(box->lo[HP_AXIS_W] - view->window.x0) * pixel;
    const double full = hp_sample_full(view->type);
    size_t at = 0;
    for (int32_t i = 0; i < hp_box_len(box, HP_AXIS_W); i++, px += pixel)
        for (int32_t c = box->lo[HP_AXIS_C]; c < box->hi[HP_AXIS_C]; c++) {
            const double v = held(view, px, grey, c) / full;
            put_number(dtype, x, at++, (float)(dtype == HP_U8 ? v * 255 : (v - o->mean[c]) / o->std[c]));
        }
}

static hp_status refuse_floats(const hp_dataset *d, hp_error *err) {
    return hp_fail(err, HP_EDATA,
                   "--data %s: samples are floats, or signed, and an int8 network reads pixels of 8 bits; "
                   "plan with --prec fp32, "
                   "or convert the images to 8 bits",
                   d->o.name);
}

hp_status hp_dataset_read(hp_dataset *d, int64_t index, const hp_box *box, hp_dtype dtype, void *x,
                          hp_error *err) {
    static void (*const expand[HP_DTYPES])(const hp_dataset *, const hp_box *, size_t, const uint8_t *,
                                           void *) = {[HP_F32] = expand_f32,
                                                      [HP_F64] = expand_f64,
                                                      [HP_BF16] = expand_bf16,
                                                      [HP_F16] = expand_f16,
                                                      [HP_U8] = expand_u8};
    HP_ASSERT(expand[dtype]);
    const size_t columns = (size_t)hp_box_len(box, HP_AXIS_W),
                 row = columns * (size_t)hp_box_len(box, HP_AXIS_C), size = (size_t)hp_dtype_bytes(dtype);
    unsigned char *to = x;
    hp_pixels view;
    bool grey;
    HP_TRY(find_pixels(d, index, box, &view, &grey, err));
    if (dtype == HP_U8 && view.type == HP_SAMPLE_F32) return refuse_floats(d, err);
    for (int32_t y = box->lo[HP_AXIS_H]; y < box->hi[HP_AXIS_H]; y++, to += row * size)
        if (view.type != HP_SAMPLE_U8)
            expand_wide(d, &view, grey, box, y, dtype, to);
        else
            expand[dtype](d, box, columns, row_bytes(&view, grey, box, y, to + row * (size - 1)), to);
    hp_dataset_notice(d, index, dtype);
    return HP_OK;
}

int64_t hp_dataset_label_count(const hp_dataset *d, const hp_box *box) {
    return hp_dataset_maps(d) ? (int64_t)hp_box_len(box, HP_AXIS_H) * hp_box_len(box, HP_AXIS_W) : 1;
}

hp_status hp_dataset_labels(hp_dataset *d, int64_t index, const hp_box *box, int32_t *label, hp_error *err) {
    HP_ASSERT(index >= 0 && index < d->count);
    if (!hp_dataset_maps(d)) {
        *label = d->kind->label(d, index);
        return HP_OK;
    }
    const hp_crop w = window_of(box);
    return d->kind->map(d, index, &w, label, err);
}
