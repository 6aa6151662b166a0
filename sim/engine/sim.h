/* sim.h - the program on a virtual clock: integer nanoseconds, a total order of events; equal input gives
 * an equal trace. */
#ifndef HP_SIM_H
#define HP_SIM_H

#include "costmodels/table.h"
#include "plan/program/program.h"
#include "sim/engine/jitter.h"
#include "traces/trace_ring.h"

/* Costs of tasks. Tests supply closed-form costs, hplan the cost table (sim/search/evaluate.h). `rank` is a
 * rank of the world (its role is rank % n_role). Folded runs ask for one rank of a class, so costs may depend
 * only on the role and on which communicating ranks share its node. */
typedef struct hp_sim_costs {
    /* duration when alone on its resources */
    double (*seconds)(void *self, const hp_program *p, const hp_graph *g, int rank, int task);
    /* Share of a resource used while running. Compute tasks: the node's compute if ranks share its cores, or
     * the device if it runs several ranks (0: no contention). Messages and collectives: a core of a CPU
     * machine (0: all of it). NULL: no contention. */
    double (*share)(void *self, const hp_program *p, const hp_graph *g, int rank, int task);
    void *self;
    /* duration of a collective task's message between two ranks of the world; NULL: collectives are simulated
     * as a whole */
    double (*message)(void *self, const hp_program *p, const hp_task *t, int from, int to, double bytes);
    /* Part of a message's or collective's duration in which it uses no link, so that nothing slows it down;
     * NULL: none. For a collective's message, the time of an empty one. */
    double (*latency)(void *self, const hp_program *p, const hp_graph *g, int rank, int task);
    /* Do a queue's messages form one collective with those to its other parts (sim/costs/exchange.c)? Sets
     * the number of ranks, and of ranks on this one's node. The messages then use the collective's
     * resources. NULL: none do. */
    bool (*collective)(void *self, const hp_program *p, int rank, int queue, int32_t *per_node,
                       int32_t *ranks);
} hp_sim_costs;

/* What a rank without computing work waits for. */
typedef enum hp_sim_wait {
    HP_SIM_HALO,     /* between the parts of a stage: halo rows, channels, new layouts */
    HP_SIM_NORM,     /* statistics of batch norm */
    HP_SIM_STAGE,    /* activations and gradients between stages */
    HP_SIM_GRADIENT, /* all-reduce of the weights' gradients */
    HP_SIM_END,      /* the metrics that end a step */
    HP_SIM_WAITS
} hp_sim_wait;

typedef struct hp_sim_result {
    int64_t makespan_ns;
    double bubble;       /* fraction of the step in which a rank neither computes nor moves data, mean over
                          * ranks */
    double exposed_comm; /* fraction of the step in which a rank waits for communication, mean over ranks */
    double wait[HP_SIM_WAITS]; /* exposed_comm by kind */
    /* Fractions of the step spent on recomputation, on copying boxes, and on encoding and decoding. */
    double recompute, packing, coding;
    int64_t comm_bytes;  /* sent by all ranks; all-reduce counts 2(p-1)/p of its bytes per rank */
    int32_t simulated;   /* classes of ranks; all ranks if nothing is folded */
    int64_t passed_over; /* tasks of these that were not simulated because they repeat others */
    int32_t n_rank;      /* ranks with spans: all if wanted, otherwise none */
    int64_t *n_span;     /* per rank */
    hp_span **span;      /* per rank, in start order; ranks of a class share them */
} hp_sim_result;

typedef struct hp_sim_options {
    /* simulates indistinguishable ranks once (sim/engine/classes.h), and repeating periods of
     * micro-batches once (sim/engine/periods.h): same times, except for jitter */
    bool fold;
    /* simulates collectives step by step (sim/engine/steps.c) and every rank. For device machines and
     * algorithms of plan/collectives */
    bool steps;
    bool want_spans;
    /* jitter of compute tasks; a folded class takes the expected time of its last rank */
    hp_jitter_process jitter;
    hp_draws draws;
    /* how long a rank keeps its core if a node has more ranks than cores and nothing is folded
     * (sim/engine/slices.c); 0: they share all cores evenly */
    double slice_s;
    int straggler_rank; /* -1 = none */
    double straggler_factor;
} hp_sim_options;

/* Simulates one step of the program.
 *
 * A rank's compute tasks run one after another in list order. If devices compute beside the host (share_cpu
 * false), messages and all-reduces use link resources concurrently. On CPU machines, communication is work of
 * the ranks' cores at task boundaries. A receiver copies a message once both ends are posted. Members do a
 * step of an all-reduce once all have done the previous one. The sender and other members notice at their
 * next boundary. Errors: HP_EPLAN if the program stops (deadlock), naming the ranks. */
hp_status hp_sim_run(hp_arena *arena, const hp_program *p, const hp_graph *g, const hp_machine *m,
                     const hp_sim_costs *costs, const hp_sim_options *o, hp_sim_result *result,
                     hp_error *err);

/* What kind of waiting a communication task causes. */
hp_sim_wait hp_sim_wait_of(const hp_program *p, const hp_role *r, int task);

#endif
