/* builder_maps.c - layers that gather, reduce and normalise maps. */
#include "networks/nets/builder_inside.h"

int hp_build_groupnorm(hp_builder *b, int x, const char *name, int groups) {
    const int c = b->g->tensor[x].c;
    const hp_layer l = {.op = HP_GROUPNORM, .n_in = 1, .in = {x}, .groups = groups, .eps = b->norm_eps};
    const int y = hp_build_append(b, l, name, 0);
    hp_build_append_param(b, "weight", HP_PARAM_BN_GAMMA, HP_INIT_ONE, c, (const int[4]){c});
    hp_build_append_param(b, "bias", HP_PARAM_BN_BETA, HP_INIT_ZERO, c, (const int[4]){c});
    return y;
}

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

int hp_build_reduce(hp_builder *b, int x, const char *name, hp_channel_reduction reduction) {
    return hp_build_append(
        b, (hp_layer){.op = HP_REDUCE, .n_in = 1, .in = {x}, .reduction = (int32_t)reduction}, name, 0);
}
