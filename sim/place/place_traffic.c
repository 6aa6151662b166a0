/* place_traffic.c - traffic between ranks, and exchanges of seats that keep it within nodes. */
#include "sim/place/place_traffic.h"

#include "base/arena.h"

static void add_pair(double *traffic, int n, int a, int b, double bytes) {
    if (a == b) return;
    traffic[(int64_t)a * n + b] += bytes;
    traffic[(int64_t)b * n + a] += bytes;
}

static double bytes_of(const hp_task *t) {
    return (double)hp_task_bytes(t);
}

/* A member passes on as much as in a ring: twice the data for a sum, once for pure data movement. */
static void add_collective(double *traffic, const hp_program *p, const hp_task *t, int group, int rank) {
    const int n = hp_group_size(p, group), replica = rank / p->n_role;
    const int member = hp_group_member(p, group, rank % p->n_role, replica);
    const double turns = t->op == HP_TASK_ALLREDUCE ? 2 : 1;
    add_pair(traffic, hp_program_ranks(p), rank, hp_group_rank(p, group, replica, (member + 1) % n),
             turns * bytes_of(t) * (n - 1) / n);
}

double *hp_traffic_of(hp_arena *arena, const hp_program *p) {
    const int n = hp_program_ranks(p);
    double *traffic = HP_NEW(arena, double, (int64_t)n *n);
    for (int rank = 0; rank < n; rank++) {
        const hp_role *r = &p->role[rank % p->n_role];
        for (int t = 0; t < r->n_task; t++) {
            const hp_queue *q = &r->queue[r->task[t].queue];
            if (q->kind == HP_QUEUE_SEND)
                add_pair(traffic, n, rank, rank - rank % p->n_role + q->peer, bytes_of(&r->task[t]));
            else if (q->kind == HP_QUEUE_COLL)
                add_collective(traffic, p, &r->task[t], q->peer, rank);
        }
    }
    return traffic;
}

double hp_traffic_between_nodes(const double *traffic, int n, int per_node, const int32_t *seat) {
    double bytes = 0;
    for (int a = 0; a < n; a++)
        for (int b = a + 1; b < n; b++)
            if ((seat ? seat[a] : a) / per_node != (seat ? seat[b] : b) / per_node)
                bytes += traffic[(int64_t)a * n + b];
    return bytes;
}

/* --- exchanges --- */

typedef struct exchanger {
    const double *traffic;
    int n, per_node, nodes;
    int32_t *seat;
    double *to_node; /* [place * nodes + node]: bytes that a place exchanges with the places there */
} exchanger;

static int node_of(const exchanger *x, int place) {
    return x->seat[place] / x->per_node;
}

static void sum_up(exchanger *x) {
    for (int64_t i = 0; i < (int64_t)x->n * x->nodes; i++) x->to_node[i] = 0;
    for (int a = 0; a < x->n; a++)
        for (int b = 0; b < x->n; b++)
            x->to_node[(int64_t)a * x->nodes + node_of(x, b)] += x->traffic[(int64_t)a * x->n + b];
}

/* Bytes that no longer cross nodes. Traffic between the two exchanged places is unaffected. */
static double gain_of(const exchanger *x, int a, int b) {
    const double *of_a = &x->to_node[(int64_t)a * x->nodes], *of_b = &x->to_node[(int64_t)b * x->nodes];
    const int at_a = node_of(x, a), at_b = node_of(x, b);
    return of_a[at_b] - of_a[at_a] + of_b[at_a] - of_b[at_b] - 2 * x->traffic[(int64_t)a * x->n + b];
}

static bool are_alike(const hp_machine *m, int a, int b) {
    return hp_machine_class_at(m, a) == hp_machine_class_at(m, b) &&
           hp_machine_speed_at(m, a) >= hp_machine_speed_at(m, b) &&
           hp_machine_speed_at(m, a) <= hp_machine_speed_at(m, b);
}

/* Returns false if no exchange lowers the bytes by more than rounding. */
static bool exchange_best(exchanger *x, const hp_machine *m, double least) {
    int best_a = -1, best_b = -1;
    double best = least;
    for (int a = 0; a < x->n; a++)
        for (int b = a + 1; b < x->n; b++) {
            if (node_of(x, a) == node_of(x, b) || gain_of(x, a, b) <= best ||
                !are_alike(m, x->seat[a], x->seat[b]))
                continue;
            best = gain_of(x, a, b);
            best_a = a;
            best_b = b;
        }
    if (best_a < 0) return false;
    const int32_t seat = x->seat[best_a];
    x->seat[best_a] = x->seat[best_b];
    x->seat[best_b] = seat;
    sum_up(x);
    return true;
}

void hp_traffic_exchange(const double *traffic, int n, const hp_machine *m, int32_t *seat) {
    hp_arena *scratch = hp_arena_new();
    const int per_node = m->devices_per_node, nodes = (n + per_node - 1) / per_node;
    exchanger x = {traffic, n, per_node, nodes, seat, HP_NEW(scratch, double, (int64_t)n *nodes)};
    sum_up(&x);
    const double least = 1e-9 * hp_traffic_between_nodes(traffic, n, per_node, seat);
    for (int turns = 0; turns < 4 * n && exchange_best(&x, m, least); turns++) continue;
    hp_arena_free(scratch);
}
