/* net_tokens.h - parts shared by transformer networks: self-attention between linear layers, and how files
 * store their weights. */
#ifndef HP_NET_TOKENS_H
#define HP_NET_TOKENS_H

#include "networks/nets/builder.h"

typedef struct hp_tokens {
    const char *qkv; /* file prefix of queries, keys and values together, followed by "weight" and "bias" */
    const char *out; /* the layer after attention */
    bool joined;     /* torch.nn.MultiheadAttention's in_proj_weight: no dot between */
    bool turned;     /* files store weights as (I, O): GPT-2's Conv1D */
} hp_tokens;

/* Appends three linear layers "q", "k", "v", which files store as one, attention and a final linear layer.
 * Files name a bias by relative position "relative_position_bias_table", (places, heads). */
int hp_tokens_attend(hp_builder *b, int x, hp_tokens t, hp_heads h, hp_init init, double scale);
/* One of a pair of linear layers that ranks may split. */
typedef struct hp_tokens_linear {
    const char *name;
    hp_tp tp;    /* HP_TP_COLUMN or HP_TP_ROW */
    bool turned; /* files store its weight as (I, O) */
} hp_tokens_linear;
int hp_tokens_project(hp_builder *b, int x, hp_tokens_linear t, int out_c, hp_init init, double scale);
/* Files store parameter `i` of the last layer with a leading dimension 1; a vector is (1, 1, C). */
void hp_tokens_stored_flat(hp_builder *b, int i);

#endif
