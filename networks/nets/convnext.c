/* convnext.c - ConvNeXt (Liu et al., CVPR 2022) as torchvision builds it (torchvision.models.convnext),
 * without stochastic depth. A block is a depthwise 7 x 7 convolution, a norm of every pixel's channels, a
 * perceptron and a trained factor per channel, which is a depthwise 1x1 convolution here. */
#include "networks/nets/net_act.h"
#include "networks/nets/nets.h"

enum { STAGES = 4, PATCH = 4, WIDER = 4 };
static const double std = 0.02, layer_scale = 1e-6, eps = 1e-6;

/* Weights are normal, biases 0. torchvision truncates at two, which is a hundred deviations away. */
static int drawn(hp_builder *b, int x) {
    hp_build_init(b, 0, HP_INIT_NORMAL, std);
    return x;
}

/* Files store the factors as (C, 1, 1). */
static int scaled(hp_builder *b, int x) {
    const int c = b->g->tensor[x].c;
    const int y = hp_build_conv(b, x, "layer_scale", c, (hp_window){.k = 1, .groups = c});
    hp_build_init(b, 0, HP_INIT_CONSTANT, layer_scale);
    hp_param *p = hp_build_param(b, 0);
    if (!p) return y;
    p->name = hp_arena_printf(b->arena, "%slayer_scale", b->scope);
    p->stored = (hp_stored){.n_dim = 3, .dim = {c, 1, 1}};
    return y;
}

static int block(hp_builder *b, int x, int stage, int i) {
    const int c = b->g->tensor[x].c;
    if (i > 0) hp_build_unit(b);
    hp_build_scope(b, "features.%d.%d.block.", 2 * stage + 1, i);
    int y = drawn(b, hp_build_conv(b, x, "0", c, (hp_window){.k = 7, .pad = 3, .groups = c, .bias = true}));
    y = hp_build_layernorm(b, y, "2");
    y = drawn(b, hp_build_project(b, y, "3", WIDER * c, true));
    y = hp_build_act(b, y, "4", HP_ACT_GELU);
    y = drawn(b, hp_build_project(b, y, "5", c, true));
    hp_build_scope(b, "features.%d.%d.", 2 * stage + 1, i);
    return hp_build_add(b, x, scaled(b, y), "add");
}

static int smaller(hp_builder *b, int x, int stage) {
    const int c = b->g->tensor[x].c;
    hp_build_unit(b);
    hp_build_scope(b, "features.%d.", 2 * stage);
    x = hp_build_layernorm(b, x, "0");
    return drawn(b, hp_build_conv(b, x, "1", 2 * c, (hp_window){.k = 2, .stride = 2, .bias = true}));
}

void hp_net_write_convnext(hp_builder *b, const hp_net_args *a) {
    b->norm_eps = eps;
    b->conv_bias_init = b->linear_bias_init = HP_INIT_ZERO;
    hp_build_scope(b, "features.0.");
    int x =
        drawn(b, hp_build_conv(b, 0, "0", a->hidden, (hp_window){.k = PATCH, .stride = PATCH, .bias = true}));
    x = hp_build_layernorm(b, x, "1");
    for (int stage = 0; stage < STAGES; stage++) {
        if (stage > 0) x = smaller(b, x, stage);
        for (int i = 0; i < (stage == 2 ? a->layers : 3); i++) x = block(b, x, stage, i);
    }
    hp_build_unit(b);
    hp_build_scope(b, "%s", "");
    x = hp_build_adaptpool(b, x, "avgpool", 1, 1);
    x = hp_build_layernorm(b, x, "classifier.0");
    drawn(b, hp_build_linear(b, x, "classifier.2", b->g->classes));
}
