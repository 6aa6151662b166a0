/* comm.h - messages between ranks: one small vtable, every operation non-blocking and polled.
 *
 * Operations on one (peer, tag) match in the order they are started, and so do the all-reduces of one group.
 * Nothing makes progress by itself: the caller polls with test. No call ever blocks, so the caller owns every
 * deadline. */
#ifndef HP_COMM_H
#define HP_COMM_H

#include "exec/base/memory.h"
#include "plan/program/program.h"

typedef enum hp_comm_kind { HP_COMM_SEND, HP_COMM_RECV, HP_COMM_ALLREDUCE } hp_comm_kind;

enum { HP_COMM_WORLD = -1 /* group of all ranks, there before any program's groups */ };

/* Ranks of one job reach the exchanges of its start and end within the time others need to read the plan, the
 * data and to create their kernels: two minutes cover the slowest of those by an order of magnitude. */
enum { HP_COMM_SETUP_LIMIT_S = 120 };

typedef struct hp_comm_op {
    int32_t kind;          /* hp_comm_kind */
    int32_t peer;          /* send, recv: rank of the world */
    int32_t group;         /* all-reduce: group of the joined program, or HP_COMM_WORLD */
    int32_t tag;           /* send, recv: >= 0 */
    int32_t dtype;         /* hp_dtype; all-reduce: HP_F32 or HP_F64 */
    int64_t count;         /* elements */
    void *data;            /* not to be touched until the operation is done; all-reduce sums in place */
    int32_t backend;       /* hp_backend */
    bool device;           /* data lies in the device's memory, not in the host's */
    const hp_order *order; /* of an ordered back end's device work; needed during start alone */
} hp_comm_op;

typedef struct hp_comm hp_comm;

typedef struct hp_comm_ops {
    const char *name;
    /* Makes the communicators of the program's groups. Collective: over all ranks. */
    hp_status (*join)(hp_comm *comm, const hp_program *p, hp_error *err);
    /* Starts an operation. All-reduces: in the same order on all members; the sum is taken in a fixed order
     * and has the same bits on every member. */
    hp_status (*start)(hp_comm *comm, const hp_comm_op *op, int *handle, hp_error *err);
    /* Of an ordered back end's operations, those started since the last end go to the device as one group:
     * they move together, none waits for another. NULL: there is no ordered back end. */
    hp_status (*end)(hp_comm *comm, hp_error *err);
    /* Polls; a done handle is released. */
    hp_status (*test)(hp_comm *comm, int handle, bool *done, hp_error *err);
    /* Are a back end's operations ordered by a device's events? Then they may be started before their data is
     * there, `order` says behind what, and are done when order->done has happened. NULL: none are. */
    bool (*ordered)(const hp_comm *comm, int backend);
    void (*close)(hp_comm *comm);           /* collective: over all ranks; nothing may be in flight */
    void (*abort)(hp_comm *comm, int code); /* ends every rank of the job; does not return */
} hp_comm_ops;

struct hp_comm {
    const hp_comm_ops *ops;
    int rank, size;
    int64_t sent_bytes;   /* by this rank so far, collectives included */
    int64_t direct_bytes; /* of these, what peers copied from this rank's memory themselves (comm/peer.c) */
};

/* comm/staged.c: messages of data in a device's memory over a communicator that reads the host's alone:
 * through page-locked memory, by copies beside the device's work. Takes over `inner`, which ordered back ends
 * reach as they are. Errors: none but those of the calls it passes on. */
hp_comm *hp_comm_staged(hp_comm *inner, const hp_memory *memory);

/* comm/peer.c: messages between ranks of one node whose memories can reach each other: one copy on the
 * receiver's device. All else passes to `inner`, which `*comm` takes over, of a failure, too; it is `inner`
 * itself where the memory has no peers. Messages lie in the `bytes` at `arena`, one allocation, which is to
 * outlive the communicator. Collective: over all ranks. Errors: those of the calls it passes on. */
hp_status hp_comm_peer(hp_comm *inner, const hp_memory *memory, void *arena, int64_t bytes, hp_comm **comm,
                       hp_error *err);

/* One process alone: all-reduces over one rank are done at once, messages are refused. */
hp_status hp_comm_self_open(hp_comm **comm, hp_error *err);
/* MPI_Init and the world. Errors: HP_EUNAVAIL. */
hp_status hp_comm_mpi_open(hp_comm **comm, hp_error *err);
/* "Open MPI v4.1.4": the library this process runs with; needs no MPI_Init. */
const char *hp_comm_mpi_version(char *out, size_t n);
/* MPI when a launcher (mpirun, srun) started this process as one of several, else the process alone. */
hp_status hp_comm_open(hp_comm **comm, hp_error *err);

/* --- comm.c: waiting with a deadline, and small exchanges built on it. Collective: over all ranks --- */

/* Starts and polls until done. Errors: HP_ESTALL after `limit_s` seconds, the message names `what` and the
 * ranks. */
hp_status hp_comm_run(hp_comm *comm, const hp_comm_op *op, double limit_s, const char *what, hp_error *err);
/* Every rank's `value` in all[size]. */
hp_status hp_comm_share(hp_comm *comm, double value, double *all, const char *what, hp_error *err);
/* Every rank's n bytes in all[size * n]. */
hp_status hp_comm_share_bytes(hp_comm *comm, const void *mine, int64_t n, void *all, const char *what,
                              hp_error *err);
/* The outcome of a step every rank takes: HP_OK when all agree. Else the code of the lowest rank that failed,
 * on all ranks, and *speaker tells whether this rank is the one to print its message. */
hp_status hp_comm_agree(hp_comm *comm, hp_status mine, bool *speaker, hp_error *err);

#endif
