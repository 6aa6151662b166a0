/* mpi_collectives.h - the MPI library's own collectives: opaque, with additions in any order. */
#ifndef HP_MPI_COLLECTIVES_H
#define HP_MPI_COLLECTIVES_H

#include "exec/comm/comm.h"

#include <mpi.h>

/* MPI's types and reductions. 16-bit floats get types of their own, by which hplan's
 * reductions recognise them. */
typedef struct hp_mpi_types {
    MPI_Datatype type[HP_DTYPES];
    MPI_Op op[HP_REDUCTIONS]; /* hplan's */
} hp_mpi_types;
hp_status hp_mpi_types_open(hp_mpi_types *t, hp_error *err);
void hp_mpi_types_close(hp_mpi_types *t);
hp_status hp_mpi_checked(int code, const char *call, hp_error *err);

/* One under way. */
typedef struct hp_mpi_collective {
    hp_comm_op op;
    int n, me;
    int *ints;              /* counts and displacements */
    unsigned char *scratch; /* for operations that MPI cannot do in place */
    int64_t first, own;     /* elements: the member's block of the result */
} hp_mpi_collective;

/* Errors: HP_EUNAVAIL (more elements than MPI can count). */
hp_status hp_mpi_collective_start(hp_mpi_collective *c, const hp_comm_op *op, const hp_mpi_types *t,
                                  MPI_Comm comm, MPI_Request *request, hp_error *err);
/* Called after the request completes, or start fails. */
void hp_mpi_collective_end(hp_mpi_collective *c);

#endif
