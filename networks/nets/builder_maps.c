/* builder_maps.c - layers that gather, reduce and normalise maps. */
#include "networks/nets/builder_inside.h"

static int or_else(int n, int usual) {
    return n > 0 ? n : usual;
}

int hp_build_gather(hp_builder *b, int x, const char *name, const hp_layer *like) {
    const hp_tensor *t = &b->g->tensor[x];
    hp_layer l = {.op = HP_GATHER, .n_in = 1, .in = {x}, .pad_h = like->pad_h, .pad_w = like->pad_w};
    l.kh = or_else(like->kh, 1);
    l.kw = or_else(like->kw, 1);
    l.first = like->first;
    l.step = like->step;
    l.step_outer = like->step_outer;
    l.border = like->border;
    l.out_c = or_else(like->out_c, t->c / (l.kh * l.kw));
    l.groups = or_else(like->groups, l.kh * l.kw * l.out_c);
    l.out_h = or_else(like->out_h, t->h * l.kh);
    l.out_w = or_else(like->out_w, t->w * l.kw);
    return hp_build_append(b, l, name, 0);
}
