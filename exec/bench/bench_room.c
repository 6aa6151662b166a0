/* bench_room.c - see bench_room.h. */
#include "exec/bench/bench_room.h"

#include <string.h>

enum { PAGE = 4096, PARTS = 3 };

/* Size in bytes of the largest data, rounded up to pages. */
static int64_t most_bytes(const hp_bench_setup *s) {
    int64_t most = 0;
    for (int i = 0; i < s->n_series; i++) {
        int64_t count[HP_BENCH_MOST_SIZES];
        const int n = hp_bench_counts(s, s->series[i].what, count);
        if (n > 0 && count[n - 1] > most) most = count[n - 1];
    }
    return (most * hp_dtype_bytes(s->dtype) / PAGE + 1) * PAGE;
}

static bool wants_shared(const hp_bench_setup *s) {
    for (int i = 0; i < s->n_series; i++)
        if (s->series[i].backend == HP_BACKEND_SHM) return true;
    return false;
}

/* Runs a barrier of the shared-memory back end. *shared: some message went through shared memory. */
static hp_status try_shared(const hp_yard_waiter *w, bool *shared, hp_error *err) {
    const hp_comm_op barrier = {.kind = HP_COMM_COLLECTIVE,
                                .group = HP_COMM_WORLD,
                                .what = HP_COLLECTIVE_BARRIER,
                                .backend = HP_BACKEND_SHM};
    HP_TRY(hp_yard_wait(w, &barrier, err));
    double direct = (double)w->comm->direct_bytes;
    const hp_comm_op sum = {
        .kind = HP_COMM_COLLECTIVE, .group = HP_COMM_WORLD, .dtype = HP_F64, .count = 1, .data = &direct};
    HP_TRY(hp_yard_wait(w, &sum, err));
    *shared = direct > 0;
    return HP_OK;
}

static hp_status take(const hp_memory_ops *kind, int64_t each, hp_bench_memory *m, hp_error *err) {
    void *at = NULL;
    HP_TRY(hp_memory_open(kind, NULL, &m->memory, err));
    HP_TRY(m->memory.ops->alloc(&m->memory, PARTS * each, &at, err));
    memset(at, 0, (size_t)(PARTS * each));
    m->bytes = PARTS * each;
    m->data = at;
    m->source = m->data + each;
    m->aside = m->source + each;
    return HP_OK;
}

static void give_back(hp_bench_memory *m) {
    if (m->data) m->memory.ops->free(&m->memory, m->data, m->bytes);
    hp_memory_close(&m->memory);
}

hp_status hp_bench_room_open(hp_bench_room *room, bool *shared, hp_error *err) {
    const int64_t each = most_bytes(room->setup);
    hp_bench_memory *m = &room->shared;
    *shared = true;
    HP_TRY(take(&hp_memory_host, each, &room->private, err));
    if (!wants_shared(room->setup)) return HP_OK;
    HP_TRY(take(&hp_memory_shared, each, m, err));
    hp_comm **messages = hp_comm_own_inner(room->w->comm);
    HP_TRY(hp_comm_peer(*messages, &m->memory, m->data, m->bytes, messages, err));
    return try_shared(room->w, shared, err);
}

void hp_bench_room_close(hp_bench_room *room) {
    give_back(&room->private);
    give_back(&room->shared);
}
