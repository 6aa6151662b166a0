/* nets.h - the built-in network families: one file each, one row per name in nets.c. */
#ifndef HP_NETS_NETS_H
#define HP_NETS_NETS_H

#include "plan/nets/builder.h"

/* Each writes one network of its family into a builder that was just started. */
typedef void hp_net_writer(hp_builder *b, int variant);

hp_net_writer hp_net_write_cnn;
hp_net_writer hp_net_write_resnet;   /* variant: 18, 34, 50, 101, 152 */
hp_net_writer hp_net_write_cifar_v1; /* variant: depth 6n+2 */
hp_net_writer hp_net_write_cifar_v2; /* variant: depth 9n+2 */
hp_net_writer hp_net_write_vgg19;
hp_net_writer hp_net_write_mobilenetv2;
hp_net_writer hp_net_write_densenet121;

#endif
