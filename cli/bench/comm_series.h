/* comm_series.h - which operations `bench comm` times by which back ends. Pure. */
#ifndef HP_COMM_SERIES_H
#define HP_COMM_SERIES_H

#include "base/arena.h"
#include "plan/collectives/collective.h"
#include "machines/device/device_kind.h"

typedef struct comm_where {
    const hp_device_info *device;
    int32_t ranks, root, per_node; /* per_node: as hp_collective_case */
} comm_where;

/* *series: "allreduce:own.ring,allreduce:mpi,sendrecv:mpi", as hplan-exec --bench-comm takes it. ops: names of collectives
 * and sendrecv, separated by commas; "all". backends: back ends of the device, with algorithms of those that have them:
 * "own,own.ring,mpi"; "auto", each back end as it chooses itself; "all", every algorithm as well. What does not do an
 * operation is left out there. Errors: HP_EUSAGE (no such name, an operation without a back end, a back end without an
 * operation). */
hp_status comm_series_list(hp_arena *arena, const comm_where *where, const char *ops, const char *backends,
                           const char **series, hp_error *err);

#endif
