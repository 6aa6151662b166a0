/* sim_memory_infer.c - memory of an eager framework for inference: counts tensors task by task, including the
 * operations that a plan has fused. */
#include "sim/memory/eager.h"

#include "networks/graph/layer.h"
#include "plan/program/operands.h"
#include "sim/memory/eager_store.h"

typedef struct infer {
    const hp_graph *g;
    const hp_role *r;
    hp_eager_store store;
    bool *lives; /* per buffer */
    int64_t now, peak;
} infer;

static bool is_tensor(const hp_buffer *b) {
    return b->kind == HP_BUF_TENSOR || b->kind == HP_BUF_MESSAGE || b->kind == HP_BUF_CODE ||
           b->kind == HP_BUF_LABELS;
}

static void add(infer *w, int64_t bytes) {
    w->now += bytes;
    if (w->now > w->peak) w->peak = w->now;
}

static void let_go(infer *w, int buffer) {
    if (w->lives[buffer]) w->now -= w->r->buffer[buffer].bytes;
    w->lives[buffer] = false;
}

static bool ends(const infer *w, int buffer, int task) {
    return buffer >= 0 && w->r->buffer[buffer].last <= task;
}

/* Number of operations fused into a layer after its own in a deployed graph. */
static int fused(const infer *w, const hp_layer *l) {
    if (w->store.f->kernels.fuses) return 0;
    const bool adds = hp_layer_is_matrix(l) && hp_layer_adds(l);
    return (l->deployed.n_norm > 0) + adds + (l->act && l->op != HP_ACT);
}

/* Each operation writes a separate tensor and then frees its input, except the summand that is added at the
 * end. An input that the plan overwrites stays until the end. */
static void forward(infer *w, int task) {
    const hp_task *t = &w->r->task[task];
    const int y = w->r->operand[t->operand], x = hp_operand_buffer(w->g, w->r, t, HP_OPERAND_X, 0);
    const int64_t bytes = w->r->buffer[y].bytes;
    const hp_eager_scores s = hp_eager_scores_of(&w->store, t->layer, &w->r->buffer[y].box);
    add(w, (int64_t)(s.kept + s.forward)); /* softmax, then its product with the values */
    w->now -= (int64_t)s.forward;
    add(w, bytes);
    w->now -= (int64_t)s.kept;
    const int64_t workspace =
        x < 0 ? 0 : (int64_t)hp_eager_workspace(&w->store, t->layer, &w->r->buffer[x].box, NULL);
    add(w, workspace);
    w->now -= workspace;
    if (x != y && ends(w, x, task)) let_go(w, x);
    for (int i = fused(w, &w->g->layer[t->layer]); i > 0; i--) {
        add(w, bytes);
        w->now -= bytes;
    }
    let_go(w, y);
    w->lives[y] = true;
}

static void step(infer *w, int task) {
    const hp_task *t = &w->r->task[task];
    const int32_t *operand = &w->r->operand[t->operand];
    if (t->op == HP_TASK_FWD && is_tensor(&w->r->buffer[operand[0]])) forward(w, task);
    for (int k = 0; k < t->n_operand; k++) {
        const hp_buffer *b = operand[k] < 0 ? NULL : &w->r->buffer[operand[k]];
        if (!b || !is_tensor(b) || w->lives[operand[k]] || b->first < task) continue;
        w->lives[operand[k]] = true;
        add(w, b->bytes);
    }
    for (int k = 0; k < t->n_operand; k++)
        if (ends(w, operand[k], task)) let_go(w, operand[k]);
}

int64_t hp_eager_infer_bytes(const hp_program *p, const hp_graph *g, const hp_framework *f, int role) {
    const hp_role *r = &p->role[role];
    hp_arena *arena = hp_arena_new();
    infer w = {.g = g,
               .r = r,
               .store = hp_eager_store_of(arena, g, f, (hp_dtype)p->dtype),
               .lives = HP_NEW(arena, bool, r->n_buffer)};
    for (int task = 0; task < r->n_task; task++) step(&w, task);
    hp_arena_free(arena);
    return w.peak;
}
