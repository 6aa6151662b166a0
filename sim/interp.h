/* interp.h - the program on a virtual clock: integer nanoseconds, a total order of events, same input same
 * trace. */
#ifndef HP_INTERP_H
#define HP_INTERP_H

#include "costmodels/table.h"
#include "plan/program/program.h"
#include "sim/jitter.h"
#include "traces/trace_ring.h"

/* What a task costs; tests give closed-form costs, hplan gives the cost table (sim/search/evaluate.h). `rank` is a
 * rank of the world (its role is rank % n_role). Folded runs ask for one rank of a class: costs may depend on the
 * role and on which ranks that it communicates with share its node, on nothing else. */
typedef struct hp_sim_costs {
    /* duration alone on its resources */
    double (*seconds)(void *self, const hp_program *p, const hp_graph *g, int rank, int task);
    /* share it takes while it runs, of the node's compute where ranks share the node's cores, of its device's
     * where a device runs several ranks (0: it contends with no other task); of messages and collectives, of a core of a
     * CPU machine (0: all of it); NULL: none does */
    double (*share)(void *self, const hp_program *p, const hp_graph *g, int rank, int task);
    void *self;
    /* a message of a collective task between two ranks of the world; NULL: collectives are simulated as a whole */
    double (*message)(void *self, const hp_program *p, const hp_task *t, int from, int to, double bytes);
    /* how much of a message's or collective's duration no other one makes longer, as nothing passes a link; NULL: none of it.
     * Of a message of a collective, what one of no bytes takes. */
    double (*latency)(void *self, const hp_program *p, const hp_graph *g, int rank, int task);
    /* do a queue's messages, together with those to its other parts, go as one collective (sim/exchange.c), among so many ranks,
     * so many of them on this one's node? They then use what that does. NULL: none do */
    bool (*collective)(void *self, const hp_program *p, int rank, int queue, int32_t *per_node,
                       int32_t *ranks);
} hp_sim_costs;

/* What a rank without anything to compute waits for while it moves. */
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
    double bubble;       /* fraction of the step a rank computes nothing and moves nothing, mean over ranks */
    double exposed_comm; /* fraction of the step a rank waits for communication, mean over ranks */
    double wait[HP_SIM_WAITS]; /* exposed_comm by what was moving */
    /* Fractions of the step spent on running layers again, on copying boxes, and on encoding and decoding. */
    double recompute, packing, coding;
    int64_t comm_bytes;  /* sent by all ranks, all-reduce as 2(p-1)/p of its bytes per rank */
    int32_t simulated;   /* classes of ranks: all ranks where nothing is folded */
    int64_t passed_over; /* tasks of these that were not simulated, as they repeat others */
    int32_t n_rank;      /* that have spans: all if wanted, else none */
    int64_t *n_span;     /* per rank */
    hp_span **span;      /* per rank, in order of start; ranks of a class share them */
} hp_sim_result;

typedef struct hp_sim_options {
    /* ranks that cannot be told apart are simulated once (sim/classes.h), and so are periods of micro-batches
     * (sim/periods.h): the times are the same, but for jitter */
    bool fold;
    /* collectives step by step (sim/steps.c) instead of as a whole; every rank is simulated. Device machines, and
     * algorithms of plan/collectives */
    bool steps;
    bool want_spans;
    /* of compute tasks; of ranks that are simulated as one the last counts, as late as is to be expected */
    hp_jitter_process jitter;
    hp_draws draws;
    /* how long a rank keeps its core where a node has more ranks than cores and nothing is folded (sim/slices.c);
     * 0: they share all cores evenly */
    double slice_s;
    int straggler_rank; /* -1 = none */
    double straggler_factor;
} hp_sim_options;

/* One step of the program.
 *
 * Compute tasks of a rank run one after another in list order. On machines whose devices compute beside the
 * host (share_cpu false) messages and all-reduces run on link resources beside them. On CPU machines
 * communication is work of the ranks' cores at task boundaries: a message is copied by its receiver once both
 * ends are posted, a step of an all-reduce done by each of its members once all have done the one before; the
 * sender and the other members notice at their next boundary. Errors: HP_EPLAN when the program stops
 * (deadlock), naming the ranks. */
hp_status hp_sim_run(hp_arena *arena, const hp_program *p, const hp_graph *g, const hp_machine *m,
                     const hp_sim_costs *costs, const hp_sim_options *o, hp_sim_result *result,
                     hp_error *err);

/* What kind of waiting a communication task causes. */
hp_sim_wait hp_sim_wait_of(const hp_program *p, const hp_role *r, int task);

/* The longest path through dependencies and queues on free resources (no schedule is shorter) is in
 * sim/bounds.h. */

#endif
