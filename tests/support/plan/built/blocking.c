/* blocking.c - see blocking.h. */
#include "tests/support/plan/built/blocking.h"

hp_program *program_blocking(hp_arena *arena, const hp_program *p) {
    hp_program *out = HP_NEW(arena, hp_program, 1);
    *out = *p;
    out->role = HP_NEW(arena, hp_role, p->n_role);
    for (int s = 0; s < p->n_role; s++) {
        const hp_role *from = &p->role[s];
        hp_role *to = &out->role[s];
        *to = *from;
        to->dep_first = HP_NEW(arena, int32_t, from->n_task + 1);
        to->dep = HP_NEW(arena, int32_t, from->n_dep + from->n_task);
        to->n_dep = 0;
        for (int t = 0; t < from->n_task; t++) {
            to->dep_first[t] = to->n_dep;
            if (t) to->dep[to->n_dep++] = t - 1;
            for (int i = from->dep_first[t]; i < from->dep_first[t + 1]; i++)
                to->dep[to->n_dep++] = from->dep[i];
        }
        to->dep_first[from->n_task] = to->n_dep;
    }
    return out;
}
