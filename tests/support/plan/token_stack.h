/* token_stack.h - a transformer of equal layers: ids, then of each layer norm, attention, sum, norm, perceptron, sum, and a
 * head; for laws of what a layer sends and keeps. */
#ifndef HP_TESTS_TOKEN_STACK_H
#define HP_TESTS_TOKEN_STACK_H

#include "networks/graph/graph.h"

typedef struct token_stack {
    int layers, heads, tokens, ids, logits;
    int width, inner;   /* channels outside and inside of the perceptron */
    bool causal, drops; /* dropout before each sum, as GPT-2 and Megatron-LM have it */
    bool tied;          /* the head is the table of ids, whose rows are the logits */
} token_stack;

/* Names of a layer's layers are "layerI." and norm1, q, k, v, attention, out, out.sum, drop1, add1, norm2, up, act, down,
 * down.sum, drop2, add2. Each is a unit. */
const hp_graph *token_stack_build(hp_arena *arena, const token_stack *n);

#endif
