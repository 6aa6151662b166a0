/* layout.c - stages and their parts to ranks, and back. */
#include "plan/layout.h"

int hp_positions(const hp_strategy *s) {
    return s->tail == HP_TAIL_SHARED && s->n_sp > 0 && s->n_sp < s->stages ? s->n_sp : s->stages;
}

int hp_position_of(const hp_strategy *s, int stage) {
    const int n = hp_positions(s);
    return stage < n ? stage : n - 1;
}

hp_layout hp_stage_layout(const hp_strategy *s, int stage) {
    if (stage < s->n_sp) return (hp_layout){s->sp_rows[stage], s->sp_cols[stage], 1, s->cp};
    if (hp_positions(s) < s->stages) { /* tail=shared: tiles become slices of the samples */
        const int last = s->n_sp - 1;
        return (hp_layout){1, 1, s->sp_rows[last] * s->sp_cols[last], s->cp};
    }
    return (hp_layout){1, 1, s->ldp, s->cp};
}

int hp_stage_parts(const hp_strategy *s, int stage) {
    const hp_layout l = hp_stage_layout(s, stage);
    return hp_layout_parts(&l);
}

static int first_role(const hp_strategy *s, int position) {
    int role = 0;
    for (int p = 0; p < position; p++) role += hp_stage_parts(s, p);
    return role;
}

int hp_strategy_roles(const hp_strategy *s) {
    return first_role(s, hp_positions(s));
}

int hp_strategy_ranks(const hp_strategy *s) {
    return hp_strategy_replicas(s) * hp_strategy_roles(s);
}

int hp_strategy_devices(const hp_strategy *s) {
    return s->dp * hp_strategy_roles(s);
}

int hp_role_of(const hp_strategy *s, int stage, int part, int flip) {
    const int role = first_role(s, hp_position_of(s, stage)) + part;
    return flip ? hp_strategy_roles(s) - 1 - role : role;
}

void hp_role_place(const hp_strategy *s, int role, int flip, int *position, int *part) {
    int left = flip ? hp_strategy_roles(s) - 1 - role : role, p = 0;
    while (left >= hp_stage_parts(s, p)) left -= hp_stage_parts(s, p++);
    *position = p;
    *part = left;
}
