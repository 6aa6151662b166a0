/* runs.c - as many inner axes as both buffers have whole make up a run; the others are walked. */
#include "plan/program/runs.h"

static int64_t element_in(const hp_box *box, const hp_box *part) {
    int64_t e = 0;
    for (int a = 0; a < HP_AXES; a++) e = e * hp_box_len(box, a) + part->lo[a] - box->lo[a];
    return e;
}

static bool whole(const hp_box *box, const hp_box *part, int axis) {
    return hp_box_len(box, axis) == hp_box_len(part, axis);
}

hp_runs hp_runs_between(const hp_box *to, const hp_box *from, const hp_box *part) {
    hp_runs r = {
        .to = element_in(to, part), .from = element_in(from, part), .run = hp_box_len(part, HP_AXIS_C)};
    int64_t to_stride = 1, from_stride = 1;
    bool together = true; /* all inner axes are whole in both */
    for (int a = HP_AXES - 2; a >= 0; a--) {
        to_stride *= hp_box_len(to, a + 1);
        from_stride *= hp_box_len(from, a + 1);
        together = together && whole(to, part, a + 1) && whole(from, part, a + 1);
        r.n[a] = together ? 1 : hp_box_len(part, a);
        r.to_stride[a] = to_stride;
        r.from_stride[a] = from_stride;
        if (together) r.run *= hp_box_len(part, a);
    }
    return r;
}
