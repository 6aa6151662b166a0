/* loops_dynamic.h - numbers that are quantised at run time: their range, and their bytes. */
#ifndef HP_LOOPS_DYNAMIC_H
#define HP_LOOPS_DYNAMIC_H

/* Ranges in hand at a time: enough vectors to hide what an operation takes. */
enum { RANGES = 64 };

typedef struct dynamic_ranges {
    float lo[RANGES], hi[RANGES], odd[RANGES]; /* odd: 0, or NaN once a number is not finite */
} dynamic_ranges;

static inline void dynamic_meet(dynamic_ranges *r, const real *x, int64_t n) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        const float v = (float)x[i];
        r->lo[i] = v < r->lo[i] ? v : r->lo[i];
        r->hi[i] = v > r->hi[i] ? v : r->hi[i];
        r->odd[i] += v - v;
    }
}

static void dynamic_range(const void *x, int64_t n, float range[2]) {
    dynamic_ranges r = {.lo = {0}};
    const real *v = x;
    int64_t i = 0;
    for (; i + RANGES <= n; i += RANGES) dynamic_meet(&r, v + i, RANGES);
    dynamic_meet(&r, v + i, n - i);
    for (int k = 1; k < RANGES; k++) {
        r.lo[0] = r.lo[k] < r.lo[0] ? r.lo[k] : r.lo[0];
        r.hi[0] = r.hi[k] > r.hi[0] ? r.hi[k] : r.hi[0];
        r.odd[0] += r.odd[k];
    }
    range[0] = r.lo[0] + r.odd[0];
    range[1] = r.hi[0] + r.odd[0];
}

static void dynamic_quantise(uint8_t *q, const void *x, int64_t n, float scale, int32_t zero) {
    const float lo = (float)-zero, hi = (float)(255 - zero);
    const real *v = x;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) q[i] = saturated((float)v[i] / scale, lo, hi, zero);
}

#endif
