/* nets.h - the built-in network families: one file each; the table in net_names.c has a row per name. */
#ifndef HP_NETS_H
#define HP_NETS_H

#include "networks/nets/builder.h"

/* Arguments encoded in a name; each writer reads those it needs. */
typedef struct hp_net_args {
    int depth;           /* residual networks: number of layers with weights */
    int layers, filters; /* amoebanetd:L,F; unet:F; mobilenetv3: blocks */
    bool narrow_first;   /* resnet-v2: kernels 1-3-1 instead of 3-3-1 */
    /* transformers: layers (swin: in the third stage), channels (in the first stage), heads (in the first
     * stage), channels of a block's hidden perceptron layer, pixels per patch; gpt: tokens, ids */
    int hidden, heads, mlp, patch, seq, vocab;
} hp_net_args;

/* Writes a network of the family into a freshly started builder. */
typedef void hp_net_writer(hp_builder *b, const hp_net_args *a);

hp_net_writer hp_net_write_cnn;
hp_net_writer hp_net_write_resnet;   /* depth 18, 34, 50, 101, 152 */
hp_net_writer hp_net_write_cifar_v1; /* depth 6n+2 */
hp_net_writer hp_net_write_cifar_v2; /* depth 9n+2 */
hp_net_writer hp_net_write_vgg;
hp_net_writer hp_net_write_mobilenetv2;
hp_net_writer hp_net_write_mobilenetv3; /* layers: 15 is large, 11 small */
hp_net_writer hp_net_write_efficientnet;
hp_net_writer hp_net_write_densenet121;
hp_net_writer hp_net_write_amoebanetd; /* layers divisible by 3, filters >= 8 */
hp_net_writer hp_net_write_unet;
hp_net_writer hp_net_write_attention_unet;
hp_net_writer hp_net_write_convnext; /* layers of the third stage, channels of the first */
hp_net_writer hp_net_write_vit;
hp_net_writer hp_net_write_swin;
hp_net_writer hp_net_write_gpt; /* seq > 0: the image is (seq, 1, 1) ids; the classes are the ids */

/* --- net_names.c: finding a name's row and arguments --- */

typedef struct hp_net_row {
    const char *name; /* with `parse`: the prefix of the name */
    hp_net_args args;
    int default_classes;
    hp_net_writer *write;
    /* Parses the rest of the name into args. Errors: HP_EUSAGE. */
    hp_status (*parse)(const char *net, const char *rest, hp_net_args *args, hp_error *err);
} hp_net_row;

/* The built-in names, for example of a family with numbers "gpt" or "resnet-v1-"; NULL after the last. */
const char *hp_net_name(int i);

/* Looks up the row of a name and parses its arguments. Errors: HP_EUSAGE; HP_EUNAVAIL: documented, but not in
 * this version. */
hp_status hp_net_parse(const char *net, const hp_net_row **row, hp_net_args *args, hp_error *err);

#endif
