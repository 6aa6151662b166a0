/* gradient_ring.c - the program by hand: one role, a compute queue and a communicator of all replicas. */
#include "tests/support/sim/gradient_ring.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>

const gradient_ring gradient_ring_128 = {.ranks = 128,
                                         .buckets = 10,
                                         .forward_s = 80e-3,
                                         .backward_s = 16e-3,
                                         .bucket_bytes = 10240000,
                                         .link_bytes_per_s = 25e9,
                                         .latency_s = 1e-6};

static double message_s(const gradient_ring *r, double bytes) {
    return r->latency_s + bytes / r->link_bytes_per_s;
}

int64_t gradient_ring_ns(const gradient_ring *r) {
    const int64_t message_ns = llround(1e9 * message_s(r, (double)r->bucket_bytes / r->ranks));
    return llround(1e9 * (r->forward_s + r->buckets * r->backward_s)) + 2 * (r->ranks - 1) * message_ns;
}

static void list_tasks(hp_arena *arena, const gradient_ring *r, hp_role *role) {
    role->n_task = 1 + 2 * r->buckets;
    role->n_dep = r->buckets;
    role->task = HP_NEW(arena, hp_task, role->n_task);
    role->dep_first = HP_NEW(arena, int32_t, role->n_task + 1);
    role->dep = HP_NEW(arena, int32_t, role->n_dep);
    role->task[0] = (hp_task){.op = HP_TASK_FWD, .layer = -1};
    for (int b = 0; b < r->buckets; b++) {
        role->task[1 + 2 * b] = (hp_task){.op = HP_TASK_BWD, .layer = -1};
        role->task[2 + 2 * b] =
            (hp_task){.op = HP_TASK_ALLREDUCE,
                      .queue = 1,
                      .dtype = HP_F32,
                      .algorithm = (uint8_t)(r->algorithm ? r->algorithm : HP_ALGORITHM_RING),
                      .collective = {.bucket = b, .elems = r->bucket_bytes / 4},
                      .n_operand = 1};
        role->dep[b] = 1 + 2 * b;
    }
    for (int t = 0; t < role->n_task; t++)
        role->dep_first[t + 1] = role->dep_first[t] + (role->task[t].op == HP_TASK_ALLREDUCE);
}

hp_program *gradient_ring_program(hp_arena *arena, const gradient_ring *r) {
    hp_program *p = HP_NEW(arena, hp_program, 1);
    hp_role *role = HP_NEW(arena, hp_role, 1);
    *p = (hp_program){.mode = HP_MODE_TRAIN,
                      .dtype = HP_F32,
                      .dp = r->ranks,
                      .micro = 1,
                      .clients = 1,
                      .n_role = 1,
                      .n_group = 1,
                      .n_member = 1,
                      .role = role,
                      .group = HP_NEW(arena, hp_group, 1),
                      .member = HP_NEW(arena, int32_t, 1)};
    p->group[0] = (hp_group){.n = 1, .all_replicas = 1};
    role->n_queue = 2;
    role->queue = HP_NEW(arena, hp_queue, 2);
    role->queue[0] = (hp_queue){HP_QUEUE_COMPUTE, -1, 0, HP_BACKEND_NCCL};
    role->queue[1] = (hp_queue){HP_QUEUE_COLL, 0, 0, HP_BACKEND_NCCL};
    role->n_buffer = role->n_operand = 1;
    role->buffer = HP_NEW(arena, hp_buffer, 1);
    role->buffer[0] = (hp_buffer){.kind = HP_BUF_GRADS, .dtype = HP_F32, .bytes = r->bucket_bytes};
    role->operand = HP_NEW(arena, int32_t, 1);
    list_tasks(arena, r, role);
    return p;
}

/* One device per node: every message takes the network. */
hp_machine gradient_ring_machine(const gradient_ring *r) {
    return (hp_machine){.name = "ring",
                        .nodes = r->ranks,
                        .devices_per_node = 1,
                        .cores_per_node = 1,
                        .nics_per_node = 1,
                        .inter = {"net", r->latency_s, r->link_bytes_per_s}};
}

static double task_seconds(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    (void)g;
    const gradient_ring *r = self;
    const hp_task *t = &p->role[rank % p->n_role].task[task];
    if (t->op != HP_TASK_ALLREDUCE) return t->op == HP_TASK_FWD ? r->forward_s : r->backward_s;
    const hp_collective_case c = {HP_COLLECTIVE_ALLREDUCE, r->ranks, 0, 1};
    const hp_collective_load load = hp_algorithm_load((hp_algorithm)t->algorithm, &c);
    return load.across.rounds * r->latency_s +
           load.across.sent * (double)r->bucket_bytes / r->link_bytes_per_s;
}

static double message_seconds(void *self, const hp_program *p, const hp_task *t, int from, int to,
                              double bytes) {
    (void)p, (void)t, (void)from, (void)to;
    return message_s(self, bytes);
}

hp_sim_costs gradient_ring_costs(const gradient_ring *r) {
    return (hp_sim_costs){.seconds = task_seconds, .message = message_seconds, .self = (void *)r};
}

hp_sim_result gradient_ring_run(hp_arena *arena, const gradient_ring *r, bool steps) {
    const hp_machine m = gradient_ring_machine(r);
    const hp_sim_costs costs = gradient_ring_costs(r);
    const hp_sim_options o = {.fold = !steps, .steps = steps, .straggler_rank = -1};
    hp_sim_result result;
    hp_error err = {HP_OK, ""};
    if (hp_sim_run(arena, gradient_ring_program(arena, r), NULL, &m, &costs, &o, &result, &err) != HP_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    return result;
}
