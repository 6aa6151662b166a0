/* unet.c - U-Net (Ronneberger, Fischer, Brox, MICCAI 2015) in today's common form: padded convolutions with
 * batch norm; up-sampling by transposed convolutions, padded to the skip's size if an odd map was halved.
 * Names are those of milesial/Pytorch-UNet, so that its state dicts can be loaded. Ends in logits per
 * pixel. */
#include "networks/nets/net_act.h"
#include "networks/nets/nets.h"

enum { LEVELS = 4 };

static int conv_bn_relu(hp_builder *b, int x, const char *const names[3], int out_c) {
    x = hp_build_conv(b, x, names[0], out_c, (hp_window){.k = 3, .pad = 1});
    return hp_build_act(b, hp_build_bn(b, x, names[1]), names[2], HP_ACT_RELU);
}

/* A unit ends between the two convolutions so that stages can balance: the outer levels do most of the
 * work. */
static int double_conv(hp_builder *b, int x, int out_c) {
    static const char *const first[3] = {"0", "1", "2"}, *const second[3] = {"3", "4", "5"};
    x = conv_bn_relu(b, x, first, out_c);
    hp_build_unit(b);
    return conv_bn_relu(b, x, second, out_c);
}

static int down(hp_builder *b, int x, int level) {
    hp_build_unit(b);
    hp_build_scope(b, "down%d.maxpool_conv.", level);
    const int half = hp_build_maxpool(b, x, "0", (hp_window){.k = 2, .stride = 2});
    hp_build_scope(b, "down%d.maxpool_conv.1.double_conv.", level);
    return double_conv(b, half, 2 * b->g->tensor[x].c);
}

static int up(hp_builder *b, int x, int skip, int number) {
    const hp_tensor size = b->g->tensor[skip];
    hp_build_unit(b);
    hp_build_scope(b, "up%d.", number);
    x = hp_build_convt(b, x, "up", size.c, (hp_window){.k = 2, .stride = 2, .bias = true});
    x = hp_build_pad(b, x, "pad", size.h, size.w);
    x = hp_build_concat(b, skip, x, "cat");
    hp_build_scope(b, "up%d.conv.double_conv.", number);
    return double_conv(b, x, size.c);
}

void hp_net_write_unet(hp_builder *b, const hp_net_args *a) {
    int skip[LEVELS];
    hp_build_scope(b, "inc.double_conv.");
    int x = double_conv(b, 0, a->filters);
    for (int level = 0; level < LEVELS; level++) {
        skip[level] = x;
        x = down(b, x, level + 1);
    }
    for (int level = LEVELS - 1; level >= 0; level--) x = up(b, x, skip[level], LEVELS - level);
    hp_build_unit(b);
    hp_build_scope(b, "%s", "");
    hp_build_conv(b, x, "outc.conv", b->g->classes, (hp_window){.k = 1, .bias = true});
}
