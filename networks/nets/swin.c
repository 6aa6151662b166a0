/* swin.c - Swin transformers as torchvision builds them (Liu et al., ICCV 2021;
 * torchvision.models.swin_transformer): windows of 7 x 7 pixels, shifted by 3 in every other block; between
 * the four stages, 2 x 2 pixels become one.
 *
 * If the map's side is not a multiple of 7, the last windows are smaller. torchvision instead pads them with
 * zeros that are attended to; at its own sizes, both agree. Without stochastic depth. */
#include "networks/nets/net_act.h"
#include "networks/nets/nets.h"
#include "networks/nets/net_tokens.h"

enum { PATCH = 4, WINDOW = 7, STAGES = 4, WIDER = 4 };
static const double std = 0.02;

/* No shift if a window covers the whole map. */
static hp_heads windows(const hp_tensor *t, int heads, bool shifted) {
    return (hp_heads){.heads = heads,
                      .window_h = WINDOW,
                      .window_w = WINDOW,
                      .shift_h = shifted && t->h > WINDOW ? WINDOW / 2 : 0,
                      .shift_w = shifted && t->w > WINDOW ? WINDOW / 2 : 0,
                      .bias = true};
}

static int block(hp_builder *b, int x, int stage, int i, const hp_net_args *a) {
    const hp_tensor t = b->g->tensor[x];
    const hp_heads h = windows(&t, a->heads << stage, i % 2 == 1);
    if (i > 0) hp_build_unit(b);
    hp_build_scope(b, "features.%d.%d.", 2 * stage + 1, i);
    int y = hp_build_layernorm(b, x, "norm1");
    hp_build_scope(b, "features.%d.%d.attn.", 2 * stage + 1, i);
    y = hp_tokens_attend(b, y, (hp_tokens){.qkv = "qkv", .out = "proj"}, h, HP_INIT_NORMAL, std);
    hp_build_scope(b, "features.%d.%d.", 2 * stage + 1, i);
    x = hp_build_add(b, x, y, "add1");
    y = hp_build_layernorm(b, x, "norm2");
    y = hp_tokens_project(b, y, (hp_tokens_linear){"mlp.0", HP_TP_COLUMN, false}, WIDER * t.c, HP_INIT_NORMAL,
                          std);
    y = hp_build_act(b, y, "mlp.1", HP_ACT_GELU);
    y = hp_tokens_project(b, y, (hp_tokens_linear){"mlp.3", HP_TP_ROW, false}, t.c, HP_INIT_NORMAL, std);
    return hp_build_add(b, x, y, "add2");
}

static int merge(hp_builder *b, int x, int stage) {
    const int c = b->g->tensor[x].c;
    hp_build_unit(b);
    hp_build_scope(b, "features.%d.", 2 * stage);
    x = hp_build_merge(b, x, "merge");
    x = hp_build_layernorm(b, x, "norm");
    x = hp_build_project(b, x, "reduction", 2 * c, false);
    hp_build_init(b, 0, HP_INIT_NORMAL, std);
    return x;
}

void hp_net_write_swin(hp_builder *b, const hp_net_args *a) {
    hp_build_scope(b, "features.0.");
    int x = hp_build_conv(b, 0, "0", a->hidden, (hp_window){.k = PATCH, .stride = PATCH, .bias = true});
    b->linear_bias_init = HP_INIT_ZERO;
    x = hp_build_layernorm(b, x, "2");
    for (int stage = 0; stage < STAGES; stage++) {
        if (stage > 0) x = merge(b, x, stage);
        for (int i = 0; i < (stage == 2 ? a->layers : 2); i++) x = block(b, x, stage, i, a);
    }
    hp_build_unit(b);
    hp_build_scope(b, "%s", "");
    x = hp_build_layernorm(b, x, "norm");
    x = hp_build_adaptpool(b, x, "avgpool", 1, 1);
    hp_build_linear(b, x, "head", b->g->classes);
    hp_build_init(b, 0, HP_INIT_NORMAL, std);
}
