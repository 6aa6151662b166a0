/* check_deployed.c - features that only deployed graphs have (rows of boxes, outputs, constants in packs),
 * and features they must not have, because inference devices do not support training.
 *
 * Proves, after the boxes of buffers: kernels work on whole channels and existing rows of one sample; the
 * whole network output is written; a pack only ever holds its kernel's constants (check/check_memory.c keeps
 * other tasks away from its bytes). */
#include "plan/check/check_inside.h"

typedef struct checker {
    hp_check_at at; /* the task; -1: the role */
    const hp_program *p;
    const hp_graph *g;
    const hp_role *r;
    const hp_task *t;
} checker;

#define REFUSED(code, ...) hp_check_refuse(&c->at, code, __VA_ARGS__)

/* --- what a task may be --- */

/* Rules for inference tasks: allowed flags, number of leading operands that the rows apply to, and whether
 * the task belongs to a micro-batch. */
typedef struct task_rule {
    bool known;
    uint8_t flags;
    int8_t boxes;
    bool micro;
} task_rule;

static const task_rule rules[HP_TASK_OPS] = {
    [HP_TASK_LOAD] = {true, 0, 1, true},
    [HP_TASK_FWD] = {true, HP_FLAG_EVAL, 1, true},
    [HP_TASK_LOSS] = {true, HP_FLAG_EVAL, 0, true},
    [HP_TASK_STORE] = {true, 0, 1, true},
    [HP_TASK_COPY] = {true, 0, 2, true},
    [HP_TASK_SEND] = {true, 0, 0, true},
    [HP_TASK_RECV] = {true, 0, 0, true},
    [HP_TASK_ALLREDUCE] = {true, HP_FLAG_METRIC, 0, false},
};

static int32_t operand(const checker *c, int i) {
    return i < c->t->n_operand ? c->r->operand[c->t->operand + i] : -1;
}

static const hp_buffer *boxed(const checker *c, int i) {
    const int32_t id = operand(c, i);
    return id >= 0 && hp_buffer_has_box(&c->r->buffer[id]) ? &c->r->buffer[id] : NULL;
}

static bool has_rows(const hp_task *t) {
    return hp_task_rows(t).lo || hp_task_rows(t).hi;
}

/* The rows must lie in every box they apply to. Their address is that of the first row, so they belong to one
 * sample. */
static hp_status check_rows(const checker *c) {
    const hp_task *t = c->t;
    const hp_rows rows = hp_task_rows(t);
    const int boxes = rules[t->op].boxes;
    if (!has_rows(t)) return HP_OK;
    for (int i = 0; i < boxes; i++) {
        const hp_buffer *b = boxed(c, i);
        if (!b || rows.hi <= rows.lo || rows.lo < b->box.lo[HP_AXIS_H] || rows.hi > b->box.hi[HP_AXIS_H])
            return REFUSED("E-BOX", "rows %d..%d are not in buffer %d", rows.lo, rows.hi, operand(c, i));
        if (t->op != HP_TASK_COPY && hp_box_len(&b->box, HP_AXIS_N) != 1)
            return REFUSED("E-BOX", "some rows of several samples");
    }
    return HP_OK;
}

/* Rejects operands that only training writes: saved values, a loss's gradient, sums of statistics. */
static hp_status check_operands(const checker *c) {
    const hp_task *t = c->t;
    const bool messages = t->op == HP_TASK_SEND || t->op == HP_TASK_RECV;
    const bool kept = (t->op == HP_TASK_FWD && operand(c, 1) >= 0) ||
                      (t->op == HP_TASK_LOSS && operand(c, 0) >= 0) ||
                      (t->op == HP_TASK_FWD && t->n_operand > 2 + c->g->layer[t->layer].n_in);
    if (kept) return REFUSED("E-TYPE", "an operand for a backward pass");
    if (messages && !boxed(c, 0)) return REFUSED("E-TYPE", "a message that is no part of a tensor");
    for (int i = 0; i < t->n_operand; i++)
        if (boxed(c, i) && boxed(c, i)->micro != t->micro)
            return REFUSED("E-RANGE", "buffer %d is of micro-batch %d", operand(c, i), boxed(c, i)->micro);
    return HP_OK;
}

static hp_status check_task(const checker *c) {
    const hp_task *t = c->t;
    const task_rule *r = &rules[t->op];
    if (!r->known) return REFUSED("E-TYPE", "a %s has no place in inference", hp_task_infos[t->op].name);
    if (t->flags != r->flags) return REFUSED("E-TYPE", "flags %d, inference has %d", t->flags, r->flags);
    if (r->micro && t->micro < 0) return REFUSED("E-RANGE", "of no micro-batch");
    HP_TRY(check_rows(c));
    return check_operands(c);
}

/* --- what a role has --- */

static hp_status check_kinds(const checker *c) {
    static const bool known[HP_BUF_KINDS] = {
        [HP_BUF_PACK] = true,  [HP_BUF_TENSOR] = true, [HP_BUF_LABELS] = true, [HP_BUF_MESSAGE] = true,
        [HP_BUF_SUMS] = false, [HP_BUF_CODE] = false,  [HP_BUF_CARRY] = false};
    for (int i = HP_BUF_FIXED; i < c->r->n_buffer; i++) {
        const hp_buffer *b = &c->r->buffer[i];
        if (!known[b->kind]) return REFUSED("E-TYPE", "buffer %d is of a kind that only training has", i);
        if (!hp_buffer_has_box(b) || hp_box_empty(&b->box)) continue;
        if (hp_box_len(&b->box, HP_AXIS_C) != c->g->tensor[b->what].c)
            return REFUSED("E-BOX", "buffer %d holds some channels of tensor %d", i, b->what);
    }
    return HP_OK;
}

static hp_status check_constants(const checker *c) {
    for (int i = 0; i < c->g->n_param; i++)
        if (c->r->place[i].here)
            return REFUSED("E-RANGE", "parameter %s has a place, constants lie in packs",
                           c->g->param[i].name);
    for (int l = 0; l < c->g->n_layer; l++)
        if (c->r->pack_backward[l] >= 0)
            return REFUSED("E-RANGE", "layer %s has a pack for a backward pass", c->g->layer[l].name);
    return HP_OK;
}

/* --- what comes out --- */

/* The ranks together store the whole output of every micro-batch. */
static hp_status check_outputs(hp_arena *arena, const hp_program *p, const hp_graph *g, hp_error *err) {
    const hp_box whole = hp_box_whole(g, g->layer[g->n_layer - 1].out, p->micro_batch);
    hp_region *out = HP_NEW(arena, hp_region, p->micro);
    for (int role = 0; role < p->n_role; role++)
        for (int k = 0; k < p->role[role].n_task; k++) {
            const hp_role *r = &p->role[role];
            const hp_task *t = &r->task[k];
            const int32_t id = t->op == HP_TASK_STORE ? r->operand[t->operand] : -1;
            if (id < 0 || !hp_buffer_has_box(&r->buffer[id])) continue;
            const hp_box rows = hp_task_box(t, &r->buffer[id].box);
            if (!hp_region_add(arena, &out[t->micro], &rows, &whole))
                return hp_fail(err, HP_EPLAN, "E-RANGE: rank %d puts out too many parts", role);
        }
    for (int m = 0; m < p->micro; m++)
        if (!hp_region_covers(&out[m], &whole))
            return hp_fail(err, HP_EPLAN, "E-LOST: no rank puts out some of the output of micro-batch %d", m);
    return HP_OK;
}

/* --- all of it --- */

static hp_status check_role(checker *c) {
    HP_TRY(check_kinds(c));
    HP_TRY(check_constants(c));
    for (c->at.task = 0; c->at.task < c->r->n_task; c->at.task++) {
        c->t = &c->r->task[c->at.task];
        HP_TRY(check_task(c));
    }
    return HP_OK;
}

/* Tasks that only inference devices know. */
static hp_status check_other(checker *c) {
    for (c->at.task = 0; c->at.task < c->r->n_task; c->at.task++) {
        const hp_task *t = &c->r->task[c->at.task];
        if (t->op == HP_TASK_STORE || has_rows(t))
            return REFUSED("E-TYPE", "%s in a network that is not deployed",
                           has_rows(t) ? "rows" : "an output");
    }
    return HP_OK;
}

/* Does the program compute? Programs of messages alone (benchmarks), or between dummies, contain no
 * network. */
static bool computes(const hp_program *p) {
    for (int role = 0; role < p->n_role; role++)
        for (int t = 0; t < p->role[role].n_task; t++)
            if (p->role[role].task[t].queue == 0 && p->role[role].task[t].op != HP_TASK_DUMMY) return true;
    return false;
}

hp_status hp_check_deployed(hp_arena *arena, const hp_program *p, const hp_graph *g, hp_error *err) {
    if (g->deployed && p->mode != (int)HP_MODE_INFER)
        return hp_fail(err, HP_EPLAN, "E-TYPE: all ranks: a deployed network is not trained");
    if (!computes(p)) return HP_OK;
    for (int role = 0; role < p->n_role; role++) {
        checker c = {.at = {p, g, role, -1, err}, .p = p, .g = g, .r = &p->role[role]};
        HP_TRY((g->deployed ? check_role : check_other)(&c));
    }
    return g->deployed ? check_outputs(arena, p, g, err) : HP_OK;
}
