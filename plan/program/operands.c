/* operands.c - plan/program/ops.def as tables: which operand plays which part, and what a task does with it. */
#include "plan/program/operands.h"

#include <string.h>

enum { ABSENT = -1 };

/* Positions among the operands of a layer's task. */
typedef struct positions {
    int8_t y, dy, save, sums, x;
    int8_t lists; /* of n_in operands each, from x on: inputs, then their gradients; 0: x alone */
} positions;

static const positions of_layers[HP_TASK_OPS] = {
    [HP_TASK_STATS] = {ABSENT, ABSENT, 2, 0, 1, 0},
    [HP_TASK_FWD] = {0, ABSENT, 1, ABSENT, 2, 1},
    [HP_TASK_BSTATS] = {2, 1, 3, 0, 4, 0},
    [HP_TASK_BWD] = {1, 0, 2, ABSENT, 3, 2},
    [HP_TASK_BWDW] = {ABSENT, 0, ABSENT, ABSENT, 1, 0},
};

static int32_t operand_at(const hp_role *r, const hp_task *t, int position) {
    return position < 0 || position >= t->n_operand ? -1 : r->operand[t->operand + position];
}

hp_operands hp_operands_of(const hp_graph *g, const hp_role *r, const hp_task *t) {
    const positions p = of_layers[t->op];
    const int n = p.lists ? g->layer[t->layer].n_in : 1, behind = p.x + p.lists * n;
    hp_operands o = {.y = operand_at(r, t, p.y),
                     .dy = operand_at(r, t, p.dy),
                     .save = operand_at(r, t, p.save),
                     .sums = operand_at(r, t, p.lists ? behind : p.sums),
                     .n_in = n};
    for (int k = 0; k < n; k++) {
        o.x[k] = operand_at(r, t, p.x + k);
        o.dx[k] = operand_at(r, t, p.lists > 1 ? p.x + n + k : ABSENT);
    }
    return o;
}

/* Of the tasks whose operands are as many as letters. */
static const char *const accesses[HP_TASK_OPS] = {
    [HP_TASK_LOAD] = "ww", [HP_TASK_PACK] = "ww",      [HP_TASK_STATS] = "wr.", [HP_TASK_LOSS] = "wrr",
    [HP_TASK_BWDW] = "rr", [HP_TASK_BSTATS] = "wrrrr", [HP_TASK_ACCUM] = "mr",  [HP_TASK_COPY] = "mr",
    [HP_TASK_ZERO] = "w",  [HP_TASK_SEND] = "r",       [HP_TASK_RECV] = "w",    [HP_TASK_ALLREDUCE] = "m",
    [HP_TASK_STORE] = "r", [HP_TASK_FINITE] = "",
};

char hp_operand_access(const hp_graph *g, const hp_task *t, int i) {
    if (accesses[t->op]) return accesses[t->op][i];
    const int n = t->layer >= 0 ? g->layer[t->layer].n_in : 0;
    if (t->op == HP_TASK_FWD) return i < 2 ? 'w' : 'r';
    return i >= 3 + n && i < 3 + 2 * n ? 'w' : 'r'; /* bwd */
}

bool hp_task_gradient(const hp_graph *g, const hp_task *t) {
    if (t->op == HP_TASK_BWDW || t->op == HP_TASK_BSTATS) return true;
    const hp_layer *l = t->op == HP_TASK_BWD ? &g->layer[t->layer] : NULL;
    return l && l->op == HP_BN && t->n_operand == 3 + 2 * l->n_in; /* with sums, bstats has done it */
}

/* What the optional operand behind the others is for. */
static int optional_operands(const hp_graph *g, const hp_task *t) {
    return (t->op == HP_TASK_FWD || t->op == HP_TASK_BWD) && g->layer[t->layer].op == HP_BN;
}

bool hp_operand_count_fits(const hp_graph *g, const hp_task *t) {
    int want = 0;
    if (accesses[t->op]) want = (int)strlen(accesses[t->op]);
    if (t->op == HP_TASK_FWD) want = 2 + g->layer[t->layer].n_in;
    if (t->op == HP_TASK_BWD) want = 3 + 2 * g->layer[t->layer].n_in;
    return t->n_operand >= want && t->n_operand <= want + optional_operands(g, t);
}
