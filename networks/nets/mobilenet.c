/* mobilenet.c - MobileNetV2 at width 1.0 as torchvision builds it (Sandler et al., CVPR 2018, table 2;
 * torchvision/models/mobilenetv2.py). */
#include "networks/nets/net_act.h"
#include "networks/nets/nets.h"

typedef struct stage_row {
    int expand, out_c, blocks, stride; /* t, c, n, s of the paper's table 2 */
} stage_row;

static const stage_row stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                   {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

/* "<name>.0" convolution, "<name>.1" norm, "<name>.2" ReLU6 */
static int conv_bn_relu6(hp_builder *b, int x, const char *name, int out_c, hp_window w) {
    x = hp_build_conv(b, x, hp_arena_printf(b->arena, "%s.0", name), out_c, w);
    x = hp_build_bn(b, x, hp_arena_printf(b->arena, "%s.1", name));
    return hp_build_act(b, x, hp_arena_printf(b->arena, "%s.2", name), HP_ACT_RELU6);
}

static int inverted_residual(hp_builder *b, int x, int expand, int out_c, int stride) {
    const int in_c = b->g->tensor[x].c, hidden = in_c * expand;
    const bool expands = expand != 1; /* without expansion the modules' numbers are one lower */
    int y = expands ? conv_bn_relu6(b, x, "0", hidden, (hp_window){.k = 1}) : x;
    y = conv_bn_relu6(b, y, expands ? "1" : "0", hidden,
                      (hp_window){.k = 3, .pad = 1, .stride = stride, .groups = hidden});
    y = hp_build_conv(b, y, expands ? "2" : "1", out_c, (hp_window){.k = 1});
    y = hp_build_bn(b, y, expands ? "3" : "2");
    return stride == 1 && in_c == out_c ? hp_build_add(b, x, y, "add") : y;
}

static int body(hp_builder *b, int x) {
    int n = 1;
    for (size_t s = 0; s < sizeof stages / sizeof stages[0]; s++)
        for (int i = 0; i < stages[s].blocks; i++) {
            hp_build_unit(b);
            hp_build_scope(b, "features.%d.conv.", n++);
            x = inverted_residual(b, x, stages[s].expand, stages[s].out_c, i == 0 ? stages[s].stride : 1);
        }
    return x;
}

void hp_net_write_mobilenetv2(hp_builder *b, const hp_net_args *a) {
    (void)a;
    b->conv_init = HP_INIT_KAIMING_FAN_OUT;
    b->linear_init = HP_INIT_NORMAL_001;
    b->linear_bias_init = HP_INIT_ZERO;
    hp_build_scope(b, "features.");
    int x = conv_bn_relu6(b, 0, "0", 32, (hp_window){.k = 3, .stride = 2, .pad = 1});
    x = body(b, x);
    hp_build_unit(b);
    hp_build_scope(b, "features.");
    x = conv_bn_relu6(b, x, "18", 1280, (hp_window){.k = 1});
    hp_build_scope(b, "%s", "");
    x = hp_build_adaptpool(b, x, "avgpool", 1, 1);
    x = hp_build_dropout(b, x, "classifier.0", 0.2F);
    hp_build_linear(b, x, "classifier.1", b->g->classes);
}
