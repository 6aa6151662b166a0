/* dlrm.c - embeddings split by tables, perceptrons by samples. */
#include "replays/replay_inside.h"

enum { DENSE = 13 /* numeric features */, TASKS = 12 };

/* Weights and biases of consecutive layers. */
static int64_t perceptron(const int64_t *width, int n) {
    int64_t elems = 0;
    for (int i = 1; i < n; i++) elems += (width[i - 1] + 1) * width[i];
    return elems;
}

static int64_t bottom_elems(const hp_replay *r) {
    const int64_t width[] = {DENSE, 512, 256, r->value[HP_DLRM_DIM]};
    return perceptron(width, 4);
}

/* The top multiplies all pairs of the embeddings and the bottom's output. */
static int64_t top_elems(const hp_replay *r) {
    const int64_t tables = r->value[HP_DLRM_TABLES],
                  width[] = {r->value[HP_DLRM_DIM] + (tables + 1) * tables / 2, 1024, 1024, 512, 256, 1};
    return perceptron(width, 6);
}

/* Tables per rank, rounded up: a rank with one less sends as much. */
static int64_t tables_of(const hp_replay *r, int32_t ranks) {
    return (r->value[HP_DLRM_TABLES] + ranks - 1) / ranks;
}

/* Elements that a rank looks up in a step: from its tables, for all ranks. */
static int64_t embedded(const hp_replay *r, int32_t ranks) {
    return ranks * r->value[HP_DLRM_BATCH] * tables_of(r, ranks) * r->value[HP_DLRM_DIM];
}

void replay_dlrm_volumes(const hp_replay *r, int32_t ranks, hp_replay_volume out[HP_REPLAY_VOLUMES]) {
    const double exchanged = 2 * 4.0 * (double)embedded(r, ranks),
                 summed = 4.0 * (double)(bottom_elems(r) + top_elems(r));
    out[0] = (hp_replay_volume){HP_COLLECTIVE_ALL_TO_ALL, 2, exchanged, (ranks - 1) * exchanged};
    out[1] = (hp_replay_volume){HP_COLLECTIVE_ALLREDUCE, 2, summed, 2.0 * (ranks - 1) * summed};
}

int replay_dlrm_tasks(const hp_replay *r) {
    (void)r;
    return TASKS;
}

void replay_dlrm(replay_maker *m, const hp_replay *r) {
    const int64_t batch = r->value[HP_DLRM_BATCH], features = r->value[HP_DLRM_TABLES] + 1,
                  elems = embedded(r, m->way->ranks);
    const double table_bytes = 4.0 * (double)elems, bottom = 2.0 * (double)(batch * bottom_elems(r)),
                 pairs = 2.0 * (double)(batch * features * features * r->value[HP_DLRM_DIM]),
                 top = 2.0 * (double)(batch * top_elems(r)) + pairs;
    const int by_table = hp_compose_buffer(m->role, elems), by_sample = hp_compose_buffer(m->role, elems);
    const int looked_up = replay_compute(m, (replay_work){0, 2 * table_bytes}, -1, -1);
    const int there = replay_exchange(m, by_table, by_sample, elems, looked_up);
    const int below = replay_compute(m, (replay_work){bottom, 0}, -1, -1);
    const int above = replay_compute(m, (replay_work){top, 0}, below, there);
    const int top_back = replay_compute(m, (replay_work){2 * top, 0}, above, -1);
    const int back = replay_exchange(m, by_sample, by_table, elems, top_back);
    const int top_sum = replay_sum(m, top_elems(r), top_back);
    const int bottom_back = replay_compute(m, (replay_work){2 * bottom, 0}, top_back, -1);
    const int bottom_sum = replay_sum(m, bottom_elems(r), bottom_back);
    replay_compute(m, (replay_work){0, 3 * table_bytes}, back, -1);
    replay_compute(m, (replay_work){0, 5 * 4.0 * (double)(top_elems(r) + bottom_elems(r))}, top_sum,
                   bottom_sum);
}
