/* vgg.c - VGG-19 without batch norm as torchvision builds it (Simonyan and Zisserman, ICLR 2015,
 * configuration E; torchvision/models/vgg.py). Names count every module of the sequence: features.N,
 * classifier.N. */
#include "plan/nets/nets.h"

enum { GROUPS = 5 };
static const int group_convs[GROUPS] = {2, 2, 4, 4, 4}, group_width[GROUPS] = {64, 128, 256, 512, 512};

static const char *numbered(hp_builder *b, int number) {
    return hp_arena_printf(b->arena, "%d", number);
}

/* A unit is a convolution with its ReLU, and the pooling after the last of a group. */
static int features(hp_builder *b) {
    int x = 0, n = 0;
    hp_build_scope(b, "features.");
    for (int g = 0; g < GROUPS; g++) {
        for (int i = 0; i < group_convs[g]; i++) {
            if (n > 0) hp_build_unit(b);
            x = hp_build_conv(b, x, numbered(b, n++), group_width[g],
                              (hp_window){.k = 3, .pad = 1, .bias = true});
            x = hp_build_act(b, x, numbered(b, n++), HP_ACT_RELU);
        }
        x = hp_build_maxpool(b, x, numbered(b, n++), (hp_window){.k = 2, .stride = 2});
    }
    return x;
}

static int hidden(hp_builder *b, int x, int n) {
    x = hp_build_linear(b, x, numbered(b, n), 4096);
    x = hp_build_act(b, x, numbered(b, n + 1), HP_ACT_RELU);
    return hp_build_dropout(b, x, numbered(b, n + 2), 0.5F);
}

void hp_net_write_vgg19(hp_builder *b, const hp_net_args *a) {
    (void)a;
    b->conv_init = HP_INIT_KAIMING_FAN_OUT;
    b->linear_init = HP_INIT_NORMAL_001;
    b->conv_bias_init = b->linear_bias_init = HP_INIT_ZERO;
    int x = features(b);
    hp_build_unit(b);
    hp_build_scope(b, "%s", "");
    x = hp_build_adaptpool(b, x, "avgpool", 7, 7);
    hp_build_scope(b, "classifier.");
    x = hidden(b, x, 0);
    hp_build_unit(b);
    x = hidden(b, x, 3);
    hp_build_unit(b);
    hp_build_linear(b, x, "6", b->g->classes);
}
