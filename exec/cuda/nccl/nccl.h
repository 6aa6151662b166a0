/* nccl.h - messages and all-reduces by NCCL, as work of the GPU's streams. */
#ifndef HP_NCCL_H
#define HP_NCCL_H

#include "exec/comm/comm.h"

/* Communicates data in `memory` by NCCL. `inner`, which it takes over, carries everything else.
 * Point-to-point messages have one stream and all-reduces another. The program proves the order of each
 * stream's operations free of deadlock over all ranks (plan/program/lanes.h). Communicators are non-blocking:
 * polling detects hangs and failures, which abort them. Collective: over all ranks. Errors: HP_EUNAVAIL (two
 * ranks on one GPU, which NCCL does not allow). Source: NCCL user guide, "Fault tolerance", "Group calls". */
hp_status hp_comm_nccl(hp_comm *inner, const hp_memory *memory, hp_comm **comm, hp_error *err);

#endif
