/* efficientnet.c - EfficientNet-B0 as torchvision builds it (Tan and Le, ICML 2019, table 1;
 * torchvision.models.efficientnet), without stochastic depth. */
#include "networks/nets/mbconv.h"
#include "networks/nets/nets.h"

#include <math.h>

typedef struct stage_row {
    int expand, k, stride, out_c, blocks;
} stage_row;

static const stage_row stages[] = {{1, 3, 1, 16, 1},  {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2}, {6, 3, 2, 80, 3},
                                   {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1}};

static int stage(hp_builder *b, int x, int number, const stage_row *r) {
    for (int i = 0; i < r->blocks; i++) {
        const int in_c = b->g->tensor[x].c;
        const hp_mbconv m = {.k = r->k,
                             .expanded = r->expand * in_c,
                             .out_c = r->out_c,
                             .stride = i == 0 ? r->stride : 1,
                             .squeezed = in_c / 4,
                             .act = HP_ACT_SILU,
                             .squeeze_act = HP_ACT_SILU,
                             .gate = HP_ACT_SIGMOID};
        hp_build_unit(b);
        hp_build_scope(b, "features.%d.%d.", number, i);
        x = hp_build_mbconv(b, x, &m);
    }
    return x;
}

void hp_net_write_efficientnet(hp_builder *b, const hp_net_args *a) {
    (void)a;
    b->conv_init = HP_INIT_KAIMING_FAN_OUT;
    b->conv_bias_init = b->linear_bias_init = HP_INIT_ZERO;
    hp_build_scope(b, "features.");
    int x = hp_build_conv_norm(b, 0, "0", 32, (hp_window){.k = 3, .stride = 2}, HP_ACT_SILU);
    for (int s = 0; s < (int)(sizeof stages / sizeof *stages); s++) x = stage(b, x, s + 1, &stages[s]);
    hp_build_unit(b);
    hp_build_scope(b, "features.");
    x = hp_build_conv_norm(b, x, "8", 1280, (hp_window){.k = 1}, HP_ACT_SILU);
    hp_build_scope(b, "%s", "");
    x = hp_build_adaptpool(b, x, "avgpool", 1, 1);
    x = hp_build_dropout(b, x, "classifier.0", 0.2F);
    hp_build_linear(b, x, "classifier.1", b->g->classes);
    hp_build_init(b, 0, HP_INIT_UNIFORM, 1 / sqrt(b->g->classes));
}
