/* resize.c - antialiased bilinear resampling as Pillow's ImagingResample does it, in float with one rounding
 * at the end: first every output row as a weighted sum of source rows, then every pixel along the row. */
#include "exec/data/image.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Output position o is the sum over k < count[o] of weight[o*taps + k] * source[first[o] + k]. */
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

static void axis_fill_one(axis *a, int32_t o, double centre, double width, int32_t n) {
    const int32_t first = (int32_t)fmax(0.0, floor(centre - width + 0.5));
    const int32_t last = (int32_t)fmin((double)n, floor(centre + width + 0.5));
    float *weight = a->weight + (size_t)o * (size_t)a->taps;
    double sum = 0.0;
    for (int32_t k = first; k < last; k++) sum += triangle((k + 0.5 - centre) / width);
    for (int32_t k = first; k < last; k++)
        weight[k - first] = (float)(triangle((k + 0.5 - centre) / width) / sum);
    a->first[o] = first;
    a->count[o] = last - first;
}

/* n source positions scaled to `full`, of which the middle `n_out` are wanted. */
static bool axis_fill(axis *a, int32_t n, int32_t full, int32_t n_out) {
    const double scale = (double)n / full, width = fmax(scale, 1.0);
    const int32_t skip = (full - n_out) / 2;
    a->taps = (int32_t)ceil(2.0 * width) + 1;
    a->first = malloc((size_t)n_out * sizeof *a->first);
    a->count = malloc((size_t)n_out * sizeof *a->count);
    a->weight = malloc((size_t)n_out * (size_t)a->taps * sizeof *a->weight);
    if (!a->first || !a->count || !a->weight) return false;
    for (int32_t o = 0; o < n_out; o++) axis_fill_one(a, o, (o + skip + 0.5) * scale, width, n);
    return true;
}

/* row[w*c] = weighted sum of the source rows of output row y. */
static void mix_rows(const hp_pixels *source, const axis *rows, int32_t y, float *row) {
    const size_t n = (size_t)source->w * (size_t)source->c;
    memset(row, 0, n * sizeof *row);
    for (int32_t k = 0; k < rows->count[y]; k++) {
        const uint8_t *from = source->px + (size_t)(rows->first[y] + k) * n;
        const float weight = rows->weight[(size_t)y * (size_t)rows->taps + (size_t)k];
        for (size_t i = 0; i < n; i++) row[i] += weight * (float)from[i];
    }
}

static void mix_columns(const float *row, const axis *columns, int32_t w, int32_t c, uint8_t *out) {
    for (int32_t x = 0; x < w; x++) {
        const float *weight = columns->weight + (size_t)x * (size_t)columns->taps;
        const float *from = row + (size_t)columns->first[x] * (size_t)c;
        for (int32_t j = 0; j < c; j++) {
            float sum = 0.5f; /* rounds half up; the weights are not negative and sum to one */
            for (int32_t k = 0; k < columns->count[x]; k++) sum += weight[k] * from[k * c + j];
            *out++ = (uint8_t)fminf(sum, 255.0f);
        }
    }
}

hp_status hp_image_resize(const hp_pixels *source, int32_t full_h, int32_t full_w, int32_t h, int32_t w,
                          hp_image *image, hp_error *err) {
    axis rows = {0}, columns = {0};
    float *row = malloc((size_t)source->w * (size_t)source->c * sizeof *row);
    hp_status s = hp_image_room(image, h, w, source->c, "resized image", err);
    if (s == HP_OK &&
        (!row || !axis_fill(&rows, source->h, full_h, h) || !axis_fill(&columns, source->w, full_w, w)))
        s = hp_fail(err, HP_EDATA, "no memory to resize %d x %d pixels", source->h, source->w);
    for (int32_t y = 0; s == HP_OK && y < h; y++) {
        mix_rows(source, &rows, y, row);
        mix_columns(row, &columns, w, source->c, image->px + (size_t)y * (size_t)w * (size_t)source->c);
    }
    axis_free(&rows);
    axis_free(&columns);
    free(row);
    return s;
}
