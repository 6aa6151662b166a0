/* attention_unet.c - U-Net with additive attention gates (Oktay et al., MIDL 2018, equations 1 and 2) in its
 * common form for images: the features of the level below weight each level's skip, pixel by pixel.
 *
 * Levels have F, 2 F, ... 16 F filters, each two convolutions with batch norm. Up-sampling takes the nearest
 * pixel, then convolves. The gate has half as many channels as its skip and the same size, which differs from
 * the paper. Names are those of LeeJunHyun/Image_Segmentation, whose AttU_Net it is. Ends in logits per
 * pixel. */
#include "networks/nets/net_act.h"
#include "networks/nets/nets.h"

enum { LEVELS = 5 };

static int conv_bn(hp_builder *b, int x, const char *const names[2], int out_c, int k) {
    x = hp_build_conv(b, x, names[0], out_c, (hp_window){.k = k, .pad = k / 2, .bias = true});
    return hp_build_bn(b, x, names[1]);
}

/* A unit ends between the two convolutions, as in unet.c. */
static int double_conv(hp_builder *b, int x, int out_c) {
    static const char *const first[2] = {"0", "1"}, *const second[2] = {"3", "4"};
    x = hp_build_act(b, conv_bn(b, x, first, out_c, 3), "2", HP_ACT_RELU);
    hp_build_unit(b);
    return hp_build_act(b, conv_bn(b, x, second, out_c, 3), "5", HP_ACT_RELU);
}

/* psi of relu(W_g gate + W_x skip), one number per pixel, times the skip. */
static int attend(hp_builder *b, int skip, int gate, int level) {
    static const char *const of_gate[2] = {"W_g.0", "W_g.1"}, *const of_skip[2] = {"W_x.0", "W_x.1"},
                             *const to_one[2] = {"psi.0", "psi.1"};
    const hp_tensor t = b->g->tensor[skip];
    const hp_layer all_channels = {.gather.out_c = t.c};
    hp_build_scope(b, "Att%d.", level);
    const int g = conv_bn(b, gate, of_gate, t.c / 2, 1), x = conv_bn(b, skip, of_skip, t.c / 2, 1);
    int y = hp_build_act(b, hp_build_add(b, g, x, "add"), "relu", HP_ACT_RELU);
    y = hp_build_act(b, conv_bn(b, y, to_one, 1, 1), "psi.2", HP_ACT_SIGMOID);
    return hp_build_mul(b, skip, hp_build_gather(b, y, "expand", &all_channels), "mul");
}

static int up(hp_builder *b, int x, int skip, int level) {
    static const char *const names[2] = {"1", "2"};
    const hp_tensor t = b->g->tensor[skip];
    hp_build_unit(b);
    hp_build_scope(b, "Up%d.up.", level);
    x = hp_build_resize(b, x, "0", t.h, t.w, HP_NEAREST, HP_CORNERS_ASYMMETRIC);
    x = hp_build_act(b, conv_bn(b, x, names, t.c, 3), "3", HP_ACT_RELU);
    skip = attend(b, skip, x, level);
    hp_build_scope(b, "Up_conv%d.conv.", level);
    return double_conv(b, hp_build_concat(b, skip, x, "cat"), t.c);
}

void hp_net_write_attention_unet(hp_builder *b, const hp_net_args *a) {
    int skip[LEVELS], x = 0;
    for (int level = 0; level < LEVELS; level++) {
        if (level > 0) hp_build_unit(b);
        hp_build_scope(b, "Conv%d.conv.", level + 1);
        if (level > 0) x = hp_build_maxpool(b, x, "pool", (hp_window){.k = 2, .stride = 2});
        skip[level] = x = double_conv(b, x, a->filters << level);
    }
    for (int level = LEVELS - 1; level > 0; level--) x = up(b, x, skip[level - 1], level + 1);
    hp_build_unit(b);
    hp_build_scope(b, "%s", "");
    hp_build_conv(b, x, "Conv_1x1", b->g->classes, (hp_window){.k = 1, .bias = true});
}
