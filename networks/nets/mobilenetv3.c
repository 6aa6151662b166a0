/* mobilenetv3.c - MobileNetV3, large and small, at width 1.0 as torchvision builds it (Howard et al., ICCV
 * 2019, tables 1 and 2; torchvision.models.mobilenetv3). */
#include "networks/nets/mbconv.h"
#include "networks/nets/nets.h"

typedef struct bneck_row {
    int k, expanded, out_c;
    bool squeezes, hard_swish; /* SE; NL: HS if set, otherwise RE */
    int stride;
} bneck_row;

static const bneck_row large[] = {
    {3, 16, 16, false, false, 1}, {3, 64, 24, false, false, 2}, {3, 72, 24, false, false, 1},
    {5, 72, 40, true, false, 2},  {5, 120, 40, true, false, 1}, {5, 120, 40, true, false, 1},
    {3, 240, 80, false, true, 2}, {3, 200, 80, false, true, 1}, {3, 184, 80, false, true, 1},
    {3, 184, 80, false, true, 1}, {3, 480, 112, true, true, 1}, {3, 672, 112, true, true, 1},
    {5, 672, 160, true, true, 2}, {5, 960, 160, true, true, 1}, {5, 960, 160, true, true, 1},
};

static const bneck_row small[] = {
    {3, 16, 16, true, false, 2}, {3, 72, 24, false, false, 2}, {3, 88, 24, false, false, 1},
    {5, 96, 40, true, true, 2},  {5, 240, 40, true, true, 1},  {5, 240, 40, true, true, 1},
    {5, 120, 48, true, true, 1}, {5, 144, 48, true, true, 1},  {5, 288, 96, true, true, 2},
    {5, 576, 96, true, true, 1}, {5, 576, 96, true, true, 1},
};

/* Rounds to the nearest multiple of 8, but never below nine tenths. */
static int divisible(int channels) {
    const int near = (channels + 4) / 8 * 8, least = near < 8 ? 8 : near;
    return 10 * least < 9 * channels ? least + 8 : least;
}

static int bneck(hp_builder *b, int x, const bneck_row *r) {
    const hp_mbconv m = {.k = r->k,
                         .expanded = r->expanded,
                         .out_c = r->out_c,
                         .stride = r->stride,
                         .squeezed = r->squeezes ? divisible(r->expanded / 4) : 0,
                         .act = r->hard_swish ? HP_ACT_HSWISH : HP_ACT_RELU,
                         .squeeze_act = HP_ACT_RELU,
                         .gate = HP_ACT_HSIGMOID};
    return hp_build_mbconv(b, x, &m);
}

static void write(hp_builder *b, const bneck_row *rows, int n, int hidden) {
    b->conv_init = HP_INIT_KAIMING_FAN_OUT;
    b->conv_bias_init = b->linear_bias_init = HP_INIT_ZERO;
    b->linear_init = HP_INIT_NORMAL_001;
    b->bn_eps = 0.001;
    b->bn_momentum = 0.01;
    hp_build_scope(b, "features.");
    int x = hp_build_conv_norm(b, 0, "0", 16, (hp_window){.k = 3, .stride = 2}, HP_ACT_HSWISH);
    for (int i = 0; i < n; i++) {
        hp_build_unit(b);
        hp_build_scope(b, "features.%d.", i + 1);
        x = bneck(b, x, &rows[i]);
    }
    hp_build_unit(b);
    hp_build_scope(b, "features.");
    x = hp_build_conv_norm(b, x, hp_arena_printf(b->arena, "%d", n + 1), 6 * rows[n - 1].out_c,
                           (hp_window){.k = 1}, HP_ACT_HSWISH);
    hp_build_scope(b, "%s", "");
    x = hp_build_adaptpool(b, x, "avgpool", 1, 1);
    x = hp_build_act(b, hp_build_linear(b, x, "classifier.0", hidden), "classifier.1", HP_ACT_HSWISH);
    hp_build_linear(b, hp_build_dropout(b, x, "classifier.2", 0.2F), "classifier.3", b->g->classes);
}

void hp_net_write_mobilenetv3(hp_builder *b, const hp_net_args *a) {
    if (a->layers == (int)(sizeof large / sizeof *large))
        write(b, large, a->layers, 1280);
    else
        write(b, small, sizeof small / sizeof *small, 1024);
}
