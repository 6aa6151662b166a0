/* check_region.c - a set of pixels as a list of boxes: the parts of a buffer that are written or read. */
#include "plan/check/check_inside.h"

enum { MAX_PARTS = 4096 }; /* a map assembled from 64 x 64 tiles */

/* Do parts[from ..] cover the box? Subtracting one part leaves at most two slabs per axis. */
static bool covered(const hp_region *r, int from, hp_box want) {
    while (from < r->n) {
        const hp_box meet = hp_box_and(&want, &r->part[from++]);
        if (hp_box_empty(&meet)) continue;
        for (int a = 0; a < HP_AXES; a++) {
            hp_box below = want, above = want;
            below.hi[a] = meet.lo[a];
            above.lo[a] = meet.hi[a];
            if (!hp_box_empty(&below) && !covered(r, from, below)) return false;
            if (!hp_box_empty(&above) && !covered(r, from, above)) return false;
            want.lo[a] = meet.lo[a];
            want.hi[a] = meet.hi[a];
        }
        return true;
    }
    return false;
}

bool hp_region_covers(const hp_region *r, const hp_box *box) {
    return r->whole || hp_box_empty(box) || covered(r, 0, *box);
}

/* Strips arrive one below the other: a part that starts where the last one ends extends it. */
static bool lengthens(hp_box *last, const hp_box *box) {
    hp_box both = *last;
    both.hi[HP_AXIS_H] = box->hi[HP_AXIS_H];
    hp_box same = *box;
    same.lo[HP_AXIS_H] = last->lo[HP_AXIS_H];
    if (box->lo[HP_AXIS_H] != last->hi[HP_AXIS_H] || !hp_box_equal(&both, &same)) return false;
    *last = both;
    return true;
}

bool hp_region_add(hp_arena *arena, hp_region *r, const hp_box *box, const hp_box *whole) {
    if (r->whole || hp_box_empty(box)) return true;
    if (r->n == 0 || !lengthens(&r->part[r->n - 1], box)) {
        if (r->n == MAX_PARTS) return false;
        HP_ROOM(arena, r->part, r->n, r->room);
        r->part[r->n++] = *box;
    }
    r->whole = hp_box_equal(&r->part[r->n - 1], whole);
    return true;
}

bool hp_region_within(const hp_region *r, const hp_region *other, const hp_box *whole) {
    if (other->whole) return true;
    if (r->whole) return hp_region_covers(other, whole);
    for (int i = 0; i < r->n; i++)
        if (!hp_region_covers(other, &r->part[i])) return false;
    return true;
}
