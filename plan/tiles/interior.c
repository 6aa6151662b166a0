/* interior.c - the part of a tile's output that needs no halo, and the strips around it. */
#include "plan/tiles/tile.h"

/* Shrinks the rows (columns) of `out` at both edges until they need only data within `have`. */
static void shrink_to_local(const hp_graph *g, int layer, const hp_box *have, hp_box *out, int axis) {
    for (; out->lo[axis] < out->hi[axis]; out->lo[axis]++) {
        const hp_box need = hp_layer_need(g, layer, 0, out);
        if (need.lo[axis] >= have->lo[axis]) break;
    }
    for (; out->lo[axis] < out->hi[axis]; out->hi[axis]--) {
        const hp_box need = hp_layer_need(g, layer, 0, out);
        if (need.hi[axis] <= have->hi[axis]) break;
    }
}

static void strip(const hp_box *out, int axis, int32_t lo, int32_t hi, hp_box *piece, int *n) {
    if (lo >= hi) return;
    piece[*n] = *out;
    piece[*n].lo[axis] = lo;
    piece[*n].hi[axis] = hi;
    ++*n;
}

int hp_interior(const hp_graph *g, int layer, const hp_box *have, const hp_box *need, const hp_box *out,
                hp_box piece[5]) {
    if (hp_box_within(need, have)) return 0; /* no halo is in flight */
    hp_box in = *out;
    shrink_to_local(g, layer, have, &in, HP_AXIS_H);
    if (!hp_box_empty(&in)) shrink_to_local(g, layer, have, &in, HP_AXIS_W);
    if (2 * hp_box_elems(&in) < hp_box_elems(out)) return 0;
    const hp_box inner = hp_layer_need(g, layer, 0, &in);
    if (!hp_box_within(&inner, have) || !hp_layer_reads(g, layer, &inner, have)) return 0;
    int n = 1;
    piece[0] = in;
    strip(out, HP_AXIS_H, out->lo[HP_AXIS_H], in.lo[HP_AXIS_H], piece, &n);
    strip(out, HP_AXIS_H, in.hi[HP_AXIS_H], out->hi[HP_AXIS_H], piece, &n);
    hp_box rows = *out; /* the interior's rows; the strips left and right are cut from them */
    rows.lo[HP_AXIS_H] = in.lo[HP_AXIS_H];
    rows.hi[HP_AXIS_H] = in.hi[HP_AXIS_H];
    strip(&rows, HP_AXIS_W, rows.lo[HP_AXIS_W], in.lo[HP_AXIS_W], piece, &n);
    strip(&rows, HP_AXIS_W, in.hi[HP_AXIS_W], rows.hi[HP_AXIS_W], piece, &n);
    return n;
}
