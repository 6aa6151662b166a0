/* tissue.c - finds tissue by its saturation; see tissue.h. */
#include "exec/data/slide/tissue.h"

#include <math.h>
#include <string.h>

int32_t hp_otsu(const int64_t count[256]) {
    double n = 0, sum = 0, n0 = 0, sum0 = 0, best = 0;
    int32_t at = 255;
    for (int v = 0; v < 256; v++) n += (double)count[v], sum += (double)count[v] * v;
    for (int v = 0; v < 255; v++) {
        n0 += (double)count[v];
        sum0 += (double)count[v] * v;
        if (n0 == 0 || n0 == n) continue;
        const double apart = sum0 / n0 - (sum - sum0) / (n - n0), between = n0 * (n - n0) * apart * apart;
        if (between > best * (1 + 1e-12)) best = between, at = v; /* an empty level changes nothing */
    }
    return at;
}

uint8_t hp_saturation(uint8_t r, uint8_t g, uint8_t b) {
    const int top = r > g ? (r > b ? r : b) : (g > b ? g : b),
              low = r < g ? (r < b ? r : b) : (g < b ? g : b);
    return (uint8_t)(top ? (255 * (top - low) + top / 2) / top : 0);
}

/* Adds n pixels of a row to the sums of their cells; for 16 bits, the upper 8. */
static void add_pixels(const hp_pixels *view, const uint8_t *px, int32_t n, uint64_t *sum) {
    const int32_t c = view->c;
    const uint16_t *wide = (const uint16_t *)(const void *)px;
    for (int32_t k = 0; k < c; k++) {
        uint32_t row = 0; /* sum of at most 2^20 bytes */
        for (int32_t x = 0; x < n; x++)
            row += view->type == HP_SAMPLE_U8 ? px[x * c + k] : (uint32_t)wide[x * c + k] >> 8;
        sum[k] += row;
    }
}

/* Adds the pixels of a strip of full width to the sums of its cells, (w, c). */
static void add_strip(const hp_pixels *view, const hp_crop *strip, int32_t side, uint64_t *sum) {
    const int32_t c = view->c;
    for (int32_t y = strip->y0; y < strip->y1; y++) {
        const uint8_t *px = hp_pixels_row(view, y);
        for (int32_t x = 0; x < view->w; x += side)
            add_pixels(view, px + (size_t)x * hp_pixel_bytes(c, view->type),
                       view->w - x < side ? view->w - x : side, sum + (size_t)(x / side) * (size_t)c);
    }
}

static uint8_t level_of(const uint64_t *sum, int32_t c, uint64_t n) {
    uint8_t mean[3] = {0};
    for (int32_t k = 0; k < c; k++) mean[k] = (uint8_t)((sum[k] + n / 2) / n);
    return c == 3 ? hp_saturation(mean[0], mean[1], mean[2]) : (uint8_t)(255 - mean[0]);
}

static hp_status find_row(hp_reader *r, int32_t row, int32_t side, uint64_t *sum, hp_tissue *t,
                          hp_error *err) {
    const hp_pixels size = hp_reader_size(r);
    const int32_t y0 = row * side, y1 = size.h - y0 < side ? size.h : y0 + side;
    const hp_crop strip = {y0, 0, y1, size.w};
    hp_pixels view;
    HP_TRY(hp_reader_window(r, &strip, &view, err));
    memset(sum, 0, (size_t)t->w * (size_t)size.c * sizeof *sum);
    add_strip(&view, &strip, side, sum);
    for (int32_t x = 0; x < t->w; x++) {
        const int32_t columns = size.w - x * side < side ? size.w - x * side : side;
        const uint64_t n = (uint64_t)(y1 - y0) * (uint64_t)columns;
        t->level[(size_t)row * (size_t)t->w + (size_t)x] =
            level_of(sum + (size_t)x * (size_t)size.c, size.c, n);
    }
    return HP_OK;
}

hp_status hp_tissue_find(hp_arena *a, hp_reader *r, int32_t image_h, int32_t image_w, int32_t side,
                         hp_tissue *t, hp_error *err) {
    const hp_pixels size = hp_reader_size(r);
    if (size.type == HP_SAMPLE_F32 || (size.c != 1 && size.c != 3))
        return hp_fail(err, HP_EDATA,
                       "tissue is found by grey or RGB of 8 or 16 bits, the image has %d bands%s; give "
                       "tissue=0 for all patches",
                       size.c, size.type == HP_SAMPLE_F32 ? " of floats" : "");
    *t = (hp_tissue){.h = (size.h - 1) / side + 1,
                     .w = (size.w - 1) / side + 1,
                     .cell_h = (double)side * image_h / size.h,
                     .cell_w = (double)side * image_w / size.w};
    t->level = HP_NEW(a, uint8_t, (size_t)t->h * (size_t)t->w);
    uint64_t *sum = HP_NEW(a, uint64_t, (size_t)t->w * (size_t)size.c);
    for (int32_t row = 0; row < t->h; row++) HP_TRY(find_row(r, row, side, sum, t, err));
    int64_t count[256] = {0};
    for (size_t i = 0; i < (size_t)t->h * (size_t)t->w; i++) count[t->level[i]]++;
    t->threshold = hp_otsu(count);
    return HP_OK;
}

/* Cells whose centres lie in [lo, hi), or the middle one if there is none. */
static void cells_in(int32_t lo, int32_t hi, double cell, int32_t n, int32_t *first, int32_t *end) {
    *first = (int32_t)ceil(lo / cell - 0.5);
    *end = (int32_t)ceil(hi / cell - 0.5);
    if (*end > n) *end = n;
    if (*first < *end) return;
    const int32_t middle = (int32_t)((lo + hi) / 2.0 / cell);
    *first = middle < n ? middle : n - 1;
    *end = *first + 1;
}

double hp_tissue_share(const hp_tissue *t, const hp_crop *window) {
    int32_t y0, y1, x0, x1;
    int64_t on = 0;
    cells_in(window->y0, window->y1, t->cell_h, t->h, &y0, &y1);
    cells_in(window->x0, window->x1, t->cell_w, t->w, &x0, &x1);
    for (int32_t y = y0; y < y1; y++)
        for (int32_t x = x0; x < x1; x++) on += t->level[(size_t)y * (size_t)t->w + (size_t)x] > t->threshold;
    return (double)on / ((double)(y1 - y0) * (x1 - x0));
}
