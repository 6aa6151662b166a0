/* layout.c - stages and their parts to ranks, and back; how many ranks, devices and samples that takes.
 *
 * Strategies come from users, who may ask for more than any machine has: products stay at a largest number
 * instead of wrapping around. */
#include "plan/strategy/layout.h"

static const int64_t MOST = INT64_C(1) << 40;

static int64_t times(int64_t a, int64_t b) {
    return a > MOST / b ? MOST : a * b;
}

static int count(int64_t n) {
    return n > INT32_MAX ? INT32_MAX : (int)n;
}

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
        return (hp_layout){1, 1, count(times(s->sp_rows[last], s->sp_cols[last])), s->cp};
    }
    return (hp_layout){1, 1, s->ldp, s->cp};
}

int hp_stage_parts(const hp_strategy *s, int stage) {
    const hp_layout l = hp_stage_layout(s, stage);
    return count(times(times(times(l.rows, l.cols), times(l.slices, l.channels)), s->bp));
}

/* Roles of the positions before this one. */
static int first_role(const hp_strategy *s, int position) {
    int64_t role = 0;
    for (int p = 0; p < position; p++) role += hp_stage_parts(s, p);
    return count(role);
}

int hp_strategy_roles(const hp_strategy *s) {
    return first_role(s, hp_positions(s));
}

int hp_strategy_replicas(const hp_strategy *s) {
    return count(times(s->dp, s->clients));
}

int hp_strategy_ranks(const hp_strategy *s) {
    return count(times(hp_strategy_replicas(s), hp_strategy_roles(s)));
}

int hp_strategy_devices(const hp_strategy *s) {
    return count(times(s->dp, hp_strategy_roles(s)));
}

int64_t hp_strategy_divisor(const hp_strategy *s) {
    const int slices = hp_stage_layout(s, s->stages - 1).slices; /* the last stage has the most */
    return times(times(hp_strategy_replicas(s), slices), times(s->gems, s->micro));
}

int64_t hp_strategy_batch(const hp_strategy *s, int64_t at_least) {
    const int64_t group = hp_strategy_divisor(s), n = (at_least + group - 1) / group;
    return (n < 1 ? 1 : n) * group;
}

/* The role that sits where `role` does in the mirror image; its own inverse. Channel slices and branches stay
 * as they are, so that a role keeps the same slice of whatever stage it has. */
static int mirrored(const hp_strategy *s, int role) {
    const int block = s->cp * s->bp, blocks = hp_strategy_roles(s) / block;
    return (blocks - 1 - role / block) * block + role % block;
}

int hp_role_of(const hp_strategy *s, int stage, int part, int flip) {
    const int role = first_role(s, hp_position_of(s, stage)) + part;
    return flip ? mirrored(s, role) : role;
}

void hp_role_place(const hp_strategy *s, int role, int flip, int *position, int *part) {
    int left = flip ? mirrored(s, role) : role, p = 0;
    while (left >= hp_stage_parts(s, p)) left -= hp_stage_parts(s, p++);
    *position = p;
    *part = left;
}
