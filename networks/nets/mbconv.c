/* mbconv.c - inverted residuals (Sandler and others 2018) with squeeze and excitation (Hu and others 2018),
 * as torchvision.models.mobilenetv3 and torchvision.models.efficientnet build them. */
#include "networks/nets/mbconv.h"

int hp_build_conv_norm(hp_builder *b, int x, const char *name, int out_c, hp_window w, hp_act act) {
    w.pad = (w.k - 1) / 2;
    x = hp_build_conv(b, x, hp_arena_printf(b->arena, "%s.0", name), out_c, w);
    x = hp_build_bn(b, x, hp_arena_printf(b->arena, "%s.1", name));
    return act == HP_ACT_NONE ? x : hp_build_act(b, x, hp_arena_printf(b->arena, "%s.2", name), act);
}

/* The hard sigmoid is torch's, with slope 1/6. */
static int excite(hp_builder *b, int x, const char *name, const hp_mbconv *m) {
    const hp_window one = {.k = 1, .bias = true};
    int y = hp_build_adaptpool(b, x, hp_arena_printf(b->arena, "%s.avgpool", name), 1, 1);
    y = hp_build_conv(b, y, hp_arena_printf(b->arena, "%s.fc1", name), m->squeezed, one);
    y = hp_build_act(b, y, hp_arena_printf(b->arena, "%s.activation", name), m->squeeze_act);
    y = hp_build_conv(b, y, hp_arena_printf(b->arena, "%s.fc2", name), m->expanded, one);
    y = hp_build_act_with(b, y, hp_arena_printf(b->arena, "%s.scale_activation", name), m->gate,
                          m->gate == HP_ACT_HSIGMOID ? 1.0 / 6 : 0, m->gate == HP_ACT_HSIGMOID ? 0.5 : 0);
    return hp_build_mul(b, x, y, hp_arena_printf(b->arena, "%s.mul", name));
}

int hp_build_mbconv(hp_builder *b, int x, const hp_mbconv *m) {
    const int in_c = b->g->tensor[x].c;
    int n = 0, y = x;
    const hp_window deep = {.k = m->k, .stride = m->stride, .groups = m->expanded}, one = {.k = 1};
    if (m->expanded != in_c)
        y = hp_build_conv_norm(b, y, hp_arena_printf(b->arena, "block.%d", n++), m->expanded, one, m->act);
    y = hp_build_conv_norm(b, y, hp_arena_printf(b->arena, "block.%d", n++), m->expanded, deep, m->act);
    if (m->squeezed) y = excite(b, y, hp_arena_printf(b->arena, "block.%d", n++), m);
    y = hp_build_conv_norm(b, y, hp_arena_printf(b->arena, "block.%d", n), m->out_c, one, HP_ACT_NONE);
    return m->stride == 1 && in_c == m->out_c ? hp_build_add(b, y, x, "add") : y;
}
