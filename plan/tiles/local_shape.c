/* local_shape.c - a layer between two boxes, as kernels see it. */
#include "plan/tiles/tile.h"

/* Padding of the local boxes: local output o reads local input o*stride - pad + k, so the cut-off parts
 * reduce the padding. */
static int32_t local_pad(const hp_layer *l, int pad, int stride, int in_lo, int out_lo) {
    if (l->op == HP_CONVT) return pad + out_lo - in_lo * stride; /* local output i*stride - pad + k */
    return pad + in_lo - out_lo * stride;
}

static int32_t at_least_1(int32_t v) {
    return v > 0 ? v : 1;
}

hp_shape hp_shape_between(const hp_graph *g, int layer, const hp_box *in, const hp_box *out) {
    const hp_layer *l = &g->layer[layer];
    const hp_tensor *x = &g->tensor[l->n_in > 0 ? l->in[0] : l->out], *y = &g->tensor[l->out];
    hp_shape s = {.n = hp_box_len(out, HP_AXIS_N),
                  .ih = hp_box_len(in, HP_AXIS_H),
                  .iw = hp_box_len(in, HP_AXIS_W),
                  .ic = hp_box_len(in, HP_AXIS_C),
                  .oh = hp_box_len(out, HP_AXIS_H),
                  .ow = hp_box_len(out, HP_AXIS_W),
                  .oc = hp_box_len(out, HP_AXIS_C),
                  .iy0 = in->lo[HP_AXIS_H],
                  .ix0 = in->lo[HP_AXIS_W],
                  .oy0 = out->lo[HP_AXIS_H],
                  .ox0 = out->lo[HP_AXIS_W],
                  .oc0 = out->lo[HP_AXIS_C],
                  .full.ih = x->h,
                  .full.iw = x->w,
                  .full.oh = y->h,
                  .full.ow = y->w,
                  .full.oc = y->c};
    if (l->op == HP_LINEAR) {
        s.kh = x->h;
        s.kw = x->w;
        s.sh = s.sw = s.dh = s.dw = s.groups = 1;
        return s;
    }
    s.kh = l->window.kh;
    s.kw = l->window.kw;
    s.sh = at_least_1(l->window.stride_h);
    s.sw = at_least_1(l->window.stride_w);
    s.dh = at_least_1(l->window.dil_h);
    s.dw = at_least_1(l->window.dil_w);
    s.groups = at_least_1(l->groups);
    if (s.groups > 1) s.groups = s.oc / at_least_1(y->c / s.groups); /* a channel slice holds whole groups */
    s.ph = local_pad(l, l->window.pad_h, s.sh, s.iy0, s.oy0);
    s.pw = local_pad(l, l->window.pad_w, s.sw, s.ix0, s.ox0);
    return s;
}
