/* gpu_mpi.c - a stand-in for an MPI that accepts device pointers, to be preloaded: it reports that ability,
 * and sends and receives data in the stand-in's device memory (memory.cc tells where through
 * HPLAN_STANDIN_MEMORY). */
#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#else
__attribute__((visibility("default"))) int MPIX_Query_cuda_support(void); /* as Open MPI declares it */
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int MPIX_Query_cuda_support(void) {
    return 1;
}

/* Parses "FAKE REAL BYTES": addresses that only a GPU can follow, and where the host finds them. */
static void *real_of(const void *at) {
    const char *text = getenv("HPLAN_STANDIN_MEMORY");
    unsigned long long fake = 0, real = 0, bytes = 0;
    if (text && sscanf(text, "%llx %llx %llx", &fake, &real, &bytes) == 3 && (uintptr_t)at - fake < bytes)
        return (void *)(uintptr_t)(real + ((uintptr_t)at - fake)); // NOLINT: an address by number
    return (void *)(uintptr_t)at;
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request) {
    return PMPI_Isend(real_of(data), count, type, to, tag, comm, request);
}

int MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request *request) {
    return PMPI_Irecv(real_of(data), count, type, from, tag, comm, request);
}
