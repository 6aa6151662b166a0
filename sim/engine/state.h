/* state.h - the simulator's state while it runs, and what its parts do with it: each file's functions
 * under its name, from the steps of a rank (interp.c) down. */
#ifndef HP_STATE_H
#define HP_STATE_H

#include "sim/engine/classes.h"
#include "sim/engine/fluid.h"
#include "sim/engine/sim.h"
#include "plan/lower/lower_placement.h"
#include "plan/program/ready.h"

typedef struct id_list {
    int32_t *id;
    int32_t first, n, capacity; /* live: id[first .. n-1] */
} id_list;

/* Resources that ranks share: a node's compute, a node's NICs out and in, a leaf switch's links up and down,
 * a device's link out and in, a device's compute, its path to host memory out and in (separate from its link
 * to other devices), and the cores of a node with fewer cores than ranks. */
typedef enum sim_resource_kind {
    RES_NODE,
    RES_NICS_OUT,
    RES_NICS_IN,
    RES_LEAF_UP,
    RES_LEAF_DOWN,
    RES_LINK_OUT,
    RES_LINK_IN,
    RES_DEVICE,
    RES_HOST_OUT,
    RES_HOST_IN,
    RES_CORES,
    RES_KINDS
} sim_resource_kind;

/* Most uses of a message: host memory, NICs, leaf switches or links at both ends. */
enum { SIM_WAY = 8 };

/* A channel from a sender to its receiver: messages match and travel in order. Stored at the sender's
 * queue. */
typedef struct channel {
    uint8_t *posted; /* per message: number of ends posted, 0 to 2 */
    int32_t next;    /* first message that has not arrived */
    bool active;
    hp_share_use use[SIM_WAY];
    int32_t n_use;
} channel;

typedef struct sim_steps sim_steps;
typedef struct sim_slices sim_slices;
typedef struct sim_periods sim_periods;

/* Members of a communicator that belong to one class: they call from the same queue. */
typedef struct caller {
    int32_t rank, queue, n; /* class; how many */
} caller;

/* A communicator: the ranks of a group, within one replica if every replica has its own. Its collectives run
 * in order. */
typedef struct communicator {
    const hp_wired_group *group;
    int32_t replica; /* the first replica that takes part */
    caller *caller;
    int32_t n_caller;
    int32_t *posted; /* per collective: number of members that posted it */
    int32_t next, members;
    int32_t parts_left;          /* communication on cores: callers still working on the round */
    int32_t rounds, rounds_left; /* rounds of the collective; rounds left */
    bool active;
    hp_share_use *use;
    int32_t n_use;
    sim_steps *steps; /* set if its collectives are simulated step by step; otherwise NULL */
} communicator;

typedef struct core_part {
    int32_t task;
    int64_t since_ns;
} core_part;

/* Communication that a core has to work on; live: part[first .. n-1]. */
typedef struct part_queue {
    core_part *part;
    int32_t first, n, capacity;
} part_queue;

/* The rank's time by cause. */
typedef struct time_spent {
    int64_t compute_ns, recompute_ns, packing_ns, coding_ns, wait_ns[HP_SIM_WAITS];
    int64_t idle_since_ns;        /* device machines: start of the stretch that is counted next */
    int32_t moving[HP_SIM_WAITS]; /* device machines: transfers of this rank under way */
} time_spent;

/* A class of ranks, through the one that is simulated; an ordinary rank where nothing is folded. */
typedef struct rank_state {
    hp_ready ready;
    int32_t role, world; /* the simulated rank's */
    int32_t *peer;       /* per queue: the class that it leads to, or of communicators */
    /* per queue of collectives: members of the communicator that are of this class; where it is simulated
     * step by step, the rank's number among them */
    int32_t *calls;
    channel *channel; /* per queue; used where it sends */
    id_list starting; /* communication queues whose head may start */
    part_queue parts;
    id_list arrived; /* finished elsewhere, to be noticed at the next boundary */
    int32_t running; /* task on the core or device, -1 = none */
    hp_share_use use[6];
    int64_t since_ns; /* start of the running task */
    time_spent spent;
    bool awake;
    int64_t *t0_ns, *t1_ns; /* per task, when spans are wanted */
    hp_core core;           /* its current slowness, with jitter */
    double *late;           /* per task, with jitter: additional time of the class's last rank; NULL: none */
} rank_state;

typedef struct sim {
    hp_arena *arena;
    const hp_program *program;
    const hp_graph *graph;
    const hp_machine *machine;
    const hp_sim_costs *costs;
    const hp_sim_options *options;
    hp_wiring *wiring;
    hp_classes *classes;
    int32_t n_rank; /* classes of ranks: from here on, "rank" means one of them */
    hp_events events;
    hp_fluid *fluid;
    int32_t resource_first[RES_KINDS + 1];
    int64_t now_ns;
    int64_t left; /* unfinished tasks over all ranks */
    rank_state *rank;
    communicator *comm;    /* classes of them */
    uint8_t **wait;        /* per role and task: hp_sim_wait_of of communication */
    id_list awake, starts; /* ranks that make progress, and that may start something */
    bool on_cores;         /* cores do the communication */
    bool serves;           /* buckets have servers; ranks are not folded */
    bool shared_devices;   /* a device runs more than one rank */
    sim_slices *slices;    /* NULL: no more ranks than cores, or they share them evenly */
    sim_periods *periods;  /* NULL: every micro-batch is simulated */
} sim;

enum owner_kind { OWNER_CORE, OWNER_MESSAGE, OWNER_COLLECTIVE, OWNER_STEP };
static inline int64_t owner_make(enum owner_kind kind, int32_t a, int32_t b) {
    return (int64_t)kind | (int64_t)a << 2 | (int64_t)b << 34;
}

static inline const hp_wired_role *sim_role(const sim *s, int rank) {
    return &s->wiring->role[s->rank[rank].role];
}

/* A resource, indexed by the class of its place. */
static inline int32_t sim_resource(const sim *s, sim_resource_kind kind, int32_t place) {
    return s->resource_first[kind] + place;
}
/* Kind of place to which such resources belong. */
hp_place_kind sim_place_of(sim_resource_kind kind);

/* wake.c: what a rank learns */
void sim_push(sim *s, id_list *l, int32_t id);
/* Queues a part of a transfer as work for the rank's core. */
void sim_push_part(sim *s, int rank, int task);
/* Something changed for the rank: it makes progress at this instant. */
void sim_wake(sim *s, int rank);
/* The task is done: its dependents may start. */
void sim_complete(sim *s, int rank, int task);

/* routes.c: routes and costs of messages */
void sim_channels_init(sim *s);
/* Does MPI carry it between GPUs? Then messages that leave the node, and all-reduces, go through host
 * memory. */
bool sim_by_host(const sim *s, const hp_queue *q);
/* A message's resource uses between two ranks; returns the number of uses. */
int sim_route(const sim *s, int from, int to, const hp_queue *queue, hp_share_use use[SIM_WAY]);

/* communicators.c: after the channels */
void sim_communicators_init(sim *s);

/* transfer.c: messages and collectives */
void sim_start_transfer(sim *s, int rank, int task);
void sim_part_done(sim *s, int rank, int task); /* a core has done its part of it */
/* The core's current work in a part that takes `ns` in total. */
int64_t sim_part_ns(const sim *s, int rank, int task, int64_t ns);
void sim_message_done(sim *s, int rank, int queue); /* device machines */
void sim_collective_done(sim *s, int comm);         /* device machines */

/* steps.c */
/* Is it a star around a bucket's server? */
bool sim_is_star(const sim *s, const communicator *c);
void sim_steps_init(sim *s, communicator *c); /* Sets c->steps if its steps are known. */
void sim_steps_post(sim *s, int comm, int member);
void sim_step_done(sim *s, int comm, int from);

/* resources.c */
void sim_open_resources(sim *s);
int64_t sim_duration_ns(sim *s, int rank, int task);
/* Time of a transfer before it uses links; it takes work_ns when alone. */
int64_t sim_latency_ns(const sim *s, int rank, int task, int64_t work_ns);
/* A task's use of the node's cores, or of a shared device; returns the number of uses. */
int sim_compute_uses(const sim *s, int rank, int task, hp_share_use *use);

/* slices.c: more ranks than cores */
sim_slices *sim_slices_new(sim *s);
/* Sets the capacities of the nodes' cores in s->fluid. */
void sim_slices_open(const sim *s);
/* Must the rank wait for its core before it can go on? If so, it is woken then. */
bool sim_slices_wait(sim *s, int rank);
void sim_slices_look(sim *s, int rank, int32_t look); /* an owner's event */
/* The rank computes from now on, or waits and leaves the core to others. */
void sim_slices_use(sim *s, int rank, bool computes);

/* delay.c: with jitter */
void sim_delay_last(sim *s, int rank);

/* account.c */
void sim_list_waits(sim *s);
/* Device machines: adds the time since the last call to what the rank waits for. */
void sim_account_idle(sim *s, int rank);
/* Device machines: `change` transfers of the task's kind begin or end. */
void sim_account_transfer(sim *s, int rank, int task, int change);
void sim_account_compute(rank_state *r, const hp_task *t, int64_t ns);

/* result.c */
void sim_write_result(sim *s, hp_sim_result *out);

/* sim_stall.c: E-DEADLOCK, naming the ranks that stopped */
hp_status sim_stalled(const sim *s, hp_error *err);

#endif
