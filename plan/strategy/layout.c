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

int hp_shares(const hp_strategy *s) {
    return s->by[HP_AXIS_N].n ? s->dp : 1;
}

int hp_positions(const hp_strategy *s) {
    return s->sp.tail == HP_TAIL_SHARED && s->sp.n > 0 && s->sp.n < s->stages ? s->sp.n : s->stages;
}

int hp_position_of(const hp_strategy *s, int stage) {
    const int n = hp_positions(s);
    return stage < n ? stage : n - 1;
}

/* Layout within one of the replicas with shares of their own. */
typedef struct grid {
    int32_t rows, cols, slices;
} grid;

static grid grid_of(const hp_strategy *s, int stage) {
    if (stage < s->sp.n) return (grid){s->sp.rows[stage], s->sp.cols[stage], 1};
    if (hp_positions(s) == s->stages) return (grid){1, 1, s->ldp};
    const int last = s->sp.n - 1; /* tail=shared: tiles become slices of the samples */
    return (grid){1, 1, count(times(s->sp.rows[last], s->sp.cols[last]))};
}

hp_layout hp_stage_layout(const hp_strategy *s, int stage) {
    const grid g = grid_of(s, stage);
    hp_layout l = {.rows = g.rows,
                   .cols = g.cols,
                   .slices = count(times(hp_shares(s), g.slices)),
                   .channels = s->cp,
                   .tp = s->tp,
                   .seq = s->seq.ranks,
                   .seq_by_heads = s->seq.by == (int32_t)HP_SEQ_A2A,
                   .by = {s->by[HP_AXIS_N]}};
    if (g.rows > 1) l.by[HP_AXIS_H] = s->by[HP_AXIS_H];
    if (g.cols > 1) l.by[HP_AXIS_W] = s->by[HP_AXIS_W];
    return l;
}

/* Parts of a stage in one of the replicas with shares of their own. */
static int own_parts(const hp_strategy *s, int stage) {
    const grid g = grid_of(s, stage);
    const int64_t tokens = times(s->tp, s->seq.ranks), tiles = times(times(g.rows, g.cols), g.slices);
    return count(times(times(tiles, tokens), times(s->cp, s->bp)));
}

int hp_stage_parts(const hp_strategy *s, int stage) {
    return count(times(own_parts(s, stage), hp_shares(s)));
}

/* Roles before this position within one of these replicas. Positions after the tiled ones are alike; a user
 * may ask for any number of them. */
static int first_role(const hp_strategy *s, int position) {
    const int tiled = position < s->sp.n ? position : s->sp.n;
    int64_t role = 0;
    for (int p = 0; p < tiled; p++) role += own_parts(s, p);
    if (position > tiled) role += (int64_t)(position - tiled) * own_parts(s, tiled);
    return count(role);
}

/* Roles of one of these replicas. */
static int own_roles(const hp_strategy *s) {
    return first_role(s, hp_positions(s));
}

int hp_strategy_roles(const hp_strategy *s) {
    return count(times(own_roles(s), hp_shares(s)));
}

int hp_strategy_replicas(const hp_strategy *s) {
    return count(times(s->dp / hp_shares(s), s->clients));
}

int hp_strategy_ranks(const hp_strategy *s) {
    return count(times(hp_strategy_replicas(s), hp_strategy_roles(s)));
}

int hp_strategy_devices(const hp_strategy *s) {
    return count(times(s->dp, own_roles(s)));
}

int64_t hp_strategy_divisor(const hp_strategy *s) {
    const int slices = grid_of(s, s->stages - 1).slices; /* the last stage has the most */
    const int64_t shares = s->by[HP_AXIS_N].n ? hp_proportions_sum(&s->by[HP_AXIS_N]) : 1;
    return times(times(hp_strategy_replicas(s), shares), times(slices, times(s->gems, s->micro)));
}

int64_t hp_strategy_batch(const hp_strategy *s, int64_t at_least) {
    const int64_t group = hp_strategy_divisor(s), n = (at_least + group - 1) / group;
    return (n < 1 ? 1 : n) * group;
}

/* The role in the mirrored place of `role` in the same replica; its own inverse. Channel slices and branches
 * stay, so that a role keeps the same slice of every stage it has. */
static int mirrored(const hp_strategy *s, int role) {
    const int block = s->cp * s->tp * s->bp, blocks = own_roles(s) / block;
    return (blocks - 1 - role / block) * block + role % block;
}

int hp_role_of(const hp_strategy *s, int stage, int part, int flip) {
    const int parts = own_parts(s, stage);
    const int role = first_role(s, hp_position_of(s, stage)) + part % parts;
    return part / parts * own_roles(s) + (flip ? mirrored(s, role) : role);
}

void hp_role_place(const hp_strategy *s, int role, int flip, int *position, int *part) {
    const int replica = role / own_roles(s), own = role % own_roles(s);
    int left = flip ? mirrored(s, own) : own, p = 0;
    while (left >= own_parts(s, p)) left -= own_parts(s, p++);
    *position = p;
    *part = replica * own_parts(s, p) + left;
}
