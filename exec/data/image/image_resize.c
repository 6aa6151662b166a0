/* image_resize.c - antialiased bilinear resampling as in Pillow's ImagingResample, in float with one rounding
 * at the end, or none for float samples. First each output row is a weighted sum of source rows, then each
 * pixel is one along the row. A pixel depends only on its own weights, in a fixed order, so every window of
 * the result has the same values. */
#include "exec/data/image/image.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* One axis: n source positions are scaled to `full`, and the result is the middle n_out. */
typedef struct scale {
    int32_t n, full, n_out;
} scale;

/* The source positions that result position o depends on, and its centre and half width there. */
typedef struct reach {
    int32_t first, last; /* [first, last) */
    double centre, width;
} reach;

static reach reach_of(const scale *s, int32_t o) {
    const double ratio = (double)s->n / s->full, width = fmax(ratio, 1.0);
    const int32_t skip = (s->full - s->n_out) / 2;
    const double centre = (o + skip + 0.5) * ratio;
    return (reach){(int32_t)fmax(0.0, floor(centre - width + 0.5)),
                   (int32_t)fmin((double)s->n, floor(centre + width + 0.5)), centre, width};
}

static scale rows_of(const hp_resize *r) {
    return (scale){r->h, r->full_h, r->out_h};
}

static scale columns_of(const hp_resize *r) {
    return (scale){r->w, r->full_w, r->out_w};
}

/* The window of the source that a window of the result depends on. */
static hp_crop window_needed(const hp_resize *r, const hp_crop *out) {
    const scale rows = rows_of(r), columns = columns_of(r);
    return (hp_crop){reach_of(&rows, out->y0).first, reach_of(&columns, out->x0).first,
                     reach_of(&rows, out->y1 - 1).last, reach_of(&columns, out->x1 - 1).last};
}

/* Result position from + k is the sum over i < count[k] of weight[k*taps + i] * source[first[k] + i]. */
typedef struct axis {
    int32_t taps;
    int32_t *first, *count;
    float *weight;
} axis;

static void axis_free(axis *a) {
    free(a->first);
    free(a->count);
    free(a->weight);
}

static double triangle(double x) {
    return fabs(x) < 1.0 ? 1.0 - fabs(x) : 0.0;
}

static void axis_set_position(axis *a, int32_t k, const reach *r) {
    float *weight = a->weight + (size_t)k * (size_t)a->taps;
    double sum = 0.0;
    for (int32_t i = r->first; i < r->last; i++) sum += triangle((i + 0.5 - r->centre) / r->width);
    for (int32_t i = r->first; i < r->last; i++)
        weight[i - r->first] = (float)(triangle((i + 0.5 - r->centre) / r->width) / sum);
    a->first[k] = r->first;
    a->count[k] = r->last - r->first;
}

/* Positions [from, to) of the result. */
static bool axis_set_weights(axis *a, const scale *s, int32_t from, int32_t to) {
    const size_t n = (size_t)(to - from);
    a->taps = (int32_t)ceil(2.0 * fmax((double)s->n / s->full, 1.0)) + 1;
    a->first = calloc(n, sizeof *a->first);
    a->count = calloc(n, sizeof *a->count);
    a->weight = calloc(n * (size_t)a->taps, sizeof *a->weight);
    if (!a->first || !a->count || !a->weight) return false;
    for (int32_t o = from; o < to; o++) {
        const reach r = reach_of(s, o);
        axis_set_position(a, o - from, &r);
    }
    return true;
}

/* row = weighted sum of the source rows for row k of the axis, columns [x0, x1). */
static void mix_rows(const hp_pixels *source, const hp_crop *need, const axis *rows, int32_t k, float *row) {
    const size_t n = (size_t)hp_crop_columns(need) * (size_t)source->c,
                 skip = (size_t)(need->x0 - source->window.x0) * hp_pixel_bytes(source->c, source->type);
    memset(row, 0, n * sizeof *row);
    for (int32_t i = 0; i < rows->count[k]; i++) {
        const void *from = hp_pixels_row(source, rows->first[k] + i) + skip;
        const float weight = rows->weight[(size_t)k * (size_t)rows->taps + (size_t)i];
        if (weight == 0) continue; /* 0 times infinity would be NaN */
        if (source->type == HP_SAMPLE_U8)
            for (size_t e = 0; e < n; e++) row[e] += weight * (float)((const uint8_t *)from)[e];
        else if (source->type == HP_SAMPLE_U16)
            for (size_t e = 0; e < n; e++) row[e] += weight * (float)((const uint16_t *)from)[e];
        else
            for (size_t e = 0; e < n; e++) row[e] += weight * ((const float *)from)[e];
    }
}

/* Integers are rounded half up, because the sum starts at one half; weights are
 * non-negative and sum to one. */
static void put(float sum, hp_pixel_type type, void *out, size_t at) {
    if (type == HP_SAMPLE_U8) ((uint8_t *)out)[at] = (uint8_t)fminf(sum, 255.0f);
    if (type == HP_SAMPLE_U16) ((uint16_t *)out)[at] = (uint16_t)fminf(sum, 65535.0f);
    if (type == HP_SAMPLE_F32) ((float *)out)[at] = sum;
}

/* `row` begins at column x0 of the source. */
static void mix_columns(const float *row, int32_t x0, const axis *columns, int32_t n, int32_t c,
                        hp_pixel_type type, void *out) {
    size_t at = 0;
    for (int32_t k = 0; k < n; k++) {
        const float *weight = columns->weight + (size_t)k * (size_t)columns->taps;
        const float *from = row + (size_t)(columns->first[k] - x0) * (size_t)c;
        for (int32_t j = 0; j < c; j++) {
            float sum = type == HP_SAMPLE_F32 ? 0 : 0.5f;
            for (int32_t i = 0; i < columns->count[k]; i++)
                if (weight[i] != 0) sum += weight[i] * from[i * c + j];
            put(sum, type, out, at++);
        }
    }
}

/* --- by bands of the result, to limit how much of the source is held --- */

/* Maximum number of source pixels for a band of several rows, assuming the largest pixel: HP_MAX_BANDS
 * samples of four bytes. */
enum { BAND_PIXELS = HP_MAX_BYTES / (4 * HP_MAX_BANDS) };

typedef struct work {
    const hp_resize *r;
    const hp_pixel_source *source;
    axis rows, columns;
    float *row; /* all needed columns */
} work;

/* End of the band of the result that begins at row y. */
static int32_t band_end(const work *w, const hp_crop *out, int32_t y) {
    int32_t end = y + 1;
    for (; end < out->y1; end++) {
        const hp_crop more = {y, out->x0, end + 1, out->x1}, need = window_needed(w->r, &more);
        if ((int64_t)hp_crop_rows(&need) * hp_crop_columns(&need) > BAND_PIXELS) break;
    }
    return end;
}

static hp_status resize_band(work *w, const hp_crop *out, const hp_crop *band, hp_image *image,
                             hp_error *err) {
    const hp_crop need = window_needed(w->r, band);
    const int32_t n = hp_crop_columns(band);
    hp_pixels view;
    HP_TRY(w->source->get(w->source->self, &need, &view, err));
    if (band->y0 == out->y0) {
        image->type = view.type;
        w->row = malloc((size_t)hp_crop_columns(&need) * (size_t)view.c * sizeof *w->row);
        if (!w->row) return hp_fail(err, HP_EDATA, "no memory to resize %d x %d pixels", w->r->h, w->r->w);
        HP_TRY(hp_image_sizes(image, w->r->out_h, w->r->out_w, view.c, "resized image", err));
        HP_TRY(hp_image_room(image, out, "resized image", err));
    }
    for (int32_t k = band->y0 - out->y0; k < band->y1 - out->y0; k++) {
        mix_rows(&view, &need, &w->rows, k, w->row);
        mix_columns(w->row, need.x0, &w->columns, n, view.c, view.type,
                    image->px + (size_t)k * (size_t)n * hp_pixel_bytes(view.c, view.type));
    }
    return HP_OK;
}

hp_status hp_image_resize_from(const hp_resize *r, const hp_pixel_source *source, const hp_crop *out,
                               hp_image *image, hp_error *err) {
    const scale along_h = rows_of(r), along_w = columns_of(r);
    work w = {.r = r, .source = source};
    hp_status s = HP_OK;
    if (!axis_set_weights(&w.rows, &along_h, out->y0, out->y1) ||
        !axis_set_weights(&w.columns, &along_w, out->x0, out->x1))
        s = hp_fail(err, HP_EDATA, "no memory to resize %d x %d pixels", r->h, r->w);
    for (int32_t y = out->y0, end; s == HP_OK && y < out->y1; y = end) {
        end = band_end(&w, out, y);
        const hp_crop band = {y, out->x0, end, out->x1};
        s = resize_band(&w, out, &band, image, err);
    }
    axis_free(&w.rows);
    axis_free(&w.columns);
    free(w.row);
    return s;
}
