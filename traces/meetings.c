/* meetings.c - numbers messages first, then the calls of each group, from the program's wiring. */
#include "traces/meetings.h"

static void number_messages(hp_arena *arena, hp_meetings *m, int32_t *n) {
    const hp_program *p = m->wiring->program;
    m->message = HP_NEW(arena, int32_t *, p->n_role);
    for (int r = 0; r < p->n_role; r++) {
        m->message[r] = HP_NEW(arena, int32_t, p->role[r].n_task);
        for (int t = 0; t < p->role[r].n_task; t++) m->message[r][t] = -1;
    }
    for (int r = 0; r < p->n_role; r++)
        for (int t = 0; t < p->role[r].n_task; t++) {
            const hp_queue *q = hp_wired_queue_of(&m->wiring->role[r], t);
            const int other = q->kind == HP_QUEUE_SEND ? hp_wired_other_end(m->wiring, r, t) : -1;
            if (other < 0) continue;
            m->message[r][t] = m->message[q->peer][other] = (*n)++;
        }
}

hp_meetings hp_meetings_new(hp_arena *arena, const hp_program *p) {
    hp_meetings m = {.wiring = hp_wiring_new(arena, p), .first_call = HP_NEW(arena, int32_t, p->n_group)};
    int32_t n = 0;
    number_messages(arena, &m, &n);
    for (int g = 0; g < p->n_group; g++) {
        m.first_call[g] = n;
        n += m.wiring->group[g].calls;
    }
    return m;
}

int32_t hp_meeting_of(const hp_meetings *m, int role, int task) {
    const hp_wired_role *w = &m->wiring->role[role];
    const hp_queue *q = hp_wired_queue_of(w, task);
    return q->kind == HP_QUEUE_COLL ? m->first_call[q->peer] + w->place[task] : m->message[role][task];
}

bool hp_meeting_is_world(const hp_meetings *m, int role, int task) {
    const hp_queue *q = hp_wired_queue_of(&m->wiring->role[role], task);
    return q->kind == HP_QUEUE_COLL && m->wiring->program->group[q->peer].all_replicas;
}
