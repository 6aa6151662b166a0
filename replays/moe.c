/* moe.c - tokens go to their experts and come back, in both directions of every pair of blocks. */
#include "replays/replay_inside.h"

/* Elements of a pair outside the experts: two attentions, one feed-forward layer of four times the width. */
static int64_t shared_elems(const hp_replay *r) {
    const int64_t h = r->value[HP_MOE_HIDDEN];
    return (4 + 4 + 8) * h * h;
}

/* Elements that a rank's tokens send to all their experts, in equal parts. */
static int64_t routed(const hp_replay *r, int32_t ranks) {
    const int64_t elems = r->value[HP_MOE_TOKENS] * r->value[HP_MOE_HIDDEN] * r->value[HP_MOE_TOP];
    return (elems + ranks - 1) / ranks * ranks;
}

void replay_moe_volumes(const hp_replay *r, int32_t ranks, hp_replay_volume out[HP_REPLAY_VOLUMES]) {
    const int32_t pairs = (int32_t)r->value[HP_MOE_LAYERS];
    const double exchanged = 4.0 * pairs * 4 * (double)routed(r, ranks),
                 summed = 4.0 * pairs * (double)shared_elems(r);
    out[0] = (hp_replay_volume){HP_COLLECTIVE_ALL_TO_ALL, 4 * pairs, exchanged, (ranks - 1) * exchanged};
    out[1] = (hp_replay_volume){HP_COLLECTIVE_ALLREDUCE, pairs, summed, 2.0 * (ranks - 1) * summed};
}

int replay_moe_tasks(const hp_replay *r) {
    enum { OF_A_PAIR = 10 };
    return OF_A_PAIR * (int)r->value[HP_MOE_LAYERS] + 1;
}

/* Forward operations per rank for one pair. */
static replay_work shared_work(const hp_replay *r, double passes) {
    const double h = (double)r->value[HP_MOE_HIDDEN], n = (double)r->value[HP_MOE_TOKENS];
    return (replay_work){passes * (2 * (double)shared_elems(r) * n + 2 * 4 * n * n * h),
                         4.0 * passes * (double)shared_elems(r)};
}
static replay_work expert_work(const hp_replay *r, double passes) {
    const double h = (double)r->value[HP_MOE_HIDDEN],
                 n = (double)(r->value[HP_MOE_TOKENS] * r->value[HP_MOE_TOP]);
    return (replay_work){passes * 2 * 8 * h * h * n, 4 * passes * 8 * h * h};
}

void replay_moe(replay_maker *m, const hp_replay *r) {
    const int pairs = (int)r->value[HP_MOE_LAYERS];
    const int64_t elems = routed(r, m->way->ranks);
    const int here = hp_compose_buffer(m->role, elems), there = hp_compose_buffer(m->role, elems);
    int at = -1, sum = -1;
    for (int i = 0; i < pairs; i++) {
        at = replay_compute(m, shared_work(r, 1), at, -1);
        at = replay_exchange(m, here, there, elems, at);
        at = replay_compute(m, expert_work(r, 1), at, -1);
        at = replay_exchange(m, there, here, elems, at);
    }
    for (int i = 0; i < pairs; i++) {
        at = replay_exchange(m, here, there, elems, at);
        at = replay_compute(m, expert_work(r, 2), at, -1);
        at = replay_exchange(m, there, here, elems, at);
        at = replay_compute(m, shared_work(r, 2), at, -1);
        sum = replay_sum(m, shared_elems(r), at);
    }
    replay_compute(m, (replay_work){0, 5 * 4.0 * (double)(pairs * shared_elems(r))}, at, sum);
}
