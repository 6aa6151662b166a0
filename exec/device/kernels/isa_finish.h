/* isa_finish.h - from the sums of up to 64 outputs of a pixel to what is stored: any activation, any store;
 * see panel.h for the formula. */
#ifndef HP_ISA_FINISH_H
#define HP_ISA_FINISH_H

enum { OUTS = HP_PANEL_OUTS };

/* What is added, as numbers: bytes as they are. */
static void load_added(float *to, const unsigned char *y, int n, hp_dtype type) {
    if (type == HP_U8)
        for (int i = 0; i < n; i++) to[i] = (float)y[i];
    if (type == HP_F32) memcpy(to, y, (size_t)n * sizeof *to);
    if (type == HP_F16) load_f16(to, (const uint16_t *)(const void *)y, n);
    if (type == HP_BF16) load_bf16(to, (const uint16_t *)(const void *)y, n);
}

static void add_map(float *v, const unsigned char *y, int n, const hp_panel_out *o) {
    float added[OUTS];
    load_added(added, y, n, o->op.y.dtype);
    if (o->op.y.dtype == HP_U8) {
        INDEPENDENT
        for (int i = 0; i < n; i++) v[i] = __builtin_fmaf(o->add_scale, added[i], v[i]);
    } else {
        INDEPENDENT
        for (int i = 0; i < n; i++) v[i] += added[i];
    }
}

static void finish_units(unsigned char *y, const float *v, int n, const hp_panel_out *o) {
    const uint8_t lo = o->lo8, hi = o->hi8;
    for (int i = 0; i < n; i++) {
        const uint8_t q = saturated(v[i], 0, 255, 0), least = q > lo ? q : lo;
        y[i] = least < hi ? least : hi;
    }
}

static void finish_floats(unsigned char *y, float *v, int n, const hp_panel_out *o) {
    if (o->adds) add_map(v, y, n, o);
    if (o->units) {
        finish_units(y, v, n, o);
        return;
    }
    float acted[OUTS];
    put(y, 0, activated(acted, v, n, &o->op), n, &o->op.y);
}

static void finish_bytes(unsigned char *y, const int32_t *sum, const float *scale, const float *shift, int n,
                         const hp_panel_out *o) {
    float v[OUTS];
    INDEPENDENT
    for (int i = 0; i < n; i++) v[i] = __builtin_fmaf(scale[i], (float)sum[i], shift[i]);
    finish_floats(y, v, n, o);
}

#endif
