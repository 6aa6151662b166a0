/* random_tokens.h - random small transformers of images and text, and networks of layers that move and
 * normalise maps: what the laws are tried on besides random_net's. */
#ifndef HP_TESTS_RANDOM_TOKENS_H
#define HP_TESTS_RANDOM_TOKENS_H

#include "tests/support/plan/random_net.h"

/* Attention of every kind, norms, products on channels, tables, class tokens, crops, merged pixels. */
int random_token_block(hp_builder *b, dice *d, int x);
/* One in two reads ids; one in two of these has a head tied to its table. */
hp_graph *random_tokens(hp_arena *arena, uint64_t seed, int n_block);
/* One of random_net's, or one in three times of these. */
hp_graph *random_trained(hp_arena *arena, uint64_t seed, int n_block);
/* Gathers of every kind, means and maxima of channels, group norms, mixed with random_net's blocks. */
hp_graph *random_maps(hp_arena *arena, uint64_t seed, int n_block);
/* One of these, or of random_tokens's. */
hp_graph *random_layers(hp_arena *arena, uint64_t seed, int n_block);

#endif
