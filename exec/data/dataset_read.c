/* dataset_read.c - a box of a sample: from the 8-bit pixels that it needs to the network's input. */
#include "exec/data/dataset_kind.h"

/* --resize S as torchvision's Resize(S): the shorter side becomes S, the longer keeps the ratio, rounded
 * down. */
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

/* 8-bit pixels of the network's image, at least `window` of them. */
static hp_status fetch(hp_dataset *d, int64_t index, const hp_crop *window, hp_pixels *view, hp_error *err) {
    hp_resize fit;
    HP_TRY(d->kind->size(d, index, view, err));
    HP_TRY(hp_dataset_fit(d, view->h, view->w, &fit, err));
    if (changes_nothing(&fit)) return d->kind->pixels(d, index, window, view, err);
    const hp_crop need = hp_resize_need(&fit, window);
    HP_TRY(d->kind->pixels(d, index, &need, view, err));
    HP_TRY(hp_image_resize(&fit, view, window, &d->resized, err));
    *view = hp_image_pixels(&d->resized);
    return HP_OK;
}

/* ITU-R 601 luma in 16-bit fixed point, as Pillow converts to "L". */
static uint8_t luma(const uint8_t *px) {
    return (uint8_t)((px[0] * 19595u + px[1] * 38470u + px[2] * 7471u + 0x8000u) >> 16);
}

/* One row of n pixels of nc channels: grey (made so if need be) into every channel of the box. */
static void spread(const hp_dataset *d, const uint8_t *px, int32_t nc, int32_t n, const hp_box *box,
                   float *x) {
    for (int32_t i = 0; i < n; i++) {
        const uint8_t value = nc == 3 ? luma(px + 3 * (size_t)i) : px[i];
        for (int32_t c = box->lo[HP_AXIS_C]; c < box->hi[HP_AXIS_C]; c++) *x++ = d->table[c][value];
    }
}

static void map(const hp_dataset *d, const uint8_t *px, int32_t nc, int32_t n, const hp_box *box, float *x) {
    for (int32_t i = 0; i < n; i++, px += nc)
        for (int32_t c = box->lo[HP_AXIS_C]; c < box->hi[HP_AXIS_C]; c++) *x++ = d->table[c][px[c]];
}

static hp_crop window_of(const hp_box *b) {
    return (hp_crop){b->lo[HP_AXIS_H], b->lo[HP_AXIS_W], b->hi[HP_AXIS_H], b->hi[HP_AXIS_W]};
}

hp_status hp_dataset_pixels(hp_dataset *d, int64_t index, const hp_box *box, float *x, hp_error *err) {
    HP_ASSERT(index >= 0 && index < d->count);
    const hp_data_options *o = &d->o;
    const hp_crop w = window_of(box);
    hp_pixels view;
    HP_TRY(fetch(d, index, &w, &view, err));
    const bool grey = view.c == 1 || (view.c == 3 && (o->image_c == 1 || o->channels == 1));
    if (!grey && view.c != o->image_c)
        return hp_fail(err, HP_EDATA,
                       "--data %s: sample %lld has %d channels, the network takes %d; give --channels 1",
                       o->name, (long long)index, view.c, o->image_c);
    const int32_t columns = hp_crop_columns(&w);
    const size_t row = (size_t)columns * (size_t)hp_box_len(box, HP_AXIS_C);
    for (int32_t y = w.y0; y < w.y1; y++, x += row) {
        const uint8_t *px = hp_pixels_row(&view, y) + (size_t)(w.x0 - view.window.x0) * (size_t)view.c;
        (grey ? spread : map)(d, px, view.c, columns, box, x);
    }
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
