/* move.c - copies what two boxes share, in runs as long as both buffers have them side by side; see move.h.
 */
#include "exec/device/move.h"

#include <string.h>

/* The part that both boxes hold, cut into runs: axes 0 .. outer-1 are walked, the rest is one run. */
typedef struct meeting {
    hp_box box;
    int outer;
    int64_t runs, run_elems;
} meeting;

static meeting meet(const hp_task *t, const hp_box *dst, const hp_box *src) {
    const hp_box both = hp_box_and(dst, src);
    meeting m = {.box = hp_task_rows(t, &both), .outer = HP_AXIS_C, .runs = 1};
    m.run_elems = hp_box_len(&m.box, HP_AXIS_C);
    while (m.outer > 0 && hp_box_len(&m.box, m.outer) == hp_box_len(dst, m.outer) &&
           hp_box_len(&m.box, m.outer) == hp_box_len(src, m.outer))
        m.run_elems *= hp_box_len(&m.box, --m.outer);
    for (int a = 0; a < m.outer; a++) m.runs *= hp_box_len(&m.box, a);
    return m;
}

/* First element of run `run` in the tensor. */
static void run_start(const meeting *m, int64_t run, int32_t at[HP_AXES]) {
    memcpy(at, m->box.lo, sizeof m->box.lo);
    for (int a = m->outer - 1; a >= 0; a--) {
        at[a] += (int32_t)(run % hp_box_len(&m->box, a));
        run /= hp_box_len(&m->box, a);
    }
}

static int64_t element_in(const hp_box *box, const int32_t at[HP_AXES]) {
    int64_t e = 0;
    for (int a = 0; a < HP_AXES; a++) e = e * hp_box_len(box, a) + at[a] - box->lo[a];
    return e;
}

static void add_f64(double *dst, const double *src, int64_t n) {
    for (int64_t i = 0; i < n; i++) dst[i] += src[i];
}

static void move_run(const hp_bound *b, int64_t to, int64_t from, int64_t elems, hp_add_f32 *add) {
    const int64_t bytes = hp_dtype_bytes(b->dtype);
    if (!(b->task->flags & HP_FLAG_ADD)) {
        memcpy((unsigned char *)b->y + to * bytes, (const unsigned char *)b->x[0] + from * bytes,
               (size_t)(elems * bytes));
    } else if (b->dtype == HP_F64) {
        add_f64((double *)b->y + to, (const double *)b->x[0] + from, elems);
    } else {
        HP_ASSERT(b->dtype == HP_F32 && add);
        add((float *)b->y + to, (const float *)b->x[0] + from, elems);
    }
}

void hp_move_copy(const hp_bound *b, hp_add_f32 *add) {
    const meeting m = meet(b->task, b->dst_box, b->src_box);
    if (hp_box_empty(&m.box)) return;
    for (int64_t i = 0; i < m.runs; i++) {
        int32_t at[HP_AXES];
        run_start(&m, i, at);
        move_run(b, element_in(b->dst_box, at), element_in(b->src_box, at), m.run_elems, add);
    }
}

void hp_move_zero(const hp_bound *b) {
    if (b->count > 0) memset(b->y, 0, (size_t)(b->count * hp_dtype_bytes(b->dtype)));
}
