/* isa_depthwise_bytes.h - depthwise convolutions of bytes, tap by tap, all channels side by side. */
#ifndef HP_ISA_DEPTHWISE_BYTES_H
#define HP_ISA_DEPTHWISE_BYTES_H

static int64_t depth_padded(int channels) {
    return (channels + OUTS - 1) / OUTS * OUTS;
}

/* (row, column, channel) */
static void depth_pack(int8_t *to, const int8_t *w, int channels, int kh, int kw) {
    const int taps = kh * kw;
    for (int c = 0; c < channels; c++)
        for (int k = 0; k < taps; k++) to[k * depth_padded(channels) + c] = w[(int64_t)c * taps + k];
}

/* A product of two bytes has 16 bits. */
static void depth_tap(int32_t *sum, const uint8_t *x, const int8_t *w, int n) {
    INDEPENDENT
    for (int i = 0; i < n; i++) sum[i] += (int16_t)((int16_t)x[i] * (int16_t)w[i]);
}

/* Channels at .. at + n of a pixel. */
static void depth_sums(const hp_depthwise_map *m, int64_t sample, int oy, int ox, int at, int n,
                       int32_t *sum) {
    const hp_shape *s = m->shape;
    uint8_t zeros[OUTS];
    memset(zeros, m->zero, sizeof zeros);
    memcpy(sum, m->init + at, (size_t)n * sizeof *sum);
    for (int ky = 0; ky < s->kh; ky++)
        for (int kx = 0; kx < s->kw; kx++) {
            const int64_t iy = (int64_t)oy * s->sh - s->ph + (int64_t)ky * s->dh,
                          ix = (int64_t)ox * s->sw - s->pw + (int64_t)kx * s->dw;
            const bool inside = iy >= 0 && iy < s->ih && ix >= 0 && ix < s->iw;
            const uint8_t *x = inside ? m->x + ((sample * s->ih + iy) * s->iw + ix) * s->ic + at : zeros;
            depth_tap(sum, x, m->weights + (ky * s->kw + kx) * depth_padded(s->ic) + at, n);
        }
}

static void depth_bytes(const hp_depthwise_map *m) {
    const hp_shape *s = m->shape;
    const int size = hp_dtype_bytes(m->out->op.y.dtype);
    unsigned char *y = m->y;
    int32_t sum[OUTS];
    for (int64_t n = 0; n < s->n; n++)
        for (int oy = 0; oy < s->oh; oy++)
            for (int ox = 0; ox < s->ow; ox++, y += s->oc * size)
                for (int at = 0; at < s->oc; at += OUTS) {
                    const int some = at_most(s->oc - at, OUTS);
                    depth_sums(m, n, oy, ox, at, some, sum);
                    finish_bytes(y + at * size, sum, m->scale + at, m->shift + at, some, m->out);
                }
}

#endif
