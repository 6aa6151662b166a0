/* append_layers.h - layers that no network of hplan's own has, appended as networks/nets/builder.h does. */
#ifndef HP_TESTS_APPEND_LAYERS_H
#define HP_TESTS_APPEND_LAYERS_H

#include "networks/nets/builder.h"

/* Any convolution, transposed convolution or pooling with the attributes of `like`: op, window, strides,
 * paddings, dilations, groups (stride, dilation, groups: 0 means 1) and, where the padding is not symmetric,
 * out_h and out_w; with a bias if like->n_param is 2. out_c: ignored for pools. */
int append_conv_as(hp_builder *b, int x, const char *name, int out_c, const hp_layer *like);
int append_pool_as(hp_builder *b, int x, const char *name, const hp_layer *like);
int append_scale(hp_builder *b, int x, const char *name, bool bias);
/* Slopes of 1/4, as torch.nn.PReLU begins with: one for all channels, or one each. */
int append_prelu(hp_builder *b, int x, const char *name, bool one);
int append_softmax(hp_builder *b, int x, const char *name);
int append_rmsnorm(hp_builder *b, int x, const char *name);
/* The whole map's statistics, per sample and group of channels. */
int append_groupnorm(hp_builder *b, int x, const char *name, int groups);
int append_reduce(hp_builder *b, int x, const char *name, hp_channel_reduction reduction);

#endif
