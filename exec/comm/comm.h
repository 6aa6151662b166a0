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

/* How long a rank waits for the others at the start and end of a job, while they may still read the plan and
 * data or create kernels. Two minutes exceed the slowest of those by an order of magnitude. */
enum { HP_COMM_SETUP_LIMIT_S = 120 };

typedef struct hp_comm_op {
    int32_t kind;          /* hp_comm_kind */
    int32_t peer;          /* send, recv: rank in the world */
    int32_t group;         /* collectives: group of the joined program, or HP_COMM_WORLD */
    int32_t tag;           /* send, recv: >= 0, below HP_COMM_TAGS */
    int32_t dtype;         /* hp_dtype */
    int64_t count;         /* elements; for a collective: of the whole data */
    void *data;            /* must not be touched until the operation is done */
    int32_t backend;       /* hp_backend */
    bool device;           /* data is in device memory */
    const hp_order *order; /* ordered back ends: the events around the operation; read only by start */
    int64_t *sent; /* adds the bytes that this rank hands to sends or to peers' copies; NULL: not counted */

    /* Collectives. `data` has room for the whole on every member. A member's contribution is at its place
     * there, or in `source` without gaps. Afterwards `data` holds what plan/collectives/collectives.def says;
     * the rest of it is undefined. */
    int32_t what;         /* hp_collective */
    int32_t algorithm;    /* hp_algorithm; LIBRARY: the back end's own, or by the rule of plan/collectives */
    int32_t reduction;    /* hp_reduction */
    int32_t root;         /* member */
    int32_t per_node;     /* as hp_call */
    const int64_t *part;  /* as hp_collective_data; must stay valid until the operation is done */
    const void *source;   /* NULL: in place */
    int64_t source_bytes; /* size of `source`, which is copied as a whole where it is in device memory */
} hp_comm_op;

enum { HP_COMM_TAGS = 1 << 29 }; /* tags of programs; own.c uses as many above them */

typedef struct hp_comm hp_comm;

typedef struct hp_comm_ops {
    const char *name;
    /* Makes the communicators of the program's groups. Collective: over all ranks. */
    hp_status (*join)(hp_comm *comm, const hp_program *p, hp_error *err);
    /* Starts an operation. All members start collectives in the same order. Sums by steps of plan/collectives
     * are added in a fixed order; a library's order may vary from run to run. */
    hp_status (*start)(hp_comm *comm, const hp_comm_op *op, int *handle, hp_error *err);
    /* Submits as one group the ordered back ends' operations started since the last end. They progress
     * together; none waits for another. NULL: there is no ordered back end. */
    hp_status (*end)(hp_comm *comm, hp_error *err);
    /* Polls; a done handle is released. */
    hp_status (*test)(hp_comm *comm, int handle, bool *done, hp_error *err);
    /* Does this back end order its operations by a device's events? Such operations may be started before
     * their data is ready: they wait for the events in `order` and are complete when order->done is.
     * NULL: no back end does. */
    bool (*ordered)(const hp_comm *comm, int backend);
    void (*close)(hp_comm *comm);           /* collective: over all ranks; nothing may be in flight */
    void (*abort)(hp_comm *comm, int code); /* ends every rank of the job; does not return */
} hp_comm_ops;

struct hp_comm {
    const hp_comm_ops *ops;
    int rank, size;
    int64_t sent_bytes; /* by this rank so far, collectives included */
    int64_t
        direct_bytes;  /* part of these: copied by peers from this rank's memory (comm/peer.c), or sent by a
                        * library that reads device memory (comm/staged.c) */
    bool reads_device; /* messages from and to device memory need no staging: GPU-aware MPI */
};

/* comm/staged.c: stages messages and collectives of device memory through page-locked memory, for a
 * communicator that reads only host memory. Copies run concurrently with the device's work. Where the
 * communicator reads device memory, messages pass unchanged, but collectives are staged: non-blocking ones of
 * Open MPI want host memory, and hplan's own add on the host. Operations of ordered back ends pass unchanged.
 * Takes ownership of `inner`. Errors: those of the calls it passes on. */
hp_comm *hp_comm_staged(hp_comm *inner, const hp_memory *memory);

/* comm/peer.c: messages between ranks of one node that can map each other's memory take one copy, done by
 * the receiver's device. Everything else passes to `inner`. `*comm` takes ownership of `inner`, even
 * after a failure; `*comm` is `inner` itself where the memory has no peers. Messages lie in the `bytes`
 * at `arena`, one allocation, which must outlive the communicator. Collective: over all ranks. Errors:
 * those of the calls it passes on. */
hp_status hp_comm_peer(hp_comm *inner, const hp_memory *memory, void *arena, int64_t bytes, hp_comm **comm,
                       hp_error *err);

/* comm/own.c: collectives made of steps (hp_backend_steps), as messages over `inner`, of which it takes
 * ownership. Everything else passes to `inner`. Their data is in host memory. */
hp_comm *hp_comm_own(hp_comm *inner);
/* The communicator that carries its messages. It may be wrapped and restored while no
 * message is under way. */
hp_comm **hp_comm_own_inner(hp_comm *own);

/* A single process: messages are refused. */
hp_status hp_comm_self_open(hp_comm **comm, hp_error *err);
/* MPI_Init and the world. Errors: HP_EUNAVAIL. */
hp_status hp_comm_mpi_open(hp_comm **comm, hp_error *err);
/* "Open MPI v4.1.4": the library this process runs with; needs no MPI_Init. */
const char *hp_comm_mpi_version(char *out, size_t n);
/* MPI if a launcher (mpirun, srun) started this process as one of several, else a single process. */
hp_status hp_comm_open(hp_comm **comm, hp_error *err);

/* --- comm.c: blocking calls with a deadline, collective over all ranks: for the start
 * and end of a job --- */

/* Starts an operation and polls until it is done. Errors: HP_ESTALL after `limit_s` seconds; the message
 * names `what` and the ranks. */
hp_status hp_comm_run(hp_comm *comm, const hp_comm_op *op, double limit_s, const char *what, hp_error *err);
/* Gathers every rank's `value` into all[size]. */
hp_status hp_comm_share(hp_comm *comm, double value, double *all, const char *what, hp_error *err);
/* Gathers every rank's n bytes into all[size * n]. */
hp_status hp_comm_share_bytes(hp_comm *comm, const void *mine, int64_t n, void *all, const char *what,
                              hp_error *err);
/* Agrees on the outcome of a step that every rank takes: HP_OK if all succeeded, else the code of the lowest
 * rank that failed. *speaker: this rank is the one to print its message. */
hp_status hp_comm_agree(hp_comm *comm, hp_status mine, bool *speaker, hp_error *err);
/* The same, with a longer limit; `what`: what is waited for. */
hp_status hp_comm_share_within(hp_comm *comm, double value, double *all, double limit_s, const char *what,
                               hp_error *err);
hp_status hp_comm_agree_within(hp_comm *comm, hp_status mine, bool *speaker, double limit_s, const char *what,
                               hp_error *err);

#endif
