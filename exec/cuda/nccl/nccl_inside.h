/* nccl_inside.h - inside of nccl/nccl.h: its communicators and pending operations. */
#ifndef HP_NCCL_INSIDE_H
#define HP_NCCL_INSIDE_H

#include "exec/cuda/nccl/nccl.h"
#include "exec/cuda/runtime/cuda.h"

#include <nccl.h>

typedef struct hp_nccl_op { /* a started operation; its handle is its index */
    bool used, direct;      /* direct: inner's */
    int handle;             /* inner's */
    ncclComm_t comm;
    cudaEvent_t done;
} hp_nccl_op;

typedef struct hp_nccl_pending { /* submitted between begin and end */
    hp_comm_op op;
    hp_order order;
    cudaEvent_t *after;
} hp_nccl_pending;

typedef struct hp_nccl {
    hp_comm base;
    hp_comm *inner;
    hp_cuda *cuda;
    const hp_program *program;
    ncclComm_t world;
    int n_group;
    ncclComm_t *group; /* those of the joined program; NULL: not a member, or a group of MPI */
    int n_op;
    hp_nccl_op *op;
    int n_pending, room;
    hp_nccl_pending *pending;
    int64_t own_bytes; /* sent by NCCL */
    float *greeting;   /* buffer for first messages, in GPU memory */
} hp_nccl;

/* Sets HP_EDEAD or HP_EUNAVAIL, naming the call and NCCL's reason. */
hp_status hp_nccl_refused(const hp_nccl *c, ncclResult_t code, ncclComm_t comm, const char *call,
                          hp_error *err);
/* Waits until a non-blocking communicator no longer answers `in progress`. Errors: as above; HP_ESTALL. */
hp_status hp_nccl_settled(const hp_nccl *c, ncclComm_t comm, ncclResult_t code, const char *call,
                          hp_error *err);

/* Enqueues a collective among `n` members, of which this is `me`, on `stream`. Call between
 * ncclGroupStart and ncclGroupEnd. */
ncclResult_t hp_nccl_collective(const hp_comm_op *op, ncclDataType_t type, int n, int me, ncclComm_t comm,
                                cudaStream_t stream);

/* Open the communicator of all ranks, make those of the program's groups (hp_comm_ops.join), and close all.
 * Collective: over all ranks. */
hp_status hp_nccl_open(hp_nccl *c, hp_error *err);
hp_status hp_nccl_join(hp_comm *comm, const hp_program *p, hp_error *err);
void hp_nccl_close(hp_nccl *c);

#endif
