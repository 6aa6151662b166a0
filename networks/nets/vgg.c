/* vgg.c - VGG-16 and VGG-19 without batch norm as torchvision builds them (Simonyan and Zisserman, ICLR 2015,
 * configurations D and E; torchvision/models/vgg.py). Names count every module of the sequence: features.N,
 * classifier.N. */
#include "networks/nets/net_act.h"
#include "networks/nets/nets.h"

enum { GROUPS = 5 };
static const int group_width[GROUPS] = {64, 128, 256, 512, 512};

/* The first two groups have two convolutions each, the others three or four. */
static int convs_of(int depth, int group) {
    return group < 2 ? 2 : depth == 16 ? 3 : 4;
}

static const char *numbered(hp_builder *b, int number) {
    return hp_arena_printf(b->arena, "%d", number);
}

/* A unit is a convolution with its ReLU; the last one of a group includes the pooling. */
static int features(hp_builder *b, int depth) {
    int x = 0, n = 0;
    hp_build_scope(b, "features.");
    for (int g = 0; g < GROUPS; g++) {
        for (int i = 0; i < convs_of(depth, g); i++) {
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

void hp_net_write_vgg(hp_builder *b, const hp_net_args *a) {
    b->conv_init = HP_INIT_KAIMING_FAN_OUT;
    b->linear_init = HP_INIT_NORMAL_001;
    b->conv_bias_init = b->linear_bias_init = HP_INIT_ZERO;
    int x = features(b, a->depth);
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
