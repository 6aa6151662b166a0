/* seed_faults.c - one fault in a copy of a program. */
#include "tests/support/plan/seed_faults.h"

#include "tests/support/plan/collective_program.h"

static void *copied(hp_arena *arena, const void *from, size_t size) {
    return memcpy(hp_arena_alloc(arena, size + 1), from, size);
}

#define OWN(field, n) ((field) = copied(arena, (field), sizeof *(field) * (size_t)(n)))

hp_program *copy_program(hp_arena *arena, const hp_graph *g, const hp_program *from) {
    hp_program *p = copied(arena, from, sizeof *from);
    OWN(p->role, p->n_role);
    OWN(p->group, p->n_group);
    OWN(p->member, p->n_member);
    for (int i = 0; i < p->n_role; i++) {
        hp_role *r = &p->role[i];
        OWN(r->slot, r->n_slot);
        OWN(r->task, r->n_task);
        OWN(r->operand, r->n_operand);
        OWN(r->dep_first, r->n_task + 1);
        OWN(r->dep, r->n_dep);
        OWN(r->buffer, r->n_buffer);
        OWN(r->queue, r->n_queue);
        OWN(r->place, g->n_param);
        OWN(r->pack_forward, g->n_layer);
        OWN(r->pack_backward, g->n_layer);
    }
    return p;
}

/* --- choosing --- */

hp_task *pick_task(victim *v, task_filter *wanted) {
    const int n = v->r->n_task, from = roll(&v->d, 0, n - 1);
    for (int i = 0; i < n; i++) {
        hp_task *t = &v->r->task[(from + i) % n];
        if (wanted(v, t)) return t;
    }
    return NULL;
}

static bool is_transfer(const victim *v, const hp_task *t) {
    (void)v;
    return t->op == HP_TASK_SEND || t->op == HP_TASK_RECV;
}

static bool is_send(const victim *v, const hp_task *t) {
    return v && t->op == HP_TASK_SEND;
}

bool is_recv(const victim *v, const hp_task *t) {
    (void)v;
    return t->op == HP_TASK_RECV;
}

bool is_forward(const victim *v, const hp_task *t) {
    (void)v;
    return t->op == HP_TASK_FWD && !(t->flags & HP_FLAG_RECOMPUTE);
}

static bool is_weights(const victim *v, const hp_task *t) {
    (void)v;
    return t->op == HP_TASK_BWDW;
}

static bool is_collective(const victim *v, const hp_task *t) {
    (void)v;
    return t->op == HP_TASK_ALLREDUCE;
}

static bool is_gradient_sum(const victim *v, const hp_task *t) {
    return t->op == HP_TASK_ALLREDUCE && v->r->operand[t->operand] == HP_BUF_GRADS;
}

static bool is_statistics_sum(const victim *v, const hp_task *t) {
    return t->op == HP_TASK_ALLREDUCE && v->r->buffer[v->r->operand[t->operand]].kind == HP_BUF_SUMS;
}

static bool is_zero(const victim *v, const hp_task *t) {
    return v && t->op == HP_TASK_ZERO;
}

static bool is_copy(const victim *v, const hp_task *t) {
    (void)v;
    return t->op == HP_TASK_COPY;
}

static bool has_sums(const victim *v, const hp_task *t) {
    return t->op == HP_TASK_FWD && t->n_operand == 3 + v->g->layer[t->layer].n_in;
}

bool drop(hp_role *r, const hp_task *t) {
    if (!t) return false;
    const int id = (int)(t - r->task);
    int kept = 0;
    for (int i = 0; i < r->n_task; i++) {
        const int from = r->dep_first[i], to = r->dep_first[i + 1];
        r->dep_first[i - (i > id)] = kept;
        for (int k = from; k < to && i != id; k++)
            if (r->dep[k] != id) r->dep[kept++] = r->dep[k] - (r->dep[k] > id);
    }
    memmove(&r->task[id], &r->task[id + 1], sizeof *t * (size_t)(--r->n_task - id));
    r->dep_first[r->n_task] = r->n_dep = kept;
    return true;
}

/* --- faults: each returns false if the program has no place for it --- */

bool exchanged_tags(victim *v) {
    hp_task *a = pick_task(v, is_transfer);
    for (hp_task *b = v->r->task; a && b < v->r->task + v->r->n_task; b++)
        if (b != a && b->queue == a->queue) {
            const int32_t position = a->message.position;
            a->message.position = b->message.position;
            b->message.position = position;
            return true;
        }
    return false;
}

bool missing_transfer(victim *v) {
    return drop(v->r, pick_task(v, is_transfer));
}

bool wrong_count(victim *v) {
    hp_task *t = pick_task(v, is_transfer);
    if (t) t->message.elems -= 1 + roll(&v->d, 0, 3);
    return t != NULL;
}

bool wrong_type(victim *v) {
    hp_task *t = pick_task(v, is_transfer);
    if (t) t->dtype = (uint8_t)(t->dtype == HP_F32 ? HP_I32 : HP_F32);
    return t != NULL;
}

bool wrong_peer(victim *v) {
    hp_task *t = pick_task(v, is_transfer);
    if (!t || v->p->n_role < 3) return false;
    hp_queue *q = &v->r->queue[t->queue];
    do q->peer = (q->peer + 1) % v->p->n_role;
    while (q->peer == v->role);
    return true;
}

bool wrong_channel(victim *v) {
    hp_task *t = pick_task(v, is_transfer);
    if (t) v->r->queue[t->queue].channel += 4096;
    return t != NULL;
}

static bool wrong_group(victim *v) {
    hp_task *t = pick_task(v, is_collective);
    if (!t || v->p->n_group < 2) return false;
    hp_queue *q = &v->r->queue[t->queue];
    q->peer = (q->peer + roll(&v->d, 1, v->p->n_group - 1)) % v->p->n_group;
    return true;
}

/* Uses another algorithm than the group's other roles, a nonexistent one, or none. */
static bool wrong_algorithm(victim *v) {
    hp_task *t = pick_task(v, is_collective);
    if (!t) return false;
    const bool alone = v->p->group[v->r->queue[t->queue].peer].n == 1;
    const uint8_t other = t->algorithm == HP_ALGORITHM_RING ? HP_ALGORITHM_DOUBLING : HP_ALGORITHM_RING,
                  wrong[] = {HP_ALGORITHMS, HP_ALGORITHM_LIBRARY, other};
    t->algorithm = wrong[roll(&v->d, 0, alone ? 1 : 2)];
    return true;
}

/* One member leaves a group, the last is another rank, or one appears twice. */
static bool wrong_member(victim *v) {
    hp_group *g = &v->p->group[roll(&v->d, 0, v->p->n_group - 1)];
    int32_t *last = &v->p->member[g->first + g->n - 1];
    const int kind = roll(&v->d, 0, 2);
    if (kind == 0 && g->n > 1)
        g->n--;
    else if (kind == 1 && *last < v->p->n_role - 1)
        ++*last;
    else if (g->n > 1)
        *last = last[-1];
    else
        return false;
    return true;
}

bool swapped_messages(victim *v) {
    hp_task *a = pick_task(v, is_send);
    for (hp_task *b = v->r->task; a && b < v->r->task + v->r->n_task; b++) {
        int32_t *x = &v->r->operand[a->operand], *y = &v->r->operand[b->operand];
        if (b == a || b->op != HP_TASK_SEND || b->message.elems != a->message.elems || *x == *y) continue;
        const int32_t id = *x;
        *x = *y;
        *y = id;
        return true;
    }
    return false;
}

/* Shifts the box of a task's tensor by one along some axis. */
static bool shifted_box(victim *v) {
    const hp_task *t = pick_task(v, is_forward);
    if (!t) return false;
    hp_box *box = &v->r->buffer[v->r->operand[t->operand + 2 * roll(&v->d, 0, 1)]].box;
    const int axis = roll(&v->d, HP_AXIS_N, HP_AXIS_W), by = coin(&v->d) ? 1 : -1;
    if (v->r->operand[t->operand] < 0 || hp_box_empty(box)) return false;
    box->lo[axis] += by;
    box->hi[axis] += by;
    return true;
}

bool bent_box(victim *v) {
    const hp_task *t = pick_task(v, is_transfer);
    hp_box *b = t ? &v->r->buffer[v->r->operand[t->operand]].box : NULL;
    if (!b || hp_box_len(b, HP_AXIS_H) == hp_box_len(b, HP_AXIS_W)) return false;
    const int32_t h = hp_box_len(b, HP_AXIS_H);
    b->hi[HP_AXIS_H] = b->lo[HP_AXIS_H] + hp_box_len(b, HP_AXIS_W);
    b->hi[HP_AXIS_W] = b->lo[HP_AXIS_W] + h;
    return true;
}

static bool missing_zero(victim *v) {
    return drop(v->r, pick_task(v, is_zero));
}

bool missing_copy(victim *v) {
    return drop(v->r, pick_task(v, is_copy));
}

static bool missing_forward(victim *v) {
    return drop(v->r, pick_task(v, is_forward));
}

bool missing_wait(victim *v) {
    const hp_task *t = pick_task(v, is_recv);
    hp_role *r = v->r;
    int kept = 0;
    if (!t) return false;
    for (int i = 0; i < r->n_task; i++) {
        const int from = r->dep_first[i];
        r->dep_first[i] = kept;
        for (int k = from; k < r->dep_first[i + 1]; k++)
            if (r->dep[k] != (int)(t - r->task)) r->dep[kept++] = r->dep[k];
    }
    const bool some = kept < r->n_dep;
    r->dep_first[r->n_task] = r->n_dep = kept;
    return some;
}

static bool flipped_add(victim *v) {
    hp_task *t = pick_task(v, is_weights);
    if (t) t->flags ^= HP_FLAG_ADD;
    return t != NULL;
}

bool wrong_operand(victim *v) {
    const hp_task *t = pick_task(v, is_forward);
    if (!t) return false;
    int32_t *x = &v->r->operand[t->operand + 2];
    for (int i = 0; i < v->r->n_buffer && *x >= 0; i++) {
        const int b = (*x + 1 + i) % v->r->n_buffer;
        if (v->r->buffer[b].kind != HP_BUF_TENSOR || v->r->buffer[b].what == v->r->buffer[*x].what) continue;
        *x = b;
        return true;
    }
    return false;
}

bool wrong_micro(victim *v) {
    const hp_task *t = pick_task(v, is_forward);
    if (!t) return false;
    int32_t *x = &v->r->operand[t->operand + 2];
    for (int b = HP_BUF_FIXED; b < v->r->n_buffer && *x >= 0; b++) {
        const hp_buffer *other = &v->r->buffer[b], *own = &v->r->buffer[*x];
        if (other->kind != own->kind || other->what != own->what || other->micro == own->micro) continue;
        *x = b;
        return true;
    }
    return false;
}

/* All ranks omit the same collective: the `nth` of its group on each. */
static void forget(hp_program *p, int group, int nth) {
    for (int i = 0; i < p->n_role; i++) {
        hp_role *r = &p->role[i];
        for (int k = 0, n = 0; k < r->n_task; k++)
            if (r->task[k].op == HP_TASK_ALLREDUCE && r->queue[r->task[k].queue].peer == group && n++ == nth)
                drop(r, &r->task[k]);
    }
}

static bool forgotten(victim *v, task_filter *wanted) {
    const hp_task *t = pick_task(v, wanted);
    int nth = 0;
    if (!t) return false;
    for (const hp_task *before = v->r->task; before < t; before++)
        nth += before->op == HP_TASK_ALLREDUCE && before->queue == t->queue;
    forget(v->p, v->r->queue[t->queue].peer, nth);
    return true;
}

static bool missing_sum(victim *v) {
    return forgotten(v, is_gradient_sum);
}

static bool missing_statistics(victim *v) {
    return forgotten(v, is_statistics_sum);
}

/* Changes all sums on all ranks together. */
static bool each_sum(victim *v, int32_t call, hp_task_op op, hp_algorithm algorithm) {
    bool any = false;
    for (int r = 0; r < v->p->n_role; r++)
        for (int i = 0; i < v->p->role[r].n_task; i++) {
            hp_task *t = &v->p->role[r].task[i];
            if (t->op != HP_TASK_ALLREDUCE || t->collective.call) continue;
            t->collective.call = call;
            t->op = (uint8_t)op;
            if (algorithm) t->algorithm = (uint8_t)algorithm;
            any = true;
        }
    return any;
}

static bool wrong_reduction(victim *v) {
    const int32_t call = made_call_add(v->arena, v->p, (hp_call){.reduction = HP_REDUCE_MAX}, NULL);
    return each_sum(v, call, HP_TASK_ALLREDUCE, HP_ALGORITHM_LIBRARY);
}

static bool wrong_collective(victim *v) {
    return each_sum(v, 0, HP_TASK_REDUCE, HP_ALGORITHM_BINOMIAL);
}

static bool is_maxsum(const victim *v, const hp_task *t) {
    return v && t->op == HP_TASK_MAXSUM;
}

/* Another rank's block. */
static bool wrong_classes(victim *v) {
    hp_task *t = pick_task(v, is_maxsum);
    if (!t) return false;
    const hp_box *x = &v->r->buffer[v->r->operand[t->operand + 1]].box;
    const int64_t block = hp_box_elems(x) / hp_box_len(x, HP_AXIS_C) * HP_MAXSUMS;
    t->maxsum.first = t->maxsum.first ? t->maxsum.first - block : block;
    return true;
}

/* Drops the task that sums a rank's own classes. */
static bool missing_classes(victim *v) {
    hp_task *t = pick_task(v, is_maxsum);
    return t && drop(v->r, t);
}

static bool wrong_pixels(victim *v) {
    hp_task *t = pick_task(v, has_sums);
    if (t) t->forward.pixels++;
    return t != NULL;
}

bool shared_memory(victim *v) {
    const hp_task *t = pick_task(v, is_forward);
    if (!t) return false;
    hp_buffer *y = &v->r->buffer[v->r->operand[t->operand]];
    const int32_t x = v->r->operand[t->operand + 2];
    if (x < 0 || v->r->buffer[x].offset == y->offset || v->r->buffer[x].bytes == 0) return false;
    if (v->r->buffer[x].offset + y->bytes > v->r->arena_bytes) return false;
    y->offset = v->r->buffer[x].offset;
    return true;
}

static bool moved_parameter(victim *v) {
    hp_param_place *at = &v->r->place[roll(&v->d, 0, v->g->n_param - 1)];
    const int kind = roll(&v->d, 0, 3);
    if (!at->here) return false;
    if (kind == 0) at->offset += 16;
    if (kind == 1) at->count /= 2;
    if (kind == 2) at->group = at->group < 0 ? v->p->n_group : -1;
    if (kind == 3) at->here = 0;
    return true;
}

bool little_scratch(victim *v) {
    if (v->r->buffer[HP_BUF_SCRATCH].bytes == 0) return false;
    v->r->buffer[HP_BUF_SCRATCH].bytes /= 4;
    return true;
}

bool later_dependency(victim *v) {
    const int t = roll(&v->d, 0, v->r->n_task - 2);
    if (v->r->dep_first[t] == v->r->dep_first[t + 1]) return false;
    v->r->dep[v->r->dep_first[t]] = roll(&v->d, t, v->r->n_task - 1);
    return true;
}

const struct fault faults[FAULTS] = {
    {"exchanged tags", exchanged_tags},
    {"missing transfer", missing_transfer},
    {"wrong count", wrong_count},
    {"wrong type", wrong_type},
    {"wrong peer", wrong_peer},
    {"wrong channel", wrong_channel},
    {"wrong group", wrong_group},
    {"wrong algorithm", wrong_algorithm},
    {"wrong member", wrong_member},
    {"swapped messages", swapped_messages},
    {"shifted box", shifted_box},
    {"bent box", bent_box},
    {"missing zero", missing_zero},
    {"missing copy", missing_copy},
    {"missing forward", missing_forward},
    {"missing wait", missing_wait},
    {"flipped add", flipped_add},
    {"wrong operand", wrong_operand},
    {"wrong micro-batch", wrong_micro},
    {"missing sum", missing_sum},
    {"missing statistics", missing_statistics},
    {"wrong reduction", wrong_reduction},
    {"wrong collective", wrong_collective},
    {"wrong pixels", wrong_pixels},
    {"wrong classes", wrong_classes},
    {"missing classes", missing_classes},
    {"shared memory", shared_memory},
    {"moved parameter", moved_parameter},
    {"little scratch", little_scratch},
    {"later dependency", later_dependency},
};
