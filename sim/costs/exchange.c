/* exchange.c - finds messages that form one exchange, and the cost of their collective. */
#include "sim/costs/costs.h"

#include "plan/lower/lower_placement.h"

static bool within(const hp_role *r, const hp_task *t) {
    return (t->op == HP_TASK_SEND || t->op == HP_TASK_RECV) &&
           (r->queue[t->queue].channel & HP_CHANNEL_WITHIN) != 0;
}

static bool same_end(const hp_queue *a, const hp_queue *b) {
    return a->kind == b->kind && a->channel == b->channel;
}

/* Number of the role's queues of the same kind and channel: the other parts. */
static int others_of(const hp_role *r, const hp_queue *q) {
    int n = 0;
    for (int k = 1; k < r->n_queue; k++) n += same_end(&r->queue[k], q);
    return n;
}

/* Messages of one round are adjacent among those of their kind (plan/lower/lower_move.c). */
static bool same_round(const hp_role *r, const hp_task *a, const hp_task *b) {
    return same_end(&r->queue[a->queue], &r->queue[b->queue]) && a->micro == b->micro &&
           a->message.position == b->message.position;
}

typedef struct round {
    const hp_task *first;
    int n;
} round;

/* Marks a round's messages if they reach all other parts. */
static void end_round(const hp_role *r, round *of, bool *marked) {
    const hp_task *t = of->first;
    const bool all = t && of->n == others_of(r, &r->queue[t->queue]);
    for (int left = all ? of->n : 0; left > 0; t++)
        if (t->op == of->first->op && within(r, t)) {
            marked[t - r->task] = true;
            left--;
        }
    *of = (round){NULL, 0};
}

/* Is it a copy into or out of an exchange's messages, or their sum? */
static bool by_collective(const hp_role *r, const hp_task *t, const bool *sent) {
    if (t->op != HP_TASK_COPY && t->op != HP_TASK_ACCUM) return false;
    for (int k = 0; k < t->n_operand; k++) {
        const int32_t b = r->operand[t->operand + k];
        if (sent[b] && r->buffer[b].kind == HP_BUF_MESSAGE) return true;
    }
    return false;
}

static void mark_copies(hp_arena *arena, const hp_role *r, bool *marked) {
    bool *sent = HP_NEW(arena, bool, r->n_buffer);
    for (int i = 0; i < r->n_task; i++)
        for (int k = 0; k < r->task[i].n_operand && marked[i]; k++)
            sent[r->operand[r->task[i].operand + k]] = true;
    for (int i = 0; i < r->n_task; i++) marked[i] |= by_collective(r, &r->task[i], sent);
}

bool *hp_exchanges_of(hp_arena *arena, const hp_role *r) {
    bool *marked = HP_NEW(arena, bool, r->n_task);
    round sends = {NULL, 0}, receives = {NULL, 0};
    for (int i = 0; i < r->n_task; i++) {
        const hp_task *t = &r->task[i];
        if (!within(r, t)) continue;
        round *of = t->op == HP_TASK_SEND ? &sends : &receives;
        if (of->first && !same_round(r, of->first, t)) end_round(r, of, marked);
        if (!of->first) of->first = t;
        of->n++;
    }
    end_round(r, &sends, marked);
    end_round(r, &receives, marked);
    mark_copies(arena, r, marked);
    return marked;
}

hp_exchange hp_exchange_of(const hp_program *p, const hp_machine *m, int rank, int queue) {
    const hp_role *r = &p->role[rank % p->n_role];
    const int replica = rank - rank % p->n_role, node = hp_rank_node(p, m, rank);
    hp_exchange e = {1, 1};
    for (int k = 1; k < r->n_queue; k++) {
        if (!same_end(&r->queue[k], &r->queue[queue])) continue;
        e.ranks++;
        e.per_node += hp_rank_node(p, m, replica + r->queue[k].peer) == node;
    }
    return e;
}

hp_cost hp_exchange_cost(hp_cost_cache *c, hp_wire by, const hp_exchange *e, int64_t bytes) {
    const hp_collective_call sum = {
        .by = by, .what = HP_COLLECTIVE_ALLREDUCE, .ranks = e->ranks, .per_node = e->per_node};
    const hp_cost none = hp_costs_collective(c, &sum, 0),
                  all = hp_costs_collective(c, &sum, e->ranks * bytes);
    const double seconds = (none.seconds + (all.seconds - none.seconds) / (e->ranks - 1)) / 2;
    const double scale = all.seconds > 0 ? seconds / all.seconds : 0;
    return (hp_cost){seconds, all.low * scale, all.high * scale, all.source};
}
