/* eager.c - walks a role's tasks in order and counts what autograd would hold at each. */
#include "sim/memory/eager.h"

#include "networks/graph/optimizer.h"
#include "plan/program/operands.h"
#include "sim/engine/sim.h"
#include "sim/memory/eager_store.h"

#include <string.h>

/* A CUDA context with its kernels: over 1000 MB before CUDA 11.7, about 300 MB with lazy loading since
 * (pytorch/pytorch issue 107667). The published eager runs used the older frameworks. */
enum { CONTEXT_MB = 300, EAGER_CONTEXT_MB = 1000 };

int64_t hp_context_bytes(const hp_machine *m, bool eager) {
    if (m->share_cpu || m->device.is_cpu) return 0;
    return (eager ? EAGER_CONTEXT_MB : CONTEXT_MB) * INT64_C(1000000);
}

int64_t hp_framework_context_bytes(const hp_machine *m, const hp_framework *f) {
    const int64_t usual = hp_context_bytes(m, true);
    return usual && f && f->memory.context_bytes > 0 ? (int64_t)f->memory.context_bytes : usual;
}

const hp_eager_rule hp_eager_rules[HP_LAYER_OPS] = {
    [HP_CONV] = {true, 0},      [HP_CONVT] = {true, 0},     [HP_LINEAR] = {true, 0},
    [HP_BN] = {true, 0},        [HP_MAXPOOL] = {true, 8},   [HP_AVGPOOL] = {true, 0},
    [HP_ADAPTPOOL] = {true, 0}, [HP_DROPOUT] = {false, 1},  [HP_LAYERNORM] = {true, 0},
    [HP_RMSNORM] = {true, 0},   [HP_EMBEDDING] = {true, 0}, [HP_ATTENTION] = {true, 0},
    [HP_GROUPNORM] = {true, 0}, [HP_REDUCE] = {true, 0}};

bool hp_eager_keeps(const hp_layer *l, int k) {
    return (k == 0 && hp_eager_rules[l->op].input) || hp_layer_data_reads_x(l, k);
}

bool hp_eager_keeps_output(const hp_layer *l) {
    return l->op == HP_SOFTMAX || (hp_layer_has_act(l) && !hp_act_reads_x(l));
}

/* The layer that reads a tensor if it is a concatenation, otherwise the tensor itself; this distinguishes
 * modules. */
static int joined(const hp_graph *g, int tensor) {
    for (int l = g->tensor[tensor].producer + 1; l < g->n_layer; l++)
        for (int k = 0; k < g->layer[l].n_in; k++)
            if (g->layer[l].in[k] == tensor) return g->layer[l].op == HP_CONCAT ? g->n_tensor + l : tensor;
    return tensor;
}

int hp_eager_activations(const hp_graph *g, int layer) {
    int last = -1, modules = 0;
    if (g->layer[layer].op != HP_ACT) return 1;
    for (int l = layer + 1; l < g->n_layer; l++) {
        const hp_layer *reader = &g->layer[l];
        if (reader->op != HP_CONV || reader->in[0] != g->layer[layer].out) continue;
        const int module = joined(g, reader->out);
        modules += module != last;
        last = module;
    }
    return modules > 1 ? modules : 1;
}

/* A box of a tensor that is kept for the backward pass. */
typedef struct kept {
    hp_box box;
    int32_t next;  /* next box of the same tensor; -1: none */
    int32_t width; /* bytes per element; casts are separate tensors */
} kept;

/* A micro-batch on one of the role's stages. */
typedef struct frame {
    int32_t *first; /* per tensor: its first kept box; -1: none */
    int64_t *until; /* per layer: bytes released by its backward pass */
    bool *again;    /* per layer: runs forward again */
    int32_t held;   /* layers before this one still hold their kept boxes */
    int32_t last;   /* last task of its backward pass; -1: none */
    int32_t rerun;  /* first task that recomputes a layer; INT32_MAX: none */
} frame;

typedef struct walk {
    const hp_program *p;
    const hp_graph *g;
    const hp_role *r;
    hp_eager_store store;
    hp_arena *arena;
    frame *frame; /* [chunk * micro + micro-batch] */
    kept *kept;
    int n_kept, capacity;
    const int32_t *copies; /* per layer: activations that a framework computes */
    int64_t now, peak;
    int64_t *born, *dead; /* per task: bytes allocated with it, bytes freed after it */
} walk;

static frame *frame_of(const walk *w, const hp_task *t) {
    return t->micro < 0 ? NULL : &w->frame[t->chunk * w->p->micro + t->micro];
}

static const hp_buffer *operand(const walk *w, const hp_task *t, int k) {
    const int32_t b = w->r->operand[t->operand + k];
    return b < 0 ? NULL : &w->r->buffer[b];
}

static bool is_backward(const hp_task *t) {
    return t->op == HP_TASK_BWD || t->op == HP_TASK_BWDW || t->op == HP_TASK_BSTATS;
}

/* --- what is kept --- */

static void hold(walk *w, frame *f, int layer, int64_t bytes) {
    const int64_t block = hp_framework_block(w->store.f, bytes);
    f->until[layer] += block;
    if (f->held <= layer) f->held = layer + 1;
    w->now += block;
}

/* Keeps a tensor's box until the backward pass of the first layer that needs it; layers come in order. */
static void keep(walk *w, frame *f, int tensor, const hp_box *box, int width, int layer) {
    for (int32_t k = f->first[tensor]; w->kept && k >= 0; k = w->kept[k].next)
        if (w->kept[k].width == width && hp_box_equal(&w->kept[k].box, box)) return;
    HP_ROOM(w->arena, w->kept, w->n_kept, w->capacity);
    w->kept[w->n_kept] = (kept){*box, f->first[tensor], width};
    f->first[tensor] = w->n_kept++;
    hold(w, f, layer, hp_box_elems(box) * width);
}

/* Layers after `layer` have finished their backward pass. */
static void let_go(walk *w, frame *f, int layer) {
    while (f->held > layer + 1) {
        w->now -= f->until[--f->held];
        f->until[f->held] = 0;
    }
}

/* Did a pass leave the buffer for recomputation? Then the program itself keeps it. */
static bool left_behind(const frame *f, const hp_buffer *b) {
    return b->first < f->rerun && b->last >= f->rerun;
}

static void forward(walk *w, frame *f, const hp_task *t) {
    const hp_layer *l = &w->g->layer[t->layer];
    const hp_buffer *y = operand(w, t, 0);
    HP_ASSERT(y);
    if (f->again[t->layer] && !(t->flags & HP_FLAG_RECOMPUTE)) return;
    for (int k = 0; k < l->n_in; k++) {
        const hp_buffer *x = operand(w, t, 2 + k);
        if (x && hp_eager_keeps(l, k) && !left_behind(f, x))
            keep(w, f, l->in[k], &x->box, hp_eager_width(&w->store, t->layer, k), t->layer);
    }
    if (hp_eager_keeps_output(l)) keep(w, f, l->out, &y->box, w->store.width[l->out], t->layer);
    const double masks = hp_eager_mask(&w->store, t->layer, &y->box);
    hold(w, f, t->layer, hp_eager_rules[l->op].extra_bytes * hp_box_elems(&y->box) + (int64_t)masks);
    hold(w, f, t->layer, (int64_t)hp_eager_scores_of(&w->store, t->layer, &y->box).kept);
    hold(w, f, t->layer, (w->copies[t->layer] - 1) * y->bytes);
}

/* Variables of the training loop: its inputs and results. */
static void stays(walk *w, frame *f, const hp_buffer *b) {
    if (b && b->kind == HP_BUF_TENSOR && !left_behind(f, b))
        keep(w, f, b->what, &b->box, w->store.width[b->what], 0);
}

/* Does it send activations to another stage, or receive them in a separate buffer per micro-batch? */
static bool crosses_forward(const walk *w, int task) {
    const hp_task *t = &w->r->task[task];
    return (t->op == HP_TASK_SEND || t->op == HP_TASK_RECV) && t->micro >= 0 &&
           !(w->r->queue[t->queue].channel & HP_CHANNEL_GRADIENTS) &&
           hp_sim_wait_of(w->p, w->r, task) == HP_SIM_STAGE;
}

static void boundary(walk *w, frame *f, const hp_task *t) {
    const hp_buffer *b = operand(w, t, 0);
    const int layer = w->g->tensor[b->what].producer;
    if (b->kind != HP_BUF_TENSOR)
        hold(w, f, layer, b->bytes); /* a part: the assembled whole is kept in addition */
    else if (!left_behind(f, b))
        keep(w, f, b->what, &b->box, w->store.width[b->what], layer);
}

/* Out-of-place: the gradient of the input in addition to that of the output. */
static int64_t second_gradient(const walk *w, const hp_task *t) {
    const hp_buffer *dy = operand(w, t, 0);
    if (t->op != HP_TASK_BWD) return 0;
    for (int i = 3; i < t->n_operand; i++)
        if (operand(w, t, i) == dy) return dy->bytes;
    return 0;
}

/* Softmax's logarithm, its gradient and the logits' gradient, in float32; `dx` is counted elsewhere. */
static int64_t of_loss(const walk *w, const hp_task *t) {
    const hp_buffer *dx = operand(w, t, 0), *x = operand(w, t, 1);
    return dx ? 3 * hp_dtype_bytes(HP_F32) * hp_box_elems(&x->box) - dx->bytes : 0;
}

/* Workspace of a convolution's task: for its input and output, or their gradients. */
static double workspace(const walk *w, const hp_task *t) {
    const bool forward = t->op == HP_TASK_FWD, weights = t->op == HP_TASK_BWDW;
    if (!forward && !weights && t->op != HP_TASK_BWD) return 0;
    const hp_layer *l = &w->g->layer[t->layer];
    const hp_buffer *y = operand(w, t, 0), *x = operand(w, t, weights ? 1 : forward ? 2 : 3 + l->n_in);
    return x ? hp_eager_workspace(&w->store, t->layer, &x->box, &y->box) : 0;
}

/* Temporary bytes while the task runs. */
static int64_t passing(const walk *w, const hp_task *t) {
    const hp_buffer *y = operand(w, t, 0);
    if (t->op == HP_TASK_LOSS) return of_loss(w, t);
    if (!hp_task_is_layer(t)) return 0;
    const hp_eager_scores s = hp_eager_scores_of(&w->store, t->layer, &y->box);
    const double scores = t->op == HP_TASK_FWD ? s.forward : t->op == HP_TASK_BWD ? s.backward : 0;
    return (int64_t)(scores + workspace(w, t)) + second_gradient(w, t);
}

static void step(walk *w, int task) {
    const hp_task *t = &w->r->task[task];
    frame *f = frame_of(w, t);
    w->now += w->born[task];
    if (f && t->op == HP_TASK_LOAD) stays(w, f, operand(w, t, 0));
    if (f && t->op == HP_TASK_LOSS) stays(w, f, operand(w, t, 1));
    if (f && t->op == HP_TASK_FWD) forward(w, f, t);
    if (f && crosses_forward(w, task)) boundary(w, f, t);
    if (f && is_backward(t)) let_go(w, f, t->layer);
    const int64_t here = w->now + (f ? passing(w, t) : 0);
    if (here > w->peak) w->peak = here;
    w->now -= w->dead[task];
    if (f && f->last == task) let_go(w, f, -1);
}

/* --- before the walk --- */

static void find_frames(walk *w) {
    const int n = w->r->n_slot * w->p->micro;
    w->frame = HP_NEW(w->arena, frame, n);
    for (int i = 0; i < n; i++) {
        frame *f = &w->frame[i];
        f->first = HP_NEW(w->arena, int32_t, w->g->n_tensor);
        f->until = HP_NEW(w->arena, int64_t, w->g->n_layer);
        f->again = HP_NEW(w->arena, bool, w->g->n_layer);
        memset(f->first, -1, sizeof(int32_t) * (size_t)w->g->n_tensor);
        f->last = -1;
        f->rerun = INT32_MAX;
    }
    for (int task = 0; task < w->r->n_task; task++) {
        const hp_task *t = &w->r->task[task];
        frame *f = frame_of(w, t);
        if (!f) continue;
        if (is_backward(t)) f->last = task;
        if (t->op != HP_TASK_FWD || !(t->flags & HP_FLAG_RECOMPUTE)) continue;
        f->again[t->layer] = true;
        if (task < f->rerun) f->rerun = task;
    }
}

/* Gradients, messages and buffers left for recomputation live as long as in the program. */
static void find_lifetimes(walk *w) {
    w->born = HP_NEW(w->arena, int64_t, w->r->n_task + 1);
    w->dead = HP_NEW(w->arena, int64_t, w->r->n_task + 1);
    for (int i = HP_BUF_FIXED; i < w->r->n_buffer; i++) {
        const hp_buffer *b = &w->r->buffer[i];
        const hp_task *first = b->first >= 0 && b->first < w->r->n_task ? &w->r->task[b->first] : NULL;
        const frame *f = first ? frame_of(w, first) : NULL;
        if (!f) continue;
        const bool lives = b->kind == HP_BUF_GRADIENT ||
                           (b->kind == HP_BUF_MESSAGE && !crosses_forward(w, b->first)) ||
                           (b->kind == HP_BUF_TENSOR && left_behind(f, b));
        if (!lives) continue;
        const int64_t bytes =
            b->kind == HP_BUF_GRADIENT ? hp_box_elems(&b->box) * w->store.width[b->what] : b->bytes;
        w->born[b->first] += bytes;
        w->dead[b->last < w->r->n_task ? b->last : b->first] += bytes;
    }
}

static const int32_t *count_activations(hp_arena *arena, const hp_graph *g) {
    int32_t *copies = HP_NEW(arena, int32_t, g->n_layer);
    for (int l = 0; l < g->n_layer; l++) copies[l] = hp_eager_activations(g, l);
    return copies;
}

static int64_t parameter_bytes(const hp_program *p, const hp_eager_store *s, const hp_role *r) {
    const hp_graph *g = s->g;
    int64_t bytes = 0;
    const bool buckets = p->dp > 1 && s->f->memory.copies_gradients;
    const int wide = hp_dtype_bytes((hp_dtype)p->dtype),
              gradient = s->casts && s->f->memory.half_model ? hp_dtype_bytes(HP_F16) : wide,
              trained = wide * (1 + hp_optimizer_of(g)->states) + gradient * (1 + buckets);
    for (int i = 0; i < g->n_param; i++) {
        const bool trains = p->mode == HP_MODE_TRAIN && hp_param_trained(&g->param[i]);
        if (r->place[i].here) bytes += r->place[i].count * (trains ? trained : wide);
    }
    return bytes + (int64_t)hp_eager_casts(s, r->place);
}

int64_t hp_eager_bytes(const hp_program *p, const hp_graph *g, const hp_framework *f, int role) {
    const hp_role *r = &p->role[role];
    walk w = {.p = p, .g = g, .r = r, .arena = hp_arena_new()};
    w.store = hp_eager_store_of(w.arena, g, f, (hp_dtype)p->dtype);
    const int64_t parameters = parameter_bytes(p, &w.store, r);
    if (p->mode != HP_MODE_TRAIN) {
        hp_arena_free(w.arena);
        return hp_eager_infer_bytes(p, g, f, role) + parameters;
    }
    w.copies = count_activations(w.arena, g);
    find_frames(&w);
    find_lifetimes(&w);
    for (int task = 0; task < r->n_task; task++) step(&w, task);
    hp_arena_free(w.arena);
    return w.peak + parameters;
}
