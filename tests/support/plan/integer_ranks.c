/* integer_ranks.c - a program's data movement on integers. */
#include "tests/support/plan/integer_ranks.h"

/* --- numbers --- */

static uint64_t int_mix(uint64_t x) { /* splitmix64 (Steele et al. 2014) */
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* A small number for every element. */
static int64_t int_value(uint64_t key, int64_t element) {
    return (int64_t)(int_mix(key ^ (uint64_t)element) % 19) - 9;
}

static uint64_t int_key(uint64_t kind, int a, int b, int c, int d) {
    const uint64_t ab = (uint64_t)a << 32 | (uint32_t)b, cd = (uint64_t)c << 32 | (uint32_t)d;
    return int_mix(int_mix(int_mix(kind) ^ ab) ^ cd);
}

static uint64_t activation_key(const integer_ranks *s, int role, int tensor, int micro) {
    return int_key(1, tensor, micro, s->by_rank ? role : -1, 0);
}

static uint64_t gradient_key(int role, int layer, int k, int micro) {
    return int_key(2, role, layer, k, micro);
}

/* --- buffers --- */

static const hp_buffer *int_buffer(const integer_ranks *s, int role, int32_t b) {
    return &s->p->role[role].buffer[b];
}

static int64_t *int_data(const integer_ranks *s, int role, int32_t b) {
    return s->memory[role] + (int_buffer(s, role, b)->offset - s->base[role]) / 8;
}

static bool int_has_box(const hp_buffer *b) {
    return b->kind == HP_BUF_TENSOR || b->kind == HP_BUF_GRADIENT || b->kind == HP_BUF_MESSAGE;
}

static void int_wrong(integer_ranks *s, int role, int task, const char *what) {
    char label[120];
    if (*s->why) return;
    snprintf(s->why, sizeof s->why, "rank %d task %d (%s): %s", role, task,
             hp_task_label(s->p, s->g, &s->p->role[role], task, label, sizeof label), what);
}

/* A pixel's channels are contiguous. */
typedef struct pixel {
    int n, y, x;
} pixel;

static int64_t pixels_of(const hp_box *b) {
    return (int64_t)hp_box_len(b, HP_AXIS_N) * hp_box_len(b, HP_AXIS_H) * hp_box_len(b, HP_AXIS_W);
}

static pixel pixel_of(const hp_box *b, int64_t i) {
    const int w = hp_box_len(b, HP_AXIS_W), h = hp_box_len(b, HP_AXIS_H);
    return (pixel){b->lo[HP_AXIS_N] + (int)(i / w / h), b->lo[HP_AXIS_H] + (int)(i / w % h),
                   b->lo[HP_AXIS_W] + (int)(i % w)};
}

/* Index of an element in a buffer of box `b`. */
static int64_t int_at(const hp_box *b, pixel p, int c) {
    const int64_t row = (int64_t)(p.n - b->lo[HP_AXIS_N]) * hp_box_len(b, HP_AXIS_H) + p.y - b->lo[HP_AXIS_H];
    return (row * hp_box_len(b, HP_AXIS_W) + p.x - b->lo[HP_AXIS_W]) * hp_box_len(b, HP_AXIS_C) + c -
           b->lo[HP_AXIS_C];
}

/* Index of an element in the whole tensor. */
static int64_t int_element(const hp_tensor *t, pixel p, int c) {
    return (((int64_t)p.n * t->h + p.y) * t->w + p.x) * t->c + c;
}

static void int_fill(integer_ranks *s, int role, int32_t b, int tensor, uint64_t key) {
    const hp_box *box = &int_buffer(s, role, b)->box;
    int64_t *to = int_data(s, role, b);
    for (int64_t i = 0; i < pixels_of(box); i++) {
        const int64_t e = int_element(&s->g->tensor[tensor], pixel_of(box, i), 0);
        for (int c = box->lo[HP_AXIS_C]; c < box->hi[HP_AXIS_C]; c++) *to++ = int_value(key, e + c);
    }
}

/* Sum over the elements of the buffer times their weights. */
static int64_t int_dot(integer_ranks *s, int role, int32_t b, int tensor, uint64_t key) {
    const hp_box *box = &int_buffer(s, role, b)->box;
    const int64_t *from = int_data(s, role, b);
    int64_t sum = 0;
    for (int64_t i = 0; i < pixels_of(box); i++) {
        const int64_t e = int_element(&s->g->tensor[tensor], pixel_of(box, i), 0);
        for (int c = box->lo[HP_AXIS_C]; c < box->hi[HP_AXIS_C]; c++) sum += *from++ * int_value(key, e + c);
    }
    return sum;
}

/* --- moving --- */

static void int_copy(integer_ranks *s, int role, const hp_task *t, bool add) {
    const int32_t *o = s->p->role[role].operand + t->operand;
    const hp_box *to = &int_buffer(s, role, o[0])->box, *from = &int_buffer(s, role, o[1])->box;
    const hp_box both = hp_box_and(to, from);
    for (int64_t i = 0; i < pixels_of(&both); i++) {
        const pixel p = pixel_of(&both, i);
        int64_t *dst = int_data(s, role, o[0]) + int_at(to, p, both.lo[HP_AXIS_C]);
        const int64_t *src = int_data(s, role, o[1]) + int_at(from, p, both.lo[HP_AXIS_C]);
        for (int c = 0; c < hp_box_len(&both, HP_AXIS_C); c++) dst[c] = (add ? dst[c] : 0) + src[c];
    }
}

static void int_zero(integer_ranks *s, int role, const hp_task *t) {
    const int32_t b = s->p->role[role].operand[t->operand];
    if (int_has_box(int_buffer(s, role, b)))
        memset(int_data(s, role, b) + t->zero.first, 0, sizeof(int64_t) * (size_t)t->zero.elems);
}

/* --- layers --- */

static seen **seen_of(const integer_ranks *s, int role, int layer, int micro) {
    return &s->seen[((int64_t)role * (s->g->n_layer + 1) + layer) * s->p->micro + micro];
}

static seen *find_seen(integer_ranks *s, int role, int task, int layer, int k, int32_t b) {
    const hp_box *box = &int_buffer(s, role, b)->box;
    seen **list = seen_of(s, role, layer, s->p->role[role].task[task].micro), *e = *list;
    while (e && (e->k != k || !hp_box_equal(&e->box, box))) e = e->next;
    if (e) return e;
    e = HP_NEW(s->arena, seen, 1);
    *e = (seen){.box = *box, .k = k, .next = *list};
    return *list = e;
}

/* If it was read before, or recomputed, it must be equal. True if it is new. */
static bool note_sum(integer_ranks *s, int role, int task, seen *e, int64_t sum) {
    if (e->known && e->sum != sum) int_wrong(s, role, task, "reads something else than before");
    if (e->known) return false;
    e->sum = sum;
    return e->known = true;
}

static int64_t *sum_of(const integer_ranks *s, int64_t *sums, int tensor, int role, int task) {
    return &sums[(int64_t)tensor * s->p->micro + s->p->role[role].task[task].micro];
}

/* Checks that the buffer holds that tensor, as rank `by` computed it. */
static void int_expect(integer_ranks *s, int role, int task, int tensor, int by, int32_t b) {
    if (b < 0) return;
    const hp_box *box = &int_buffer(s, role, b)->box;
    const uint64_t key = activation_key(s, by, tensor, s->p->role[role].task[task].micro);
    const int64_t *from = int_data(s, role, b);
    bool right = true;
    for (int64_t i = 0; i < pixels_of(box); i++) {
        const int64_t e = int_element(&s->g->tensor[tensor], pixel_of(box, i), 0);
        for (int c = box->lo[HP_AXIS_C]; c < box->hi[HP_AXIS_C]; c++)
            right &= *from++ == int_value(key, e + c);
    }
    if (!right) int_wrong(s, role, task, "does not read the tensor");
}

/* A layer (n_layer: the loss) reads `tensor` as its input k. */
static void int_read(integer_ranks *s, int role, int task, int layer, int k, int tensor, int32_t b) {
    if (b < 0) return;
    const int64_t sum =
        int_dot(s, role, b, tensor, gradient_key(role, layer, k, s->p->role[role].task[task].micro));
    seen *e = find_seen(s, role, task, layer, k, b);
    if (note_sum(s, role, task, e, sum) && e->answered) *sum_of(s, s->ahead, tensor, role, task) += sum;
    if (!s->by_rank) int_expect(s, role, task, tensor, role, b);
}

/* A layer writes the gradient of what it read. A layer in pieces reads the whole later, for its
 * weights' gradient. */
static void int_answer(integer_ranks *s, int role, int task, int layer, int k, int tensor, int32_t b) {
    if (b < 0) return;
    int_fill(s, role, b, tensor, gradient_key(role, layer, k, s->p->role[role].task[task].micro));
    seen *e = find_seen(s, role, task, layer, k, b);
    if (e->answered) int_wrong(s, role, task, "gives a gradient twice");
    e->answered = true;
    if (e->known) *sum_of(s, s->ahead, tensor, role, task) += e->sum;
}

/* A layer receives the gradient of its output. */
static void int_given(integer_ranks *s, int role, int task, int layer, int32_t b) {
    const int tensor = s->g->layer[layer].out;
    const int64_t sum =
        int_dot(s, role, b, tensor, activation_key(s, role, tensor, s->p->role[role].task[task].micro));
    if (note_sum(s, role, task, find_seen(s, role, task, layer, -1, b), sum))
        *sum_of(s, s->back, tensor, role, task) += sum;
    s->used[tensor] = true;
}

static void int_load(integer_ranks *s, int role, int task, const int32_t *o) {
    const hp_task *t = &s->p->role[role].task[task];
    const int image = s->g->layer[0].out;
    if (o[0] >= 0) int_fill(s, role, o[0], image, activation_key(s, 0, image, t->micro));
}

static void int_fwd(integer_ranks *s, int role, int task, const int32_t *o) {
    const hp_task *t = &s->p->role[role].task[task];
    const hp_layer *l = &s->g->layer[t->layer];
    for (int k = 0; k < l->n_in; k++) int_read(s, role, task, t->layer, k, l->in[k], o[2 + k]);
    int_fill(s, role, o[0], l->out, activation_key(s, role, l->out, t->micro));
}

static void int_loss(integer_ranks *s, int role, int task, const int32_t *o) {
    const int end = s->g->n_layer, logits = s->g->layer[end - 1].out;
    int_read(s, role, task, end, 0, logits, o[1]);
    if (o[0] >= 0) int_answer(s, role, task, end, 0, logits, o[0]);
}

static void int_bwd(integer_ranks *s, int role, int task, const int32_t *o) {
    const int layer = s->p->role[role].task[task].layer;
    const hp_layer *l = &s->g->layer[layer];
    int_given(s, role, task, layer, o[0]);
    int_expect(s, role, task, l->out, role, o[1]);
    for (int k = 0; k < l->n_in; k++) int_read(s, role, task, layer, k, l->in[k], o[3 + k]);
    for (int k = 0; k < l->n_in; k++) int_answer(s, role, task, layer, k, l->in[k], o[3 + l->n_in + k]);
}

static void int_bwdw(integer_ranks *s, int role, int task, const int32_t *o) {
    const int layer = s->p->role[role].task[task].layer;
    int_given(s, role, task, layer, o[0]);
    int_read(s, role, task, layer, 0, s->g->layer[layer].in[0], o[1]);
}

static void int_stats(integer_ranks *s, int role, int task, const int32_t *o) {
    const int layer = s->p->role[role].task[task].layer;
    int_read(s, role, task, layer, 0, s->g->layer[layer].in[0], o[1]);
}

static void int_bstats(integer_ranks *s, int role, int task, const int32_t *o) {
    const int layer = s->p->role[role].task[task].layer;
    int_given(s, role, task, layer, o[1]);
    int_expect(s, role, task, s->g->layer[layer].out, role, o[2]);
    int_read(s, role, task, layer, 0, s->g->layer[layer].in[0], o[4]);
}

static void int_task(integer_ranks *s, int role, int task) {
    typedef void layer_fn(integer_ranks *, int, int, const int32_t *);
    static layer_fn *const layers[HP_TASK_OPS] = {
        [HP_TASK_LOAD] = int_load,    [HP_TASK_FWD] = int_fwd,   [HP_TASK_LOSS] = int_loss,
        [HP_TASK_BWD] = int_bwd,      [HP_TASK_BWDW] = int_bwdw, [HP_TASK_STATS] = int_stats,
        [HP_TASK_BSTATS] = int_bstats};
    const hp_task *t = &s->p->role[role].task[task];
    if (layers[t->op]) layers[t->op](s, role, task, s->p->role[role].operand + t->operand);
    if (t->op == HP_TASK_COPY) int_copy(s, role, t, t->flags & HP_FLAG_ADD);
    if (t->op == HP_TASK_ACCUM) int_copy(s, role, t, true);
    if (t->op == HP_TASK_ZERO) int_zero(s, role, t);
}

/* --- running --- */

/* The task that a queue would start next; -1: none, or it waits for others. */
static int next_of(const integer_ranks *s, int role, int queue) {
    const hp_role *r = &s->p->role[role];
    const int at = s->head[role][queue];
    if (at == s->first[role][queue + 1]) return -1;
    const int task = s->list[role][at];
    for (int i = r->dep_first[task]; i < r->dep_first[task + 1]; i++)
        if (!s->done[role][r->dep[i]]) return -1;
    return task;
}

static void finish(integer_ranks *s, int role, int queue, int task) {
    s->done[role][task] = true;
    s->head[role][queue]++;
}

static int queue_of(const hp_role *r, int kind, int peer, int channel) {
    for (int q = 0; q < r->n_queue; q++)
        if (r->queue[q].kind == kind && r->queue[q].peer == peer && r->queue[q].channel == channel) return q;
    return -1;
}

/* A send completes together with its receive. */
static bool try_send(integer_ranks *s, int role, int queue, int task) {
    const hp_role *r = &s->p->role[role], *other = &s->p->role[r->queue[queue].peer];
    const int peer = r->queue[queue].peer,
              back = queue_of(other, HP_QUEUE_RECV, role, r->queue[queue].channel);
    const int recv = back < 0 ? -1 : next_of(s, peer, back);
    if (recv < 0) return false;
    const int32_t from = r->operand[r->task[task].operand], to = other->operand[other->task[recv].operand];
    const hp_buffer *a = int_buffer(s, role, from), *b = int_buffer(s, peer, to);
    if (!hp_box_equal(&a->box, &b->box) ||
        r->task[task].message.position != other->task[recv].message.position)
        int_wrong(s, role, task, "is received as something else");
    memcpy(int_data(s, peer, to), int_data(s, role, from), (size_t)b->bytes);
    finish(s, role, queue, task);
    finish(s, peer, back, recv);
    return true;
}

/* A collective completes once all its members call; replicas do the same at the same time. */
static bool try_meet(integer_ranks *s, int role, int queue) {
    const int id = s->p->role[role].queue[queue].peer;
    const hp_group *g = &s->p->group[id];
    const int32_t *member = s->p->member + g->first;
    for (int i = 0; i < g->n; i++) {
        const int q = queue_of(&s->p->role[member[i]], HP_QUEUE_COLL, id, 0);
        if (q < 0 || next_of(s, member[i], q) < 0) return false;
    }
    for (int i = 0; i < g->n; i++) {
        const int q = queue_of(&s->p->role[member[i]], HP_QUEUE_COLL, id, 0);
        finish(s, member[i], q, next_of(s, member[i], q));
    }
    return true;
}

static bool try_queue(integer_ranks *s, int role, int queue) {
    const int task = next_of(s, role, queue), kind = s->p->role[role].queue[queue].kind;
    if (task < 0 || kind == HP_QUEUE_RECV) return false;
    if (kind == HP_QUEUE_SEND) return try_send(s, role, queue, task);
    if (kind == HP_QUEUE_COLL) return try_meet(s, role, queue);
    int_task(s, role, task);
    finish(s, role, queue, task);
    return true;
}

static void list_queues(integer_ranks *s, int role) {
    const hp_role *r = &s->p->role[role];
    s->done[role] = HP_NEW(s->arena, bool, r->n_task);
    s->first[role] = HP_NEW(s->arena, int32_t, r->n_queue + 1);
    s->head[role] = HP_NEW(s->arena, int32_t, r->n_queue);
    s->list[role] = HP_NEW(s->arena, int32_t, r->n_task);
    for (int t = 0; t < r->n_task; t++) s->first[role][r->task[t].queue + 1]++;
    for (int q = 0; q < r->n_queue; q++) s->first[role][q + 1] += s->first[role][q];
    memcpy(s->head[role], s->first[role], sizeof(int32_t) * (size_t)r->n_queue);
    for (int t = 0; t < r->n_task; t++) s->list[role][s->head[role][r->task[t].queue]++] = t;
    memcpy(s->head[role], s->first[role], sizeof(int32_t) * (size_t)r->n_queue);
}

/* Memory starts as garbage, so that reading what was never written is noticed. */
static void fill_memory(integer_ranks *s, int role) {
    const hp_role *r = &s->p->role[role];
    int64_t end = 0;
    s->base[role] = r->arena_bytes;
    for (int b = 0; b < r->n_buffer; b++) {
        const hp_buffer *u = &r->buffer[b];
        if (!int_has_box(u)) continue;
        if (u->offset < s->base[role]) s->base[role] = u->offset;
        if (u->offset + u->bytes > end) end = u->offset + u->bytes;
    }
    const size_t bytes = end > s->base[role] ? (size_t)(end - s->base[role]) : 0;
    s->memory[role] = hp_arena_alloc(s->arena, bytes + 1);
    memset(s->memory[role], 0x5a, bytes);
}

integer_ranks *integer_ranks_new(hp_arena *arena, const hp_graph *g, const hp_program *p, bool by_rank) {
    integer_ranks *s = HP_NEW(arena, integer_ranks, 1);
    *s = (integer_ranks){.arena = arena, .g = g, .p = p, .by_rank = by_rank};
    s->memory = HP_NEW(arena, int64_t *, p->n_role);
    s->base = HP_NEW(arena, int64_t, p->n_role);
    s->done = HP_NEW(arena, bool *, p->n_role);
    int32_t ***lists[] = {&s->first, &s->list, &s->head};
    for (int i = 0; i < 3; i++) *lists[i] = HP_NEW(arena, int32_t *, p->n_role);
    s->seen = HP_NEW(arena, seen *, (int64_t)p->n_role * (g->n_layer + 1) * p->micro);
    s->ahead = HP_NEW(arena, int64_t, (int64_t)g->n_tensor * p->micro);
    s->back = HP_NEW(arena, int64_t, (int64_t)g->n_tensor * p->micro);
    s->used = HP_NEW(arena, bool, g->n_tensor);
    for (int r = 0; r < p->n_role; r++) {
        fill_memory(s, r);
        list_queues(s, r);
    }
    return s;
}

static bool all_answers_known(const integer_ranks *s) {
    for (int64_t i = 0; i < (int64_t)s->p->n_role * (s->g->n_layer + 1) * s->p->micro; i++)
        for (const seen *e = s->seen[i]; e; e = e->next)
            if (e->answered && !e->known) return false;
    return true;
}

bool integer_ranks_run(integer_ranks *s) {
    for (bool moved = true; moved && !*s->why;) {
        moved = false;
        for (int r = 0; r < s->p->n_role; r++)
            for (int q = 0; q < s->p->role[r].n_queue; q++)
                while (!*s->why && try_queue(s, r, q)) moved = true;
    }
    for (int r = 0; r < s->p->n_role; r++)
        for (int t = 0; t < s->p->role[r].n_task; t++)
            if (!s->done[r][t]) int_wrong(s, r, t, "never comes to run");
    if (!*s->why && !all_answers_known(s))
        snprintf(s->why, sizeof s->why, "a gradient of what was never read");
    return !*s->why;
}
