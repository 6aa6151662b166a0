/* split_layer.c - a drawn layer cut into parts. */
#include "tests/support/exec/split_layer.h"

/* --- drawing --- */

/* Cuts `n` items, `unit` of which stay together, into 1 .. SPLIT_CUTS ranges; lengths of 1 are frequent. */
static int draw_cuts(uint64_t round, uint64_t *c, int n, int unit, int cut[SPLIT_CUTS + 1]) {
    const int units = n / unit, want = pick(round, c, 1, SPLIT_CUTS);
    int count = 0;
    for (int k = 0, at = 0; k < want && at < units; k++) {
        const int left = units - at;
        cut[count++] = at * unit;
        at += k == want - 1 ? left : pick(round, c, 1, pick(round, c, 0, 1) ? left : 1);
    }
    cut[count] = n;
    return count;
}

/* Output channels that stay together: those of a group, or all of a transposed convolution. */
static int channel_unit_of(const draw *d) {
    if (d->layer.op == HP_CONVT) return d->out.c;
    return d->layer.op == HP_CONV && d->layer.groups > 1 ? d->out.c / d->layer.groups : 1;
}

/* What a part needs of input k, sometimes with extra rows and columns if the planner's rule allows them. */
static hp_box draw_input(const rig *whole, uint64_t round, uint64_t *c, int k, const hp_box *out) {
    const hp_box need = hp_layer_need(&whole->graph, 1, k, out),
                 all = hp_box_whole(&whole->graph, k, whole->samples);
    hp_box more = need;
    more.hi[HP_AXIS_H] += pick(round, c, 0, 2);
    more.hi[HP_AXIS_W] += pick(round, c, 0, 2);
    more = hp_box_and(&more, &all);
    return hp_layer_reads(&whole->graph, 1, &need, &more) ? more : need;
}

void draw_parts(const rig *whole, const draw *d, uint64_t round, bool channels, split *s) {
    uint64_t c = 1000;
    const int length[HP_AXES] = {(int)d->samples, d->out.h, d->out.w, d->out.c};
    int cut[HP_AXES][SPLIT_CUTS + 1], count[HP_AXES];
    for (int a = 0; a < HP_AXES; a++)
        count[a] = draw_cuts(round, &c, length[a],
                             a != HP_AXIS_C ? 1
                             : channels     ? channel_unit_of(d)
                                            : length[a],
                             cut[a]);
    s->n = count[0] * count[1] * count[2] * count[3];
    for (int p = 0; p < s->n; p++) {
        rig_boxes *b = &s->part[p];
        for (int a = HP_AXES - 1, rest = p; a >= 0; rest /= count[a--]) {
            b->out.lo[a] = cut[a][rest % count[a]];
            b->out.hi[a] = cut[a][rest % count[a] + 1];
        }
        b->own = b->out;
        for (int k = 0; k < d->layer.n_in; k++) b->in[k] = draw_input(whole, round, &c, k, &b->out);
    }
}

/* --- elements --- */

/* Index in the whole's buffer of element i of the part's, by the buffers' boxes. */
static int64_t whole_element(const hp_box *part, const hp_box *whole, int64_t i) {
    int64_t at[HP_AXES], e = 0;
    for (int a = HP_AXES - 1; a >= 0; a--) {
        at[a] = part->lo[a] + i % hp_box_len(part, a);
        i /= hp_box_len(part, a);
    }
    for (int a = 0; a < HP_AXES; a++) e = e * hp_box_len(whole, a) + at[a] - whole->lo[a];
    return e;
}

int64_t whole_of(const rig *part, int32_t b, const rig *whole, int32_t in, int64_t i) {
    return whole_element(&part->buffer[b].box, &whole->buffer[in].box, i);
}

void take(rig *part, int32_t b, const rig *whole, int32_t from) {
    for (int64_t i = 0; b >= 0 && i < rig_elems(part, b); i++)
        rig_set(part, b, i, rig_get(whole, from, whole_of(part, b, whole, from, i)));
}

/* Copies the local rows of the parameters. */
static void take_params(rig *part, const rig *whole) {
    for (int p = 0; p < part->graph.n_param; p++) {
        const hp_param_place *to = &part->place[p], *from = &whole->place[p];
        const int32_t b = hp_param_trained(&part->param[p]) ? HP_BUF_WEIGHTS : HP_BUF_STATE;
        for (int64_t i = 0; i < to->count; i++)
            rig_set(part, b, to->offset + i, rig_get(whole, b, from->offset + to->first + i));
    }
}

rig *build_part(const hp_device_ops *ops, const draw *d, const rig_boxes *boxes, const rig *whole) {
    rig *r = rig_new_part(ops, &d->layer, d->in, d->out, d->samples, d->bias, d->flags, boxes);
    for (int k = 0; k < d->layer.n_in; k++) take(r, r->x[k], whole, whole->x[k]);
    take(r, r->dy, whole, whole->dy);
    take_params(r, whole);
    for (int64_t i = 0; i < rig_elems(r, HP_BUF_GRADS); i++) rig_set(r, HP_BUF_GRADS, i, 0);
    return r;
}

gathered gathered_new(rig *whole) {
    gathered g;
    for (int k = 0; k < whole->layer[1].n_in; k++)
        g.dx[k] = HP_NEW(whole->arena, double, rig_elems(whole, whole->dx[k]));
    g.grads = HP_NEW(whole->arena, double, rig_elems(whole, HP_BUF_GRADS) + 1);
    return g;
}

void gather_part(gathered *g, const rig *part, const rig *whole) {
    for (int k = 0; k < part->layer[1].n_in; k++)
        for (int64_t i = 0; part->dx[k] >= 0 && i < rig_elems(part, part->dx[k]); i++)
            g->dx[k][whole_of(part, part->dx[k], whole, whole->dx[k], i)] += rig_get(part, part->dx[k], i);
    for (int p = 0; p < part->graph.n_param; p++) {
        const hp_param_place *from = &part->place[p];
        if (!hp_param_trained(&part->param[p])) continue;
        for (int64_t i = 0; i < from->count; i++)
            g->grads[whole->place[p].offset + from->first + i] +=
                rig_get(part, HP_BUF_GRADS, from->offset + i);
    }
}
