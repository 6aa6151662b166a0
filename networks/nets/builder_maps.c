/* builder_maps.c - layers that gather, reduce and normalise maps. */
#include "networks/nets/builder_inside.h"

static int or_else(int n, int usual) {
    return n > 0 ? n : usual;
}

int hp_build_gather(hp_builder *b, int x, const char *name, const hp_layer *like) {
    const hp_tensor *t = &b->g->tensor[x];
    hp_layer l = {.op = HP_GATHER,
                  .n_in = 1,
                  .in = {x},
                  .window.pad_h = like->window.pad_h,
                  .window.pad_w = like->window.pad_w};
    l.window.kh = or_else(like->window.kh, 1);
    l.window.kw = or_else(like->window.kw, 1);
    l.gather.first = like->gather.first;
    l.gather.step = like->gather.step;
    l.gather.step_outer = like->gather.step_outer;
    l.gather.border = like->gather.border;
    l.gather.out_c = or_else(like->gather.out_c, t->c / (l.window.kh * l.window.kw));
    l.groups = or_else(like->groups, l.window.kh * l.window.kw * l.gather.out_c);
    l.out_h = or_else(like->out_h, t->h * l.window.kh);
    l.out_w = or_else(like->out_w, t->w * l.window.kw);
    return hp_build_append(b, l, name, 0);
}
