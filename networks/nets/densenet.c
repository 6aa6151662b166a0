/* densenet.c - DenseNet-121 as torchvision builds it (Huang et al., CVPR 2017;
 * torchvision/models/densenet.py). The concatenation of all earlier outputs is a chain of two-input
 * concatenations: [all so far, new]. */
#include "networks/nets/net_act.h"
#include "networks/nets/nets.h"

enum { GROWTH = 32, BOTTLENECK = 4 * GROWTH, BLOCKS = 4 };
static const int block_layers[BLOCKS] = {6, 12, 24, 16};

static int norm_relu(hp_builder *b, int x, const char *norm, const char *relu) {
    return hp_build_act(b, hp_build_bn(b, x, norm), relu, HP_ACT_RELU);
}

static int dense_layer(hp_builder *b, int x) {
    int y = norm_relu(b, x, "norm1", "relu1");
    y = hp_build_conv(b, y, "conv1", BOTTLENECK, (hp_window){.k = 1});
    y = norm_relu(b, y, "norm2", "relu2");
    y = hp_build_conv(b, y, "conv2", GROWTH, (hp_window){.k = 3, .pad = 1});
    return hp_build_concat(b, x, y, "cat");
}

static int dense_block(hp_builder *b, int x, int number) {
    for (int i = 0; i < block_layers[number]; i++) {
        hp_build_unit(b);
        hp_build_scope(b, "features.denseblock%d.denselayer%d.", number + 1, i + 1);
        x = dense_layer(b, x);
    }
    return x;
}

static int transition(hp_builder *b, int x, int number) {
    hp_build_unit(b);
    hp_build_scope(b, "features.transition%d.", number + 1);
    const int half = b->g->tensor[x].c / 2;
    x = norm_relu(b, x, "norm", "relu");
    x = hp_build_conv(b, x, "conv", half, (hp_window){.k = 1});
    return hp_build_avgpool(b, x, "pool", (hp_window){.k = 2, .stride = 2});
}

static int stem(hp_builder *b) {
    hp_build_scope(b, "features.");
    int x = hp_build_conv(b, 0, "conv0", 2 * GROWTH, (hp_window){.k = 7, .stride = 2, .pad = 3});
    x = norm_relu(b, x, "norm0", "relu0");
    return hp_build_maxpool(b, x, "pool0", (hp_window){.k = 3, .stride = 2, .pad = 1});
}

void hp_net_write_densenet121(hp_builder *b, const hp_net_args *a) {
    (void)a;
    b->conv_init = HP_INIT_KAIMING_FAN_IN;
    b->linear_bias_init = HP_INIT_ZERO;
    int x = stem(b);
    for (int number = 0; number < BLOCKS; number++) {
        x = dense_block(b, x, number);
        if (number + 1 < BLOCKS) x = transition(b, x, number);
    }
    hp_build_unit(b);
    hp_build_scope(b, "features.");
    x = norm_relu(b, x, "norm5", "relu");
    hp_build_scope(b, "%s", "");
    x = hp_build_adaptpool(b, x, "avgpool", 1, 1);
    hp_build_linear(b, x, "classifier", b->g->classes);
}
