/* cifar.c - CIFAR-style residual networks of any depth and image size (He et al. 2016; as in MPI4DL): no stem
 * pooling, three stages, every convolution with bias, and one 8x8 average pooling before the last layer.
 *
 * v1: depth 6n+2, blocks of two 3x3 convolutions. v2: depth 9n+2, pre-activation blocks with kernels 3-3-1,
 * or 1-3-1 as in the Keras example that MPI4DL follows. Ends in logits. */
#include "networks/nets/net_act.h"
#include "networks/nets/nets.h"

static int conv(hp_builder *b, int x, const char *name, int out_c, int k, int stride) {
    return hp_build_conv(b, x, name, out_c,
                         (hp_window){.k = k, .stride = stride, .pad = (k - 1) / 2, .bias = true});
}

static int bn_relu(hp_builder *b, int x, const char *bn, const char *relu) {
    return hp_build_act(b, hp_build_bn(b, x, bn), relu, HP_ACT_RELU);
}

static int stem(hp_builder *b) {
    b->conv_init = HP_INIT_KAIMING_FAN_OUT;
    return bn_relu(b, conv(b, 0, "conv1", 16, 3, 1), "bn1", "relu");
}

static void head(hp_builder *b, int x) {
    x = hp_build_avgpool(b, x, "avgpool", (hp_window){.k = 8, .stride = 8});
    hp_build_linear(b, x, "fc", b->g->classes);
}

static int block_v1(hp_builder *b, int x, int width, int stride) {
    int y = bn_relu(b, conv(b, x, "conv1", width, 3, stride), "bn1", "relu1");
    y = conv(b, y, "conv2", width, 3, 1);
    const int shortcut = stride == 1 ? x : conv(b, x, "shortcut", width, 1, stride);
    y = hp_build_bn(b, y, "bn2");
    return hp_build_act(b, hp_build_add(b, y, shortcut, "add"), "relu", HP_ACT_RELU);
}

typedef struct block_v2_shape {
    int mid, out_c, stride, first_kernel;
    bool projects; /* the stage's first block projects the shortcut */
    bool plain;    /* the network's first block has no norm before its first convolution */
} block_v2_shape;

static int block_v2(hp_builder *b, int x, block_v2_shape s) {
    int y = s.plain ? x : bn_relu(b, x, "bn1", "relu1");
    y = conv(b, y, "conv1", s.mid, s.first_kernel, s.stride);
    y = conv(b, bn_relu(b, y, "bn2", "relu2"), "conv2", s.mid, 3, 1);
    y = conv(b, bn_relu(b, y, "bn3", "relu3"), "conv3", s.out_c, 1, 1);
    const int shortcut = s.projects ? conv(b, x, "shortcut", s.out_c, 1, s.stride) : x;
    return hp_build_add(b, y, shortcut, "add");
}

static void enter_block(hp_builder *b, int stage, int block) {
    hp_build_unit(b);
    hp_build_scope(b, "layer%d.%d.", stage + 1, block);
}

static void enter_head(hp_builder *b) {
    hp_build_unit(b);
    hp_build_scope(b, "%s", "");
}

void hp_net_write_cifar_v1(hp_builder *b, const hp_net_args *a) {
    const int n = (a->depth - 2) / 6;
    int x = stem(b);
    for (int g = 0; g < 3; g++)
        for (int i = 0; i < n; i++) {
            enter_block(b, g, i);
            x = block_v1(b, x, 16 << g, g > 0 && i == 0 ? 2 : 1);
        }
    enter_head(b);
    head(b, x);
}

void hp_net_write_cifar_v2(hp_builder *b, const hp_net_args *a) {
    static const int mid[3] = {16, 64, 128}, out_c[3] = {64, 128, 256};
    const int n = (a->depth - 2) / 9;
    int x = stem(b);
    for (int g = 0; g < 3; g++)
        for (int i = 0; i < n; i++) {
            enter_block(b, g, i);
            x = block_v2(b, x,
                         (block_v2_shape){.mid = mid[g],
                                          .out_c = out_c[g],
                                          .stride = g > 0 && i == 0 ? 2 : 1,
                                          .first_kernel = a->narrow_first ? 1 : 3,
                                          .projects = i == 0,
                                          .plain = g == 0 && i == 0});
        }
    enter_head(b);
    x = bn_relu(b, x, "bn", "relu");
    head(b, x);
}
