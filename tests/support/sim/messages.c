/* messages.c - a program of messages alone. */
#include "tests/support/sim/messages.h"

static void add_end(hp_role *r, hp_queue_kind kind, int peer, const message *m, hp_backend by) {
    const int q = r->n_queue++;
    r->queue[q] = (hp_queue){kind, peer, m->channel, by};
    r->task[r->n_task++] = (hp_task){.op = kind == HP_QUEUE_SEND ? HP_TASK_SEND : HP_TASK_RECV,
                                     .queue = (int16_t)q,
                                     .dtype = HP_F32,
                                     .message = {0, m->count},
                                     .layer = -1};
}

hp_program *message_program(hp_arena *arena, int ranks, const message *m, int n, hp_backend by) {
    hp_program *p = HP_NEW(arena, hp_program, 1);
    *p = (hp_program){.mode = HP_MODE_TRAIN,
                      .dtype = HP_F32,
                      .device = HP_DEVICE_CUDA,
                      .dp = 1,
                      .micro = 1,
                      .clients = 1,
                      .n_role = ranks,
                      .role = HP_NEW(arena, hp_role, ranks)};
    for (int k = 0; k < ranks; k++) {
        hp_role *r = &p->role[k];
        int ends = 0;
        for (int i = 0; i < n; i++) ends += (m[i].from == k) + (m[i].to == k);
        r->queue = HP_NEW(arena, hp_queue, ends + 1);
        r->task = HP_NEW(arena, hp_task, ends + 1);
        r->dep_first = HP_NEW(arena, int32_t, ends + 1);
        r->queue[r->n_queue++] = (hp_queue){HP_QUEUE_COMPUTE, -1, 0, by};
    }
    for (int i = 0; i < n; i++) {
        add_end(&p->role[m[i].from], HP_QUEUE_SEND, m[i].to, &m[i], by);
        add_end(&p->role[m[i].to], HP_QUEUE_RECV, m[i].from, &m[i], by);
    }
    return p;
}
