/* cpu_axis.c - groups of outputs along an axis; see cpu_axis.h. */
#include "exec/device/cpu/cpu_axis.h"

typedef struct geometry {
    int32_t in_n, out_n, k, stride, pad, dil;
    bool transposed;
} geometry;

/* The input under tap k of output o; -1: padding, or between the inputs of a transposed convolution. */
static int32_t input_of(const geometry *g, int32_t o, int32_t k) {
    const int64_t at = g->transposed ? (int64_t)o + g->pad - (int64_t)k * g->dil
                                     : (int64_t)o * g->stride - g->pad + (int64_t)k * g->dil;
    if (at < 0 || (g->transposed && at % g->stride != 0)) return -1;
    const int64_t in = g->transposed ? at / g->stride : at;
    return in < g->in_n ? (int32_t)in : -1;
}

/* Taps that read an input are evenly spaced, and so are their inputs. */
static hp_axis_group group_of(const geometry *g, int32_t o) {
    hp_axis_group r = {.out = o,
                       .step = g->transposed ? g->stride : 1,
                       .n = 1,
                       .in_step = g->transposed ? 1 : g->stride,
                       .tap_step = 1};
    for (int32_t k = 0; k < g->k; k++) {
        const int32_t in = input_of(g, o, k);
        if (in < 0) continue;
        if (r.taps == 0) {
            r.in = in;
            r.tap = k;
        } else if (r.taps == 1) {
            r.tap_step = k - r.tap;
            r.in_tap = in - r.in;
        }
        r.taps++;
    }
    return r;
}

static bool continues(const hp_axis_group *g, const hp_axis_group *next) {
    return g->taps == next->taps &&
           (g->taps == 0 || (g->tap == next->tap && g->in + g->n * g->in_step == next->in &&
                             g->tap_step == next->tap_step && g->in_tap == next->in_tap));
}

hp_axis hp_axis_of(hp_arena *arena, const hp_shape *s, bool transposed, bool rows) {
    const geometry g = {rows ? s->ih : s->iw,
                        rows ? s->oh : s->ow,
                        rows ? s->kh : s->kw,
                        rows ? s->sh : s->sw,
                        rows ? s->ph : s->pw,
                        rows ? s->dh : s->dw,
                        transposed};
    const int32_t step = transposed ? g.stride : 1;
    hp_axis a = {NULL, 0};
    int room = 0;
    for (int32_t phase = 0; phase < step; phase++) {
        int32_t begun = a.n;
        for (int32_t o = phase; o < g.out_n; o += step) {
            const hp_axis_group next = group_of(&g, o);
            if (a.n > begun && continues(&a.group[a.n - 1], &next)) {
                a.group[a.n - 1].n++;
                continue;
            }
            HP_ROOM(arena, a.group, a.n, room);
            a.group[a.n++] = next;
        }
    }
    return a;
}
