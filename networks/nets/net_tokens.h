/* net_tokens.h - what networks of transformers share: self-attention between linear layers, and how files have their
 * weights. */
#ifndef HP_NET_TOKENS_H
#define HP_NET_TOKENS_H

#include "networks/nets/builder.h"

typedef struct hp_tokens {
    const char *qkv; /* what files call queries, keys and values together: followed by "weight" and "bias" */
    const char *out; /* the layer after attention */
    bool joined;     /* torch.nn.MultiheadAttention's in_proj_weight: no dot between */
    bool turned;     /* weights are (I, O) in files: GPT-2's Conv1D */
} hp_tokens;

/* Three linear layers "q", "k", "v", which files have as one, attention and the linear layer after it, which is the last.
 * A bias by relative position is "relative_position_bias_table", (places, heads) in files. */
int hp_tokens_attend(hp_builder *b, int x, hp_tokens t, hp_heads h, hp_init init, double scale);
/* One of a pair of linear layers that ranks may share. */
typedef struct hp_tokens_linear {
    const char *name;
    hp_tp tp;    /* HP_TP_COLUMN or HP_TP_ROW */
    bool turned; /* its weight is (I, O) in files */
} hp_tokens_linear;
int hp_tokens_project(hp_builder *b, int x, hp_tokens_linear t, int out_c, hp_init init, double scale);
/* Files have the last layer's parameter `i` with a 1 before its shape, (1, 1, C) of a vector. */
void hp_tokens_stored_flat(hp_builder *b, int i);

#endif
