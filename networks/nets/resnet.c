/* resnet.c - ResNet-18/34/50/101/152 as torchvision builds them (v1.5: the stride sits in the 3x3
 * convolution; He et al., CVPR 2016; torchvision/models/resnet.py). */
#include "networks/nets/net_act.h"
#include "networks/nets/nets.h"

typedef struct resnet_shape {
    int depth, blocks[4];
    bool bottleneck;
} resnet_shape;

static const resnet_shape shapes[] = {
    {18, {2, 2, 2, 2}, false},  {34, {3, 4, 6, 3}, false},  {50, {3, 4, 6, 3}, true},
    {101, {3, 4, 23, 3}, true}, {152, {3, 8, 36, 3}, true},
};

static int conv_bn_relu(hp_builder *b, int x, int number, int out_c, hp_window w) {
    const char *const conv[] = {"conv1", "conv2"}, *const bn[] = {"bn1", "bn2"},
                      *const relu[] = {"relu1", "relu2"};
    x = hp_build_conv(b, x, conv[number], out_c, w);
    x = hp_build_bn(b, x, bn[number]);
    return hp_build_act(b, x, relu[number], HP_ACT_RELU);
}

static int downsample(hp_builder *b, int x, int out_c, int stride) {
    if (stride == 1 && b->g->tensor[x].c == out_c) return x;
    x = hp_build_conv(b, x, "downsample.0", out_c, (hp_window){.k = 1, .stride = stride});
    return hp_build_bn(b, x, "downsample.1");
}

/* The shortcut is written after the convolutions, so that x, rather than its projection, stays alive
 * meanwhile. It comes before the last norm, which is fused with the addition. */
static int block(hp_builder *b, int x, bool bottleneck, int width, int stride) {
    const int out_c = bottleneck ? 4 * width : width;
    const char *last_bn = bottleneck ? "bn3" : "bn2";
    int y;
    if (bottleneck) {
        y = conv_bn_relu(b, x, 0, width, (hp_window){.k = 1});
        y = conv_bn_relu(b, y, 1, width, (hp_window){.k = 3, .pad = 1, .stride = stride});
        y = hp_build_conv(b, y, "conv3", out_c, (hp_window){.k = 1});
    } else {
        y = conv_bn_relu(b, x, 0, width, (hp_window){.k = 3, .pad = 1, .stride = stride});
        y = hp_build_conv(b, y, "conv2", out_c, (hp_window){.k = 3, .pad = 1});
    }
    const int shortcut = downsample(b, x, out_c, stride);
    y = hp_build_bn(b, y, last_bn);
    y = hp_build_add(b, y, shortcut, "add");
    return hp_build_act(b, y, "relu", HP_ACT_RELU);
}

static int stem(hp_builder *b) {
    int x = hp_build_conv(b, 0, "conv1", 64, (hp_window){.k = 7, .stride = 2, .pad = 3});
    x = hp_build_bn(b, x, "bn1");
    x = hp_build_act(b, x, "relu", HP_ACT_RELU);
    return hp_build_maxpool(b, x, "maxpool", (hp_window){.k = 3, .stride = 2, .pad = 1});
}

static int stage(hp_builder *b, int x, const resnet_shape *s, int number) {
    for (int i = 0; i < s->blocks[number]; i++) {
        hp_build_unit(b);
        hp_build_scope(b, "layer%d.%d.", number + 1, i);
        x = block(b, x, s->bottleneck, 64 << number, i == 0 && number > 0 ? 2 : 1);
    }
    return x;
}

void hp_net_write_resnet(hp_builder *b, const hp_net_args *a) {
    const resnet_shape *s = shapes;
    while (s->depth != a->depth) s++;
    b->conv_init = HP_INIT_KAIMING_FAN_OUT;
    int x = stem(b);
    for (int number = 0; number < 4; number++) x = stage(b, x, s, number);
    hp_build_unit(b);
    hp_build_scope(b, "%s", "");
    x = hp_build_adaptpool(b, x, "avgpool", 1, 1);
    hp_build_linear(b, x, "fc", b->g->classes);
}
