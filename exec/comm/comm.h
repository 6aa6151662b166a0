/* comm.h - messages between ranks and collectives: one small vtable, every operation non-blocking and polled.
 *
 * Operations on one (peer, tag) match in the order they are started, and so do the collectives of one group.
 * Nothing makes progress by itself: the caller polls with test. No call ever blocks, so the caller owns every
 * deadline. */
#ifndef HP_COMM_H
#define HP_COMM_H

#include "exec/base/exec_memory.h"
#include "plan/program/program.h"

typedef enum hp_comm_kind { HP_COMM_SEND, HP_COMM_RECV, HP_COMM_COLLECTIVE } hp_comm_kind;

enum { HP_COMM_WORLD = -1 /* group of all ranks; exists before any program is joined */ };

/* How long a rank waits for the others at the start and the end of a job: they may still be reading the plan
 * and the data or creating kernels. Two minutes cover the slowest of those by an order of magnitude. */
enum { HP_COMM_SETUP_LIMIT_S = 120 };

typedef struct hp_comm_op {
    int32_t kind;          /* hp_comm_kind */
    int32_t peer;          /* send, recv: rank of the world */
    int32_t group;         /* collectives: group of the joined program, or HP_COMM_WORLD */
    int32_t tag;           /* send, recv: >= 0, below HP_COMM_TAGS */
    int32_t dtype;         /* hp_dtype */
    int64_t count;         /* elements; of a collective, of the whole data */
    void *data;            /* not to be touched until the operation is done */
    int32_t backend;       /* hp_backend */
    bool device;           /* data is in device memory, not in the host's */
    const hp_order *order; /* ordered back ends: the events around it; read by start alone */
    int64_t
        *sent; /* counts the bytes that this rank hands to sends or to peers' copies for it; NULL: nobody */

    /* Collectives. `data` has room for the whole on every member; what a member contributes is at its place there, or
     * in `source`: all that it contributes, without gaps. At the end it holds what the collective says
     * (plan/collectives/collectives.def), the rest of it is undefined. */
    int32_t what;        /* hp_collective */
    int32_t algorithm;   /* hp_algorithm; LIBRARY: the back end's own, or by the rule of plan/collectives */
    int32_t reduction;   /* hp_reduction */
    int32_t root;        /* member */
    int32_t per_node;    /* as hp_call */
    const int64_t *part; /* as hp_collective_data; until the operation is done */
    const void *source;  /* NULL: in place */
    int64_t
        source_bytes; /* room of `source`, which has to be copied as a whole where it is in device memory */
} hp_comm_op;

enum { HP_COMM_TAGS = 1 << 29 }; /* of programs; as many above them are own.c's */

typedef struct hp_comm hp_comm;

typedef struct hp_comm_ops {
    const char *name;
    /* Makes the communicators of the program's groups. Collective: over all ranks. */
    hp_status (*join)(hp_comm *comm, const hp_program *p, hp_error *err);
    /* Starts an operation. Collectives: in the same order on all members. By steps of plan/collectives a sum is taken in
     * a fixed order; a library's may differ from run to run. */
    hp_status (*start)(hp_comm *comm, const hp_comm_op *op, int *handle, hp_error *err);
    /* Submits the operations of an ordered back end that were started since the last end, as one group: they
     * progress together, none waits for another. NULL: there is no ordered back end. */
    hp_status (*end)(hp_comm *comm, hp_error *err);
    /* Polls; a done handle is released. */
    hp_status (*test)(hp_comm *comm, int handle, bool *done, hp_error *err);
    /* Are a back end's operations ordered by a device's events? Then they may be started before their data is
     * ready, `order` has the events that they wait for, and are complete when order->done is. NULL: none are. */
    bool (*ordered)(const hp_comm *comm, int backend);
    void (*close)(hp_comm *comm);           /* collective: over all ranks; nothing may be in flight */
    void (*abort)(hp_comm *comm, int code); /* ends every rank of the job; does not return */
} hp_comm_ops;

struct hp_comm {
    const hp_comm_ops *ops;
    int rank, size;
    int64_t sent_bytes; /* by this rank so far, collectives included */
    int64_t
        direct_bytes; /* of these, bytes that peers copied from this rank's memory (comm/peer.c), or that were
                           * handed to a library that reads device memory (comm/staged.c) */
    bool reads_device; /* messages of data in device memory need no staging: GPU-aware MPI */
};

/* comm/staged.c: messages and collectives of data in device memory over a communicator that reads host memory alone: staged
 * through page-locked memory, by copies concurrent with the device's work. Messages of one that reads device memory pass
 * to it unchanged; its collectives are staged, as non-blocking ones of Open MPI want host memory, and hplan's own add on
 * the host. Takes ownership of `inner`; operations of ordered back ends pass to it unchanged. Errors: those of the calls it passes on. */
hp_comm *hp_comm_staged(hp_comm *inner, const hp_memory *memory);

/* comm/peer.c: messages between ranks of one node that can map each other's memory: one copy on the receiver's
 * device. All else passes to `inner`, of which `*comm` takes ownership, after a failure as well; `*comm` is
 * `inner` itself where the memory has no peers. Messages lie in the `bytes` at `arena`, one allocation, which
 * must outlive the communicator. Collective: over all ranks. Errors: those of the calls it passes on. */
hp_status hp_comm_peer(hp_comm *inner, const hp_memory *memory, void *arena, int64_t bytes, hp_comm **comm,
                       hp_error *err);

/* comm/own.c: collectives of the back ends whose collectives are steps (hp_backend_steps), over messages of `inner`, of
 * which it takes ownership; all else passes to it. Their data is in the host's memory. */
hp_comm *hp_comm_own(hp_comm *inner);
/* What its messages go through, to be wrapped and put back before any is under way. */
hp_comm **hp_comm_own_inner(hp_comm *own);

/* A single process: messages are refused. */
hp_status hp_comm_self_open(hp_comm **comm, hp_error *err);
/* MPI_Init and the world. Errors: HP_EUNAVAIL. */
hp_status hp_comm_mpi_open(hp_comm **comm, hp_error *err);
/* "Open MPI v4.1.4": the library this process runs with; needs no MPI_Init. */
const char *hp_comm_mpi_version(char *out, size_t n);
/* MPI when a launcher (mpirun, srun) started this process as one of several, else a single process. */
hp_status hp_comm_open(hp_comm **comm, hp_error *err);

/* --- comm.c: blocking calls with a deadline, for the start and end of a job. Collective: over all ranks --- */

/* Starts an operation and polls until it is done. Errors: HP_ESTALL after `limit_s` seconds, the message names
 * `what` and the ranks. */
hp_status hp_comm_run(hp_comm *comm, const hp_comm_op *op, double limit_s, const char *what, hp_error *err);
/* Gathers every rank's `value` into all[size]. */
hp_status hp_comm_share(hp_comm *comm, double value, double *all, const char *what, hp_error *err);
/* Gathers every rank's n bytes into all[size * n]. */
hp_status hp_comm_share_bytes(hp_comm *comm, const void *mine, int64_t n, void *all, const char *what,
                              hp_error *err);
/* The outcome of a step that every rank takes: HP_OK if all succeeded, else the code of the lowest rank that
 * failed, on all ranks; *speaker: this rank is the one that prints its message. */
hp_status hp_comm_agree(hp_comm *comm, hp_status mine, bool *speaker, hp_error *err);
/* The same for what takes longer than getting ready; `what` is waited for. */
hp_status hp_comm_share_within(hp_comm *comm, double value, double *all, double limit_s, const char *what,
                               hp_error *err);
hp_status hp_comm_agree_within(hp_comm *comm, hp_status mine, bool *speaker, double limit_s, const char *what,
                               hp_error *err);

#endif
