/* cnn.c - a small network for small images: two conv-BN-ReLU-pool groups and two fully connected layers. */
#include "networks/nets/net_act.h"
#include "networks/nets/nets.h"

static int pool_half(hp_builder *b, int x, const char *name) {
    return hp_build_maxpool(b, x, name, (hp_window){.k = 2, .stride = 2});
}

void hp_net_write_cnn(hp_builder *b, const hp_net_args *a) {
    (void)a;
    b->conv_init = HP_INIT_KAIMING_FAN_OUT;
    int x = hp_build_conv(b, 0, "conv1", 32, (hp_window){.k = 3, .pad = 1});
    x = hp_build_bn(b, x, "bn1");
    x = hp_build_act(b, x, "relu1", HP_ACT_RELU);
    x = pool_half(b, x, "pool1");
    hp_build_unit(b);
    x = hp_build_conv(b, x, "conv2", 64, (hp_window){.k = 3, .pad = 1});
    x = hp_build_bn(b, x, "bn2");
    x = hp_build_act(b, x, "relu2", HP_ACT_RELU);
    x = pool_half(b, x, "pool2");
    hp_build_unit(b);
    x = hp_build_linear(b, x, "fc1", 128);
    x = hp_build_act(b, x, "relu3", HP_ACT_RELU);
    hp_build_unit(b);
    hp_build_linear(b, x, "fc2", b->g->classes);
}
