/* mbconv.h - inverted residual blocks with squeeze and excitation, used by torchvision's MobileNetV3 and
 * EfficientNet. */
#ifndef HP_MBCONV_H
#define HP_MBCONV_H

#include "networks/nets/net_act.h"

typedef struct hp_mbconv {
    int k, expanded, out_c,
        stride;   /* channels of the depthwise convolution; if equal to the input's: no expansion */
    int squeezed; /* channels of squeeze and excitation; 0: none */
    hp_act act, squeeze_act, gate;
} hp_mbconv;

/* "<name>.0" convolution without bias, padded to keep the map's size (or half of it), "<name>.1" norm,
 * "<name>.2" activation, unless HP_ACT_NONE. */
int hp_build_conv_norm(hp_builder *b, int x, const char *name, int out_c, hp_window w, hp_act act);
/* A unit: modules "<scope>block.N". */
int hp_build_mbconv(hp_builder *b, int x, const hp_mbconv *m);

#endif
