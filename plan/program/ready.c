/* ready.c - the start of a step: nothing has started, no dependency is met. */
#include "plan/program/ready.h"

#include <string.h>

void hp_ready_init(hp_arena *arena, const hp_wired_role *w, hp_ready *r) {
    *r = (hp_ready){.w = w,
                    .wait = HP_NEW(arena, int32_t, w->role->n_task),
                    .head = HP_NEW(arena, int32_t, w->role->n_queue)};
    hp_ready_reset(r);
}

void hp_ready_reset(hp_ready *r) {
    const hp_role *role = r->w->role;
    for (int t = 0; t < role->n_task; t++) r->wait[t] = role->dep_first[t + 1] - role->dep_first[t];
    memset(r->head, 0, sizeof *r->head * (size_t)role->n_queue);
}
