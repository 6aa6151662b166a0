/* tokens.h - what networks of transformers share: self-attention between linear layers, and how files have their
 * weights. */
#ifndef HP_NETS_TOKENS_H
#define HP_NETS_TOKENS_H

#include "plan/nets/builder.h"

typedef struct hp_tokens {
    const char *qkv; /* what files call queries, keys and values together: followed by "weight" and "bias" */
    const char *out; /* the layer after attention */
    bool joined;     /* torch.nn.MultiheadAttention's in_proj_weight: no dot between */
    bool turned;     /* weights are (I, O) in files: GPT-2's Conv1D */
} hp_tokens;

/* Three linear layers "q", "k", "v", which files have as one, attention and the linear layer after it, which is the last.
 * A bias by relative position is "relative_position_bias_table", (places, heads) in files. */
int hp_tokens_attend(hp_builder *b, int x, hp_tokens t, hp_heads h, hp_init init, double scale);
/* A linear layer whose weight files have (I, O), if so. */
int hp_tokens_project(hp_builder *b, int x, const char *name, int out_c, bool turned, hp_init init,
                      double scale);
/* Files have the last layer's parameter `i` with a 1 before its shape, (1, 1, C) of a vector. */
void hp_tokens_stored_flat(hp_builder *b, int i);

#endif
