/* isa_depthwise.h - depthwise convolutions: every channel has its own filter, so that what is saved is memory
 * traffic. Some pixels and channels at a time, the sums in registers, taps in order. */
#ifndef HP_ISA_DEPTHWISE_H
#define HP_ISA_DEPTHWISE_H

enum { DEPTH_PIXELS = 4, DEPTH_OUTS = 32 }; /* in hand at a time */

/* Up to n numbers of a pixel, of any store but bytes. */
static void load_numbers(float *to, const unsigned char *x, int n, hp_dtype type) {
    if (type == HP_F32) memcpy(to, x, (size_t)n * sizeof *to);
    if (type == HP_F16) load_f16(to, (const uint16_t *)(const void *)x, n);
    if (type == HP_BF16) load_bf16(to, (const uint16_t *)(const void *)x, n);
}

/* sum[i] += x[i] * w[i], channels at .. at + n. */
ALWAYS void add_tap(hp_dtype type, float sum[DEPTH_OUTS], const unsigned char *x, const unsigned char *w,
                    int n) {
    float in[DEPTH_OUTS] = {0}, factor[DEPTH_OUTS] = {0};
    load_numbers(in, x, n, type);
    load_numbers(factor, w, n, type);
    for (int i = 0; i < DEPTH_OUTS; i += LANES)
        sums_store(sum + i, dot_floats(sums_load(sum + i), sums_load(in + i), sums_load(factor + i)));
}

ALWAYS void depth_pixel(hp_dtype type, const hp_depthwise_row *r, const unsigned char *x, unsigned char *y,
                        int at, int n) {
    const int size = hp_dtype_bytes(type);
    const int64_t padded = (r->channels + HP_PANEL_LANES - 1) / HP_PANEL_LANES * HP_PANEL_LANES;
    const unsigned char *w = (const unsigned char *)r->weights + at * size;
    float sum[DEPTH_OUTS] = {0};
    memcpy(sum, r->init + at, (size_t)n * sizeof *sum);
    for (int ky = 0; ky < r->taps_y; ky++)
        for (int kx = 0; kx < r->taps_x; kx++) {
            const int64_t tap = (int64_t)(r->tap_y + ky) * r->kw + r->tap_x + kx;
            add_tap(type, sum, x + ky * r->y_step + kx * r->x_step + at * size, w + tap * padded * size, n);
        }
    finish_floats(y + at * hp_dtype_bytes(r->out->op.y.dtype), sum, n, r->out);
}

ALWAYS void depth_floats(hp_dtype type, const hp_depthwise_row *r) {
    const int64_t out = (int64_t)r->channels * hp_dtype_bytes(r->out->op.y.dtype);
    for (int p = 0; p < r->pixels; p++)
        for (int at = 0; at < r->channels; at += DEPTH_OUTS) {
            const unsigned char *x = r->x + p * r->pixel_step;
            if (r->channels - at >= DEPTH_OUTS) /* a constant, for the compiler */
                depth_pixel(type, r, x, r->y + p * out, at, DEPTH_OUTS);
            else
                depth_pixel(type, r, x, r->y + p * out, at, r->channels - at);
        }
}

#endif
