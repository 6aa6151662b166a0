/* comm_series.h - which operations `bench comm` times with which back ends. Pure. */
#ifndef HP_COMM_SERIES_H
#define HP_COMM_SERIES_H

#include "base/arena.h"
#include "plan/collectives/collective.h"
#include "machines/device/device_kind.h"

typedef struct comm_where {
    const hp_device_info *device;
    int32_t ranks, root, per_node; /* per_node: as hp_collective_case */
} comm_where;

/* *series: "allreduce:own.ring,allreduce:mpi,sendrecv:mpi", the argument of hplan-exec --bench-comm. ops:
 * names of collectives and sendrecv, separated by commas; "all". backends: back ends of the device, with an
 * algorithm for those that have them: "own,own.ring,mpi"; "auto": each back end's own choice; "all": every
 * algorithm as well. "auto" and "all" omit combinations that do not exist. Errors: HP_EUSAGE (no such name,
 * an operation without a back end, a back end without an operation). */
hp_status comm_series_list(hp_arena *arena, const comm_where *where, const char *ops, const char *backends,
                           const char **series, hp_error *err);

#endif
