/* operands.c - the rows of plan/program/program_ops.def as a table, and what follows from it. */
#include "plan/program/operands.h"

#include "networks/graph/summands.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define OPERAND(kind, count, letter)                                                                         \
    { HP_OPERAND_##kind, HP_OPERAND_##count, letter }
#define R(kind, count)   OPERAND(kind, count, 'r')
#define W(kind, count)   OPERAND(kind, count, 'w')
#define RW(kind, count)  OPERAND(kind, count, 'm')
#define BOX(kind, count) OPERAND(kind, count, '.')
#define NO_OPERANDS                                                                                          \
    { HP_OPERAND_NONE }
const hp_operand_info hp_task_operands[HP_TASK_OPS][HP_OPERAND_ROW] = {
#define TASK(id, name, queue, phase, family, ...) [HP_TASK_##id] = {__VA_ARGS__},
#include "plan/program/program_ops.def"
#undef TASK
};

const char *const hp_operand_names[HP_OPERAND_KINDS] = {[HP_OPERAND_NONE] = "",
                                                        [HP_OPERAND_Y] = "y",
                                                        [HP_OPERAND_DY] = "dy",
                                                        [HP_OPERAND_X] = "x",
                                                        [HP_OPERAND_DX] = "dx",
                                                        [HP_OPERAND_SAVE] = "save",
                                                        [HP_OPERAND_SUMS] = "sums",
                                                        [HP_OPERAND_LABELS] = "labels",
                                                        [HP_OPERAND_PACK_FORWARD] = "forward",
                                                        [HP_OPERAND_PACK_BACKWARD] = "backward",
                                                        [HP_OPERAND_DST] = "dst",
                                                        [HP_OPERAND_SRC] = "src",
                                                        [HP_OPERAND_BUFFER] = "buffer",
                                                        [HP_OPERAND_PARAMS] = "params",
                                                        [HP_OPERAND_GRADS] = "grads",
                                                        [HP_OPERAND_RESIDUAL] = "residual",
                                                        [HP_OPERAND_P] = "p",
                                                        [HP_OPERAND_Q] = "q"};

/* --- one operand --- */

/* Operands of a row's entry; an EXTRA one counts as present. */
static int count_of(const hp_graph *g, const hp_task *t, const hp_operand_info *o) {
    return o->count == HP_OPERAND_EACH ? g->layer[t->layer].n_in : 1;
}

const hp_operand_info *hp_operand_at(const hp_graph *g, const hp_task *t, int i, int *k) {
    const hp_operand_info *o = hp_task_operands[t->op];
    for (; o->kind != HP_OPERAND_NONE; o++) {
        const int n = count_of(g, t, o);
        if (i < n) break;
        i -= n;
    }
    *k = i;
    return o;
}

char hp_operand_access(const hp_graph *g, const hp_task *t, int i) {
    int k;
    return hp_operand_at(g, t, i, &k)->access;
}

const char *hp_operand_label(const hp_graph *g, const hp_task *t, int i, char *out, size_t n) {
    int k;
    const hp_operand_info *o = hp_operand_at(g, t, i, &k);
    if (o->count == HP_OPERAND_EACH && g->layer[t->layer].n_in > 1)
        snprintf(out, n, "%s%d", hp_operand_names[o->kind], k);
    else
        snprintf(out, n, "%s", hp_operand_names[o->kind]);
    return out;
}

int32_t hp_operand_buffer(const hp_graph *g, const hp_role *r, const hp_task *t, hp_operand_kind kind,
                          int k) {
    int at = 0;
    for (const hp_operand_info *o = hp_task_operands[t->op]; o->kind != HP_OPERAND_NONE; o++) {
        const int n = count_of(g, t, o);
        if (o->kind == (uint8_t)kind)
            return k < n && at + k < t->n_operand ? r->operand[t->operand + at + k] : -1;
        at += n;
    }
    return -1;
}

/* --- how many --- */

/* Operands that the row asks for, without EXTRA ones. A layer's task must name a layer. */
static int operands_wanted(const hp_graph *g, const hp_task *t) {
    int n = 0;
    for (const hp_operand_info *o = hp_task_operands[t->op]; o->kind != HP_OPERAND_NONE; o++)
        n += o->count == HP_OPERAND_EXTRA ? 0 : count_of(g, t, o);
    return n;
}

bool hp_operand_count_fits(const hp_graph *g, const hp_task *t) {
    int most = 0;
    for (const hp_operand_info *o = hp_task_operands[t->op]; o->kind != HP_OPERAND_NONE; o++)
        most += count_of(g, t, o);
    return t->n_operand >= operands_wanted(g, t) && t->n_operand <= most;
}

/* --- all of them --- */

#define FIELD(kind, field) [HP_OPERAND_##kind] = offsetof(hp_operands, field)
static const size_t fields[HP_OPERAND_KINDS] = {
    FIELD(Y, y),
    FIELD(DY, dy),
    FIELD(X, x),
    FIELD(DX, dx),
    FIELD(SAVE, save),
    FIELD(SUMS, sums),
    FIELD(LABELS, labels),
    FIELD(PACK_FORWARD, pack_forward),
    FIELD(PACK_BACKWARD, pack_backward),
    FIELD(DST, dst),
    FIELD(SRC, src),
    FIELD(BUFFER, buffer),
    FIELD(PARAMS, params),
    FIELD(GRADS, grads),
    FIELD(RESIDUAL, residual),
    FIELD(P, p),
    FIELD(Q, q),
};

static bool has_each(const hp_task *t) {
    const hp_operand_info *o = hp_task_operands[t->op];
    while (o->kind != HP_OPERAND_NONE && o->count != HP_OPERAND_EACH) o++;
    return o->kind != HP_OPERAND_NONE;
}

hp_operands hp_operands_of(const hp_graph *g, const hp_role *r, const hp_task *t) {
    hp_operands all;
    memset(&all, -1, sizeof all);
    all.n_in = has_each(t) ? g->layer[t->layer].n_in : 1;
    int at = 0;
    for (const hp_operand_info *o = hp_task_operands[t->op]; o->kind != HP_OPERAND_NONE; o++) {
        int32_t *field = (int32_t *)(void *)((char *)&all + fields[o->kind]);
        for (int k = count_of(g, t, o); k-- > 0 && at < t->n_operand; at++)
            *field++ = r->operand[t->operand + at];
    }
    return all;
}

/* --- tasks of layers --- */

bool hp_task_gradient(const hp_graph *g, const hp_role *r, const hp_task *t) {
    if (t->op == HP_TASK_BWDW || t->op == HP_TASK_BSTATS) return true;
    const bool along = t->op == HP_TASK_BWD && hp_layer_gradients_along(&g->layer[t->layer]);
    return along && hp_operand_buffer(g, r, t, HP_OPERAND_SUMS, 0) < 0; /* with sums, bstats has done it */
}

static bool is_elementwise(const hp_layer *l) {
    return l->op == HP_ACT || l->op == HP_ADD || l->op == HP_DROPOUT || l->op == HP_BN || l->op == HP_SCALE ||
           l->op == HP_POSITION || (l->op == HP_SUM && hp_summands(l) == 1);
}

int hp_forward_in_place(const hp_layer *l) {
    return hp_layer_adds(l) ? l->n_in - 1 : is_elementwise(l) ? 0 : -1;
}

/* Batch norm with a second input adds it: that input's gradient is the output's. */
int hp_backward_in_place(const hp_layer *l) {
    return !is_elementwise(l) ? -1 : l->op == HP_BN && l->n_in > 1 ? 1 : 0;
}
