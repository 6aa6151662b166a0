/* vit.c - vision transformers as torchvision builds them (Dosovitskiy et al., ICLR 2021;
 * torchvision.models.vision_transformer): patches by a convolution, a class token, learned positions,
 * pre-norm blocks, and a head on the class token's features. The image's sides must be multiples of the
 * patch. Without dropout, torchvision's default. */
#include "networks/nets/net_act.h"
#include "networks/nets/nets.h"
#include "networks/nets/net_tokens.h"

#include <math.h>

static int patches(hp_builder *b, const hp_net_args *a) {
    const int k = a->patch;
    if (b->status == HP_OK && (b->g->image_h % k || b->g->image_w % k))
        b->status = hp_fail(b->err, HP_EPLAN,
                            "network %s: image %dx%d: sides must be multiples of %d, for example %dx%d",
                            b->g->net, b->g->image_h, b->g->image_w, k, (b->g->image_h + k - 1) / k * k,
                            (b->g->image_w + k - 1) / k * k);
    hp_build_scope(b, "%s", "");
    const int x = hp_build_conv(b, 0, "conv_proj", a->hidden, (hp_window){.k = k, .stride = k, .bias = true});
    hp_build_init(b, 0, HP_INIT_NORMAL, sqrt(1.0 / (3.0 * k * k)));
    hp_build_init(b, 1, HP_INIT_ZERO, 0);
    return x;
}

/* Files store (1, tokens, C). */
static int tokens(hp_builder *b, int x) {
    x = hp_build_classtoken(b, x, "class_token");
    hp_tokens_stored_flat(b, 0);
    hp_build_scope(b, "encoder.");
    x = hp_build_position(b, x, "pos_embedding", NULL);
    hp_build_init(b, 0, HP_INIT_NORMAL, 0.02);
    hp_tokens_stored_flat(b, 0);
    return x;
}

static int attend(hp_builder *b, int x, const hp_net_args *a) {
    const int c = a->hidden;
    const double xavier = sqrt(6.0 / (4.0 * c)); /* torchvision initialises (3C, C) as one matrix */
    const int y = hp_tokens_attend(b, x, (hp_tokens){.qkv = "in_proj_", .out = "out_proj", .joined = true},
                                   (hp_heads){.heads = a->heads}, HP_INIT_UNIFORM, xavier);
    hp_build_init(b, 0, HP_INIT_TORCH_DEFAULT, 0);
    return y;
}

static int perceptron(hp_builder *b, int x, const hp_net_args *a) {
    const double xavier = sqrt(6.0 / (a->hidden + a->mlp));
    x = hp_tokens_project(b, x, (hp_tokens_linear){"mlp.0", HP_TP_COLUMN, false}, a->mlp, HP_INIT_UNIFORM,
                          xavier);
    hp_build_init(b, 1, HP_INIT_NORMAL, 1e-6);
    x = hp_build_act(b, x, "mlp.1", HP_ACT_GELU);
    x = hp_tokens_project(b, x, (hp_tokens_linear){"mlp.3", HP_TP_ROW, false}, a->hidden, HP_INIT_UNIFORM,
                          xavier);
    hp_build_init(b, 1, HP_INIT_NORMAL, 1e-6);
    return x;
}

static int block(hp_builder *b, int x, int i, const hp_net_args *a) {
    hp_build_unit(b);
    hp_build_scope(b, "encoder.layers.encoder_layer_%d.", i);
    int y = hp_build_layernorm(b, x, "ln_1");
    hp_build_scope(b, "encoder.layers.encoder_layer_%d.self_attention.", i);
    y = attend(b, y, a);
    hp_build_scope(b, "encoder.layers.encoder_layer_%d.", i);
    x = hp_build_add(b, y, x, "add_1");
    y = hp_build_layernorm(b, x, "ln_2");
    return hp_build_add(b, x, perceptron(b, y, a), "add_2");
}

void hp_net_write_vit(hp_builder *b, const hp_net_args *a) {
    b->norm_eps = 1e-6;
    b->linear_bias_init = HP_INIT_ZERO;
    int x = tokens(b, patches(b, a));
    for (int i = 0; i < a->layers; i++) x = block(b, x, i, a);
    hp_build_unit(b);
    hp_build_scope(b, "encoder.");
    x = hp_build_layernorm(b, x, "ln");
    hp_build_scope(b, "heads.");
    x = hp_build_crop(b, x, "class", 0, 0, 1, 1);
    b->linear_init = HP_INIT_ZERO;
    hp_build_linear(b, x, "head", b->g->classes);
}
