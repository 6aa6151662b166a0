/* token_stack.c - see token_stack.h. */
#include "tests/support/plan/token_stack.h"

#include "networks/graph/fuse.h"
#include "networks/nets/net_act.h"
#include "networks/nets/net_tokens.h"

#include <stdio.h>

static int added(hp_builder *b, const token_stack *n, int x, int y, int number) {
    char drop[16], add[16];
    snprintf(drop, sizeof drop, "drop%d", number);
    snprintf(add, sizeof add, "add%d", number);
    return hp_build_add(b, x, n->drops ? hp_build_dropout(b, y, drop, 0.1) : y, add);
}

static int layer(hp_builder *b, const token_stack *n, int x) {
    const hp_tokens_linear up = {"up", HP_TP_COLUMN, false}, down = {"down", HP_TP_ROW, false};
    int y = hp_build_layernorm(b, x, "norm1");
    y = hp_tokens_attend(b, y, (hp_tokens){.qkv = "qkv", .out = "out"},
                         (hp_heads){.heads = n->heads, .causal = n->causal}, HP_INIT_ZERO, 1);
    x = added(b, n, x, y, 1);
    y = hp_tokens_project(b, hp_build_layernorm(b, x, "norm2"), up, n->inner, HP_INIT_ZERO, 1);
    y = hp_tokens_project(b, hp_build_act(b, y, "act", HP_ACT_GELU), down, n->width, HP_INIT_ZERO, 1);
    return added(b, n, x, y, 2);
}

const hp_graph *token_stack_build(hp_arena *arena, const token_stack *n) {
    hp_error err = {HP_OK, ""};
    hp_builder b = hp_builder_start(arena, "stack", n->tokens, 1, n->logits, &err);
    b.g->image_c = b.g->tensor[0].c = 1;
    const int embedded = hp_build_embedding(&b, 0, "ids", n->ids, n->width);
    int x = embedded;
    for (int i = 0; i < n->layers; i++) {
        hp_build_unit(&b);
        hp_build_scope(&b, "layer%d.", i);
        x = layer(&b, n, x);
    }
    hp_build_unit(&b);
    if (n->tied)
        hp_build_project_tied(&b, x, "head", embedded);
    else
        hp_build_project(&b, x, "head", n->logits, true);
    hp_graph *g = NULL;
    if (hp_builder_finish(&b, &g) == HP_OK) return hp_graph_fuse(arena, g);
    fprintf(stderr, "token_stack: %s\n", err.text);
    return NULL;
}
