/* gradient_bands.c - see gradient_bands.h. */
#include "plan/memory/gradient_bands.h"
#include "base/round.h"

/* Either one of samples and rows is 1, or samples are whole. */
typedef struct band_size {
    int64_t samples, rows, per_sample; /* bands per sample, if bands are rows */
} band_size;

static band_size size_of(const hp_shape *s) {
    const int64_t pixels = (int64_t)s->oh * s->ow;
    if (s->n * pixels <= HP_GRADIENT_PIXELS) return (band_size){s->n, s->oh, 1};
    if (pixels <= HP_GRADIENT_PIXELS) return (band_size){HP_GRADIENT_PIXELS / pixels, s->oh, 1};
    const int64_t rows = HP_GRADIENT_PIXELS / s->ow / 2 * 2, most = rows > 2 ? rows : 2;
    return (band_size){1, most, (s->oh + most - 1) / most};
}

int64_t hp_gradient_bands(const hp_shape *s) {
    const band_size b = size_of(s);
    if (s->n < 1 || s->oh < 1 || s->ow < 1) return 1;
    return (s->n + b.samples - 1) / b.samples * b.per_sample;
}

/* Rows first .. end-1 of the output. */
static hp_shape rows_of(const hp_shape *s, int64_t first, int64_t end) {
    const int64_t from = first * s->sh - s->ph, to = (end - 1) * s->sh - s->ph + (s->kh - 1) * s->dh + 1;
    hp_shape r = *s;
    r.oh = (int32_t)(end - first);
    r.ph = from < 0 ? (int32_t)-from : 0;
    r.ih = (int32_t)((to < s->ih ? to : s->ih) - (from > 0 ? from : 0));
    if (r.ih < 0) r.ih = 0;
    return r;
}

hp_gradient_band hp_gradient_band_of(const hp_shape *s, int64_t k) {
    const band_size b = size_of(s);
    const int64_t sample = k / b.per_sample * b.samples, first = k % b.per_sample * b.rows,
                  end = first + b.rows < s->oh ? first + b.rows : s->oh;
    const int64_t from = first * s->sh - s->ph;
    hp_gradient_band r = {.shape = b.per_sample > 1 ? rows_of(s, first, end) : *s,
                          .x = (sample * s->ih + (b.per_sample > 1 && from > 0 ? from : 0)) * s->iw,
                          .y = (sample * s->oh + first) * s->ow};
    r.shape.n = sample + b.samples < s->n ? b.samples : s->n - sample;
    return r;
}

int64_t hp_gradient_bytes(const hp_shape *s) {
    if (hp_gradient_bands(s) == 1) return 0;
    return hp_round_up(hp_gradient_weights(s) * (int64_t)(sizeof(double) + sizeof(float)), 64);
}
