/* check_memory.c - all uses of the same bytes are ordered, within a buffer and between buffers that share
 * memory.
 *
 * Compute tasks run one after another. A send, receive or collective runs beside them. It starts after the
 * compute tasks it depends on, and is known to be done only where a compute task (or the message in question)
 * depends on it. One walk over the list tracks, per buffer, parameter and gradient, the uses that the next
 * writer must wait for. It also tracks, per byte of the arena, the last buffer there: its successor waits for
 * that buffer's uses, which have waited for the uses before them. */
#include "networks/graph/precision.h"
#include "plan/check/check_inside.h"
#include "plan/program/print.h"

#include <string.h>

/* Uses that the next writer must wait for: the last write and all reads since. */
typedef struct uses {
    int32_t write;   /* task, -1 */
    int32_t compute; /* last compute task that reads; -1: none */
    int32_t async;   /* messages that read: head of a list; -1: none */
} uses;

typedef struct async_use {
    int32_t task, next;
} async_use;

/* Arena bytes [offset, next piece's offset) and the last buffer that used them; -1: none. */
typedef struct piece {
    int64_t offset;
    int32_t owner;
} piece;

typedef struct memory_check {
    hp_arena *arena;
    const hp_program *p;
    const hp_graph *g;
    const hp_role *r;
    int role;
    int32_t *done_by; /* per task: first compute task that starts after its end */
    int32_t *done_at; /* per task: last compute task that is done when it starts */
    int32_t *last;    /* per buffer: last task that uses it; -1: none yet */
    bool *claimed;    /* per buffer: has taken over its memory */
    uses *of;         /* per buffer, then per parameter: value, gradient, optimiser state */
    int n_async, async_room;
    async_use *async;
    int n_piece, piece_room;
    piece *piece; /* sorted; the last piece extends to the end of the arena */
    hp_placed placed;
    hp_error *err;
} memory_check;

static bool is_compute(const memory_check *m, int task) {
    return m->r->task[task].queue == 0;
}

/* --- order --- */

/* Forward pass: finds what is done when a task starts. A queue starts its tasks in order. */
static void find_done_at(memory_check *m) {
    const hp_role *r = m->r;
    int32_t *latest = HP_NEW(m->arena, int32_t, r->n_queue); /* per queue: done_at of the last task it
                                                              * started */
    memset(latest, -1, sizeof(int32_t) * (size_t)r->n_queue);
    for (int t = 0; t < r->n_task; t++) {
        int32_t *last = &latest[r->task[t].queue];
        for (int i = r->dep_first[t]; i < r->dep_first[t + 1]; i++) {
            const int on = r->dep[i], done = is_compute(m, on) ? on : m->done_at[on];
            if (done > *last) *last = done;
        }
        m->done_at[t] = *last;
    }
}

/* Backward pass: finds who waits for a message, directly or through other messages. */
static void find_done_by(memory_check *m) {
    const hp_role *r = m->r;
    for (int t = 0; t < r->n_task; t++) m->done_by[t] = is_compute(m, t) ? t : INT32_MAX;
    for (int t = r->n_task - 1; t >= 0; t--)
        for (int i = r->dep_first[t]; i < r->dep_first[t + 1]; i++)
            if (!is_compute(m, r->dep[i]) && m->done_by[t] < m->done_by[r->dep[i]])
                m->done_by[r->dep[i]] = m->done_by[t];
}

/* Is `before` known to be done when `task` starts? */
static bool ordered(const memory_check *m, int before, int task) {
    if (before < 0 || before == task) return true;
    const hp_role *r = m->r;
    if (is_compute(m, task)) return is_compute(m, before) ? before < task : m->done_by[before] <= task;
    if (is_compute(m, before) ? before <= m->done_at[task] : m->done_by[before] <= m->done_at[task])
        return true;
    for (int i = r->dep_first[task]; i < r->dep_first[task + 1]; i++)
        if (r->dep[i] == before) return true;
    return false;
}

static hp_status race(const memory_check *m, int before, int task) {
    char first[200], second[200];
    return hp_fail(
        m->err, HP_EPLAN,
        "E-RACE: rank %d: task %d (%s) may run before task %d (%s), whose data it works on, is done", m->role,
        task, hp_task_label(m->p, m->g, m->r, task, second, sizeof second), before,
        hp_task_label(m->p, m->g, m->r, before, first, sizeof first));
}

/* A task that must be done before `task` may write, but may still be running; -1 if none. */
static int unfinished(const memory_check *m, const uses *u, int task) {
    if (!ordered(m, u->write, task)) return u->write;
    if (!ordered(m, u->compute, task)) return u->compute;
    for (int a = u->async; a >= 0; a = m->async[a].next)
        if (!ordered(m, m->async[a].task, task)) return m->async[a].task;
    return -1;
}

static hp_status use(memory_check *m, uses *u, int task, bool write) {
    const int before = write ? unfinished(m, u, task) : ordered(m, u->write, task) ? -1 : u->write;
    if (before >= 0) return race(m, before, task);
    if (write) {
        *u = (uses){task, -1, -1};
    } else if (is_compute(m, task)) {
        u->compute = task;
    } else {
        HP_ROOM(m->arena, m->async, m->n_async, m->async_room);
        m->async[m->n_async] = (async_use){task, u->async};
        u->async = m->n_async++;
    }
    return HP_OK;
}

/* --- memory --- */

static hp_status overlap(const memory_check *m, int a, int b) {
    return hp_fail(m->err, HP_EPLAN,
                   "E-OVERLAP: rank %d: buffers %d and %d share memory and may be in use together", m->role,
                   a, b);
}

/* Index of the piece that holds byte `offset`. */
static int piece_at(const memory_check *m, int64_t offset) {
    int low = 0, high = m->n_piece;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (m->piece[middle].offset <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Splits a piece so that one begins at `offset`. Returns its index. */
static int cut(memory_check *m, int64_t offset) {
    const int i = piece_at(m, offset);
    if (m->piece[i].offset == offset) return i;
    HP_ROOM(m->arena, m->piece, m->n_piece, m->piece_room);
    memmove(&m->piece[i + 2], &m->piece[i + 1], sizeof *m->piece * (size_t)(m->n_piece++ - i - 1));
    m->piece[i + 1] = (piece){offset, m->piece[i].owner};
    return i + 1;
}

/* Is the buffer set before the first step and used in every step? These are fixed buffers, a deployed
 * network's constants and codec residuals. */
static bool is_lasting(const memory_check *m, int b) {
    const uint8_t kind = m->r->buffer[b].kind;
    return b < HP_BUF_FIXED || kind == HP_BUF_CARRY || (m->g->deployed && kind == HP_BUF_PACK);
}

/* Buffer `b` takes over its bytes at its first use. `task` is -1 before the first task. */
static hp_status claim(memory_check *m, int b, int task) {
    const hp_buffer *buffer = &m->r->buffer[b];
    m->claimed[b] = true;
    if (buffer->bytes == 0) return HP_OK;
    const int from = cut(m, buffer->offset), to = cut(m, buffer->offset + buffer->bytes);
    for (int i = from; i < to; i++) {
        const int owner = m->piece[i].owner;
        if (owner < 0) continue;
        if (is_lasting(m, owner) || m->last[owner] >= task || unfinished(m, &m->of[owner], task) >= 0)
            return overlap(m, owner, b);
    }
    m->piece[from].owner = b;
    memmove(&m->piece[from + 1], &m->piece[to], sizeof *m->piece * (size_t)(m->n_piece - to));
    m->n_piece -= to - from - 1;
    return HP_OK;
}

static hp_status use_buffer(memory_check *m, int b, int task, char access) {
    if (!m->claimed[b]) HP_TRY(claim(m, b, task));
    return access == '.' ? HP_OK : use(m, &m->of[b], task, access != 'r');
}

/* --- what a task uses --- */

/* Parameters and gradients are ordered individually, so that some buckets are reduced while others are
 * summed. */
static uses *of_param(memory_check *m, int fixed, int param) {
    return &m->of[m->r->n_buffer + fixed * m->g->n_param + param];
}

/* A buffer of parts is ordered as a whole. */
static hp_status use_range(memory_check *m, int task, int fixed, int64_t from, int64_t count, char access) {
    if (hp_keeps_parts(m->p, fixed)) return use_buffer(m, fixed, task, access);
    for (int i = hp_placed_from(m->r, &m->placed, from); i < m->placed.n; i++) {
        const int param = m->placed.param[i];
        if (m->r->place[param].offset >= from + count) break;
        HP_TRY(use(m, of_param(m, fixed, param), task, access != 'r'));
    }
    return HP_OK;
}

/* Uses the parameters of the task's layer, if the role keeps them whole. */
static hp_status use_layer(memory_check *m, int task, int fixed, char access) {
    const hp_layer *l = &m->g->layer[m->r->task[task].layer];
    if (m->g->deployed || hp_keeps_parts(m->p, fixed)) return HP_OK;
    for (int i = 0; i < l->n_param; i++)
        if (hp_param_trained(&m->g->param[l->param[i]]))
            HP_TRY(use(m, of_param(m, fixed, l->param[i]), task, access != 'r'));
    return HP_OK;
}

static hp_status use_update(memory_check *m, int task) {
    const hp_task *t = &m->r->task[task];
    const hp_elements range = hp_task_range(t);
    HP_TRY(use_range(m, task, HP_BUF_GRADS, range.first, range.count, t->op == HP_TASK_NORM ? 'r' : 'm'));
    if (t->op != HP_TASK_UPDATE) return HP_OK;
    HP_TRY(use_range(m, task, HP_BUF_OPTIMIZER, range.first, range.count, 'm'));
    return use_range(m, task, HP_BUF_WEIGHTS, range.first, range.count, 'm');
}

static hp_status use_hidden(memory_check *m, int task) {
    const hp_task *t = &m->r->task[task];
    const int32_t pack = t->op == HP_TASK_FWD   ? m->r->pack_forward[t->layer]
                         : t->op == HP_TASK_BWD ? m->r->pack_backward[t->layer]
                                                : -1;
    const bool layer = hp_task_is_layer(t) || t->op == HP_TASK_PACK;
    if (pack >= 0) HP_TRY(use_buffer(m, pack, task, 'r'));
    const bool measures = t->op == HP_TASK_FINITE || t->op == HP_TASK_NORM;
    if (t->op == HP_TASK_LOSS || measures) HP_TRY(use_buffer(m, HP_BUF_METRIC, task, 'm'));
    if (t->op == HP_TASK_UPDATE && hp_graph_metric_first(m->g))
        HP_TRY(use_buffer(m, HP_BUF_METRIC, task, 'r'));
    if (t->op == HP_TASK_UPDATE || measures) return use_update(m, task);
    if (layer && t->op != HP_TASK_BWDW) HP_TRY(use_layer(m, task, HP_BUF_WEIGHTS, 'r'));
    return hp_task_gradient(m->g, m->r, t) ? use_layer(m, task, HP_BUF_GRADS, 'm') : HP_OK;
}

static hp_status use_operands(memory_check *m, int task) {
    const hp_task *t = &m->r->task[task];
    const hp_elements range = hp_task_range(t);
    for (int i = 0; i < t->n_operand; i++) {
        const int32_t b = m->r->operand[t->operand + i];
        if (b < 0) continue;
        const char access = hp_operand_access(m->g, t, i);
        HP_TRY(b >= HP_BUF_WEIGHTS && b <= HP_BUF_OPTIMIZER
                   ? use_range(m, task, b, range.first, range.count, access)
                   : use_buffer(m, b, task, access));
    }
    return use_hidden(m, task);
}

static int64_t end_of(const hp_buffer *b) {
    return b->bytes ? b->offset + b->bytes : 0;
}

/* Finds the last uses. E-RANGE: the arena must end with its highest used buffer, so that the planned peak
 * equals the observed one. */
static hp_status find_last(memory_check *m) {
    const hp_role *r = m->r;
    int64_t top = 0;
    for (int b = 0; b < HP_BUF_FIXED; b++)
        if (end_of(&r->buffer[b]) > top) top = end_of(&r->buffer[b]);
    for (int t = 0; t < r->n_task; t++) {
        int32_t used[HP_MAX_USES];
        for (int n = hp_task_uses(r, t, used), i = 0; i < n; i++) {
            m->last[used[i]] = t;
            if (end_of(&r->buffer[used[i]]) > top) top = end_of(&r->buffer[used[i]]);
        }
    }
    if (top == r->arena_bytes) return HP_OK;
    return hp_fail(m->err, HP_EPLAN, "E-RANGE: rank %d: an arena of %lld bytes, of which %lld are used",
                   m->role, (long long)r->arena_bytes, (long long)top);
}

static hp_status check_role(memory_check *m) {
    const hp_role *r = m->r;
    const int n = r->n_buffer + 3 * m->g->n_param;
    m->done_by = HP_NEW(m->arena, int32_t, r->n_task);
    m->done_at = HP_NEW(m->arena, int32_t, r->n_task);
    m->last = HP_NEW(m->arena, int32_t, r->n_buffer);
    m->claimed = HP_NEW(m->arena, bool, r->n_buffer);
    m->of = HP_NEW(m->arena, uses, n);
    memset(m->of, -1, sizeof *m->of * (size_t)n);
    m->placed = hp_placed_params(m->arena, r, m->g, true);
    find_done_at(m);
    find_done_by(m);
    HP_TRY(find_last(m));
    HP_ROOM(m->arena, m->piece, m->n_piece, m->piece_room);
    m->piece[m->n_piece++] = (piece){0, -1};
    for (int b = 0; b < r->n_buffer; b++)
        if (is_lasting(m, b)) HP_TRY(claim(m, b, -1));
    for (int t = 0; t < r->n_task; t++) HP_TRY(use_operands(m, t));
    return HP_OK;
}

hp_status hp_check_memory(const hp_program *p, const hp_graph *g, hp_error *err) {
    hp_status s = HP_OK;
    for (int role = 0; role < p->n_role && s == HP_OK; role++) {
        memory_check m = {
            .arena = hp_arena_new(), .p = p, .g = g, .r = &p->role[role], .role = role, .err = err};
        s = check_role(&m);
        hp_arena_free(m.arena);
    }
    return s;
}
