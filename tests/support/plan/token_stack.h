/* token_stack.h - a transformer of equal layers: ids; per layer norm, attention, sum, norm, perceptron, sum;
 * and a head. For laws about what a layer sends and keeps. */
#ifndef HP_TESTS_TOKEN_STACK_H
#define HP_TESTS_TOKEN_STACK_H

#include "networks/graph/graph.h"

typedef struct token_stack {
    int layers, heads, tokens, ids, logits;
    int width, inner;   /* channels outside and inside the perceptron */
    bool causal, drops; /* dropout before each sum, as in GPT-2 and Megatron-LM */
    bool tied;          /* the head is the table of ids, whose rows give the logits */
} token_stack;

/* Each layer is a unit. Names inside it are "layerI." and norm1, q, k, v, attention, out, out.sum, drop1,
 * add1, norm2, up, act, down, down.sum, drop2, add2. */
const hp_graph *token_stack_build(hp_arena *arena, const token_stack *n);

#endif
