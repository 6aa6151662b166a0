/* costs.h - the cost table as the simulator wants it: one figure per task of a program. */
#ifndef HP_COSTS_H
#define HP_COSTS_H

#include "sim/cost_cache.h"
#include "sim/interp.h"

/* --- exchange.c: messages that together are a collective: within a stage every part sends every other one its part of a tensor (tokens
 * that are gathered, summands that are scattered: tp=). hplan sends them as messages; Megatron-LM's tensor-parallel group does
 * both halves at once by an all-reduce of all tokens. */

/* Who takes part; ranks 0: it is no such exchange. */
typedef struct hp_exchange {
    int32_t ranks, per_node;
} hp_exchange;

/* Per task of a role: is it a message of an exchange between all parts that this channel connects, or a copy into such messages
 * or out of them or a sum of them, which the collective does itself? Lives in `arena`. */
bool *hp_exchanges_of(hp_arena *arena, const hp_role *r);

/* The parts that a rank's queue of messages leads to and its own, and how many of them are on its node. */
hp_exchange hp_exchange_of(const hp_program *p, const hp_machine *m, int rank, int queue);

/* What one of the messages takes alone: their latencies pass together, their bytes one after another, so that with the others
 * it takes as long as half the all-reduce of all parts. bytes: of the message. */
hp_cost hp_exchange_cost(hp_cost_cache *c, hp_wire by, const hp_exchange *e, int64_t bytes);

/* Costs of every task of a program; `costs` points into `arena`. The cache belongs to one graph. */
typedef struct hp_program_costs {
    hp_arena *arena;
    hp_cost_cache *cache;
    hp_cost **cost; /* per role and task; messages: within the first replica */
    double **share;
    struct hp_program_costs
        *of_class[1 + HP_MORE_CLASSES]; /* what compute tasks take on each class; NULL: not asked yet */
    bool **in_exchange;                 /* per role and task; NULL: messages are messages */
    hp_exchange **exchange; /* per role and queue, of the first replica; ranks 0 = not asked yet */
    int32_t *
        *per_node; /* per group: members on one node, per replica where each has its own; 0 = not asked yet */
} hp_program_costs;
hp_sim_costs hp_costs_of_program(hp_arena *arena, hp_cost_cache *cache, const hp_program *p,
                                 const hp_graph *g);

/* Share of the program's work time (all tasks, all roles) whose figures were measured. */
double hp_costs_measured_share(const hp_sim_costs *costs, const hp_program *p, const hp_graph *g);

#endif
