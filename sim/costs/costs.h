/* costs.h - the cost table in the simulator's form: one figure per task of a program. */
#ifndef HP_COSTS_H
#define HP_COSTS_H

#include "sim/costs/cost_cache.h"
#include "sim/engine/sim.h"

/* --- exchange.c: messages that together form a collective. Within a stage, every part sends every other one
 * its part of a tensor (gathered tokens or scattered summands: tp=). hplan sends these as messages;
 * Megatron-LM's tensor-parallel group does both halves at once by an all-reduce of all tokens. */

/* The participants; ranks 0: not such an exchange. */
typedef struct hp_exchange {
    int32_t ranks, per_node;
} hp_exchange;

/* Per task of a role: does it belong to an exchange between all parts of this channel? That includes its
 * messages, copies into and out of them, and their sums, which the collective does itself. Lives in
 * `arena`. */
bool *hp_exchanges_of(hp_arena *arena, const hp_role *r);

/* The parts to which a rank's message queue leads, including its own, and how many of them are on its
 * node. */
hp_exchange hp_exchange_of(const hp_program *p, const hp_machine *m, int rank, int queue);

/* Cost of one of the messages. Latencies pass concurrently and bytes one after another, so that all messages
 * together take as long as half the all-reduce of all parts. bytes: of the message. */
hp_cost hp_exchange_cost(hp_cost_cache *c, hp_wire by, const hp_exchange *e, int64_t bytes);

/* Costs of every task of a program; `costs` points into `arena`. The cache belongs to one graph. */
typedef struct hp_program_costs {
    hp_arena *arena;
    hp_cost_cache *cache;
    hp_cost **cost; /* per role and task; messages: within the first replica */
    double **share;
    double *late_s; /* per role: for which its device waits for a framework's host */
    struct hp_program_costs
        *of_class[1 + HP_MORE_CLASSES]; /* compute tasks' costs on each class; NULL: not computed yet */
    bool **in_exchange;                 /* per role and task; NULL: messages are priced as messages */
    hp_exchange **exchange;             /* per role and queue, first replica; ranks 0: not computed yet */
    int32_t *
        *per_node; /* per group: members on one node, per replica if each has its own; 0: not computed yet */
} hp_program_costs;
hp_sim_costs hp_costs_of_program(hp_arena *arena, hp_cost_cache *cache, const hp_program *p,
                                 const hp_graph *g);

/* Seconds of a step for which a role's device waits for a framework's host. */
double hp_costs_late_s(const hp_sim_costs *costs, int role);

/* Share of the program's work time (all tasks, all roles) with measured costs. */
double hp_costs_measured_share(const hp_sim_costs *costs, const hp_program *p, const hp_graph *g);

#endif
