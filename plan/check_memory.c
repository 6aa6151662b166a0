/* check_memory.c - buffers that tasks may use at the same time share no byte.
 *
 * Compute tasks follow each other, so a compute task may take over the memory of everything computed before
 * it. A send or receive runs beside them: it is known to be done only behind a compute task that depends on
 * it, and it may take over only what was used up to a compute task it depends on. */
#include "plan/program_check.h"

#include <string.h>

typedef struct usage {
    int32_t first, last;  /* tasks, in list order */
    int32_t last_compute; /* -1: none */
    int32_t async[2];     /* last send or collective, last receive; -1 */
} usage;

typedef struct memory_check {
    hp_arena *arena;
    const hp_role *r;
    int role;
    usage *use;          /* per buffer */
    int32_t *known_done; /* per task: first compute task that depends on it (send, receive, collective) */
    int32_t *behind;     /* per task: last compute task it depends on, directly */
} memory_check;

static bool is_compute(const hp_role *r, int task) {
    return r->task[task].queue == 0;
}

static void note_use(memory_check *m, int task, int32_t buffer) {
    usage *u = &m->use[buffer];
    if (u->first < 0) u->first = task;
    u->last = task;
    if (is_compute(m->r, task)) {
        u->last_compute = task;
    } else {
        u->async[m->r->queue[m->r->task[task].queue].kind == HP_QUEUE_RECV] = task;
    }
}

static void note_deps(memory_check *m, int task) {
    const hp_role *r = m->r;
    m->behind[task] = -1;
    for (int i = r->dep_first[task]; i < r->dep_first[task + 1]; i++) {
        const int on = r->dep[i];
        if (is_compute(r, on) && on > m->behind[task]) m->behind[task] = on;
        if (!is_compute(r, on) && is_compute(r, task) && task < m->known_done[on]) m->known_done[on] = task;
    }
}

static void gather(memory_check *m) {
    const hp_role *r = m->r;
    m->use = HP_NEW(m->arena, usage, r->n_buffer);
    memset(m->use, -1, sizeof(usage) * (size_t)r->n_buffer);
    m->known_done = HP_NEW(m->arena, int32_t, r->n_task);
    m->behind = HP_NEW(m->arena, int32_t, r->n_task);
    for (int t = 0; t < r->n_task; t++) m->known_done[t] = INT32_MAX;
    for (int t = 0; t < r->n_task; t++) {
        int32_t used[HP_MAX_USES];
        note_deps(m, t);
        for (int n = hp_task_uses(r, t, used), i = 0; i < n; i++) note_use(m, t, used[i]);
    }
}

static bool depends_directly(const hp_role *r, int task, int on) {
    for (int i = r->dep_first[task]; i < r->dep_first[task + 1]; i++)
        if (r->dep[i] == on) return true;
    return false;
}

/* Is `task` known to start after every use of the earlier buffer? */
static bool starts_after(const memory_check *m, int task, const usage *u) {
    const hp_role *r = m->r;
    if (!is_compute(r, task) && u->last_compute > m->behind[task]) return false;
    for (int k = 0; k < 2; k++) {
        const int a = u->async[k];
        if (a < 0) continue;
        const int known = m->known_done[a];
        const bool after = is_compute(r, task) ? known <= task : known <= m->behind[task];
        if (!after && !depends_directly(r, task, a)) return false;
    }
    return true;
}

static bool share_bytes(const hp_buffer *a, const hp_buffer *b) {
    return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static hp_status overlap(const memory_check *m, int a, int b, hp_error *err) {
    return hp_fail(err, HP_EPLAN,
                   "E-OVERLAP: rank %d: buffers %d and %d share memory and may be in use together", m->role,
                   a, b);
}

/* Buffers in order of first use; `front` holds those whose memory nobody has wholly taken over yet. */
static hp_status check_role(memory_check *m, hp_error *err) {
    const hp_role *r = m->r;
    int32_t *count = HP_NEW(m->arena, int32_t, r->n_task + 2),
            *order = HP_NEW(m->arena, int32_t, r->n_buffer);
    int32_t *front = HP_NEW(m->arena, int32_t, r->n_buffer);
    int n = 0, n_front = 0;
    for (int b = 0; b < r->n_buffer; b++) {
        if (b < HP_BUF_FIXED) m->use[b] = (usage){0, r->n_task, r->n_task, {-1, -1}}; /* in use throughout */
        if (m->use[b].first >= 0) count[m->use[b].first + 1]++;
    }
    for (int t = 0; t < r->n_task; t++) count[t + 1] += count[t];
    for (int b = 0; b < r->n_buffer; b++)
        if (m->use[b].first >= 0 && ++n) order[count[m->use[b].first]++] = b;
    for (int i = 0; i < n; i++) {
        const int b = order[i];
        const hp_buffer *buffer = &r->buffer[b];
        int kept = 0;
        for (int k = 0; k < n_front; k++) {
            const int a = front[k];
            const hp_buffer *older = &r->buffer[a];
            const bool shares = buffer->bytes && older->bytes && share_bytes(older, buffer);
            if (shares &&
                (m->use[a].last >= m->use[b].first || !starts_after(m, m->use[b].first, &m->use[a])))
                return overlap(m, a, b, err);
            const bool covered = shares && is_compute(r, m->use[b].first) &&
                                 buffer->offset <= older->offset &&
                                 older->offset + older->bytes <= buffer->offset + buffer->bytes;
            if (!covered) front[kept++] = a;
        }
        n_front = kept;
        front[n_front++] = b;
    }
    return HP_OK;
}

hp_status hp_check_memory(const hp_program *p, hp_error *err) {
    hp_status s = HP_OK;
    for (int role = 0; role < p->n_role && s == HP_OK; role++) {
        memory_check m = {.arena = hp_arena_new(), .r = &p->role[role], .role = role};
        gather(&m);
        s = check_role(&m, err);
        hp_arena_free(m.arena);
    }
    return s;
}
